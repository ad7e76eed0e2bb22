package endtoend

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

func asJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// allFacts reads every fact of a store, current or not.
func allFacts(s *memory.Store) ([]record.Fact, error) {
	var facts []record.Fact
	err := s.View(context.Background(), func(v *memory.View) error {
		for after := int64(0); ; {
			page, err := v.Facts(memory.Scope{}, true, after, 1000)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, row := range page {
				facts, after = append(facts, row.Value), row.Seq
			}
		}
	})
	return facts, err
}

// TestKey is the promise of the idempotency key, over the real process and
// over a restart of it.
func TestKey(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	in := record.ProposeFact{
		Caller: keyed(caller("keys"), "first"), Domain: "infra", Topic: "time zone", Content: "The scheduler runs in UTC", Veracity: "inferred",
	}
	trial := in
	trial.DryRun = true
	if tried := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), trial)); tried.Status != record.StatusCreated || !tried.DryRun {
		t.Errorf("a trial under the key says %+v", tried)
	}
	// The trial did not take the key.
	first := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in))
	if first.Status != record.StatusCreated || first.Confidence != 0.7 || first.MentionCount != 1 {
		t.Fatalf("the first proposal is %+v, want created at 0.7", first)
	}
	before := dump(t, p.folder("keys"))

	again := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in))
	if got, want := asJSON(t, again), asJSON(t, first); got != want {
		t.Errorf("the same key answers %s, want %s", got, want)
	}
	other := in
	other.Content = "The scheduler runs in Lisbon's time"
	_, err := p.client().ProposeFact(timed(t), other)
	if e := wantCode(t, err, record.IdempotencyKeyReused); e.Field != "key" {
		t.Errorf("the field is %q, want key", e.Field)
	}
	sameDump(t, "after a repeat and a reuse of the key", before, dump(t, p.folder("keys")))

	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p = start(t, p.data)
	again = must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in))
	if got, want := asJSON(t, again), asJSON(t, first); got != want {
		t.Errorf("after a restart the same key answers %s, want %s", got, want)
	}
	_, err = p.client().ProposeFact(timed(t), other)
	wantCode(t, err, record.IdempotencyKeyReused)
	sameDump(t, "after a restart, a repeat and a reuse of the key", before, dump(t, p.folder("keys")))

	in.Key = ""
	mentioned := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in))
	if want := 0.7 + 0.3*0.7*0.3; mentioned.Status != record.StatusReMentioned || mentioned.FactID != first.FactID || mentioned.MentionCount != 2 || math.Abs(mentioned.Confidence-want) > 1e-9 {
		t.Errorf("without a key it is %+v, want a re-mention of %s at %v", mentioned, first.FactID, want)
	}
	in.Key = "second"
	if third := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in)); third.MentionCount != 3 || third.Confidence <= mentioned.Confidence {
		t.Errorf("another key is another effect, but it is %+v", third)
	}
	if got := one(t, p.folder("keys"), "SELECT count(*) FROM facts"); got != "1" {
		t.Errorf("%s facts, want 1", got)
	}
}

// TestKey_impatient calls with deadlines that pass before the answer. Under a
// key, calling again is the same call; without one it is a re-mention, and one
// fact all the same.
func TestKey_impatient(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	in := record.ProposeFact{Caller: keyed(caller("hasty"), "first"), Domain: "infra", Topic: "beacon", Content: "The beacon flashes twice"}
	hurry := func(in record.ProposeFact) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.client().ProposeFact(ctx, in); err != nil {
			wantCode(t, err, record.Unavailable)
		}
	}
	hurry(in)
	var first record.ProposeFactResult
	for i := range 3 {
		out := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in))
		if i == 0 {
			first = out
		}
		if asJSON(t, out) != asJSON(t, first) || out.Status != record.StatusCreated || out.MentionCount != 1 {
			t.Errorf("call %d answers %s, and the first %s", i, asJSON(t, out), asJSON(t, first))
		}
	}
	in.Key = ""
	hurry(in)
	if out := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), in)); out.FactID != first.FactID || out.Status != record.StatusReMentioned {
		t.Errorf("without a key it is %s", asJSON(t, out))
	}
	if got := one(t, p.folder("hasty"), "SELECT count(*) FROM facts"); got != "1" {
		t.Errorf("%s facts, want 1", got)
	}
}

// TestKey_isolation uses one key in two workspaces.
func TestKey_isolation(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	c := p.client()
	in := record.ProposeFact{Caller: keyed(caller("left"), "same"), Domain: "infra", Topic: "cache", Content: "The cache is warm"}
	left := must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), in))
	in.Workspace = "right"
	right := must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), in))
	if left.FactID == right.FactID || right.Status != record.StatusCreated {
		t.Errorf("one key in two workspaces gives %s %s and %s %s, want two facts", left.FactID, left.Status, right.FactID, right.Status)
	}
	other := must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller("right"), Domain: "infra", Topic: "queue", Content: "The queue is empty"}))
	policy := must[record.PolicyResult](t)(c.ProposePolicy(timed(t), record.ProposePolicy{Caller: caller("left"), Domain: "infra", Rule: "Warm the cache first."}))

	before := dump(t, p.folder("right"))
	_, err := c.History(timed(t), caller("right"), left.FactID)
	wantCode(t, err, record.NotFound)
	_, err = c.SupersedeFact(timed(t), record.SupersedeFact{Caller: caller("right"), Old: left.FactID, New: other.FactID})
	wantCode(t, err, record.NotFound)
	_, err = c.SupersedeFact(timed(t), record.SupersedeFact{Caller: caller("right"), Old: other.FactID, New: left.FactID})
	wantCode(t, err, record.NotFound)
	_, err = c.RestoreFact(timed(t), record.RestoreFact{Caller: caller("right"), FactID: left.FactID})
	wantCode(t, err, record.NotFound)
	_, err = c.SupersedePolicy(timed(t), record.SupersedePolicy{Caller: caller("right"), PolicyID: policy.PolicyID})
	wantCode(t, err, record.NotFound)
	sameDump(t, "after calls with ids of another workspace", before, dump(t, p.folder("right")))

	found := must[record.SearchResult](t)(c.SearchMemory(timed(t), record.Search{Caller: caller("left"), Query: "queue", Mode: "keyword"}))
	if len(found.Facts) != 0 {
		t.Errorf("a search of one workspace finds %d facts of the other", len(found.Facts))
	}
}
