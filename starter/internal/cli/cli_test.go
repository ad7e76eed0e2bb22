package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// noon is the time of the tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fake is a backend that records requests and answers from a table.
type fake struct {
	// requests are the calls, in order.
	requests []any
	// answers and errs are by method, pages by what is read.
	answers map[string]any
	errs    map[string]error
	pages   map[record.ReadKind][]any
	// perPage splits reads; 0 is everything at once.
	perPage int
	// imports is the worker's memory of imports, by workspace and source.
	imports map[string]*fakeImport
	// failPage may refuse to answer for a page.
	failPage func(page int) error
	dials    int
	dialErr  func(dial int) error
	closed   int
}

func newFake() *fake {
	return &fake{answers: map[string]any{}, errs: map[string]error{}, pages: map[record.ReadKind][]any{}, imports: map[string]*fakeImport{}}
}

func answer[Out any](f *fake, method string, request any) (Out, error) {
	f.requests = append(f.requests, request)
	var out Out
	if a, ok := f.answers[method]; ok {
		out = a.(Out)
	}
	return out, f.errs[method]
}

func (f *fake) ProposeFact(_ context.Context, in record.ProposeFact) (record.ProposeFactResult, error) {
	return answer[record.ProposeFactResult](f, "ProposeFact", in)
}
func (f *fake) SupersedeFact(_ context.Context, in record.SupersedeFact) (record.SupersedeFactResult, error) {
	return answer[record.SupersedeFactResult](f, "SupersedeFact", in)
}
func (f *fake) RestoreFact(_ context.Context, in record.RestoreFact) (record.RestoreFactResult, error) {
	return answer[record.RestoreFactResult](f, "RestoreFact", in)
}
func (f *fake) ProposePolicy(_ context.Context, in record.ProposePolicy) (record.PolicyResult, error) {
	return answer[record.PolicyResult](f, "ProposePolicy", in)
}
func (f *fake) SupersedePolicy(_ context.Context, in record.SupersedePolicy) (record.PolicyResult, error) {
	return answer[record.PolicyResult](f, "SupersedePolicy", in)
}
func (f *fake) SetGrant(_ context.Context, in record.SetGrant) (record.SetGrantResult, error) {
	return answer[record.SetGrantResult](f, "SetGrant", in)
}
func (f *fake) Remember(_ context.Context, in record.Remember) (record.RememberResult, error) {
	return answer[record.RememberResult](f, "Remember", in)
}
func (f *fake) RecordObservation(_ context.Context, in record.RecordObservation) (record.RecordObservationResult, error) {
	return answer[record.RecordObservationResult](f, "RecordObservation", in)
}
func (f *fake) UpdateNotes(_ context.Context, in record.UpdateNotes) (record.UpdateNotesResult, error) {
	return answer[record.UpdateNotesResult](f, "UpdateNotes", in)
}
func (f *fake) ResolveConflict(_ context.Context, in record.ResolveConflict) (record.ResolveConflictResult, error) {
	return answer[record.ResolveConflictResult](f, "ResolveConflict", in)
}
func (f *fake) StateOpen(_ context.Context, in record.OpenObligation) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "StateOpen", in)
}
func (f *fake) StateClaim(_ context.Context, in record.ClaimObligation) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "StateClaim", in)
}
func (f *fake) StateCommit(_ context.Context, in record.CommitObligation) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "StateCommit", in)
}
func (f *fake) StateFail(_ context.Context, in record.FailObligation) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "StateFail", in)
}
func (f *fake) StateCancel(_ context.Context, in record.CancelObligation) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "StateCancel", in)
}
func (f *fake) CommitObligation(_ context.Context, in record.CommitObligation) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "CommitObligation", in)
}
func (f *fake) AwaitObligation(_ context.Context, caller record.Caller, ref record.StepRef) (record.ObligationResult, error) {
	return answer[record.ObligationResult](f, "AwaitObligation", record.ObserveObligation{Caller: caller, StepRef: ref})
}
func (f *fake) AppendEpisode(_ context.Context, in record.AppendEpisode) (record.AppendEpisodeResult, error) {
	return answer[record.AppendEpisodeResult](f, "AppendEpisode", in)
}
func (f *fake) AssemblePreamble(_ context.Context, in record.Dispatch) (record.Preamble, error) {
	return answer[record.Preamble](f, "AssemblePreamble", in)
}
func (f *fake) CaptureMeetingDecisions(_ context.Context, in record.CaptureMeeting) (record.MeetingReport, error) {
	return answer[record.MeetingReport](f, "CaptureMeetingDecisions", in)
}
func (f *fake) SearchMemory(_ context.Context, in record.Search) (record.SearchResult, error) {
	return answer[record.SearchResult](f, "SearchMemory", in)
}
func (f *fake) History(_ context.Context, caller record.Caller, id string) (record.FactHistory, error) {
	return answer[record.FactHistory](f, "History", record.ReadMemory{Caller: caller, What: record.ReadHistory, ID: id})
}
func (f *fake) Notes(_ context.Context, caller record.Caller) (record.Notes, error) {
	return answer[record.Notes](f, "Notes", record.ReadMemory{Caller: caller, What: record.ReadNotes})
}
func (f *fake) Health(_ context.Context, caller record.Caller, deep bool) (record.Health, error) {
	return answer[record.Health](f, "Health", record.ReadMemory{Caller: caller, What: record.ReadHealth, All: deep})
}
func (f *fake) Workspaces(_ context.Context, caller record.Caller) ([]string, error) {
	return answer[[]string](f, "Workspaces", record.ReadMemory{Caller: caller, What: record.ReadWorkspaces})
}
func (f *fake) CheckShards(_ context.Context, shards string) ([]int, error) {
	return answer[[]int](f, "CheckShards", shards)
}
func (f *fake) ConsolidateMemory(ctx context.Context, in record.Consolidate, _ func(workflows.MaintenanceProgress)) (record.ConsolidationReport, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return record.ConsolidationReport{}, errors.New("consolidation must not be bounded by default")
	}
	return answer[record.ConsolidationReport](f, "ConsolidateMemory", in)
}
func (f *fake) HarmonizeMemory(_ context.Context, in record.Harmonize, _ func(workflows.MaintenanceProgress)) (record.HarmonizationReport, error) {
	return answer[record.HarmonizationReport](f, "HarmonizeMemory", in)
}
func (f *fake) BackfillEmbeddings(ctx context.Context, in record.Backfill, _ func(workflows.BackfillProgress)) (record.BackfillReport, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return record.BackfillReport{}, errors.New("a backfill must not be bounded by default")
	}
	return answer[record.BackfillReport](f, "BackfillEmbeddings", in)
}
func (f *fake) InstallModel(ctx context.Context, in record.InstallModel, _ func(record.InstallProgress)) (record.EmbeddingModel, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return record.EmbeddingModel{}, errors.New("an installation must not be bounded by default")
	}
	return answer[record.EmbeddingModel](f, "InstallModel", in)
}
func (f *fake) RemoveModel(_ context.Context, in record.RemoveModel) (record.EmbeddingModel, error) {
	return answer[record.EmbeddingModel](f, "RemoveModel", in)
}
func (f *fake) EmbeddingModel(_ context.Context, caller record.Caller) (record.EmbeddingModel, error) {
	return answer[record.EmbeddingModel](f, "EmbeddingModel", record.ReadMemory{Caller: caller, What: record.ReadModel})
}

