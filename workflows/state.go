package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// firstLook and lastLook bound how long a waiting run sleeps when nobody
	// tells it anything: the time doubles from one to the other. A commit tells
	// it, so these only mend a message that was lost, and a thousand runs that wait
	// cost next to nothing.
	firstLook = 30 * time.Second
	lastLook  = 10 * time.Minute
	// dueSlack is how long after a deadline a run looks whether it has passed.
	dueSlack = time.Second
	// maxOfferBytes bounds the results of the commits that a run keeps for
	// later, which must fit a payload when it continues as new. Who offers more
	// gets the recorded result like everybody else.
	maxOfferBytes = 1 << 20
)

// StateOpen is state.open: it commits a task to a step.
func StateOpen(ctx workflow.Context, in record.OpenObligation) (record.ObligationResult, error) {
	in.Key = ownKey(ctx)
	return change(ctx, ActivityOpenObligation, in.Caller, in.StepRef, in)
}

// StateClaim is state.claim: it takes an obligation for one agent.
func StateClaim(ctx workflow.Context, in record.ClaimObligation) (record.ObligationResult, error) {
	in.Key = ownKey(ctx)
	return change(ctx, ActivityClaimObligation, in.Caller, in.StepRef, in)
}

// StateCommit is state.commit: it records that a step is done, or says at once
// why not. CommitObligation waits until it can be.
func StateCommit(ctx workflow.Context, in record.CommitObligation) (record.ObligationResult, error) {
	in.Key = ownKey(ctx)
	return change(ctx, ActivityCommitObligation, in.Caller, in.StepRef, in)
}

// StateFail records that a step was tried and cannot be done.
func StateFail(ctx workflow.Context, in record.FailObligation) (record.ObligationResult, error) {
	in.Key = ownKey(ctx)
	return change(ctx, ActivityFailObligation, in.Caller, in.StepRef, in)
}

// StateCancel records that a step is no longer wanted.
func StateCancel(ctx workflow.Context, in record.CancelObligation) (record.ObligationResult, error) {
	in.Key = ownKey(ctx)
	return change(ctx, ActivityCancelObligation, in.Caller, in.StepRef, in)
}

// AppendEpisode is state.append_episode: it keeps what was said in a task.
func AppendEpisode(ctx workflow.Context, in record.AppendEpisode) (record.AppendEpisodeResult, error) {
	in.Key = ownKey(ctx)
	return call[record.AppendEpisodeResult](ctx, ActivityAppendEpisode, in)
}

// change writes to an obligation and tells the runs that wait on what became of
// it.
func change(ctx workflow.Context, activity string, caller record.Caller, ref record.StepRef, in any) (record.ObligationResult, error) {
	out, err := call[record.ObligationResult](ctx, activity, in)
	if err != nil {
		return out, err
	}
	if err := outcome(ctx, string(out.Outcome)); err != nil {
		return out, err
	}
	tell(ctx, caller.Workspace, ref.TaskID, out.Awaited)
	// Their names are nothing to the caller.
	out.Awaited = nil
	return out, nil
}

// tell signals the runs that wait for the steps. One that has ended meanwhile
// needs no news, and one that misses it looks by itself later: failures do not
// matter. The signals are waited for, since the engine drops those of a run
// that has ended.
func tell(ctx workflow.Context, workspace, task string, steps []string) {
	var sent []workflow.Future
	for _, step := range steps {
		id := ObligationID(workspace, record.StepRef{TaskID: task, Step: step})
		sent = append(sent, workflow.SignalExternalWorkflow(ctx, id, "", SignalNews, nil))
	}
	for _, f := range sent {
		if err := f.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Debug("a waiting run was not told", "error", err)
		}
	}
}

// tellOthers is tell without the run itself.
func tellOthers(ctx workflow.Context, in ObligationInput, steps []string) {
	tell(ctx, in.Workspace, in.TaskID, slices.DeleteFunc(slices.Clone(steps), func(step string) bool { return step == in.Step }))
}

// ObligationInput is the input of CommitObligation; a caller sets all but the
// offers.
type ObligationInput struct {
	record.Caller
	record.StepRef
	// Offers are the commits that wait for their turn, carried over when the run
	// continues as new.
	Offers []record.CommitObligation `json:"offers,omitempty"`
}

