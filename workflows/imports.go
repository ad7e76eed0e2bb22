package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// importIdle is how long an import waits for its next page before it ends as
// failed. Starting the same import again goes on from there: the ledger knows
// the pages that were taken.
const importIdle = 24 * time.Hour

// ImportInput is the input of ImportFacts; a caller sets only the request.
type ImportInput struct {
	record.Caller
	// Source is the hex SHA-256 of the imported file.
	Source string      `json:"source"`
	State  ImportState `json:"state"`
}

// ImportState is how far an import is.
type ImportState struct {
	// NextPage is the page that is wanted next.
	NextPage int                 `json:"next_page"`
	Report   record.ImportReport `json:"report"`
	Done     bool                `json:"done"`
}

// ImportPage is one page given to an import.
type ImportPage struct {
	Page  int                  `json:"page"`
	Items []record.ProposeFact `json:"items"`
}

// ImportFacts takes a file's facts in pages that the caller gives as updates,
// through the same write path as single proposals. A caller that died asks it
// where to go on.
func ImportFacts(ctx workflow.Context, in ImportInput) (record.ImportReport, error) {
	s := &in.State
	if s.Report.Failed == nil {
		s.Report.Failed = []record.ItemError{}
	}
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	turn := workflow.NewMutex(ctx)
	touched := 0
	progress := func() (ImportState, error) { return *s, nil }
	if err := workflow.SetQueryHandler(ctx, QueryProgress, progress); err != nil {
		return s.Report, err
	}
	if err := workflow.SetUpdateHandler(ctx, UpdateBegin, func(workflow.Context) (ImportState, error) {
		touched++
		return progress()
	}); err != nil {
		return s.Report, err
	}
	if err := workflow.SetUpdateHandler(ctx, UpdatePage, func(ctx workflow.Context, p ImportPage) (ImportState, error) {
		// Pages are taken one after the other, in their order, each once.
		if err := turn.Lock(ctx); err != nil {
			return *s, err
		}
		defer turn.Unlock()
		touched++
		if p.Page < s.NextPage {
			return *s, nil
		}
		if p.Page > s.NextPage {
			return *s, failure(record.Errorf(record.InvalidArgument, "page", "page %d is wanted next, not %d", s.NextPage, p.Page))
		}
		req := record.ImportFacts{Caller: in.Caller, Source: in.Source, Page: p.Page, Items: p.Items}
		req.Key = LedgerKey(id, fmt.Sprintf("page-%d", p.Page))
		out, err := call[record.ImportReport](ctx, ActivityImportFacts, req)
		if err != nil {
			return *s, err
		}
		s.Report.Add(out)
		s.NextPage = p.Page + 1
		return *s, nil
	}); err != nil {
		return s.Report, err
	}
	if err := workflow.SetUpdateHandler(ctx, UpdateFinish, func(workflow.Context) (ImportState, error) {
		s.Done = true
		return progress()
	}); err != nil {
		return s.Report, err
	}
	for {
		seen := touched
		moved, err := workflow.AwaitWithTimeout(ctx, importIdle, func() bool {
			return s.Done || touched != seen || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		})
		if err != nil {
			return s.Report, err
		}
		if !moved {
			// A failure, so that the same import can be started again.
			return s.Report, ApplicationError(record.Errorf(record.Unavailable, "", "the import was left for %v after page %d; start it again", importIdle, s.NextPage), true)
		}
		if s.Done {
			err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
			return s.Report, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
				return s.Report, err
			}
			return s.Report, workflow.NewContinueAsNewError(ctx, ImportFacts, in)
		}
	}
}
