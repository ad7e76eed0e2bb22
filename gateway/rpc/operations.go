package rpc

import (
	"context"
	"encoding/json"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// operation is one row of the table.
type operation struct {
	name string
	// about says what it does, returns what its result holds.
	about, returns string
	// keyed operations take an idempotency key: they change something.
	keyed bool
	args  params.List
	run   func(context.Context, call) (any, error)
}

// call is one call, its arguments checked and its caller known.
type call struct {
	args     map[string]json.RawMessage
	caller   record.Caller
	identity gateway.Identity
	memory   *gateway.Memory
}

// params returns every argument of the operation.
func (o operation) params() params.List {
	all := append(o.args[:len(o.args):len(o.args)], params.Caller()...)
	if o.keyed {
		all = append(all, params.Key())
	}
	return all
}

const (
	// defaultRows is how many rows a list has when no limit is given, graphFacts
	// how many facts a graph.
	defaultRows, graphFacts = 100, 200
)

// Arguments that several operations take.
var (
	factID     = params.Name("fact_id", "Id of the fact.").Must()
	policyID   = params.Name("policy_id", "Id of the policy.").Must()
	onlyDomain = params.Name("domain", "Only this domain.")
	theDomain  = params.Name("domain", "The domain, like architecture or repo:<slug>/architecture.").Must()
	reason     = params.Name("reason", "Why, for the history.")
	forRole    = params.Param{Name: "for_role", Kind: params.Text, Required: true, Enum: params.Names(record.Roles()), About: "Role that the grant is for."}
	readBefore = params.Param{Name: "expected_version", Kind: params.Integer, Min: params.Bound(1), About: "Version that was read; the call is refused when it changed since."}
)

// operations is the table of everything that can be called.
func operations() []operation {
	all := append(factOperations(), policyOperations()...)
	return append(append(all, orderOperations()...), workspaceOperations()...)
}

func factOperations() []operation {
	return []operation{
		lists[record.Fact](operation{
			name: "memory_fact.list", about: "List the current facts, oldest first.", returns: "items: facts; next",
			args: params.List{onlyDomain, {Name: "all", Kind: params.Flag, Default: false, About: "Superseded, archived and expired ones too, marked."}},
		}, record.ReadFacts),
		reads[record.Fact](operation{
			name: "memory_fact.get", about: "Read one fact, current or not.", returns: "the fact", args: params.List{factID},
		}, record.ReadFact, "fact_id"),
		{
			name: "memory_fact.search", about: "Find current facts and policies by key words. It is key words only, by design: no model is asked.",
			returns: "facts with score, the rank of each voice and history_length; policies; voices; left, when some had to be left out",
			args: params.List{
				{Name: "query", Kind: params.Text, Required: true, MaxLength: record.MaxTaskBytes, About: "Words; nothing in it is query syntax."},
				{Name: "limit", Kind: params.Integer, Min: params.Bound(0), Max: params.Bound(100), Default: 10, About: "How many facts at most."},
				onlyDomain,
			},
			run: search,
		},
		{
			name: "memory_fact.history", about: "Read the whole chain that a fact belongs to: facts oldest first, what they said before edits, and every event.",
			returns: "fact_id, chain, versions, events; next", args: append(params.List{factID}, params.Page(defaultRows)...), run: history,
		},
		writes(operation{
			name: "memory_fact.update", about: "Edit a current fact by hand. What is left out stays; the version before is kept, and no counter is reset.",
			returns: "fact_id, version",
			args: params.List{
				factID, readBefore.Must(), params.Name("topic", "What it is about."),
				{Name: "content", Kind: params.Text, MaxLength: record.MaxContentBytes, About: "The statement."},
				{Name: "confidence", Kind: params.Number, Min: params.Bound(0), Max: params.Bound(1), About: "How sure it is."},
				{Name: "memory_type", Kind: params.Text, Enum: params.Names(record.MemoryTypes()), About: "What kind of statement it is."},
				{Name: "veracity", Kind: params.Text, Enum: params.Names(record.Veracities()), About: "How it was come by."},
				{Name: "valid_until", Kind: params.Text, Time: true, About: "Until when it holds."},
				reason,
			},
		}, (*workflows.Client).UpdateFact),
		writes(operation{
			name: "memory_fact.delete", about: "Delete a fact for good, with everything that was made of it. Nothing brings it back; to retire a fact, an agent supersedes it.",
			returns: "fact_id", args: params.List{factID, readBefore},
		}, (*workflows.Client).DeleteFact),
		writes(operation{
			name: "memory_fact.restore", about: "Make a superseded or archived fact current again.", returns: "fact_id, was, conflict_ids", args: params.List{factID, reason},
		}, (*workflows.Client).RestoreFact),
	}
}

func policyOperations() []operation {
	return []operation{
		lists[record.Policy](operation{
			name: "memory_policy.list", about: "List the active policies, by domain, oldest first.", returns: "items: policies; next",
			args: params.List{onlyDomain, {Name: "all", Kind: params.Flag, Default: false, About: "Superseded ones too, marked."}},
		}, record.ReadPolicies),
		reads[record.PolicyRecord](operation{
			name: "memory_policy.get", about: "Read one policy and what it said before edits.", returns: "the policy; versions", args: params.List{policyID},
		}, record.ReadPolicy, "policy_id"),
		writes(operation{
			name: "memory_policy.update", about: "Edit an active policy by hand; needs write on its domain. What is left out stays; the version before is kept.", returns: "policy_id, version",
			args: params.List{
				policyID, readBefore.Must(),
				{Name: "rule", Kind: params.Text, MaxLength: record.MaxRuleBytes, About: "What agents should do."},
				{Name: "required_role", Kind: params.Text, Enum: params.Names(record.Roles()), About: "Role that it is meant for."},
				reason,
			},
		}, (*workflows.Client).UpdatePolicy),
		writes(operation{
			name: "memory_policy.delete", about: "Delete a policy for good; needs write on its domain.", returns: "policy_id", args: params.List{policyID, readBefore},
		}, (*workflows.Client).DeletePolicy),
		lists[record.Domain](operation{name: "memory_domain.list", about: "List the domains that the role may see, with counts.", returns: "items: domains; next"}, record.ReadDomains),
		lists[record.Grant](operation{name: "memory_access_grant.list", about: "List every grant, by domain and role. A role without one may read.", returns: "items: grants; next"}, record.ReadGrants),
		writingGrants(operation{
			name: "memory_access_grant.set", about: "Give a role a level in a domain that exists. Under a token its own role needs write there.", returns: "grant",
			args: params.List{forRole, theDomain, {Name: "level", Kind: params.Text, Required: true, Enum: []string{string(record.None), string(record.Read), string(record.Write)}, About: "What the role may do there."}},
		}, (*workflows.Client).SetGrant),
		writingGrants(operation{
			name: "memory_access_grant.delete", about: "Take a role's grant in a domain back; without one it may read. Under a token its own role needs write there.", returns: "grant: what stands now",
			args: params.List{forRole, theDomain},
		}, (*workflows.Client).DeleteGrant),
	}
}

func orderOperations() []operation {
	return []operation{
		reads[record.Graph](operation{
			name: "memory_graph.get", about: "Read the knowledge graph: domains, topics, policies and the newest facts, and the edges between them.", returns: "nodes; edges; left, the facts that are not in it",
			args: params.List{onlyDomain, {Name: "limit", Kind: params.Integer, Min: params.Bound(1), Max: params.Bound(1000), Default: graphFacts, About: "How many facts at most."}},
		}, record.ReadGraph, ""),
		lists[record.Conflict](operation{
			name: "memory_conflict.list", about: "List conflicts, newest first, with both sides and the reason.", returns: "items: conflicts; next",
			args: params.List{onlyDomain, {Name: "open_only", Kind: params.Flag, Default: false, About: "Only those that wait for a decision."}},
		}, record.ReadConflicts),
		writes(operation{
			name: "memory_conflict.resolve", about: "Decide an open conflict. The same decision again is answered as the first; another one is refused with SupersedeInvalid.", returns: "conflict",
			args: params.List{params.Name("conflict_id", "Id of the conflict.").Must(), params.Name("winner", "Id of the fact that holds, or both.").Must(), reason},
		}, (*workflows.Client).ResolveConflict),
		lists[record.Belief](operation{
			name: "memory_belief.list", about: "List what at least two agents hold, by domain, oldest first.", returns: "items: beliefs; next", args: params.List{onlyDomain},
		}, record.ReadBeliefs),
	}
}

func workspaceOperations() []operation {
	return []operation{
		{name: "workspace.list", about: "List the workspaces: with a token, its own; without one, those of the worker that owns the named one.", returns: "workspaces", run: workspaces},
		lists[record.Fact](operation{
			name: "workspace.export", about: "Read the facts of a workspace, oldest first, a page at a time; each item is a line that import reads.", returns: "items: facts; next",
			args: params.List{{Name: "all", Kind: params.Flag, Default: false, About: "Superseded, archived and expired facts too."}},
		}, record.ReadFacts),
		reads[record.Health](operation{
			name: "workspace.health", about: "Read the state of the workspace's file: index, backlogs, last maintenance, problems.", returns: "the health",
			args: params.List{{Name: "deep", Kind: params.Flag, Default: false, About: "Check every page of the file; takes longer."}},
		}, record.ReadHealth, ""),
	}
}

// writes makes o an operation that runs a workflow through a method of the
// client.
func writes[In, Out any](o operation, method func(*workflows.Client, context.Context, In) (Out, error)) operation {
	o.keyed = true
	o.run = func(ctx context.Context, c call) (any, error) {
		in, err := params.Into[In](c.args, c.caller)
		if err != nil {
			return nil, err
		}
		out, err := method(c.memory.Client, ctx, in)
		if r, ok := any(&out).(interface{ Stamp(string) }); ok {
			r.Stamp("")
		}
		return out, err
	}
	return o
}

// writingGrants is writes for what changes grants. A token's role must have
// write on the domain, else it could lift itself; on an open loopback address
// anybody may take any role, so nothing is asked.
func writingGrants[In, Out any](o operation, method func(*workflows.Client, context.Context, In) (Out, error)) operation {
	o = writes(o, method)
	run := o.run
	o.run = func(ctx context.Context, c call) (any, error) {
		if c.identity.Token != "" {
			c.args["need_write"] = json.RawMessage("true")
		}
		return run(ctx, c)
	}
	return o
}

// lists makes o an operation that reads a page of rows.
func lists[T any](o operation, what record.ReadKind) operation {
	o.args = append(o.args, params.Page(defaultRows)...)
	o.run = func(ctx context.Context, c call) (any, error) {
		in, err := params.Into[record.ReadMemory](c.args, c.caller)
		if err != nil {
			return nil, err
		}
		in.What = what
		if in.Limit == 0 {
			in.Limit = defaultRows
		}
		return gateway.ReadPage[T](ctx, c.memory, in)
	}
	return o
}

// reads makes o an operation that reads one row, of the id in the argument.
func reads[T any](o operation, what record.ReadKind, id string) operation {
	o.run = func(ctx context.Context, c call) (any, error) {
		in, err := params.Into[struct {
			record.ReadMemory
			Deep bool `json:"deep"`
		}](c.args, c.caller)
		if err != nil {
			return nil, err
		}
		in.What, in.All = what, in.Deep
		if id != "" {
			if err := json.Unmarshal(c.args[id], &in.ID); err != nil {
				return nil, err
			}
		}
		if what == record.ReadGraph && in.Limit == 0 {
			in.Limit = graphFacts
		}
		return gateway.One[T](ctx, c.memory, in.ReadMemory)
	}
	return o
}

func search(ctx context.Context, c call) (any, error) {
	in, err := params.Into[record.Search](c.args, c.caller)
	if err != nil {
		return nil, err
	}
	in.Mode = string(record.Keyword)
	return c.memory.Search(ctx, in)
}

func history(ctx context.Context, c call) (any, error) {
	in, err := params.Into[struct {
		record.ReadMemory
		FactID string `json:"fact_id"`
	}](c.args, c.caller)
	if err != nil {
		return nil, err
	}
	in.What, in.ID = record.ReadHistory, in.FactID
	if in.Limit == 0 {
		in.Limit = defaultRows
	}
	page, err := gateway.ReadPage[record.HistoryRow](ctx, c.memory, in.ReadMemory)
	if err != nil {
		return nil, err
	}
	return gateway.HistoryOf(in.ReadMemory, page.Items, page.Next)
}

func workspaces(ctx context.Context, c call) (any, error) {
	type listed struct {
		Workspaces []string `json:"workspaces"`
	}
	if c.identity.Token != "" {
		return listed{[]string{c.caller.Workspace}}, nil
	}
	page, err := gateway.ReadPage[string](ctx, c.memory, record.ReadMemory{Caller: c.caller, What: record.ReadWorkspaces})
	return listed{page.Items}, err
}
