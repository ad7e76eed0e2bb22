package endtoend

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// envLong asks for the long form of the tests that repeat themselves.
const envLong = "POLYPHONY_LONG"

// TestProcesses_worker writes from eight processes into one workspace, through
// the worker.
func TestProcesses_worker(t *testing.T) {
	const processes, writes = 8, 250
	p := start(t, t.TempDir())
	acknowledged, took := runJobs(t, processes, jobPropose, p.data, "shared", writes)
	t.Logf("%d processes × %d proposals in %v: %.0f a second", processes, writes, took.Round(time.Millisecond), processes*writes/took.Seconds())

	facts := must[[]record.Fact](t)(workflows.ReadAll[record.Fact](timed(t), p.client(), record.ReadMemory{Caller: caller("shared"), What: record.ReadFacts, All: true}))
	wantWritten(t, acknowledged, facts, processes*writes)
	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if h := wantSound(t, p.folder("shared"), "shared"); h.FactsTotal != processes*writes || h.Operations != processes*writes {
		t.Errorf("%d facts and %d operations in the file, want %d of each", h.FactsTotal, h.Operations, processes*writes)
	}
}

// TestProcesses_store opens one fresh folder from sixteen processes at once,
// without a worker.
func TestProcesses_store(t *testing.T) {
	const processes, writes = 16, 10
	rounds := 10
	if os.Getenv(envLong) != "" {
		rounds = 100
	}
	var total time.Duration
	for round := range rounds {
		folder := filepath.Join(t.TempDir(), "shared")
		acknowledged, took := runJobs(t, processes, jobOpen, folder, "shared", writes)
		total += took
		if t.Failed() {
			t.Fatalf("round %d of %d", round+1, rounds)
		}
		s := opened(t, folder, "shared")
		page := must[[]record.Fact](t)(allFacts(s))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wantWritten(t, acknowledged, page, processes*writes)
		h := wantSound(t, folder, "shared")
		if h.FactsTotal != processes*writes || h.Domains != 1 {
			t.Errorf("round %d: %d facts in %d domains, want %d in 1", round+1, h.FactsTotal, h.Domains, processes*writes)
		}
		// A second migration would have failed, or seeded this table twice.
		if got := one(t, folder, "SELECT count(*) || ' ' || (SELECT user_version FROM pragma_user_version) FROM index_stats"); got != "1 1" {
			t.Errorf("round %d: index_stats rows and schema version are %s, want 1 1", round+1, got)
		}
	}
	t.Logf("%d rounds of %d processes × %d facts, opening included: %v a round", rounds, processes, writes, (total / time.Duration(rounds)).Round(time.Millisecond))
}

// wantWritten checks that every acknowledged write is among the facts, that
// nothing is doubled and that there are want of each.
func wantWritten(t testing.TB, acknowledged [][]written, facts []record.Fact, want int) {
	t.Helper()
	topicOf := make(map[string]string, len(facts))
	topics := make(map[string]int, len(facts))
	for _, f := range facts {
		topicOf[f.ID] = f.Topic
		topics[f.Topic]++
	}
	n := 0
	for i, list := range acknowledged {
		for _, w := range list {
			n++
			if topicOf[w.FactID] != w.Topic {
				t.Errorf("process %d was told of fact %s about %q, which is not there", i, w.FactID, w.Topic)
			}
			if w.Status != string(record.StatusCreated) {
				t.Errorf("process %d: %q is %s, want created", i, w.Topic, w.Status)
			}
			if topics[w.Topic] != 1 {
				t.Errorf("%d facts about %q, want 1", topics[w.Topic], w.Topic)
			}
		}
	}
	if n != want || len(facts) != want {
		t.Errorf("%d writes acknowledged and %d facts there, want %d of each", n, len(facts), want)
	}
}

// TestKey_concurrent gives sixteen callers one key and one request at once.
func TestKey_concurrent(t *testing.T) {
	t.Parallel()
	const callers = 16
	p := start(t, t.TempDir())
	c := p.client()
	for round := range 5 {
		in := record.ProposeFact{
			Caller: keyed(caller("sixteen"), fmt.Sprintf("key-%d", round)),
			Domain: "kitchen", Topic: "dish " + strconv.Itoa(round), Content: fmt.Sprintf("Dish number %d is served cold", round), Veracity: "stated",
		}
		answers := make([]record.ProposeFactResult, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				res, err := c.ProposeFact(timed(t), in)
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
				answers[i] = res
			})
		}
		all.Wait()
		for i, a := range answers {
			if got, want := asJSON(t, a), asJSON(t, answers[0]); got != want {
				t.Errorf("caller %d got %s, caller 0 %s", i, got, want)
			}
		}
		if a := answers[0]; a.Status != record.StatusCreated || a.MentionCount != 1 {
			t.Errorf("the answer is %s with %d mentions, want created with 1", a.Status, a.MentionCount)
		}
	}
	if got := one(t, p.folder("sixteen"), "SELECT (SELECT count(*) FROM facts) || ' ' || (SELECT max(mention_count) FROM facts) || ' ' || (SELECT count(*) FROM operations)"); got != "5 1 5" {
		t.Errorf("facts, mentions and operations are %s, want 5 1 5", got)
	}
}