// CommitObligation waits until an obligation is closed and returns how. A
// commit that it is offered (SignalOffer) it makes as soon as everything that
// comes before is done, so that the obligation is committed once, in order,
// whoever calls and however often. It waits durably: for the steps before, for
// somebody else's commit, and for the deadline, after which it has expired.
func CommitObligation(ctx workflow.Context, in ObligationInput) (record.ObligationResult, error) {
	offers := workflow.GetSignalChannel(ctx, SignalOffer)
	news := workflow.GetSignalChannel(ctx, SignalNews)
	look := firstLook
	for {
		seen, err := call[record.Observed](ctx, ActivityObserveObligation, record.ObserveObligation{Caller: withKey(in.Caller, ""), StepRef: in.StepRef})
		if err != nil {
			return record.ObligationResult{}, err
		}
		tellOthers(ctx, in, seen.Awaited)
		switch {
		case seen.Obligation.State.Closed():
			out := record.ObligationResult{Outcome: record.OutcomeClosed, Obligation: seen.Obligation}
			if seen.CommitHash != "" {
				// Perhaps by this very run: the engine may make it do its last
				// steps again, when they were done and not yet noted.
				out.Outcome, out.RequestHash = record.OutcomeCommitted, seen.CommitHash
			}
			return out, outcome(ctx, string(seen.Obligation.State))
		case len(seen.Never) > 0:
			e := record.Errorf(record.OutOfOrder, "step", "the step can no longer be done: one before it failed, was cancelled or expired")
			e.Missing = seen.Never
			return record.ObligationResult{}, ApplicationError(e, true)
		}
		in.Offers = receive(offers, in.Offers)
		if len(seen.Missing) == 0 {
			out, err := commitFirst(ctx, in)
			if err != nil || out.Outcome != "" {
				return out, err
			}
			in.Offers = nil
		}
		wait := look
		// Past it, the store's clock is behind the engine's and has the word.
		if until := seen.Due.Sub(workflow.Now(ctx)); !seen.Due.IsZero() && until > 0 {
			wait = min(wait, until+dueSlack)
		}
		look = min(2*look, lastLook)
		suggested := func() bool { return workflow.GetInfo(ctx).GetContinueAsNewSuggested() }
		if _, err := workflow.AwaitWithTimeout(ctx, wait, func() bool {
			return offers.Len() > 0 || news.Len() > 0 || suggested()
		}); err != nil {
			return record.ObligationResult{}, err
		}
		for news.ReceiveAsync(nil) {
			look = firstLook
		}
		if suggested() {
			in.Offers = receive(offers, in.Offers)
			return record.ObligationResult{}, workflow.NewContinueAsNewError(ctx, CommitObligation, in)
		}
	}
}

// receive adds the offers that have arrived, as far as they fit.
func receive(from workflow.ReceiveChannel, kept []record.CommitObligation) []record.CommitObligation {
	size := 0
	for _, o := range kept {
		size += len(o.Result)
	}
	var offer record.CommitObligation
	for from.ReceiveAsync(&offer) {
		if size += len(offer.Result); size <= maxOfferBytes {
			kept = append(kept, offer)
		}
		offer = record.CommitObligation{}
	}
	return kept
}

// commitFirst makes the first of the offered commits that the record takes. No
// outcome means that none was taken: another's claim stands, and its holder has
// the word.
func commitFirst(ctx workflow.Context, in ObligationInput) (record.ObligationResult, error) {
	for _, offer := range in.Offers {
		// The offer's own key tells a repeat from another offer, also across
		// the runs of a chain.
		offer.Workspace, offer.StepRef = in.Workspace, in.StepRef
		offer.Key = LedgerKey(workflow.GetInfo(ctx).WorkflowExecution.ID, offer.Key)
		out, err := call[record.ObligationResult](ctx, ActivityCommitObligation, offer)
		switch code := record.ErrorCode(FromTemporal(err)); {
		case code == record.Unavailable, code == record.StoreCorrupt, code == record.StoreNewer:
			return out, err
		case err != nil:
			workflow.GetLogger(ctx).Warn("an offered commit was refused", "code", string(code))
		case out.Outcome == record.OutcomeCommitted, out.Outcome == record.OutcomeClosed:
			tellOthers(ctx, in, out.Awaited)
			out.Awaited = nil
			return out, outcome(ctx, string(out.Obligation.State))
		}
	}
	return record.ObligationResult{}, nil
}
