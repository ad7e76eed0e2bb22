package topology

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// envOutage names how long the killed worker stays away.
const envOutage = "POLYPHONY_TOPOLOGY_OUTAGE"

// rounds is how many calls of each agent are waited for around each event: a
// whole round of what it does and some.
const rounds = 6

// TestTopology tells the life of a cluster in order: each part goes on with
// what the one before left.
func TestTopology(t *testing.T) {
	outage := 3 * time.Second
	if v := os.Getenv(envOutage); v != "" {
		var err error
		if outage, err = time.ParseDuration(v); err != nil {
			t.Fatalf("%s: %v", envOutage, err)
		}
	}
	c := startCluster(t)
	a := c.startWorker(t, "worker-a", "0-7")
	b := c.startWorker(t, "worker-b", "8-15")
	var agents []*agent
	if !t.Run("a worker is killed and comes back", func(t *testing.T) {
		agents, b = killed(t, c, b, outage)
	}) {
		return
	}
	if !t.Run("a second worker takes over", func(t *testing.T) { a = takenOver(t, c, a, agents) }) {
		return
	}
	t.Run("a shard moves", func(t *testing.T) { moved(t, c, a, b, agents) })
}

// killed has 32 agents call while the worker of half of them is killed and
// stays away: their calls wait and succeed, the others' go on, nothing is lost
// and nothing there twice.
func killed(t *testing.T, c *cluster, b *process, outage time.Duration) ([]*agent, *process) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	l := startLoad(ctx, c)
	ofA, ofB := l.of(0, 7), l.of(8, 15)
	await(t, l.agents, rounds)

	b.kill()
	down := time.Now()
	<-time.After(outage)
	await(t, ofA, rounds)
	up := time.Now()
	for _, agent := range ofB {
		if answered := agent.between(down, up); len(answered) > 0 {
			t.Errorf("%s was answered %d times while its worker was away", agent.workspace, len(answered))
		}
	}
	again := c.startWorker(t, "worker-b", "8-15")
	await(t, l.agents, rounds)
	l.end()
	end := time.Now()

	t.Logf("the worker of shards 8-15 was away for %v", up.Sub(down).Round(time.Millisecond))
	t.Logf("callers of 0-7 before: %s", stats(ofA, began, down))
	t.Logf("callers of 0-7 during: %s", stats(ofA, down, up))
	t.Logf("callers of 0-7 after:  %s", stats(ofA, up, end))
	t.Logf("callers of 8-15 before: %s", stats(ofB, began, down))
	t.Logf("callers of 8-15 after, with what waited: %s", stats(ofB, began, end))
	for _, agent := range l.agents {
		complete(t, c, agent)
		if t.Failed() {
			break
		}
	}
	return l.agents, again
}

// complete checks that what was acknowledged is there, once, and nothing else,
// and that the last call, repeated, has no second effect.
func complete(t *testing.T, c *cluster, a *agent) {
	t.Helper()
	if err := a.failed(); err != nil {
		t.Fatalf("%s: %v", a.workspace, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := fmt.Sprintf("gate%d", len(a.facts)-1)
	again, err := c.client().ProposeFact(ctx, a.proposal(last))
	if err != nil {
		t.Fatal(err)
	}
	if again.FactID != a.facts[last] {
		t.Errorf("%s: %s is fact %s at first and %s when it is repeated", a.workspace, last, a.facts[last], again.FactID)
	}
	facts, err := workflows.ReadAll[record.Fact](ctx, c.client(), record.ReadMemory{Caller: a.caller(""), What: record.ReadFacts, All: true})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]int{}
	for _, f := range facts {
		there[f.ID]++
	}
	for key, id := range a.facts {
		if there[id] != 1 {
			t.Errorf("%s: %s is there %d times", a.workspace, key, there[id])
		}
	}
	if len(facts) != len(a.facts) {
		t.Errorf("%s has %d facts, and %d were acknowledged", a.workspace, len(facts), len(a.facts))
	}
	for _, f := range facts {
		if f.MentionCount > 1 {
			t.Errorf("%s: %q was mentioned %d times", a.workspace, f.Content, f.MentionCount)
		}
	}
	notes, err := c.client().Notes(ctx, a.caller(""))
	if err != nil {
		t.Fatal(err)
	}
	for key := range a.facts {
		if n := strings.Count(notes.Text+"\n", "walked through "+key+"\n"); n > 1 || n == 0 && key != a.ended {
			t.Errorf("%s: the notes say %d times that %s was walked through", a.workspace, n, key)
		}
	}
}

// takenOver starts a second worker on the first one's folder and kills the
// first.
func takenOver(t *testing.T, c *cluster, a *process, agents []*agent) *process {
	second := c.spawnWorker("worker-a", "0-7")
	eventually(t, "the second worker stands by", func() bool {
		second.mustRun(t)
		return strings.Contains(second.stderr.String(), "standing by: another worker serves this shard")
	})
	a.mustRun(t)
	a.kill()
	c.awaitShards(t, second, "0-7")
	if !strings.Contains(second.stderr.String(), "taking over") {
		t.Errorf("the second worker says %s", second.stderr.String())
	}
	for _, agent := range agents {
		if workflows.Shard(agent.workspace, shards) <= 7 {
			complete(t, c, agent)
		}
	}
	return second
}

// moved gives a shard of the first worker to the second as docs/operations.md
// says: stop, move the folder, start.
func moved(t *testing.T, c *cluster, a, b *process, agents []*agent) {
	const shard = 5
	a.terminate(t)
	b.terminate(t)
	var moving []*agent
	for _, agent := range agents {
		if workflows.Shard(agent.workspace, shards) == shard {
			moving = append(moving, agent)
			if err := os.Rename(filepath.Join(c.data("worker-a"), "workspaces", agent.workspace), filepath.Join(c.data("worker-b"), "workspaces", agent.workspace)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(moving) != 2 {
		t.Fatalf("shard %d has %d workspaces, want 2", shard, len(moving))
	}
	a = c.startWorker(t, "worker-a", without(0, 7, shard))
	b = c.startWorker(t, "worker-b", fmt.Sprintf("%d,8-15", shard))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, agent := range moving {
		complete(t, c, agent)
		key := fmt.Sprintf("gate%d", len(agent.facts))
		for _, call := range []func(context.Context, string) error{agent.note, agent.propose, agent.search, agent.dispatch} {
			if err := call(ctx, key); err != nil {
				t.Fatal(err)
			}
		}
		complete(t, c, agent)
		if _, err := os.Stat(filepath.Join(c.data("worker-a"), "workspaces", agent.workspace)); !os.IsNotExist(err) {
			t.Errorf("%s is in the first worker's folder again: %v", agent.workspace, err)
		}
	}
	var want []string
	for _, agent := range agents {
		want = append(want, agent.workspace)
	}
	slices.Sort(want)
	got, err := c.client().Workspaces(ctx, agents[0].caller(""))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the workspaces of all shards are %v, %v; want %v", got, err, want)
	}
	for _, p := range []*process{a, b} {
		if strings.Contains(p.stderr.String(), "workspaces lie here") {
			t.Errorf("%s says %s", p.name, p.stderr.String())
		}
	}
}
