package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestLedger_obligations and FuzzLedger hold the ledger and the obligations
// against a model: random calls under random keys, several at once, while the
// clock moves both ways and the file is closed and opened again.
func TestLedger_obligations(t *testing.T) { rapid.Check(t, checkLedger) }

func FuzzLedger(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkLedger)) }

// modelCall is one call, as the model and the store are given it.
type modelCall struct {
	verb, agent, step, key, text string
	after                        []string
	claim, lease                 int64
	// due is the deadline's distance from the clock's start, 0 for none.
	due time.Duration
}

// identity is what the ledger tells one request from another by.
func (c modelCall) identity() string {
	c.key = ""
	return fmt.Sprintf("%+v", c)
}

// answer is what a call is told, less ids and times.
type answer struct {
	Code       record.Code
	Outcome    record.ObligationOutcome
	State      record.ObligationState
	Claim      int64
	By, Closed string
	Text       string
	Doubt      string
	InDoubt    bool
	// Missing is what is not done yet, Never what no longer can be.
	Missing, Never []string
}

// modelObligation is an obligation in the model.
type modelObligation struct {
	state              record.ObligationState
	after              []string
	claim              int64
	by, closed, result string
	lease, due         time.Duration
}

// model is the specification: one thread, no file.
type model struct {
	now    time.Duration
	steps  map[string]*modelObligation
	ledger map[string]struct {
		identity string
		told     answer
	}
}

func newModel() *model {
	return &model{steps: map[string]*modelObligation{}, ledger: map[string]struct {
		identity string
		told     answer
	}{}}
}

func (m *model) clone() *model {
	c := &model{now: m.now, steps: map[string]*modelObligation{}, ledger: maps.Clone(m.ledger)}
	for name, o := range m.steps {
		copied := *o
		c.steps[name] = &copied
	}
	return c
}

// expired reports whether the deadline has passed and nobody closed it before.
func (m *model) expired(o *modelObligation) bool {
	return !o.state.Closed() && o.due != 0 && o.due <= m.now
}

func (m *model) view(o *modelObligation) answer {
	a := answer{State: o.state, Claim: o.claim, By: o.by, Closed: o.closed, Text: o.result}
	if m.expired(o) {
		a.State = record.ObligationExpired
	}
	switch a.State {
	case record.ObligationClaimed:
		a.InDoubt = o.lease <= m.now
	case record.ObligationExpired:
		a.InDoubt = o.claim > 0
	case record.ObligationCancelled:
		a.InDoubt = o.claim > 0 && o.closed != o.by
	}
	return a
}

func (m *model) run(c modelCall) answer {
	if told, ok := m.ledger[c.key]; ok && c.key != "" {
		if told.identity != c.identity() {
			return answer{Code: record.IdempotencyKeyReused}
		}
		return told.told
	}
	a := m.effect(c)
	if a.Code == "" && c.key != "" {
		m.ledger[c.key] = struct {
			identity string
			told     answer
		}{c.identity(), a}
	}
	return a
}

