package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func agent(name string) record.Caller { return record.Caller{Workspace: "w", Agent: name} }

func step(name string) record.StepRef { return record.StepRef{TaskID: "order-7", Step: name} }

// mustObligation ends the test on an error, and returns the answer.
func mustObligation(tb testing.TB) func(record.ObligationResult, error) record.ObligationResult {
	return func(res record.ObligationResult, err error) record.ObligationResult {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return res
	}
}

func open(tb testing.TB, s *Store, name string, after ...string) record.ObligationResult {
	tb.Helper()
	return mustObligation(tb)(s.OpenObligation(tb.Context(), record.OpenObligation{Caller: agent("a"), StepRef: step(name), After: after}))
}

func claim(tb testing.TB, s *Store, who, name string) record.ObligationResult {
	tb.Helper()
	return mustObligation(tb)(s.ClaimObligation(tb.Context(), record.ClaimObligation{Caller: agent(who), StepRef: step(name), LeaseSeconds: 60}))
}

func commit(tb testing.TB, s *Store, who, name, result string) record.ObligationResult {
	tb.Helper()
	return mustObligation(tb)(s.CommitObligation(tb.Context(), record.CommitObligation{Caller: agent(who), StepRef: step(name), Result: result}))
}

func obligations(tb testing.TB, s *Store) []record.Obligation {
	tb.Helper()
	var out []record.Obligation
	mustView(tb, s, func(v *View) error {
		rows, err := v.Obligations("", false, 0, 10000)
		for _, r := range rows {
			out = append(out, r.Value)
		}
		return err
	})
	return out
}

func TestStore_Obligation(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	opened := open(t, s, "pay")
	if o := opened.Obligation; opened.Outcome != record.OutcomeOpened || o.State != record.ObligationOpen || o.Key != "order-7/pay" || o.OpenedBy != "a" || o.Workspace != "w" || len(o.After) != 0 {
		t.Errorf("opened: %+v", opened)
	}
	if again := open(t, s, "pay"); again.Outcome != record.OutcomeExists || again.Obligation.ID != opened.Obligation.ID {
		t.Errorf("opened again: %+v", again)
	}
	_, err := s.OpenObligation(t.Context(), record.OpenObligation{Caller: agent("a"), StepRef: step("pay"), Kind: "other"})
	wantCode(t, err, record.IdempotencyKeyReused)

	first := claim(t, s, "a", "pay")
	if first.Outcome != record.OutcomeClaimed || first.Obligation.Claim != 1 || first.Doubt != nil || first.Obligation.InDoubt {
		t.Errorf("the first claim: %+v", first)
	}
	for _, who := range []string{"b", "a"} {
		// Also the holder's own name: two processes may share one.
		if held := claim(t, s, who, "pay"); held.Outcome != record.OutcomeHeld || held.Obligation.ClaimedBy != "a" || held.Obligation.Claim != 1 {
			t.Errorf("%s claims meanwhile: %+v", who, held)
		}
	}
	if held := commit(t, s, "b", "pay", "b was here"); held.Outcome != record.OutcomeHeld || held.Obligation.State != record.ObligationClaimed {
		t.Errorf("another commits meanwhile: %+v", held)
	}
	clock.Advance(30 * time.Second)
	extended := mustObligation(t)(s.ClaimObligation(t.Context(), record.ClaimObligation{Caller: agent("a"), StepRef: step("pay"), Claim: 1, LeaseSeconds: 60}))
	if extended.Outcome != record.OutcomeExtended || extended.Obligation.LeaseUntil.Sub(clock.Now()) != time.Minute {
		t.Errorf("extended: %+v", extended)
	}

	// The holder dies: after its lease the claim is in doubt.
	clock.Advance(time.Minute)
	if o := obligations(t, s)[0]; !o.InDoubt {
		t.Errorf("after the lease: %+v", o)
	}
	second := claim(t, s, "b", "pay")
	if d := second.Doubt; second.Outcome != record.OutcomeClaimed || second.Obligation.Claim != 2 || d == nil || d.Key != "order-7/pay" || d.ClaimedBy != "a" || d.Claim != 1 || d.LeaseUntil != extended.Obligation.LeaseUntil {
		t.Errorf("the claim after it: %+v, doubt %+v", second, second.Doubt)
	}
	late := mustObligation(t)(s.CommitObligation(t.Context(), record.CommitObligation{Caller: agent("a"), StepRef: step("pay"), Claim: 1, Result: "late"}))
	if late.Outcome != record.OutcomeHeld || late.Obligation.ClaimedBy != "b" {
		t.Errorf("the first holder commits late: %+v", late)
	}
	done := mustObligation(t)(s.CommitObligation(t.Context(), record.CommitObligation{Caller: agent("b"), StepRef: step("pay"), Claim: 2, Result: "receipt 41"}))
	if o := done.Obligation; done.Outcome != record.OutcomeCommitted || o.State != record.ObligationDone || o.Result != "receipt 41" || o.ClosedBy != "b" || o.InDoubt {
		t.Errorf("committed: %+v", done)
	}
	for name, res := range map[string]record.ObligationResult{
		"commit": commit(t, s, "a", "pay", "receipt 42"), "claim": claim(t, s, "c", "pay"),
		"fail":   mustObligation(t)(s.FailObligation(t.Context(), record.FailObligation{Caller: agent("b"), StepRef: step("pay"), Claim: 2})),
		"cancel": mustObligation(t)(s.CancelObligation(t.Context(), record.CancelObligation{Caller: agent("c"), StepRef: step("pay")})),
	} {
		if res.Outcome != record.OutcomeClosed || res.Obligation.Result != "receipt 41" || res.Obligation.ClosedBy != "b" {
			t.Errorf("%s after it: %+v", name, res)
		}
	}
	if n := len(obligations(t, s)); n != 1 {
		t.Errorf("%d obligations", n)
	}
}