func (f *fake) Place() (engine, gateway string) {
	return "127.0.0.1:7233, namespace default", "http://127.0.0.1:8733"
}

func (f *fake) BackUp(_ context.Context, in record.BackUp) (record.Backup, error) {
	return answer[record.Backup](f, "BackUp", in)
}
func (f *fake) RestoreBackup(_ context.Context, in record.RestoreBackup) (record.Backup, error) {
	return answer[record.Backup](f, "RestoreBackup", in)
}
func (f *fake) Doctor(_ context.Context, in record.Doctor) (record.DoctorReport, error) {
	return answer[record.DoctorReport](f, "Doctor", in)
}
func (f *fake) PruneLedger(_ context.Context, in record.PruneLedger, _ func(record.PruneLedgerReport)) (record.PruneLedgerReport, error) {
	return answer[record.PruneLedgerReport](f, "PruneLedger", in)
}

func (f *fake) ReadPage(_ context.Context, in record.ReadMemory) (record.Page[json.RawMessage], error) {
	f.requests = append(f.requests, in)
	var page record.Page[json.RawMessage]
	all := f.pages[in.What]
	first := len(in.Cursor)
	last := len(all)
	if f.perPage > 0 && first+f.perPage < last {
		last = first + f.perPage
		page.Next = strings.Repeat("x", last)
	}
	for _, row := range all[first:last] {
		raw, err := json.Marshal(row)
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, raw)
	}
	return page, f.errs[string(in.What)]
}

