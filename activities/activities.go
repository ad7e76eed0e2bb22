package activities

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/polyphony-memory/polyphony/dispatch"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/fault"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
)

// Store holds the activities that change a workspace.
type Store struct {
	Workspaces *memory.Workspaces
}

// Reader holds the activities that read a workspace.
type Reader struct {
	Workspaces *memory.Workspaces
	Recall     *recall.Engine
	// Keeper tells of the embedding model; nil where none is kept.
	Keeper Keeper
}

// write opens the workspace, making it when it is new, and runs f on it.
func write[In record.Request, Out any](ctx context.Context, w *memory.Workspaces, in In, f func(*memory.Store, context.Context, In) (Out, error)) (Out, error) {
	var out Out
	// A call that cannot be taken must not make a workspace.
	err := memory.Check(in)
	if err == nil {
		err = w.Check(in.Origin().Workspace)
	}
	if err == nil && !memory.Creates(in) && !w.Exists(in.Origin().Workspace) {
		err = noWorkspace(in.Origin().Workspace)
	}
	if err == nil {
		err = w.Use(ctx, in.Origin().Workspace, func(s *memory.Store) (err error) {
			out, err = f(s, ctx, in)
			return err
		})
		fault.Reach(fault.Answered)
	}
	return out, applicationError(ctx, err)
}

// read opens the workspace if it exists and runs f on it; reading does not make
// one, so for an unknown workspace the answer is empty.
func read[Out any](ctx context.Context, w *memory.Workspaces, c record.Caller, empty Out, f func(*memory.Store) (Out, error)) (Out, error) {
	err := c.Check()
	if err == nil {
		err = w.Check(c.Workspace)
	}
	if err != nil {
		return empty, applicationError(ctx, err)
	}
	if !w.Exists(c.Workspace) {
		return empty, nil
	}
	out := empty
	err = w.Use(ctx, c.Workspace, func(s *memory.Store) (err error) {
		out, err = f(s)
		return err
	})
	return out, applicationError(ctx, err)
}

func noWorkspace(id string) error {
	return record.Errorf(record.NotFound, "workspace", "there is no workspace %s", id)
}

// applicationError is the one place where the store's errors become
// Temporal's: the type is the error's name, and what a retry cannot mend is
// not retried. The cause stays in the worker's log.
func applicationError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var e *record.Error
	if !errors.As(err, &e) {
		e = record.Wrap(record.Unavailable, err, "the store failed")
	}
	if cause := e.Unwrap(); cause != nil {
		activity.GetLogger(ctx).Warn("a store call failed", "code", string(e.Code), "cause", cause.Error())
	}
	return temporal.NewApplicationErrorWithOptions(e.Message, string(e.Code), temporal.ApplicationErrorOptions{
		NonRetryable: !e.Code.Retryable(), Details: []any{*e}, Category: category(e.Code),
	})
}

// category keeps refusals, which are expected, out of the failure metrics.
func category(c record.Code) temporal.ApplicationErrorCategory {
	if c == record.Unavailable || c == record.StoreCorrupt {
		return temporal.ApplicationErrorCategoryUnspecified
	}
	return temporal.ApplicationErrorCategoryBenign
}

// ProposeFact runs [memory.Store.ProposeFact]. A trial in a workspace that does
// not exist leaves none.
func (a *Store) ProposeFact(ctx context.Context, in record.ProposeFact) (record.ProposeFactResult, error) {
	if in.DryRun && !a.Workspaces.Exists(in.Workspace) {
		var out record.ProposeFactResult
		err := a.Workspaces.Trial(ctx, in.Workspace, func(s *memory.Store) (err error) {
			out, err = s.ProposeFact(ctx, in)
			return err
		})
		return out, applicationError(ctx, err)
	}
	return write(ctx, a.Workspaces, in, (*memory.Store).ProposeFact)
}

// SupersedeFact runs [memory.Store.SupersedeFact].
func (a *Store) SupersedeFact(ctx context.Context, in record.SupersedeFact) (record.SupersedeFactResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).SupersedeFact)
}

// RestoreFact runs [memory.Store.RestoreFact].
func (a *Store) RestoreFact(ctx context.Context, in record.RestoreFact) (record.RestoreFactResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).RestoreFact)
}

// ProposePolicy runs [memory.Store.ProposePolicy].
func (a *Store) ProposePolicy(ctx context.Context, in record.ProposePolicy) (record.PolicyResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).ProposePolicy)
}

// SupersedePolicy runs [memory.Store.SupersedePolicy].
func (a *Store) SupersedePolicy(ctx context.Context, in record.SupersedePolicy) (record.PolicyResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).SupersedePolicy)
}

// UpdateFact runs [memory.Store.UpdateFact].
func (a *Store) UpdateFact(ctx context.Context, in record.UpdateFact) (record.UpdateFactResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).UpdateFact)
}

// DeleteFact runs [memory.Store.DeleteFact].
func (a *Store) DeleteFact(ctx context.Context, in record.DeleteFact) (record.DeleteFactResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).DeleteFact)
}

