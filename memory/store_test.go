package memory

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// testClock is a clock that tests move.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock {
	return &testClock{now: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)}
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func mustOpen(tb testing.TB) (*Store, *testClock) {
	tb.Helper()
	clock := newTestClock()
	return mustOpenAt(tb, tb.TempDir(), clock), clock
}

func mustOpenAt(tb testing.TB, dir string, clock *testClock) *Store {
	tb.Helper()
	s, err := Open(context.Background(), filepath.Join(dir, "w"), "w", Options{Now: clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// proposal builds a request in domain infra.
func req(topic, content string) record.ProposeFact {
	return record.ProposeFact{Caller: record.Caller{Workspace: "w", Agent: "a"}, Domain: "infra", Topic: topic, Content: content}
}

func mustPropose(tb testing.TB, s *Store, r record.ProposeFact) record.ProposeFactResult {
	tb.Helper()
	res, err := s.ProposeFact(context.Background(), r)
	if err != nil {
		tb.Fatalf("propose %q: %v", r.Content, err)
	}
	return res
}

func mustView(tb testing.TB, s *Store, f func(*View) error) {
	tb.Helper()
	if err := s.View(context.Background(), f); err != nil {
		tb.Fatal(err)
	}
}

func activeContents(tb testing.TB, s *Store) []string {
	tb.Helper()
	var out []string
	mustView(tb, s, func(v *View) error {
		rows, err := v.Facts(Scope{}, false, 0, 1000)
		for _, r := range rows {
			out = append(out, r.Value.Content)
		}
		return err
	})
	return out
}

func wantCode(tb testing.TB, err error, want record.Code) {
	tb.Helper()
	var e *record.Error
	if !errors.As(err, &e) || e.Code != want {
		tb.Fatalf("error = %v, want %s", err, want)
	}
}

func TestStore_ProposeFact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, new string
		status         record.ProposalStatus
		kind           record.ConflictKind
		active         int
	}{
		{"duplicate", "port is 8080", "Port is 8080.", record.StatusReMentioned, "", 1},
		{"refinement", "we use Redis", "we use Redis 7 for sessions", record.StatusRefined, record.ConflictRefinement, 1},
		{"contradiction", "deploys to prod", "deploys to staging", record.StatusCreated, record.ConflictContradiction, 1},
		{"compatible", "Postgres for billing", "Redis for search", record.StatusCreated, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := mustOpen(t)
			first := mustPropose(t, s, req("t", c.old))
			second := mustPropose(t, s, req("T ", c.new))
			if second.Status != c.status {
				t.Errorf("status = %s, want %s", second.Status, c.status)
			}
			if got := activeContents(t, s); len(got) != c.active {
				t.Errorf("active = %q, want %d", got, c.active)
			}
			if c.kind == "" {
				if len(second.Conflicts) != 0 {
					t.Errorf("conflicts = %+v, want none", second.Conflicts)
				}
				return
			}
			if len(second.Conflicts) != 1 || second.Conflicts[0].Kind != c.kind || second.Conflicts[0].Winner != second.FactID || second.Conflicts[0].Loser != first.FactID || second.Conflicts[0].Reason == "" {
				t.Errorf("conflicts = %+v, want one %s won by %s", second.Conflicts, c.kind, second.FactID)
			}
		})
	}
}

func TestStore_ProposeFact_loser(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	strong := req("deploy", "deploys to prod")
	strong.Veracity = "stated"
	first := mustPropose(t, s, strong)
	weak := req("deploy", "deploys to staging")
	weak.Veracity = "tool"
	second := mustPropose(t, s, weak)
	if second.Status != record.StatusSupersededBy || len(second.Conflicts) != 1 || second.Conflicts[0].Winner != first.FactID {
		t.Fatalf("a weaker contradiction = %+v", second)
	}
	if got := activeContents(t, s); len(got) != 1 || got[0] != "deploys to prod" {
		t.Fatalf("active = %q", got)
	}
}

func TestStore_Ledger(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	r := req("port", "port is 8080")
	r.Key = "k1"
	first := mustPropose(t, s, r)
	again := mustPropose(t, s, r)
	if fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("same key: %+v, want %+v", again, first)
	}
	r.Content = "port is 9090"
	_, err := s.ProposeFact(t.Context(), r)
	wantCode(t, err, record.IdempotencyKeyReused)
	r.Content, r.Key = "port is 8080", "k2"
	other := mustPropose(t, s, r)
	if other.Status != record.StatusReMentioned || other.FactID != first.FactID || other.Confidence <= first.Confidence {
		t.Errorf("another key: %+v, want a re-mention", other)
	}
}

func TestStore_ReMention_confidence(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	half := 0.5
	r := req("t", "the sky is blue")
	r.Veracity, r.Confidence = "stated", &half
	mustPropose(t, s, r)
	for i, want := range []float64{.65, .755, .8285} {
		r.Agent = fmt.Sprintf("agent %d", i)
		if got := mustPropose(t, s, r).Confidence; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("mention %d: %v, want %v", i+1, got, want)
		}
	}
	// One voice, however often, convinces only so far.
	r.Agent = "parrot"
	for range 100 {
		mustPropose(t, s, r)
	}
	if got := mustPropose(t, s, r).Confidence; got > 0.95 {
		t.Errorf("a hundred repetitions by one source make %v", got)
	}
}

func TestStore_Concurrent_sameKey(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	r := req("t", "sixteen at once")
	r.Key = "same"
	results := make([]record.ProposeFactResult, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = mustPropose(t, s, r) })
	}
	wg.Wait()
	for _, res := range results {
		if fmt.Sprint(res) != fmt.Sprint(results[0]) {
			t.Errorf("answers differ: %+v and %+v", res, results[0])
		}
	}
	if got := activeContents(t, s); len(got) != 1 {
		t.Errorf("active = %q", got)
	}
}