func (f *fake) BeginImport(_ context.Context, caller record.Caller, source string) (importer, workflows.ImportState, error) {
	id := caller.Workspace + "/" + source
	i := f.imports[id]
	if i == nil {
		i = &fakeImport{fake: f}
		f.imports[id] = i
	}
	return i, i.state, f.errs["BeginImport"]
}

func (f *fake) Close() { f.closed++ }

// fakeImport takes pages as the workflow does.
type fakeImport struct {
	fake  *fake
	state workflows.ImportState
	pages []workflows.ImportPage
}

func (i *fakeImport) Page(_ context.Context, p workflows.ImportPage) (workflows.ImportState, error) {
	if i.fake.failPage != nil {
		if err := i.fake.failPage(p.Page); err != nil {
			return workflows.ImportState{}, err
		}
	}
	if p.Page < i.state.NextPage {
		return i.state, nil
	}
	i.pages = append(i.pages, p)
	report := record.ImportReport{Items: len(p.Items)}
	for n, item := range p.Items {
		if strings.TrimSpace(item.Content) == "" {
			report.Failed = append(report.Failed, record.ItemError{Index: n, Code: record.ContentEmpty, Message: "the text is empty", Field: "content"})
		} else {
			report.Created++
		}
	}
	i.state.Report.Add(report)
	i.state.NextPage = p.Page + 1
	return i.state, nil
}

func (i *fakeImport) Finish(context.Context) (record.ImportReport, error) {
	i.state.Done = true
	return i.state.Report, nil
}

// items returns every fact that was given, in order.
func (i *fakeImport) items() (all []record.ProposeFact) {
	for _, p := range i.pages {
		all = append(all, p.Items...)
	}
	return all
}

// only returns the one import there is.
func (f *fake) only(t *testing.T) *fakeImport {
	t.Helper()
	if len(f.imports) != 1 {
		t.Fatalf("%d imports, want 1", len(f.imports))
	}
	for _, i := range f.imports {
		return i
	}
	return nil
}

// result is what one command line did.
type result struct {
	out, err string
	exit     int
}

// cmd runs a command line against f.
func cmd(t *testing.T, f *fake, stdin string, args ...string) result {
	t.Helper()
	return cmdEnv(t, t.Context(), f, nil, stdin, args...)
}

func cmdEnv(t *testing.T, ctx context.Context, f *fake, env map[string]string, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	now := noon
	a := &app{
		stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs,
		lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		dial: func(context.Context, string, func(string) (string, bool)) (backend, error) {
			f.dials++
			if f.dialErr != nil {
				if err := f.dialErr(f.dials); err != nil {
					return nil, err
				}
			}
			return f, nil
		},
		clock: clock{now: func() time.Time { return now }, wait: func(ctx context.Context, d time.Duration) error {
			now = now.Add(d)
			return ctx.Err()
		}},
		terminal: func(io.Writer) bool { return false },
	}
	exit := a.run(ctx, args)
	if a.backend != nil && f.closed != f.dials-f.failedDials() {
		t.Errorf("%d of %d connections were closed", f.closed, f.dials)
	}
	return result{out.String(), errs.String(), exit}
}

func (f *fake) failedDials() (n int) {
	for i := 1; f.dialErr != nil && i <= f.dials; i++ {
		if f.dialErr(i) != nil {
			n++
		}
	}
	return n
}

// write makes a file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// decode reads one JSON document, and that there is no more than one.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one document in %q", text)
	}
	return v
}
