package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// upkeepTimeout bounds one attempt to copy or examine a whole file.
	upkeepTimeout = 2 * time.Hour
	// upkeepAttempts is how often it is tried before it fails.
	upkeepAttempts = 5
	// prunePage is how many ledger rows one activity considers.
	prunePage = 5000
)

// roundKey is the ledger key of a step of a workflow whose id is used again.
func roundKey(ctx workflow.Context, step string) string {
	info := workflow.GetInfo(ctx)
	return LedgerKey(info.WorkflowExecution.ID, info.FirstRunID+"/"+step)
}

// BackUpWorkspace copies the workspace's file as it is at one moment.
func BackUpWorkspace(ctx workflow.Context, in record.BackUp) (record.Backup, error) {
	return beating[record.Backup](ctx, ActivityBackUp, in, upkeepTimeout, upkeepAttempts)
}

// RestoreBackup puts a copy of a backup in the place of the workspace's file.
func RestoreBackup(ctx workflow.Context, in record.RestoreBackup) (record.Backup, error) {
	in.Key = roundKey(ctx, "restore")
	return beating[record.Backup](ctx, ActivityRestoreBackup, in, upkeepTimeout, upkeepAttempts)
}

// DoctorWorkspace compares everything derived from facts with them and, when
// asked, makes it agree.
func DoctorWorkspace(ctx workflow.Context, in record.Doctor) (record.DoctorReport, error) {
	in.Key = roundKey(ctx, "repair")
	return beating[record.DoctorReport](ctx, ActivityDoctor, in, upkeepTimeout, upkeepAttempts)
}

// PruneInput is the input of PruneLedger; a caller sets only the request.
type PruneInput struct {
	record.PruneLedger
	// Before is fixed by the first run, so that a page prunes the same again.
	Before record.Time              `json:"before,omitzero"`
	Cursor string                   `json:"cursor,omitempty"`
	Report record.PruneLedgerReport `json:"report"`
}

// PruneLedger forgets ledger rows of closed runs, page by page.
func PruneLedger(ctx workflow.Context, in PruneInput) (record.PruneLedgerReport, error) {
	if in.Before.IsZero() {
		in.Before = record.At(workflow.Now(ctx).Add(-time.Duration(in.OlderThanSeconds) * time.Second))
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (record.PruneLedgerReport, error) { return in.Report, nil }); err != nil {
		return in.Report, err
	}
	for pages := 0; ; pages++ {
		if pages >= pagesPerRun || pages > 0 && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return in.Report, workflow.NewContinueAsNewError(ctx, PruneLedger, in)
		}
		req := record.PruneLedgerPage{Caller: in.Caller, Before: in.Before, Cursor: in.Cursor, Limit: prunePage}
		out, err := page[record.PruneLedgerResult](ctx, ActivityPruneLedger, req)
		if err != nil {
			return in.Report, err
		}
		in.Report.Add(out.Report)
		if in.Cursor = out.Next; out.Next == "" {
			return in.Report, nil
		}
	}
}
