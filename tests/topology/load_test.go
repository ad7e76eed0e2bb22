package topology

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
	"github.com/polyphony-memory/polyphony/workflows"
)

// agent is one caller with a workspace of its own. It proposes a fact, looks
// for it, has a preamble made about it, notes something, and begins again.
type agent struct {
	client    *workflows.Client
	workspace string

	mu sync.Mutex
	// calls are those that were answered, in order.
	calls []answered
	// facts are the ids of the proposals, by key.
	facts map[string]string
	// ended is the key at which the load ended, perhaps before its note.
	ended string
	err   error
}

// answered is when a call began and ended.
type answered struct{ began, ended time.Time }

func (a *agent) caller(key string) record.Caller {
	return record.Caller{Workspace: a.workspace, Agent: "walker", Role: "coder", Key: key}
}

func (a *agent) proposal(key string) record.ProposeFact {
	return record.ProposeFact{
		Caller: a.caller(key), Domain: "paths", Topic: "gate " + key,
		Content: fmt.Sprintf("The gate called %s opens for those who walk in %s", key, a.workspace),
	}
}

// pace is how often an agent calls, at most: 32 agents that never rest measure
// how long a queue becomes, not what a call takes.
const pace = time.Second

// run calls until stop is closed; a call that is under way is waited for.
func (a *agent) run(ctx context.Context, stop <-chan struct{}) {
	turn := time.NewTicker(pace)
	defer turn.Stop()
	for i := 0; ; i++ {
		key := fmt.Sprintf("gate%d", i)
		for _, call := range []func(context.Context, string) error{a.propose, a.search, a.dispatch, a.note} {
			select {
			case <-stop:
				a.ended = key
				return
			case <-turn.C:
			}
			began := time.Now()
			err := call(ctx, key)
			a.mu.Lock()
			a.calls = append(a.calls, answered{began, time.Now()})
			a.err = err
			a.mu.Unlock()
			if err != nil {
				return
			}
		}
	}
}

func (a *agent) propose(ctx context.Context, key string) error {
	out, err := a.client.ProposeFact(ctx, a.proposal(key))
	if err != nil {
		return err
	}
	if out.Status != record.StatusCreated {
		return fmt.Errorf("%s of %s is %s", key, a.workspace, out.Status)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.facts[key] = out.FactID
	return nil
}

func (a *agent) search(ctx context.Context, key string) error {
	out, err := a.client.SearchMemory(ctx, record.Search{Caller: a.caller(""), Query: key, Mode: "keyword"})
	if err == nil && (len(out.Facts) == 0 || out.Facts[0].ID != a.facts[key]) {
		err = fmt.Errorf("%s does not find %s first, which was acknowledged", a.workspace, key)
	}
	return err
}

func (a *agent) dispatch(ctx context.Context, key string) error {
	out, err := a.client.AssemblePreamble(ctx, record.Dispatch{Caller: a.caller(""), Task: "Walk through the gate called " + key})
	if err == nil && !slices.Contains(out.FactIDs, a.facts[key]) {
		err = fmt.Errorf("the preamble of %s lacks %s, which was acknowledged", a.workspace, key)
	}
	return err
}

func (a *agent) note(ctx context.Context, key string) error {
	_, err := a.client.RecordObservation(ctx, record.RecordObservation{Caller: a.caller("note-" + key), Text: "walked through " + key})
	return err
}

// answers is how many calls were answered.
func (a *agent) answers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.calls)
}

func (a *agent) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// between returns the calls that began at or after from and ended before to.
func (a *agent) between(from, to time.Time) []answered {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.calls), func(c answered) bool { return c.began.Before(from) || !c.ended.Before(to) })
}

// fleet is many agents at once.
type fleet struct {
	agents []*agent
	stop   chan struct{}
	wg     sync.WaitGroup
}

// startLoad gives every shard two workspaces and every workspace an agent.
func startLoad(ctx context.Context, c *cluster) *fleet {
	l := &fleet{stop: make(chan struct{})}
	perShard := map[int]int{}
	for i := 0; len(l.agents) < 2*shards; i++ {
		workspace := fmt.Sprintf("fleet-%d", i)
		if shard := workflows.Shard(workspace, shards); perShard[shard] < 2 {
			perShard[shard]++
			l.agents = append(l.agents, &agent{client: c.client(), workspace: workspace, facts: map[string]string{}})
		}
	}
	for _, a := range l.agents {
		l.wg.Go(func() { a.run(ctx, l.stop) })
	}
	return l
}

// of returns the agents whose shards are first to last.
func (l *fleet) of(first, last int) []*agent {
	return slices.DeleteFunc(slices.Clone(l.agents), func(a *agent) bool {
		s := workflows.Shard(a.workspace, shards)
		return s < first || s > last
	})
}

// await waits until each of the agents was answered more times.
func await(t *testing.T, agents []*agent, more int) {
	t.Helper()
	from := make([]int, len(agents))
	for i, a := range agents {
		from[i] = a.answers()
	}
	eventually(t, fmt.Sprintf("each of %d agents is answered %d more times", len(agents), more), func() bool {
		for i, a := range agents {
			if err := a.failed(); err != nil {
				t.Fatalf("%s: %v", a.workspace, err)
			}
			if a.answers() < from[i]+more {
				return false
			}
		}
		return true
	})
}

// end stops the load after the calls that are under way.
func (l *fleet) end() {
	close(l.stop)
	l.wg.Wait()
}

// stats are the latencies of calls.
func stats(agents []*agent, from, to time.Time) string {
	var took []time.Duration
	for _, a := range agents {
		for _, c := range a.between(from, to) {
			took = append(took, c.ended.Sub(c.began))
		}
	}
	if len(took) == 0 {
		return "no calls"
	}
	at := func(p float64) time.Duration { return load.Percentile(took, p).Round(time.Millisecond) }
	return fmt.Sprintf("%d calls, p50 %v, p95 %v, longest %v", len(took), at(50), at(95), at(100))
}
