package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// maintenancePage is how many items one activity of maintenance considers.
	maintenancePage = 200
	// pagesPerRun is after how many pages a run continues as new, so that its
	// history stays small.
	pagesPerRun = 200
)

// MaintenanceProgress is where a maintenance run stands; it is carried over
// when the run continues as new.
type MaintenanceProgress struct {
	// Round names the run in ledger keys: the first run of the chain.
	Round string `json:"round"`
	// Phase is the index of the phase, Cursor where in it the next page starts.
	Phase  int    `json:"phase"`
	Cursor string `json:"cursor,omitempty"`
	// Pages counts the pages done.
	Pages int `json:"pages"`
}

// ConsolidateInput is the input of ConsolidateMemory; a caller sets only the
// request.
type ConsolidateInput struct {
	record.Consolidate
	Progress MaintenanceProgress        `json:"progress"`
	Report   record.ConsolidationReport `json:"report"`
}

// ConsolidateMemory puts memory in order: expire, promote, merge, archive.
func ConsolidateMemory(ctx workflow.Context, in ConsolidateInput) (record.ConsolidationReport, error) {
	if in.Report.Skipped == nil {
		in.Report.Skipped = []string{}
	}
	again, err := maintain(ctx, &in.Progress, record.ConsolidationPhases(), func(req record.MaintenancePage) (string, error) {
		req.Caller, req.ForAgent, req.DryRun = withKey(in.Caller, req.Key), in.ForAgent, in.DryRun
		out, err := page[record.ConsolidationPage](ctx, ActivityConsolidate, req)
		in.Report.Add(out.Report)
		return out.Next, err
	})
	if err == nil && again {
		return in.Report, workflow.NewContinueAsNewError(ctx, ConsolidateMemory, in)
	}
	return in.Report, err
}

// HarmonizeInput is the input of HarmonizeMemory; a caller sets only the
// request.
type HarmonizeInput struct {
	record.Harmonize
	Progress MaintenanceProgress        `json:"progress"`
	Report   record.HarmonizationReport `json:"report"`
}

// HarmonizeMemory finds what several agents hold, and where they disagree.
func HarmonizeMemory(ctx workflow.Context, in HarmonizeInput) (record.HarmonizationReport, error) {
	if in.Report.Skipped == nil {
		in.Report.Skipped = []string{}
	}
	again, err := maintain(ctx, &in.Progress, record.HarmonizationPhases(), func(req record.MaintenancePage) (string, error) {
		req.Caller, req.DryRun = withKey(in.Caller, req.Key), in.DryRun
		out, err := page[record.HarmonizationPage](ctx, ActivityHarmonize, req)
		in.Report.Add(out.Report)
		return out.Next, err
	})
	if err == nil && again {
		return in.Report, workflow.NewContinueAsNewError(ctx, HarmonizeMemory, in)
	}
	return in.Report, err
}

func withKey(c record.Caller, key string) record.Caller {
	c.Key = key
	return c
}

// maintain runs the phases page by page; again asks to continue as new.
func maintain(ctx workflow.Context, p *MaintenanceProgress, phases []string, do func(record.MaintenancePage) (next string, err error)) (again bool, err error) {
	info := workflow.GetInfo(ctx)
	if p.Round == "" {
		p.Round = info.FirstRunID
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (MaintenanceProgress, error) { return *p, nil }); err != nil {
		return false, err
	}
	for pages := 0; p.Phase < len(phases); pages++ {
		if pages >= pagesPerRun || pages > 0 && info.GetContinueAsNewSuggested() {
			return true, nil
		}
		req := record.MaintenancePage{Phase: phases[p.Phase], Cursor: p.Cursor, Limit: maintenancePage}
		req.Key = LedgerKey(info.WorkflowExecution.ID, fmt.Sprintf("%s/%s/%s", p.Round, req.Phase, req.Cursor))
		next, err := do(req)
		if err != nil {
			return false, err
		}
		p.Pages++
		if p.Cursor = next; next == "" {
			p.Phase++
		}
	}
	return false, nil
}
