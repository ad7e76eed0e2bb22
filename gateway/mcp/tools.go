package mcp

import (
	"context"
	"slices"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// Arguments that several tools take.
var (
	domainArg  = params.Name("domain", "Domain, like architecture, or repo:<slug>/architecture for a repository's own.")
	onlyDomain = params.Name("domain", "Only this domain.")
	reasonArg  = params.Name("reason", "Why, for the history.")
	typeArg    = params.Param{Name: "memory_type", Kind: params.Text, Enum: params.Names(record.MemoryTypes()), About: "What kind of statement it is, which decides how fast it fades; classified from the content when left out."}
)

// tools is the table of everything an agent can call.
func tools() []tool {
	return slices.Concat(factTools(), policyTools(), agentTools(), orderTools(), stateTools())
}

func factTools() []tool {
	return []tool{
		{
			name: "search_memory", title: "Search memory", effect: reading, result: schemaOf[record.SearchResult], run: search,
			about: "Find what is known: facts, and the policies that match, best first. Use it before you rely on something about the project, its people, conventions or past decisions, and whenever the task names something you do not know. " +
				"An exact identifier, error code, path or number finds its fact first. It returns nothing when nothing matches. Do not use it for what this conversation already says, or to decide whether a step of a task was done (state_list).",
			args: params.List{
				{Name: "query", Kind: params.Text, Required: true, MaxLength: record.MaxTaskBytes, About: "What you want to know, in words; nothing in it is query syntax."},
				{Name: "mode", Kind: params.Text, Enum: []string{string(record.Hybrid), string(record.Keyword), string(record.Semantic)}, Default: string(record.Hybrid), About: "How to look: hybrid is best for most questions, keyword for exact words, semantic for meaning."},
				{Name: "limit", Kind: params.Integer, Min: params.Bound(0), Max: params.Bound(100), Default: 10, About: "How many facts at most."},
				onlyDomain,
				{Name: "as_of", Kind: params.Text, Time: true, About: "Ask what was believed at this time."},
			},
		},
		writes(tool{
			name: "propose_fact", title: "Propose a fact", effect: adding,
			about: "Keep something true that later work needs: a convention, an outcome, a decision, a preference. One statement a fact, complete in itself, with names instead of pronouns. " +
				"The memory compares it with what is known under the same domain and topic: the answer says whether it is new, known already, a refinement, or contradicts something. " +
				"Do not use it for guesses, for secrets, for rules that agents must follow (propose_policy), or for what only you need next time (record_observation).",
			args: params.List{
				domainArg.Must(),
				params.Name("topic", "What the fact is about, in a few words; facts of one topic are compared with each other.").Must(),
				{Name: "content", Kind: params.Text, Required: true, MaxLength: record.MaxContentBytes, About: "The statement."},
				{Name: "veracity", Kind: params.Text, Enum: params.Names(record.Veracities()), Default: string(record.Inferred), About: "How it was come by: stated by a person, inferred by you, imported, given by a tool, or unknown."},
				{Name: "confidence", Kind: params.Number, Min: params.Bound(0), Max: params.Bound(1), About: "How sure you are; at most the veracity's weight, which is also the default."},
				typeArg,
				{Name: "valid_until", Kind: params.Text, Time: true, About: "Until when it holds, when it has an end."},
				{Name: "source_observation_ids", Kind: params.Texts, MaxItems: record.MaxSources, About: "Observations that it comes from."},
				{Name: "dry_run", Kind: params.Flag, Default: false, About: "Only say what would happen."},
			},
		}, (*workflows.Client).ProposeFact),
		writes(tool{
			name: "supersede_fact", title: "Supersede a fact", effect: correcting,
			about: "Say that one known fact takes the place of another, when both are there and the memory did not see it itself. The old one stays in the history. Do not use it to correct a fact: propose the correct one instead.",
			args: params.List{
				params.Name("old", "Id of the fact that no longer holds.").Must(),
				params.Name("new", "Id of the fact that holds.").Must(),
				reasonArg,
			},
		}, (*workflows.Client).SupersedeFact),
		writes(tool{
			name: "restore_fact", title: "Restore a fact", effect: adding,
			about: "Make a superseded or archived fact current again, when it was retired by mistake. If it was superseded, the conflict with its successor opens for review.",
			args:  params.List{params.Name("fact_id", "Id of the fact.").Must(), reasonArg},
		}, (*workflows.Client).RestoreFact),
		{
			name: "fact_history", title: "History of a fact", effect: reading, result: schemaOf[gateway.History], run: factHistory,
			about: "Show the whole chain that a fact belongs to: what it replaced, what replaced it, who said so, when and why. Use it before you dispute a fact, or when two answers differ.",
			args:  append(params.List{params.Name("fact_id", "Id of any fact of the chain.").Must()}, params.Page(defaultRows)...),
		},
		writes(tool{
			name: "capture_meeting_decisions", title: "Capture a meeting's decisions", effect: effect{destructive: true, idempotent: true}, ownKey: true,
			about: "Keep the decisions of one meeting as facts. Give all of them each time the minutes change, with a higher revision: decisions that are gone are withdrawn, and an empty list withdraws all. The same revision again changes nothing.",
			args: params.List{
				params.Name("meeting_id", "Id of the meeting, which stays when its title changes.").Must(),
				{Name: "revision", Kind: params.Integer, Required: true, Min: params.Bound(1), About: "Revision of the minutes, from 1."},
				{Name: "decisions", Kind: params.Items, Required: true, MaxItems: record.MaxDecisions, About: "Every decision that stands.", Fields: []params.Param{
					// Whether a decision can be taken, the store says for each by
					// its index; one that cannot stops no other.
					{Name: "text", Kind: params.Text, About: "What was decided."},
					{Name: "topic", Kind: params.Text, About: "What it is about; the meeting when left out."},
					{Name: "decided_by", Kind: params.Text, About: "Who decided it."},
				}},
				params.Name("title", "Title of the meeting."),
				{Name: "held_at", Kind: params.Text, Time: true, About: "When it was held."},
				{Name: "attendees", Kind: params.Texts, About: "Who attended."},
			},
		}, capture),
	}
}

func policyTools() []tool {
	return []tool{
		writes(tool{
			name: "propose_policy", title: "Propose a policy", effect: effect{idempotent: true},
			about: "Add a rule that every agent gets at every dispatch from now on. Use it only for what agents must do or must not do, and keep it short: every rule costs every agent room. Your role needs write on the domain. For what is merely true, use propose_fact.",
			args: params.List{
				domainArg.Must(),
				{Name: "rule", Kind: params.Text, Required: true, MaxLength: record.MaxRuleBytes, About: "What agents should do."},
				{Name: "required_role", Kind: params.Text, Enum: params.Names(record.Roles()), About: "Role that it is meant for; advice, shown after the rule."},
			},
		}, (*workflows.Client).ProposePolicy),
		writes(tool{
			name: "supersede_policy", title: "Supersede a policy", effect: correcting,
			about: "Retire a policy, with a new rule in its place when one is given. Your role needs write on the domain.",
			args: params.List{
				params.Name("policy_id", "Id of the policy.").Must(),
				{Name: "rule", Kind: params.Text, MaxLength: record.MaxRuleBytes, About: "The rule that takes its place; none retires the policy only."},
				{Name: "required_role", Kind: params.Text, Enum: params.Names(record.Roles()), About: "Role that the new rule is meant for."},
				reasonArg,
			},
		}, (*workflows.Client).SupersedePolicy),
		lists[record.Policy](tool{
			name: "list_policies", title: "List policies",
			about: "List the rules that agents follow, by domain, oldest first. At dispatch you already got them all; use it to find a policy's id before you supersede it.",
			args:  params.List{onlyDomain, {Name: "all", Kind: params.Flag, Default: false, About: "Superseded ones too, marked."}},
		}, record.ReadPolicies),
		lists[record.Domain](tool{
			name: "list_memory_domains", title: "List domains",
			about: "List the domains there are, with counts. Use it before you propose something, to take a domain that exists instead of making another.",
		}, record.ReadDomains),
	}
}

func agentTools() []tool {
	return []tool{
		writes(tool{
			name: "remember", title: "Remember for a while", effect: adding,
			about: "Keep something of this session that may be worth keeping: it is not searched as a fact, but consolidation may make one of it. When you know that later work needs it, use propose_fact.",
			args: params.List{
				{Name: "content", Kind: params.Text, Required: true, MaxLength: record.MaxContentBytes, About: "What to remember."},
				{Name: "session_id", Kind: params.Text, MaxLength: record.MaxNameBytes, Default: "default", About: "Session that it belongs to."},
				typeArg,
				{Name: "importance", Kind: params.Number, Min: params.Bound(0), Max: params.Bound(1), Default: 0.5, About: "How much it matters; the confidence it would get as a fact."},
				{Name: "ttl_seconds", Kind: params.Integer, Min: params.Bound(0), Default: 0, About: "How long it lives; 0 until it is consolidated."},
				params.Name("domain", "Domain that it would go to as a fact."),
				params.Name("topic", "Topic that it would get as a fact."),
			},
		}, (*workflows.Client).Remember),
		writes(tool{
			name: "record_observation", title: "Note an observation", effect: adding,
			about: "Append one line to your own notes, which only you get back, at your next dispatch. Use it for where you are in a task and what you saw. The answer's observation_id can be cited by propose_fact.",
			args:  params.List{{Name: "text", Kind: params.Text, Required: true, MaxLength: record.MaxContentBytes, About: "One line."}},
		}, (*workflows.Client).RecordObservation),
		{
			name: "get_my_notes", title: "Read my notes", effect: reading, result: schemaOf[record.Notes], run: notes,
			about: "Read your own page of notes, and its version. At dispatch you already got it; use it before you replace the page.",
		},
		writes(tool{
			name: "update_my_notes", title: "Replace my notes", effect: correcting,
			about: "Replace your own page of notes, to tidy it up or to start afresh; \"\" clears it. To add a line, use record_observation.",
			args: params.List{
				{Name: "text", Kind: params.Text, Required: true, Empty: true, MaxLength: record.MaxContentBytes, About: "The whole page."},
				{Name: "expected_version", Kind: params.Integer, Min: params.Bound(0), About: "Version that you read; the call is refused when the page changed since."},
			},
		}, (*workflows.Client).UpdateNotes),
		{
			name: "assemble_preamble", title: "Assemble the preamble", effect: reading, keyed: true, result: schemaOf[record.Preamble], run: preamble,
			about: "Get the text that an agent needs at the start of a task: every policy, its notes, and at most five facts that match. Use it once, when you begin a task or hand one to another agent. " +
				"Give the statements you hold as context, to learn which of them are no longer true.",
			args: params.List{
				{Name: "task", Kind: params.Text, MaxLength: record.MaxTaskBytes, About: "The task, in words; facts are looked for when it has 20 characters or more."},
				{Name: "context", Kind: params.Texts, MaxItems: record.MaxContextStatements, About: "Statements that you hold true, each by itself."},
			},
		},
	}
}

func orderTools() []tool {
	return []tool{
		{
			name: "consolidate_memory", title: "Consolidate memory", effect: effect{destructive: true, idempotent: true}, long: true, result: schemaOf[record.ConsolidationReport], run: consolidate,
			about: "Put memory in order: expire what has ended, make facts of session items, merge duplicates, archive what has faded and was never used. It never runs by itself; use it when a person asks, or at the end of a long piece of work. It may take minutes and goes on when you stop waiting; a second call joins it.",
			args:  params.List{params.Name("for_agent", "Only this agent's items and facts; everybody's when left out.")},
		},
		{
			name: "harmonize_memory", title: "Harmonize memory", effect: effect{idempotent: true}, long: true, result: schemaOf[record.HarmonizationReport], run: harmonize,
			about: "Compare what different agents hold: what they agree on becomes a belief, what they contradict becomes an open conflict. It never runs by itself; use it when a person asks. It may take minutes and goes on when you stop waiting; a second call joins it.",
		},
		lists[record.Conflict](tool{
			name: "list_memory_conflicts", title: "List conflicts",
			about: "List pairs of facts that met, newest first, with both sides and the reason. Use it with open_only to find what needs a decision.",
			args:  params.List{onlyDomain, {Name: "open_only", Kind: params.Flag, Default: false, About: "Only those that wait for a decision."}},
		}, record.ReadConflicts),
		writes(tool{
			name: "resolve_conflict", title: "Resolve a conflict", effect: correcting,
			about: "Decide an open conflict: the winner supersedes the other, or both are kept and the pair is not raised again. Use it only when you know, or a person told you, which holds. The same decision again is answered as the first; another one is refused.",
			args: params.List{
				params.Name("conflict_id", "Id of the conflict.").Must(),
				params.Name("winner", "Id of the fact that holds, or both.").Must(),
				reasonArg,
			},
		}, (*workflows.Client).ResolveConflict),
		lists[record.Belief](tool{
			name: "list_beliefs", title: "List beliefs",
			about: "List what at least two agents hold independently, with who and how sure. harmonize_memory makes them.",
			args:  params.List{onlyDomain},
		}, record.ReadBeliefs),
	}
}

func search(ctx context.Context, c call) (answer, error) {
	in, err := params.Into[record.Search](c.args, c.caller)
	if err != nil {
		return answer{}, err
	}
	out, err := c.memory.Search(ctx, in)
	if err != nil {
		return answer{}, err
	}
	policies, err := encode(out.Policies)
	if err != nil {
		return answer{}, err
	}
	n, err := fitting(out.Facts, len(policies))
	out.Left += len(out.Facts) - n
	out.Facts = out.Facts[:n]
	return answer{value: out}, err
}

func factHistory(ctx context.Context, c call) (answer, error) {
	in, err := params.Into[struct {
		record.ReadMemory
		FactID string `json:"fact_id"`
	}](c.args, c.caller)
	if err != nil {
		return answer{}, err
	}
	in.What, in.ID = record.ReadHistory, in.FactID
	page, err := readFitting[record.HistoryRow](ctx, c.memory, in.ReadMemory)
	if err != nil {
		return answer{}, err
	}
	out, err := gateway.HistoryOf(in.ReadMemory, page.Items, page.Next)
	return answer{value: out}, err
}

// capture captures a meeting's decisions. Its report names every decision that
// could not be taken, which may be all.
func capture(c *workflows.Client, ctx context.Context, in record.CaptureMeeting) (record.MeetingReport, error) {
	out, err := c.CaptureMeetingDecisions(ctx, in)
	if err != nil {
		return out, err
	}
	ids, err := encode(out.FactIDs)
	if err != nil {
		return out, err
	}
	n, err := fitting(out.Failed, len(ids))
	out.Left = len(out.Failed) - n
	out.Failed = out.Failed[:n]
	return out, err
}

func notes(ctx context.Context, c call) (answer, error) {
	out, err := c.memory.Notes(ctx, c.caller)
	return answer{value: out}, err
}

func preamble(ctx context.Context, c call) (answer, error) {
	in, err := params.Into[record.Dispatch](c.args, c.caller)
	if err != nil {
		return answer{}, err
	}
	out, err := c.memory.Client.AssemblePreamble(ctx, in)
	out.Stamp("")
	text := out.Text
	if err == nil && len(out.Stale) > 0 {
		stale, failed := encode(out.Stale)
		if failed != nil {
			return answer{}, failed
		}
		text += "\nStatements of your context that are no longer true, and what holds now:\n" + string(stale) + "\n"
		if slices.Contains(out.Cut, "stale") {
			text += "There are more of them; state_check goes through all.\n"
		}
	}
	return answer{value: out, text: text}, err
}

func consolidate(ctx context.Context, c call) (answer, error) {
	in, err := params.Into[record.Consolidate](c.args, c.caller)
	if err != nil {
		return answer{}, err
	}
	out, err := c.memory.Client.ConsolidateMemory(ctx, in, c.maintenance(record.ConsolidationPhases()))
	return answer{value: out}, err
}

func harmonize(ctx context.Context, c call) (answer, error) {
	in, err := params.Into[record.Harmonize](c.args, c.caller)
	if err != nil {
		return answer{}, err
	}
	out, err := c.memory.Client.HarmonizeMemory(ctx, in, c.maintenance(record.HarmonizationPhases()))
	return answer{value: out}, err
}

// maintenance passes on how far a run is.
func (c call) maintenance(phases []string) func(workflows.MaintenanceProgress) {
	return func(p workflows.MaintenanceProgress) {
		c.progress(float64(p.Pages), phases[min(p.Phase, len(phases)-1)])
	}
}
