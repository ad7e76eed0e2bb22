package workflows

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// StateOpen commits a task to a step. The same step again finds it.
func (c *Client) StateOpen(ctx context.Context, in record.OpenObligation) (record.ObligationResult, error) {
	return write[record.OpenObligation, record.ObligationResult](ctx, c, record.KindOpenObligation, StateOpen, "", in)
}

// StateClaim takes an obligation for the calling agent until its lease ends.
// Act only when the outcome is claimed or extended, and before lease_until: a
// repeat under the same key gets the first answer again, however late. When it
// comes with a doubt, ask the outside system for its key before acting.
func (c *Client) StateClaim(ctx context.Context, in record.ClaimObligation) (record.ObligationResult, error) {
	return write[record.ClaimObligation, record.ObligationResult](ctx, c, record.KindClaimObligation, StateClaim, "", in)
}

// StateCommit records that a step is done, or says at once why not.
func (c *Client) StateCommit(ctx context.Context, in record.CommitObligation) (record.ObligationResult, error) {
	return write[record.CommitObligation, record.ObligationResult](ctx, c, record.KindCommitObligation, StateCommit, "", in)
}

// StateFail records that a step was tried and cannot be done.
func (c *Client) StateFail(ctx context.Context, in record.FailObligation) (record.ObligationResult, error) {
	return write[record.FailObligation, record.ObligationResult](ctx, c, record.KindFailObligation, StateFail, "", in)
}

// StateCancel records that a step is no longer wanted.
func (c *Client) StateCancel(ctx context.Context, in record.CancelObligation) (record.ObligationResult, error) {
	return write[record.CancelObligation, record.ObligationResult](ctx, c, record.KindCancelObligation, StateCancel, "", in)
}

// AppendEpisode keeps what was said in a task.
func (c *Client) AppendEpisode(ctx context.Context, in record.AppendEpisode) (record.AppendEpisodeResult, error) {
	return write[record.AppendEpisode, record.AppendEpisodeResult](ctx, c, record.KindAppendEpisode, AppendEpisode, "", in)
}

// CommitObligation commits a step once everything before it is done, and waits
// for that as long as ctx lasts; the waiting itself goes on without the caller.
// Everybody who calls it for one obligation gets the one recorded result: the
// outcome is committed for the commit that made it, and closed for the others,
// whom the obligation tells how it ended and by whom.
//
// Errors: NotFound (the step was not opened), OutOfOrder (a step before it can
// no longer be done), InvalidArgument, ContentTooLarge, Unavailable.
func (c *Client) CommitObligation(ctx context.Context, in record.CommitObligation) (record.ObligationResult, error) {
	if err := in.CheckCommit(); err != nil {
		return record.ObligationResult{}, err
	}
	if strings.TrimSpace(in.Agent) == "" {
		return record.ObligationResult{}, record.Errorf(record.InvalidArgument, "agent", "name the agent that commits")
	}
	if in.Key == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return record.ObligationResult{}, record.Wrap(record.Unavailable, err, "no randomness for an id")
		}
		in.Key = id.String()
	}
	return c.obligation(ctx, in.Caller, in.StepRef, &in)
}

// AwaitObligation waits, as long as ctx lasts, until somebody has closed an
// obligation or its deadline has passed, and returns it.
//
// Errors: those of CommitObligation.
func (c *Client) AwaitObligation(ctx context.Context, caller record.Caller, ref record.StepRef) (record.ObligationResult, error) {
	if err := ref.CheckStep(); err != nil {
		return record.ObligationResult{}, err
	}
	return c.obligation(ctx, caller, ref, nil)
}

// obligation joins the run that waits for an obligation, with an offer to
// commit it or without.
func (c *Client) obligation(ctx context.Context, caller record.Caller, ref record.StepRef, offer *record.CommitObligation) (record.ObligationResult, error) {
	caller.Key = ""
	s := start{
		id: ObligationID(caller.Workspace, ref), workflow: CommitObligation, caller: caller,
		reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, summary: record.KindObligation,
	}
	in := ObligationInput{Caller: caller, StepRef: ref}
	if offer == nil {
		out, err := run[record.ObligationResult](ctx, c, s, in)
		return asFound(out), err
	}
	var out record.ObligationResult
	if err := offer.Check(); err != nil {
		return out, err
	}
	if err := checkSize(*offer); err != nil {
		return out, err
	}
	wr, err := c.temporal.SignalWithStartWorkflow(ctx, s.id, SignalOffer, *offer, c.options(s), s.workflow, in)
	var closed *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &closed) {
		// Closed under this id: its result is the answer.
		wr, err = c.temporal.GetWorkflow(ctx, s.id, ""), nil
	}
	if err == nil {
		err = wr.Get(ctx, &out)
	}
	if err != nil {
		return record.ObligationResult{}, FromTemporal(err)
	}
	// The receipt names the commit that was made. Callers that asked for the very
	// same share it.
	if out.Hash() != record.RequestHash(record.KindCommitObligation, *offer) {
		out = asFound(out)
	}
	return out, nil
}

// asFound makes the run's result that of a caller who did not make the commit.
func asFound(out record.ObligationResult) record.ObligationResult {
	if out.Outcome == record.OutcomeCommitted {
		out.Outcome = record.OutcomeClosed
	}
	return out
}

// Obligations lists the obligations of a task in the order they were opened, or
// those of the workspace when task is empty; openOnly leaves out closed ones.
func (c *Client) Obligations(ctx context.Context, caller record.Caller, task string, openOnly bool) ([]record.Obligation, error) {
	return ReadAll[record.Obligation](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadObligations, TaskID: task, OpenOnly: openOnly})
}

// FactsBySubject reads the current facts that are about a subject: filed under
// it, or naming it word for word. It is a reading of the record, not a search.
func (c *Client) FactsBySubject(ctx context.Context, caller record.Caller, subject string) ([]record.Fact, error) {
	return ReadAll[record.Fact](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadSubject, Subject: subject})
}

// CheckState holds statements against the record: which of them are stale or
// contradicted, and what the record says now. At most 256 statements.
func (c *Client) CheckState(ctx context.Context, caller record.Caller, statements []string) ([]record.CheckedStatement, error) {
	return ReadAll[record.CheckedStatement](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadCheck, Context: statements})
}

// SearchEpisodes finds what was said by its words, at most limit of it, best
// match first; an empty query lists it in order, an empty task is all tasks.
func (c *Client) SearchEpisodes(ctx context.Context, caller record.Caller, task, query string, limit int) ([]record.Episode, error) {
	page, err := ReadPage[record.Episode](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadEpisodes, TaskID: task, Query: query, Limit: limit})
	return page.Items, err
}