func (m *model) effect(c modelCall) answer {
	o := m.steps[c.step]
	told := func(outcome record.ObligationOutcome) answer {
		if m.expired(o) {
			o.state = record.ObligationExpired
		}
		a := m.view(o)
		a.Outcome = outcome
		return a
	}
	if c.verb == "open" {
		if o != nil {
			if !slices.Equal(o.after, c.after) || o.due != c.due {
				return answer{Code: record.IdempotencyKeyReused}
			}
			return told(record.OutcomeExists)
		}
		if c.due != 0 && c.due <= m.now || m.reaches(c.after, c.step, map[string]bool{}) {
			return answer{Code: record.InvalidArgument}
		}
		o = &modelObligation{state: record.ObligationOpen, after: c.after, due: c.due}
		m.steps[c.step] = o
		return told(record.OutcomeOpened)
	}
	if o == nil {
		return answer{Code: record.NotFound}
	}
	before := m.view(o)
	missing, never := m.missing(o)
	if c.verb == "observe" {
		a := told("")
		if !before.State.Closed() {
			a.Missing, a.Never = missing, never
		}
		return a
	}
	if before.State.Closed() {
		return told(record.OutcomeClosed)
	}
	if c.claim > o.claim {
		return answer{Code: record.InvalidArgument}
	}
	if c.verb == "claim" {
		switch {
		case c.claim != 0 && (c.claim < o.claim || c.agent != o.by):
			return told(record.OutcomeHeld)
		case c.claim != 0:
			o.lease = m.now + time.Duration(c.lease)*time.Second
			return told(record.OutcomeExtended)
		case o.state == record.ObligationClaimed && !before.InDoubt:
			return told(record.OutcomeHeld)
		case len(missing) > 0:
			return answer{Code: record.OutOfOrder, Missing: missing}
		}
		doubt := ""
		if o.state == record.ObligationClaimed {
			doubt = fmt.Sprintf("%s %d", o.by, o.claim)
		}
		o.state, o.by, o.lease = record.ObligationClaimed, c.agent, m.now+time.Duration(c.lease)*time.Second
		o.claim++
		a := told(record.OutcomeClaimed)
		a.Doubt = doubt
		return a
	}
	mine := c.claim == o.claim
	if c.claim == 0 {
		mine = c.agent == o.by
	}
	if o.state == record.ObligationClaimed && !mine && (c.verb != "cancel" || !before.InDoubt) {
		return told(record.OutcomeHeld)
	}
	if c.verb == "commit" && len(missing) > 0 {
		return answer{Code: record.OutOfOrder, Missing: missing}
	}
	ends := map[string]record.ObligationState{"commit": record.ObligationDone, "fail": record.ObligationFailed, "cancel": record.ObligationCancelled}
	outcomes := map[string]record.ObligationOutcome{"commit": record.OutcomeCommitted, "fail": record.OutcomeFailed, "cancel": record.OutcomeCancelled}
	o.state, o.closed, o.result = ends[c.verb], c.agent, c.text
	return told(outcomes[c.verb])
}

func (m *model) missing(o *modelObligation) (missing, never []string) {
	for _, name := range o.after {
		p := m.steps[name]
		if p != nil && p.state == record.ObligationDone {
			continue
		}
		missing = append(missing, name)
		if p != nil && m.view(p).State.Closed() {
			never = append(never, name)
		}
	}
	return missing, never
}

func (m *model) reaches(from []string, target string, seen map[string]bool) bool {
	for _, name := range from {
		if name == target {
			return true
		}
		if o := m.steps[name]; o != nil && !seen[name] {
			seen[name] = true
			if m.reaches(o.after, target, seen) {
				return true
			}
		}
	}
	return false
}

// runCall gives the store a call of the model.
func runCall(ctx context.Context, s *Store, start time.Time, c modelCall) answer {
	who := record.Caller{Workspace: "w", Agent: c.agent, Key: c.key}
	var res record.ObligationResult
	var err error
	switch c.verb {
	case "open":
		in := record.OpenObligation{Caller: who, StepRef: step(c.step), After: c.after}
		if c.due != 0 {
			in.Deadline = record.At(start.Add(c.due))
		}
		res, err = s.OpenObligation(ctx, in)
	case "claim":
		res, err = s.ClaimObligation(ctx, record.ClaimObligation{Caller: who, StepRef: step(c.step), Claim: c.claim, LeaseSeconds: c.lease})
	case "commit":
		res, err = s.CommitObligation(ctx, record.CommitObligation{Caller: who, StepRef: step(c.step), Claim: c.claim, Result: c.text})
	case "fail":
		res, err = s.FailObligation(ctx, record.FailObligation{Caller: who, StepRef: step(c.step), Claim: c.claim, Reason: c.text})
	case "cancel":
		res, err = s.CancelObligation(ctx, record.CancelObligation{Caller: who, StepRef: step(c.step), Claim: c.claim, Reason: c.text})
	case "observe":
		var seen record.Observed
		seen, err = s.ObserveObligation(ctx, record.ObserveObligation{Caller: who, StepRef: step(c.step)})
		if err == nil {
			a := answerOf(record.ObligationResult{Obligation: seen.Obligation})
			a.Missing, a.Never = nonEmpty(seen.Missing), nonEmpty(seen.Never)
			return a
		}
	}
	if err != nil {
		a := answer{Code: record.ErrorCode(err)}
		if e := new(record.Error); errors.As(err, &e) {
			a.Missing = nonEmpty(e.Missing)
		}
		return a
	}
	return answerOf(res)
}

func nonEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func answerOf(res record.ObligationResult) answer {
	o := res.Obligation
	a := answer{Outcome: res.Outcome, State: o.State, Claim: o.Claim, By: o.ClaimedBy, Closed: o.ClosedBy, Text: o.Result + o.Reason, InDoubt: o.InDoubt}
	if res.Doubt != nil {
		a.Doubt = fmt.Sprintf("%s %d", res.Doubt.ClaimedBy, res.Doubt.Claim)
	}
	return a
}

