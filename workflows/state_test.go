package workflows

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// stage is a waiting run against a record that the test writes.
type stage struct {
	env *testsuite.TestWorkflowEnvironment
	// looks are the times of the run's looks, from its start.
	looks []time.Duration
	// observe and commit answer the activities.
	observe func() (record.Observed, error)
	commit  func(record.CommitObligation) (record.ObligationResult, error)
	offers  []record.CommitObligation
}

var waited = record.StepRef{TaskID: "order-7", Step: "ship"}

func newStage(t *testing.T) *stage {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &stage{env: suite.NewTestWorkflowEnvironment()}
	s.env.SetStartTime(time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC))
	s.env.SetTestTimeout(time.Minute)
	start := s.env.Now()
	s.env.RegisterWorkflow(CommitObligation)
	s.env.RegisterActivityWithOptions(func(context.Context, record.ObserveObligation) (record.Observed, error) {
		s.looks = append(s.looks, s.env.Now().Sub(start))
		return s.observe()
	}, activity.RegisterOptions{Name: ActivityObserveObligation})
	s.env.RegisterActivityWithOptions(func(_ context.Context, in record.CommitObligation) (record.ObligationResult, error) {
		s.offers = append(s.offers, in)
		return s.commit(in)
	}, activity.RegisterOptions{Name: ActivityCommitObligation})
	s.commit = func(in record.CommitObligation) (record.ObligationResult, error) {
		o := record.Obligation{StepRef: in.StepRef, State: record.ObligationDone, ClosedBy: in.Agent, Result: in.Result}
		return record.ObligationResult{Outcome: record.OutcomeCommitted, Obligation: o}, nil
	}
	return s
}

// missing is an open obligation that waits for steps.
func missing(steps ...string) record.Observed {
	return record.Observed{Obligation: record.Obligation{StepRef: waited, State: record.ObligationOpen}, Missing: steps, Never: []string{}}
}

// offerAt gives the run a commit after some time.
func (s *stage) offerAt(after time.Duration, agent, result string) {
	s.env.RegisterDelayedCallback(func() {
		s.env.SignalWorkflow(SignalOffer, record.CommitObligation{Caller: record.Caller{Workspace: "w", Agent: agent, Key: agent}, StepRef: waited, Result: result})
	}, after)
}

func (s *stage) run(t *testing.T, offers ...record.CommitObligation) (record.ObligationResult, error) {
	t.Helper()
	s.env.ExecuteWorkflow(CommitObligation, ObligationInput{Caller: record.Caller{Workspace: "w"}, StepRef: waited, Offers: offers})
	if !s.env.IsWorkflowCompleted() {
		t.Fatal("the run did not end")
	}
	var out record.ObligationResult
	if err := s.env.GetWorkflowError(); err != nil {
		return out, err
	}
	return out, s.env.GetWorkflowResult(&out)
}

func TestCommitObligation_waits(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	open := false
	s.observe = func() (record.Observed, error) {
		if open {
			return missing(), nil
		}
		return missing("pay"), nil
	}
	s.offerAt(0, "ada", "by van")
	s.offerAt(time.Hour, "bob", "by boat")
	// A day later what comes before is done, and the run is told.
	s.env.RegisterDelayedCallback(func() {
		open = true
		s.env.SignalWorkflow(SignalNews, nil)
	}, 24*time.Hour)
	out, err := s.run(t)
	if err != nil || out.Outcome != record.OutcomeCommitted || out.Obligation.ClosedBy != "ada" {
		t.Errorf("%+v, %v", out, err)
	}
	if len(s.offers) != 1 || !strings.HasSuffix(s.offers[0].Key, "#ada") {
		t.Errorf("commits %+v", s.offers)
	}
	if last := s.looks[len(s.looks)-1]; last != 24*time.Hour {
		t.Errorf("the last look was after %v: the news did not wake it", last)
	}
	// Nobody told it anything for a day: it looked about every ten minutes,
	// after a start in which the time doubled.
	if n := len(s.looks); n < 24*60/10 || n > 24*60/10+20 {
		t.Errorf("%d looks in a day", n)
	}
}

