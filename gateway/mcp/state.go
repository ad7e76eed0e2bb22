package mcp

import (
	"context"

	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// Arguments that several tools of the state take.
var (
	taskArg = params.Name("task_id", "Id of the task, the same for every agent that works on it.").Must()
	stepArg = params.Name("step", "Id of the step within its task.").Must()
)

func stateTools() []tool {
	return []tool{
		writes(tool{
			name: "state.open", title: "Open a step", effect: effect{idempotent: true},
			about: "Commit a task to a step that must happen once: a payment, a message, a release. Use it for every such step before any is done, with after for the order. The same step again finds it (outcome exists); " +
				"another kind, order or deadline for it is refused. Then claim, act, commit: state_claim, the act itself, state_commit. Do not use it for what may happen twice without harm.",
			args: params.List{
				taskArg, stepArg,
				params.Name("kind", "What the step does, like payment."),
				{Name: "after", Kind: params.Texts, MaxItems: record.MaxAfter, About: "Steps of the same task that must be done first; they may be opened later."},
				{Name: "deadline", Kind: params.Text, Time: true, About: "When the step expires if it is not done; never when left out."},
			},
		}, (*workflows.Client).StateOpen),
		writes(tool{
			name: "state.claim", title: "Claim a step", effect: adding,
			about: "Take a step before you act on it, so that nobody else does. Act only when the outcome is claimed or extended, and before lease_until; give the outside system the obligation's key as its idempotency key. " +
				"held means that a claim stands (claimed_by says whose): do not act. closed means that it is over: the obligation says how, by whom and with which result, which is your answer too. " +
				"A doubt in the answer means in doubt: an agent before you may have acted without telling. Ask the outside system for the doubt's key first; commit what it knows, act only when it knows nothing. " +
				"OutOfOrder names the steps that must be done before. If you were started again, claim under a new idempotency key, so that you are told of the doubt that you left yourself: the old key repeats its old answer, even when the lease is over.",
			args: params.List{
				taskArg, stepArg,
				{Name: "lease_seconds", Kind: params.Integer, Min: params.Bound(1), Max: params.Bound(record.MaxLeaseSeconds), Default: record.DefaultLeaseSeconds, About: "How long the claim holds: longer than the act can take."},
				{Name: "claim", Kind: params.Integer, Min: params.Bound(1), About: "Number of your own claim, to begin its lease anew; leave out to claim."},
			},
		}, (*workflows.Client).StateClaim),
		writes(tool{
			name: "state.commit", title: "Commit a step", effect: effect{idempotent: true},
			about: "Record that a step is done, and what came of it, right after you acted or found that it was done. It cannot be undone. committed means that the record is yours. " +
				"closed means that it was over before: the obligation says how, by whom and with which result, which stands. held means that another's claim stands, and nothing was recorded. OutOfOrder names the steps that must be done before.",
			args: params.List{
				taskArg, stepArg,
				{Name: "claim", Kind: params.Integer, Min: params.Bound(1), About: "Number of the claim that you acted under, from state_claim; your own name's claim when left out."},
				{Name: "result", Kind: params.Text, MaxLength: record.MaxContentBytes, About: "What came of it, like a receipt's number: everybody who comes later gets it."},
			},
		}, (*workflows.Client).StateCommit),
		lists[record.Obligation](tool{
			name: "state.list", title: "List steps",
			about: "List the steps that a task has committed to, in the order they were opened, with state, holder, order and result. Use it when you begin or take over a task, and whenever you must know whether a step was done: " +
				"the record decides that, never search_memory and never what you remember. in_doubt marks a step whose holder never told how it ended.",
			args: params.List{
				params.Name("task_id", "Only this task; every task of the workspace when left out."),
				{Name: "open_only", Kind: params.Flag, Default: false, About: "Only those that are not closed."},
			},
		}, record.ReadObligations),
		lists[record.Fact](tool{
			name: "state.read_facts", title: "Read the facts on a subject",
			about: "Read every current fact on a subject: filed under it as their topic, or naming it word for word, oldest first. Nothing is ranked, guessed or left out. " +
				"Use it when an answer must be complete; to find something by its meaning, use search_memory.",
			args: params.List{
				params.Name("subject", "The subject, by its name.").Must(), onlyDomain,
				{Name: "all", Kind: params.Flag, Default: false, About: "Superseded, archived and expired ones too, marked."},
			},
		}, record.ReadSubject),
		writes(tool{
			name: "state.append_episode", title: "Keep what was said", effect: adding,
			about: "Keep what was said or seen in a task, word for word: a person's request, an answer, a tool's output. Episodes can be searched and decide nothing. What later work needs as true is a fact (propose_fact); that a step is done, state_commit records.",
			args: params.List{
				taskArg,
				{Name: "content", Kind: params.Text, Required: true, MaxLength: record.MaxContentBytes, About: "The words."},
				{Name: "episode_role", Kind: params.Text, MaxLength: record.MaxNameBytes, Default: "agent", About: "Who spoke: user, agent, tool or any other name."},
			},
		}, (*workflows.Client).AppendEpisode),
		{
			name: "state.check", title: "Check statements", effect: reading, result: schemaOf[rows[record.CheckedStatement]], run: check,
			about: "Hold what you believe against the record, one verdict for each statement, in order: current, stale (it was so, and was replaced), contradicted, or unknown when the record is silent; with what the record says now. " +
				"Use it before you act on what an earlier conversation, a summary or another agent told you, and go by what the record says now. It looks at facts; whether a step was done, state_list says.",
			args: params.List{
				{Name: "context", Kind: params.Texts, Required: true, MaxItems: record.MaxContextStatements, About: "Statements that you hold true, each by itself."},
				params.Name("cursor", "Where to go on, with the same context: next of the answer before."),
			},
		},
	}
}

// check answers every statement at once as far as an answer reaches.
func check(ctx context.Context, c call) (answer, error) {
	in, err := params.Into[record.ReadMemory](c.args, c.caller)
	if err != nil {
		return answer{}, err
	}
	in.What, in.Limit = record.ReadCheck, record.MaxContextStatements
	page, err := readFitting[record.CheckedStatement](ctx, c.memory, in)
	return answer{value: page}, err
}