// TestStore_Obligation_endings: how a step ends in other ways than done.
func TestStore_Obligation_endings(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	for _, name := range []string{"failed", "cancelled", "held", "doubt"} {
		open(t, s, name)
	}
	failed := mustObligation(t)(s.FailObligation(t.Context(), record.FailObligation{Caller: agent("a"), StepRef: step("failed"), Reason: "card refused"}))
	if failed.Outcome != record.OutcomeFailed || failed.Obligation.Reason != "card refused" || failed.Obligation.State != record.ObligationFailed {
		t.Errorf("failed: %+v", failed)
	}
	cancel := func(name string) record.ObligationResult {
		return mustObligation(t)(s.CancelObligation(t.Context(), record.CancelObligation{Caller: agent("planner"), StepRef: step(name), Reason: "not wanted"}))
	}
	if res := cancel("cancelled"); res.Outcome != record.OutcomeCancelled || res.Obligation.InDoubt {
		t.Errorf("cancelled: %+v", res)
	}
	claim(t, s, "a", "held")
	claim(t, s, "a", "doubt")
	if res := cancel("held"); res.Outcome != record.OutcomeHeld || res.Obligation.State != record.ObligationClaimed {
		t.Errorf("cancelling under a claim: %+v", res)
	}
	clock.Advance(time.Hour)
	if res := cancel("doubt"); res.Outcome != record.OutcomeCancelled || !res.Obligation.InDoubt || res.Obligation.ClaimedBy != "a" {
		t.Errorf("cancelling a claim in doubt must leave the doubt on record: %+v", res)
	}
	// Nobody took over: the holder may still say how it ended.
	if res := commit(t, s, "a", "held", "in time after all"); res.Outcome != record.OutcomeCommitted {
		t.Errorf("the holder commits after its lease: %+v", res)
	}
}

func TestStore_Obligation_order(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	open(t, s, "ship", "pay", "pack", "pay")
	_, err := s.ClaimObligation(t.Context(), record.ClaimObligation{Caller: agent("a"), StepRef: step("ship")})
	wantCode(t, err, record.OutOfOrder)
	var e *record.Error
	if errors.As(err, &e); !slices.Equal(e.Missing, []string{"pack", "pay"}) {
		t.Errorf("missing %q: %v", e.Missing, err)
	}
	_, err = s.CommitObligation(t.Context(), record.CommitObligation{Caller: agent("a"), StepRef: step("ship")})
	wantCode(t, err, record.OutOfOrder)
	open(t, s, "pay")
	open(t, s, "pack", "pay")
	commit(t, s, "a", "pay", "")
	_, err = s.ClaimObligation(t.Context(), record.ClaimObligation{Caller: agent("a"), StepRef: step("ship")})
	if errors.As(err, &e); !slices.Equal(e.Missing, []string{"pack"}) {
		t.Errorf("missing %q: %v", e.Missing, err)
	}
	commit(t, s, "a", "pack", "")
	if res := claim(t, s, "a", "ship"); res.Outcome != record.OutcomeClaimed || !slices.Equal(res.Obligation.After, []string{"pack", "pay"}) {
		t.Errorf("claimed in order: %+v", res)
	}
	// Another task's step of the same name is another obligation.
	if _, err := s.OpenObligation(t.Context(), record.OpenObligation{Caller: agent("a"), StepRef: record.StepRef{TaskID: "order-8", Step: "ship"}, After: []string{"pay"}}); err != nil {
		t.Fatal(err)
	}
	_, err = s.ClaimObligation(t.Context(), record.ClaimObligation{Caller: agent("a"), StepRef: record.StepRef{TaskID: "order-8", Step: "ship"}})
	wantCode(t, err, record.OutOfOrder)
}