func TestCommitObligation_deadline(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	due := s.env.Now().Add(10 * time.Hour)
	s.observe = func() (record.Observed, error) {
		seen := missing("pay")
		seen.Due = record.At(due)
		if !s.env.Now().Before(due) {
			seen = record.Observed{Obligation: record.Obligation{StepRef: waited, State: record.ObligationExpired}}
		}
		return seen, nil
	}
	s.offerAt(0, "ada", "by van")
	out, err := s.run(t)
	if err != nil || out.Outcome != record.OutcomeClosed || out.Obligation.State != record.ObligationExpired || len(s.offers) != 0 {
		t.Errorf("%+v, %v, commits %+v", out, err, s.offers)
	}
	if last := s.looks[len(s.looks)-1]; last != 10*time.Hour+dueSlack {
		t.Errorf("the last look was after %v, want just after the deadline", last)
	}
}

// TestCommitObligation_clock: the store's clock is behind, so that the deadline
// passes late; the run must not look in a circle.
func TestCommitObligation_clock(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	due := s.env.Now().Add(time.Minute)
	s.observe = func() (record.Observed, error) {
		seen := missing("pay")
		seen.Due = record.At(due)
		if s.env.Now().After(due.Add(time.Hour)) {
			seen = record.Observed{Obligation: record.Obligation{StepRef: waited, State: record.ObligationExpired}}
		}
		return seen, nil
	}
	out, err := s.run(t)
	if err != nil || out.Obligation.State != record.ObligationExpired || len(s.looks) > 40 {
		t.Errorf("%+v, %v after %d looks", out, err, len(s.looks))
	}
}

func TestCommitObligation_never(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.observe = func() (record.Observed, error) {
		seen := missing("pack", "pay")
		seen.Never = []string{"pay"}
		return seen, nil
	}
	_, err := s.run(t)
	var e *record.Error
	if !errors.As(FromTemporal(err), &e) || e.Code != record.OutOfOrder || !slices.Equal(e.Missing, []string{"pay"}) {
		t.Errorf("%v", err)
	}
}

// TestCommitObligation_held: while another's claim stands an offer is not made
// again, and its caller gets what the holder records.
func TestCommitObligation_held(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	done := false
	s.observe = func() (record.Observed, error) {
		seen := missing()
		if done {
			seen.Obligation.State, seen.Obligation.ClosedBy = record.ObligationDone, "bob"
		}
		return seen, nil
	}
	s.commit = func(in record.CommitObligation) (record.ObligationResult, error) {
		if in.Agent == "large" {
			return record.ObligationResult{}, ApplicationError(record.Errorf(record.ContentTooLarge, "result", "too large"), true)
		}
		return record.ObligationResult{Outcome: record.OutcomeHeld}, nil
	}
	s.offerAt(0, "ada", "")
	s.offerAt(0, "large", "")
	s.env.RegisterDelayedCallback(func() {
		done = true
		s.env.SignalWorkflow(SignalNews, nil)
	}, time.Hour)
	out, err := s.run(t)
	if err != nil || out.Outcome != record.OutcomeClosed || out.Obligation.ClosedBy != "bob" || len(s.offers) != 2 {
		t.Errorf("%+v, %v, commits %+v", out, err, s.offers)
	}
}

// TestCommitObligation_doneAgain: the engine lost that the run made a commit and
// has it look again; the receipt still names the commit that was made.
func TestCommitObligation_doneAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.observe = func() (record.Observed, error) {
		seen := missing()
		seen.Obligation.State, seen.CommitHash = record.ObligationDone, "c0ffee"
		return seen, nil
	}
	out, err := s.run(t)
	if err != nil || out.Outcome != record.OutcomeCommitted || out.Hash() != "c0ffee" || len(s.offers) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestCommitObligation_continuesAsNew(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.observe = func() (record.Observed, error) { return missing("pay"), nil }
	s.offerAt(time.Minute, "bob", "by boat")
	s.offerAt(time.Minute, "large", strings.Repeat("x", maxOfferBytes))
	s.env.RegisterDelayedCallback(func() { s.env.SetContinueAsNewSuggested(true) }, time.Hour)
	_, err := s.run(t, record.CommitObligation{Caller: record.Caller{Agent: "ada"}, Result: "by van"})
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) {
		t.Fatalf("%v, want to continue as new", err)
	}
	var in ObligationInput
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
		t.Fatal(err)
	}
	var agents []string
	for _, o := range in.Offers {
		agents = append(agents, o.Agent)
	}
	if in.StepRef != waited || !slices.Equal(agents, []string{"ada", "bob"}) {
		t.Errorf("carried over: %+v", in)
	}
}
