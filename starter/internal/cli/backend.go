package cli

import (
	"context"
	"encoding/json"
	"log/slog"

	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// backend is what commands call: the workflows' client over a connection of
// its own.
type backend interface {
	ProposeFact(context.Context, record.ProposeFact) (record.ProposeFactResult, error)
	SupersedeFact(context.Context, record.SupersedeFact) (record.SupersedeFactResult, error)
	RestoreFact(context.Context, record.RestoreFact) (record.RestoreFactResult, error)
	ProposePolicy(context.Context, record.ProposePolicy) (record.PolicyResult, error)
	SupersedePolicy(context.Context, record.SupersedePolicy) (record.PolicyResult, error)
	SetGrant(context.Context, record.SetGrant) (record.SetGrantResult, error)
	Remember(context.Context, record.Remember) (record.RememberResult, error)
	RecordObservation(context.Context, record.RecordObservation) (record.RecordObservationResult, error)
	UpdateNotes(context.Context, record.UpdateNotes) (record.UpdateNotesResult, error)
	ResolveConflict(context.Context, record.ResolveConflict) (record.ResolveConflictResult, error)
	StateOpen(context.Context, record.OpenObligation) (record.ObligationResult, error)
	StateClaim(context.Context, record.ClaimObligation) (record.ObligationResult, error)
	StateCommit(context.Context, record.CommitObligation) (record.ObligationResult, error)
	StateFail(context.Context, record.FailObligation) (record.ObligationResult, error)
	StateCancel(context.Context, record.CancelObligation) (record.ObligationResult, error)
	CommitObligation(context.Context, record.CommitObligation) (record.ObligationResult, error)
	AwaitObligation(context.Context, record.Caller, record.StepRef) (record.ObligationResult, error)
	AppendEpisode(context.Context, record.AppendEpisode) (record.AppendEpisodeResult, error)
	AssemblePreamble(context.Context, record.Dispatch) (record.Preamble, error)
	CaptureMeetingDecisions(context.Context, record.CaptureMeeting) (record.MeetingReport, error)
	SearchMemory(context.Context, record.Search) (record.SearchResult, error)
	History(ctx context.Context, caller record.Caller, factID string) (record.FactHistory, error)
	Notes(ctx context.Context, caller record.Caller) (record.Notes, error)
	Health(ctx context.Context, caller record.Caller, deep bool) (record.Health, error)
	Workspaces(ctx context.Context, caller record.Caller) ([]string, error)
	// CheckShards asks the workers of some shards, like 0-7, whether they answer;
	// "" is all. It returns which they are.
	CheckShards(ctx context.Context, shards string) ([]int, error)
	ConsolidateMemory(context.Context, record.Consolidate, func(workflows.MaintenanceProgress)) (record.ConsolidationReport, error)
	HarmonizeMemory(context.Context, record.Harmonize, func(workflows.MaintenanceProgress)) (record.HarmonizationReport, error)
	BackfillEmbeddings(context.Context, record.Backfill, func(workflows.BackfillProgress)) (record.BackfillReport, error)
	InstallModel(context.Context, record.InstallModel, func(record.InstallProgress)) (record.EmbeddingModel, error)
	RemoveModel(context.Context, record.RemoveModel) (record.EmbeddingModel, error)
	EmbeddingModel(ctx context.Context, caller record.Caller) (record.EmbeddingModel, error)
	BackUp(context.Context, record.BackUp) (record.Backup, error)
	RestoreBackup(context.Context, record.RestoreBackup) (record.Backup, error)
	Doctor(context.Context, record.Doctor) (record.DoctorReport, error)
	PruneLedger(context.Context, record.PruneLedger, func(record.PruneLedgerReport)) (record.PruneLedgerReport, error)

	// ReadPage reads one page of rows.
	ReadPage(context.Context, record.ReadMemory) (record.Page[json.RawMessage], error)
	// BeginImport starts an import, or finds it where it was left.
	BeginImport(ctx context.Context, caller record.Caller, source string) (importer, workflows.ImportState, error)
	// Place says where the engine and the gateway are, the latter "" when there
	// is none that is known.
	Place() (engine, gateway string)
	Close()
}

// importer is one import under way.
type importer interface {
	Page(context.Context, workflows.ImportPage) (workflows.ImportState, error)
	Finish(context.Context) (record.ImportReport, error)
}

// dialer connects to what serves a data folder.
type dialer func(ctx context.Context, data string, lookup func(string) (string, bool)) (backend, error)

// engine is the backend over a Temporal connection.
type engine struct {
	*workflows.Client
	conn   client.Client
	shards int
	folder string
	lookup func(string) (string, bool)
}

func (e engine) Place() (engine, gateway string) {
	if opts, _, err := locate.Options(e.folder, e.lookup); err == nil {
		engine = opts.HostPort + ", namespace " + or(opts.Namespace, client.DefaultNamespace)
	}
	if w, err := locate.Announced(e.folder); err == nil && w.HTTP != "" {
		gateway = "http://" + w.HTTP
	}
	return engine, gateway
}

func dialEngine(ctx context.Context, data string, lookup func(string) (string, bool)) (backend, error) {
	folder, err := locate.DataFolder(data, lookup)
	if err != nil {
		return nil, err
	}
	keys, err := locate.CallerKeys(folder, lookup)
	if err != nil {
		return nil, err
	}
	conn, shards, err := locate.Connect(ctx, folder, lookup, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return engine{Client: workflows.NewClient(conn, shards).WithKeys(keys), conn: conn, shards: shards, folder: folder, lookup: lookup}, nil
}

func (e engine) ReadPage(ctx context.Context, in record.ReadMemory) (record.Page[json.RawMessage], error) {
	return workflows.ReadPage[json.RawMessage](ctx, e.Client, in)
}

func (e engine) CheckShards(ctx context.Context, shards string) ([]int, error) {
	asked, err := locate.ParseShards("shards", shards, e.shards)
	if err != nil {
		return nil, err
	}
	return asked, e.Client.CheckShards(ctx, asked)
}

func (e engine) BeginImport(ctx context.Context, caller record.Caller, source string) (importer, workflows.ImportState, error) {
	return e.Client.BeginImport(ctx, caller, source)
}

func (e engine) Close() { e.conn.Close() }

// connect returns the backend, dialled at its first use: a call that is wrong
// in itself is refused before.
func (a *app) connect(ctx context.Context) (backend, error) {
	if err := a.caller.Check(); err != nil {
		return nil, err
	}
	if a.backend == nil {
		b, err := a.dial(ctx, a.data, a.lookup)
		if err != nil {
			return nil, err
		}
		a.backend = b
	}
	return a.backend, nil
}

// reconnect drops the connection and looks for the worker anew: one that was
// started again may listen elsewhere.
func (a *app) reconnect(ctx context.Context) (backend, error) {
	if a.backend != nil {
		a.backend.Close()
		a.backend = nil
	}
	return a.connect(ctx)
}

// call runs one call within the timeout.
func call[Out any](ctx context.Context, a *app, f func(context.Context, backend) (Out, error)) (Out, error) {
	b, err := a.connect(ctx)
	if err != nil {
		var none Out
		return none, err
	}
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	return f(ctx, b)
}

// long runs a call that may take its time: it is bounded only when the caller
// gave a timeout.
func long[Out any](ctx context.Context, a *app, f func(context.Context, backend) (Out, error)) (Out, error) {
	if !a.timed {
		a.timeout = 0
	}
	return call(ctx, a, f)
}

// pages reads rows of T page by page, each within the timeout.
func pages[T any](ctx context.Context, a *app, in record.ReadMemory, each func([]T) error) error {
	for {
		rows, next, err := page[T](ctx, a, in)
		if err != nil {
			return err
		}
		if err := each(rows); err != nil || next == "" {
			return err
		}
		in.Cursor = next
	}
}

// page reads one page of rows of T, and where the next begins.
func page[T any](ctx context.Context, a *app, in record.ReadMemory) (rows []T, next string, err error) {
	in.Caller = a.reader()
	raw, err := call(ctx, a, func(ctx context.Context, b backend) (record.Page[json.RawMessage], error) { return b.ReadPage(ctx, in) })
	if err != nil {
		return nil, "", err
	}
	rows = make([]T, len(raw.Items))
	for i, item := range raw.Items {
		if err := json.Unmarshal(item, &rows[i]); err != nil {
			return nil, "", record.Wrap(record.Unavailable, err, "the worker's answer cannot be read; is it of another version?")
		}
	}
	return rows, raw.Next, nil
}

// rows reads all rows of T.
func rows[T any](ctx context.Context, a *app, in record.ReadMemory) ([]T, error) {
	all := []T{}
	err := pages(ctx, a, in, func(page []T) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// reader is the caller of a read, which takes no key.
func (a *app) reader() record.Caller {
	c := a.caller
	c.Key = ""
	return c
}