func TestStore_Obligation_circles(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	refused := func(name string, after ...string) {
		t.Helper()
		_, err := s.OpenObligation(t.Context(), record.OpenObligation{Caller: agent("a"), StepRef: step(name), After: after})
		wantCode(t, err, record.InvalidArgument)
		var e *record.Error
		if errors.As(err, &e); e.Field != "after" {
			t.Errorf("field %q of %v", e.Field, err)
		}
	}
	refused("a", "a")
	open(t, s, "a", "b")
	refused("b", "a")
	open(t, s, "b", "c", "x")
	refused("c", "y", "a")
	refused("x", "b")
	open(t, s, "c", "y")
	refused("y", "a")
	if n := len(obligations(t, s)); n != 3 {
		t.Errorf("%d obligations, want 3: a refused one leaves nothing", n)
	}
}

// TestStore_Obligation_chain walks a chain of 1,000 steps, opened from its end,
// where every step may close a circle.
func TestStore_Obligation_chain(t *testing.T) {
	t.Parallel()
	const length = 1000
	s, _ := mustOpen(t)
	name := func(n int) string { return fmt.Sprintf("step-%04d", n) }
	for n := length - 1; n > 0; n-- {
		open(t, s, name(n), name(n-1))
	}
	_, err := s.OpenObligation(t.Context(), record.OpenObligation{Caller: agent("a"), StepRef: step(name(0)), After: []string{name(length - 1)}})
	wantCode(t, err, record.InvalidArgument)
	open(t, s, name(0))
	for n := range length {
		if n < length-1 {
			_, err := s.CommitObligation(t.Context(), record.CommitObligation{Caller: agent("a"), StepRef: step(name(n + 1))})
			wantCode(t, err, record.OutOfOrder)
		}
		if res := commit(t, s, "a", name(n), name(n)); res.Outcome != record.OutcomeCommitted {
			t.Fatalf("step %d: %+v", n, res)
		}
	}
	for _, o := range obligations(t, s) {
		if o.State != record.ObligationDone || o.Result != o.Step {
			t.Errorf("%+v", o)
		}
	}
}

func TestStore_Obligation_deadline(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), newTestClock()
	s := mustOpenAt(t, dir, clock)
	due := record.At(clock.Now().Add(time.Hour))
	req := record.OpenObligation{Caller: agent("a"), StepRef: step("pay"), Deadline: due}
	mustObligation(t)(s.OpenObligation(t.Context(), req))
	req.StepRef = step("acted")
	mustObligation(t)(s.OpenObligation(t.Context(), req))
	claim(t, s, "a", "acted")
	open(t, s, "ship", "pay")
	ref := record.ObserveObligation{Caller: agent(""), StepRef: step("ship")}
	seen, err := s.ObserveObligation(t.Context(), ref)
	if err != nil || !slices.Equal(seen.Missing, []string{"pay"}) || len(seen.Never) != 0 || seen.Due != due {
		t.Errorf("before the deadline: %+v, %v", seen, err)
	}
	past := req
	past.StepRef, past.Deadline = step("past"), record.At(clock.Now())
	_, err = s.OpenObligation(t.Context(), past)
	wantCode(t, err, record.InvalidArgument)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// Nobody is there when it passes.
	clock.Advance(time.Hour)
	s = mustOpenAt(t, dir, clock)
	for _, o := range obligations(t, s) {
		if o.Step != "ship" && (o.State != record.ObligationExpired || o.ClosedAt != due || o.InDoubt != (o.Step == "acted")) {
			t.Errorf("after the deadline a read shows %+v", o)
		}
	}
	seen, err = s.ObserveObligation(t.Context(), ref)
	if err != nil || !slices.Equal(seen.Never, []string{"pay"}) {
		t.Errorf("what comes after it: %+v, %v", seen, err)
	}
	res := commit(t, s, "a", "pay", "too late")
	if res.Outcome != record.OutcomeClosed || res.Obligation.State != record.ObligationExpired || res.Obligation.Result != "" || !slices.Equal(res.Awaited, []string{"ship"}) {
		t.Errorf("a commit after the deadline: %+v", res)
	}
	// It is written down: a clock that goes back does not bring it back.
	clock.Advance(-2 * time.Hour)
	if res := claim(t, s, "a", "pay"); res.Outcome != record.OutcomeClosed || res.Obligation.State != record.ObligationExpired {
		t.Errorf("after the clock went back: %+v", res)
	}
}

