package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// backfillPage is how many facts one activity of a backfill considers: about
	// five seconds of the encoder's work.
	backfillPage = 512
	// backfillTimeout bounds one page: what hugot's session, the slowest, needs
	// for a page of long facts.
	backfillTimeout = 30 * time.Minute
	// modelTimeout bounds one attempt to install a model: 90 MB over a slow
	// line.
	modelTimeout = 2 * time.Hour
	// modelAttempts is how often an installation is tried before it fails.
	modelAttempts = 5
)

// BackfillInput is the input of BackfillEmbeddings; a caller sets only the
// request.
type BackfillInput struct {
	record.Backfill
	Progress BackfillProgress      `json:"progress"`
	Report   record.BackfillReport `json:"report"`
}

// BackfillProgress is where a backfill stands; it is carried over when the run
// continues as new.
type BackfillProgress struct {
	// Round names the run in ledger keys: the first run of the chain.
	Round string `json:"round"`
	// Sweep counts the beginnings: it begins again when the model becomes
	// another, Model.
	Sweep int    `json:"sweep"`
	Model string `json:"model"`
	// Cursor is where the next page starts.
	Cursor string `json:"cursor,omitempty"`
	// Considered counts the facts of this sweep that are done, of the Total
	// that had no vector when it began.
	Considered int64 `json:"considered"`
	Total      int64 `json:"total"`
}

// BackfillEmbeddings gives facts without a vector of the model in use one. It
// runs only when somebody asks. Without a model it fails as Unavailable.
func BackfillEmbeddings(ctx workflow.Context, in BackfillInput) (record.BackfillReport, error) {
	info := workflow.GetInfo(ctx)
	p := &in.Progress
	if p.Round == "" {
		p.Round = info.FirstRunID
	}
	if err := workflow.SetQueryHandler(ctx, QueryProgress, func() (BackfillProgress, error) { return *p, nil }); err != nil {
		return in.Report, err
	}
	for pages := 0; ; pages++ {
		if pages >= pagesPerRun || pages > 0 && info.GetContinueAsNewSuggested() {
			return in.Report, workflow.NewContinueAsNewError(ctx, BackfillEmbeddings, in)
		}
		req := record.BackfillPage{Model: p.Model, Cursor: p.Cursor, Limit: backfillPage}
		req.Caller = withKey(in.Caller, LedgerKey(info.WorkflowExecution.ID, fmt.Sprintf("%s/%d", p.Round, p.Sweep)))
		out, err := beating[record.BackfillResult](ctx, ActivityBackfill, req, backfillTimeout, 0)
		switch {
		case err != nil:
			return in.Report, err
		case out.Model == "":
			return in.Report, ApplicationError(record.Errorf(record.Unavailable, "model", "no embedding model is installed, so facts get no vectors; install one first"), true)
		case out.Model != p.Model:
			*p = BackfillProgress{Round: p.Round, Sweep: p.Sweep + 1, Model: out.Model, Total: out.Missing}
			continue
		}
		in.Report.Add(out.Report)
		p.Considered += int64(out.Report.Considered)
		if p.Cursor = out.Next; out.Next == "" {
			return in.Report, nil
		}
	}
}

// InstallModel installs an embedding model on the machine of the worker that
// serves the workspace.
func InstallModel(ctx workflow.Context, in record.InstallModel) (record.EmbeddingModel, error) {
	return beating[record.EmbeddingModel](ctx, ActivityInstallModel, in, modelTimeout, modelAttempts)
}

// RemoveModel removes the embedding model of that worker.
func RemoveModel(ctx workflow.Context, in record.RemoveModel) (record.EmbeddingModel, error) {
	return beating[record.EmbeddingModel](ctx, ActivityRemoveModel, in, modelTimeout, modelAttempts)
}