// UpdatePolicy runs [memory.Store.UpdatePolicy].
func (a *Store) UpdatePolicy(ctx context.Context, in record.UpdatePolicy) (record.UpdatePolicyResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).UpdatePolicy)
}

// DeletePolicy runs [memory.Store.DeletePolicy].
func (a *Store) DeletePolicy(ctx context.Context, in record.DeletePolicy) (record.DeletePolicyResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).DeletePolicy)
}

// DeleteGrant runs [memory.Store.DeleteGrant].
func (a *Store) DeleteGrant(ctx context.Context, in record.DeleteGrant) (record.SetGrantResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).DeleteGrant)
}

// SetGrant runs [memory.Store.SetGrant].
func (a *Store) SetGrant(ctx context.Context, in record.SetGrant) (record.SetGrantResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).SetGrant)
}

// Remember runs [memory.Store.Remember].
func (a *Store) Remember(ctx context.Context, in record.Remember) (record.RememberResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).Remember)
}

// RecordObservation runs [memory.Store.RecordObservation].
func (a *Store) RecordObservation(ctx context.Context, in record.RecordObservation) (record.RecordObservationResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).RecordObservation)
}

// UpdateNotes runs [memory.Store.UpdateNotes].
func (a *Store) UpdateNotes(ctx context.Context, in record.UpdateNotes) (record.UpdateNotesResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).UpdateNotes)
}

// ResolveConflict runs [memory.Store.ResolveConflict].
func (a *Store) ResolveConflict(ctx context.Context, in record.ResolveConflict) (record.ResolveConflictResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).ResolveConflict)
}

// RecordJudgement runs [memory.Store.RecordJudgement].
func (a *Store) RecordJudgement(ctx context.Context, in record.RecordJudgement) (record.RecordJudgementResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).RecordJudgement)
}

// CaptureMeetingPage runs [memory.Store.CaptureMeetingPage].
func (a *Store) CaptureMeetingPage(ctx context.Context, in record.MeetingPage) (record.MeetingReport, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).CaptureMeetingPage)
}

// ImportFactsPage runs [memory.Store.ImportFactsPage].
func (a *Store) ImportFactsPage(ctx context.Context, in record.ImportFacts) (record.ImportReport, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).ImportFactsPage)
}

// ConsolidatePage runs [memory.Store.ConsolidatePage].
func (a *Store) ConsolidatePage(ctx context.Context, in record.MaintenancePage) (record.ConsolidationPage, error) {
	activity.RecordHeartbeat(ctx, in.Phase, in.Cursor)
	return write(ctx, a.Workspaces, in, (*memory.Store).ConsolidatePage)
}

// HarmonizePage runs [memory.Store.HarmonizePage].
func (a *Store) HarmonizePage(ctx context.Context, in record.MaintenancePage) (record.HarmonizationPage, error) {
	activity.RecordHeartbeat(ctx, in.Phase, in.Cursor)
	return write(ctx, a.Workspaces, in, (*memory.Store).HarmonizePage)
}

// AssemblePreamble runs [dispatch.Assemble].
func (a *Reader) AssemblePreamble(ctx context.Context, in record.Dispatch) (record.Preamble, error) {
	empty := record.Preamble{PolicyIDs: []string{}, FactIDs: []string{}, Missing: []string{}, Cut: []string{}, Stale: []record.Stale{}}
	out, err := read(ctx, a.Workspaces, in.Caller, empty, func(s *memory.Store) (record.Preamble, error) {
		return dispatch.Assemble(ctx, s, in)
	})
	out.Stamp(record.RequestHash(record.KindPreamble, in))
	return out, err
}

// SearchMemory runs [recall.Engine.SearchWorkspace].
func (a *Reader) SearchMemory(ctx context.Context, in record.Search) (record.SearchResult, error) {
	out, err := a.Recall.SearchWorkspace(ctx, a.Workspaces, in)
	return fitting(out), applicationError(ctx, err)
}

// fitting leaves out the last facts of an answer that would be too large to
// travel, and says how many.
func fitting(out record.SearchResult) record.SearchResult {
	room := record.MaxAnswerBytes
	for i, h := range out.Facts {
		raw, err := json.Marshal(h)
		if room -= len(raw); err != nil || room < 0 {
			out.Left = len(out.Facts) - i
			out.Facts = out.Facts[:i]
			return out
		}
	}
	return out
}

// ReadMemory runs [memory.Workspaces.Read].
func (a *Reader) ReadMemory(ctx context.Context, in record.ReadMemory) (record.Page[json.RawMessage], error) {
	if in.What == record.ReadModel {
		page := record.Page[json.RawMessage]{Items: []json.RawMessage{}}
		var model record.EmbeddingModel
		err := in.Check()
		if err == nil && a.Keeper != nil {
			model, err = a.Keeper.Status()
		}
		raw, _ := json.Marshal(model) // Plain fields.
		page.Items = append(page.Items, raw)
		return page, applicationError(ctx, err)
	}
	out, err := a.Workspaces.Read(ctx, in)
	return out, applicationError(ctx, err)
}