// drawCall makes a random call. The pools are small, so that calls meet.
func drawCall(t *rapid.T) modelCall {
	names := []string{"a", "b", "پرداخت"}
	c := modelCall{
		verb: rapid.SampledFrom([]string{"open", "open", "open", "claim", "claim", "claim", "claim", "claim", "claim", "commit", "commit", "fail", "cancel", "observe"}).Draw(t, "verb"),
		step: rapid.SampledFrom(names).Draw(t, "step"), agent: rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "agent"),
		key: rapid.SampledFrom([]string{"", "", "", "k1", "k2"}).Draw(t, "key"),
	}
	switch c.verb {
	case "open":
		for _, name := range names {
			if name != c.step && rapid.IntRange(0, 5).Draw(t, "after") == 5 {
				c.after = append(c.after, name)
			}
		}
		slices.Sort(c.after)
		c.due = time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 40, 90}).Draw(t, "due")) * time.Second
	case "claim":
		c.lease = int64(rapid.SampledFrom([]int{5, 5, 60}).Draw(t, "lease"))
		c.claim = rapid.SampledFrom([]int64{0, 0, 0, 0, 1, 2}).Draw(t, "claim")
	case "observe":
		c.key = ""
	default:
		c.claim = rapid.SampledFrom([]int64{1, 1, 0, 2}).Draw(t, "claim")
		c.text = rapid.SampledFrom([]string{"", "x", "رسید"}).Draw(t, "text")
	}
	return c
}

func checkLedger(t *rapid.T) {
	dir, err := os.MkdirTemp("", "polyphony-ledger-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	clock := newTestClock()
	start := clock.Now()
	ctx := context.Background()
	mustReopen := func() *Store {
		s, err := Open(ctx, filepath.Join(dir, "w"), "w", Options{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, m := mustReopen(), newModel()
	defer func() { _ = s.Close() }()
	for range rapid.IntRange(1, 40).Draw(t, "rounds") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2:
			by := time.Duration(rapid.IntRange(-5, 30).Draw(t, "seconds")) * time.Second
			clock.Advance(by)
			m.now += by
		case 3:
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustReopen()
		default:
			calls := make([]modelCall, rapid.IntRange(1, 3).Draw(t, "at once"))
			for i := range calls {
				calls[i] = drawCall(t)
			}
			answers := make([]answer, len(calls))
			var all sync.WaitGroup
			for i, c := range calls {
				all.Go(func() { answers[i] = runCall(ctx, s, start, c) })
			}
			all.Wait()
			if m = explain(m, calls, answers, heldSteps(t, s)); m == nil {
				t.Fatalf("no order of %+v explains\n%s", calls, encode(t, answers))
			}
		}
	}
}

// explain finds an order of the calls in which the model gives the answers and
// ends with the steps that the file holds; nil when there is none.
func explain(m *model, calls []modelCall, answers []answer, held map[string]answer) *model {
	if len(calls) == 0 {
		if len(held) != len(m.steps) {
			return nil
		}
		for name, o := range m.steps {
			if got, want := held[name], m.view(o); !equalAnswers(got, want) {
				return nil
			}
		}
		return m
	}
	for i, c := range calls {
		next := m.clone()
		if !equalAnswers(next.run(c), answers[i]) {
			continue
		}
		rest := slices.Delete(slices.Clone(calls), i, i+1)
		told := slices.Delete(slices.Clone(answers), i, i+1)
		if end := explain(next, rest, told, held); end != nil {
			return end
		}
	}
	return nil
}

func equalAnswers(a, b answer) bool {
	return slices.Equal(a.Missing, b.Missing) && slices.Equal(a.Never, b.Never) &&
		fmt.Sprint(a.Code, a.Outcome, a.State, a.Claim, a.By, a.Closed, a.Text, a.Doubt, a.InDoubt) == fmt.Sprint(b.Code, b.Outcome, b.State, b.Claim, b.By, b.Closed, b.Text, b.Doubt, b.InDoubt)
}

// heldSteps reads every obligation of the file, by step.
func heldSteps(t *rapid.T, s *Store) map[string]answer {
	out := map[string]answer{}
	err := s.View(context.Background(), func(v *View) error {
		rows, err := v.Obligations("", false, 0, 1000)
		for _, r := range rows {
			out[r.Value.Step] = answerOf(record.ObligationResult{Obligation: r.Value})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func encode(t *rapid.T, v any) string {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