func TestStore_Obligation_awaited(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	open(t, s, "pay")
	open(t, s, "ship", "pay")
	open(t, s, "mail", "pay")
	observe := func(name string) record.Observed {
		t.Helper()
		seen, err := s.ObserveObligation(t.Context(), record.ObserveObligation{Caller: agent(""), StepRef: step(name)})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	observe("ship")
	observe("pay")
	res := commit(t, s, "a", "pay", "")
	if !slices.Equal(res.Awaited, []string{"pay", "ship"}) {
		t.Errorf("awaited by %q", res.Awaited)
	}
	if seen := observe("pay"); seen.CommitHash == "" || seen.CommitHash != res.Hash() {
		t.Errorf("committed by %q, the receipt is %q", seen.CommitHash, res.Hash())
	}
	if seen := observe("ship"); len(seen.Missing) != 0 {
		t.Errorf("missing %q", seen.Missing)
	}
}

func TestStore_Obligation_refusals(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	open(t, s, "pay")
	long := make([]string, record.MaxAfter+1)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	a, big := agent("a"), string(make([]byte, record.MaxContentBytes+1))
	for name, tc := range map[string]struct {
		call func(context.Context) (record.ObligationResult, error)
		code record.Code
	}{
		"no agent": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.OpenObligation(ctx, record.OpenObligation{Caller: agent(""), StepRef: step("x")})
		}, record.InvalidArgument},
		"no step": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.OpenObligation(ctx, record.OpenObligation{Caller: a, StepRef: step("")})
		}, record.InvalidArgument},
		"no task": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.OpenObligation(ctx, record.OpenObligation{Caller: a, StepRef: record.StepRef{Step: "x"}})
		}, record.InvalidArgument},
		"white space": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.OpenObligation(ctx, record.OpenObligation{Caller: a, StepRef: step("pay ")})
		}, record.InvalidArgument},
		"many before": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.OpenObligation(ctx, record.OpenObligation{Caller: a, StepRef: step("x"), After: long})
		}, record.InvalidArgument},
		"not opened": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.ClaimObligation(ctx, record.ClaimObligation{Caller: a, StepRef: step("x")})
		}, record.NotFound},
		"long lease": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.ClaimObligation(ctx, record.ClaimObligation{Caller: a, StepRef: step("pay"), LeaseSeconds: record.MaxLeaseSeconds + 1})
		}, record.InvalidArgument},
		"no such claim": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.CommitObligation(ctx, record.CommitObligation{Caller: a, StepRef: step("pay"), Claim: 1})
		}, record.InvalidArgument},
		"large result": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.CommitObligation(ctx, record.CommitObligation{Caller: a, StepRef: step("pay"), Result: big})
		}, record.ContentTooLarge},
		"NUL": {func(ctx context.Context) (record.ObligationResult, error) {
			return s.FailObligation(ctx, record.FailObligation{Caller: a, StepRef: step("pay"), Reason: "a\x00"})
		}, record.InvalidUTF8},
	} {
		t.Run(name, func(t *testing.T) {
			before := dump(t, s)
			_, err := tc.call(t.Context())
			wantCode(t, err, tc.code)
			if after := dump(t, s); after != before {
				t.Errorf("the refused call changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestStore_Obligation_atOnce has 64 agents claim and commit one obligation.
func TestStore_Obligation_atOnce(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	open(t, s, "pay")
	var all sync.WaitGroup
	claims := make([]record.ObligationResult, 64)
	commits := make([]record.ObligationResult, 64)
	for i := range claims {
		all.Go(func() {
			who := agent(fmt.Sprintf("agent-%d", i))
			var err error
			if claims[i], err = s.ClaimObligation(t.Context(), record.ClaimObligation{Caller: who, StepRef: step("pay")}); err != nil {
				t.Error(err)
			}
			if commits[i], err = s.CommitObligation(t.Context(), record.CommitObligation{Caller: who, StepRef: step("pay"), Result: who.Agent}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	winner := obligations(t, s)[0]
	won := 0
	for i := range claims {
		me := fmt.Sprintf("agent-%d", i)
		if (claims[i].Outcome == record.OutcomeClaimed) != (me == winner.ClosedBy) || (commits[i].Outcome == record.OutcomeCommitted) != (me == winner.ClosedBy) {
			t.Errorf("%s: claim %s, commit %s, but %s closed it", me, claims[i].Outcome, commits[i].Outcome, winner.ClosedBy)
		}
		if commits[i].Outcome == record.OutcomeCommitted {
			won++
		}
	}
	if won != 1 || winner.Result != winner.ClosedBy || winner.Claim != 1 {
		t.Errorf("%d commits, the obligation is %+v", won, winner)
	}
}
