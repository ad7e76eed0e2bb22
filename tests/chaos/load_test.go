package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// stepWrite is the ledger's step of a workflow that does one thing.
const stepWrite = "write"

// call is one call of the load. It carries its own key, so that it can be made
// again after a kill and is still the same call.
type call struct {
	// kind is what it does, ledger the key of its row in the operation ledger,
	// empty for a call that has no row of its own.
	kind, ledger string
	make         func(context.Context, *workflows.Client) (any, error)
	// took is told the answer once, when the call is acknowledged.
	took func(answer any)
	// refusal is the error that the call must be answered with; mayRefuse one
	// that it may be.
	refusal, mayRefuse record.Code
	// reports says that the answer tells of work done by this attempt alone, so
	// that a repeat after a kill may rightly tell of less.
	reports bool
}

// lane is a sequence of calls, each made after the one before was answered.
// What a lane touches no other lane of the load touches, so that its outcome
// does not depend on how lanes interleave; within a workspace they share the
// file, its writer and its transactions.
type lane interface {
	// next makes the lane's next call. It depends on the seed and on earlier
	// answers.
	next() call
	name() string
	workspace() string
}

// asked builds a call with its key and the ledger's.
func asked[In any, Out any](kind string, caller record.Caller, in In, method func(*workflows.Client, context.Context, In) (Out, error), took func(Out)) call {
	return call{
		kind: kind, ledger: workflows.LedgerKey(workflows.ID(kind, caller.Workspace, caller.Key), stepWrite),
		make: func(ctx context.Context, c *workflows.Client) (any, error) { return method(c, ctx, in) },
		took: func(answer any) { took(answer.(Out)) },
	}
}

// plan is the load of one seed.
type plan struct {
	lanes []lane
	// calls is how many calls lane i makes.
	calls []int
	facts []*factLane
	own   []*agentLane
}

const agentsPerWorkspace = 4

// newPlan spreads calls over workspaces. A quarter of a workspace's calls are
// about its facts, in one lane; the rest are its agents' own, a lane each.
func newPlan(s settings) *plan {
	p := &plan{}
	share := s.calls / s.workspaces
	for w := range s.workspaces {
		workspace := fmt.Sprintf("yard-%d", w)
		seed := rand.NewPCG(s.seed, uint64(w)<<8)
		p.facts = append(p.facts, &factLane{of: workspace, random: rand.New(seed), held: newHeld()})
		p.add(p.facts[w], s.calls/4/s.workspaces)
		for a := range agentsPerWorkspace {
			own := &agentLane{of: workspace, agent: fmt.Sprintf("agent-%d", a), random: rand.New(rand.NewPCG(s.seed, uint64(w)<<8|uint64(a+1))), held: newHeld()}
			p.own = append(p.own, own)
			p.add(own, (share-share/4)/agentsPerWorkspace)
		}
	}
	return p
}

func (p *plan) add(l lane, calls int) {
	p.lanes = append(p.lanes, l)
	p.calls = append(p.calls, calls)
}

// total is the number of calls of the plan.
func (p *plan) total() (n int) {
	for _, c := range p.calls {
		n += c
	}
	return n
}

// held is what a lane was told that the record holds: the model that the file
// is compared with. Each set holds ids.
type held struct {
	facts, observations, items, policies, episodes, obligations map[string]bool
	// mentions counts the answers that said re-mentioned.
	mentions int
}

func newHeld() held {
	return held{
		facts: map[string]bool{}, observations: map[string]bool{}, items: map[string]bool{},
		policies: map[string]bool{}, episodes: map[string]bool{}, obligations: map[string]bool{},
	}
}
