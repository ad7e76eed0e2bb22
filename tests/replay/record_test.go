package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/activities/judge"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/worker/engine"
	"github.com/polyphony-memory/polyphony/workflows"
)

// update records the cases that have no history yet. It never writes over one
// that is there.
var update = flag.Bool("update", false, "record the histories that are missing")

// workflowName is the name that a workflow function is registered under.
func workflowName(w any) (string, error) {
	f := runtime.FuncForPC(reflect.ValueOf(w).Pointer())
	if f == nil {
		return "", fmt.Errorf("%T is no function", w)
	}
	return f.Name()[strings.LastIndex(f.Name(), ".")+1:], nil
}

// branch is one recorded way through a workflow.
type branch struct {
	workflow, name string
	// run makes the calls in a workspace of its own and returns the id of the
	// workflow whose history is kept.
	run func(*recorder) string
	// chain is the run of a chain that continued as new, from 0; the last one
	// when it is more than there are.
	chain int
	// packed keeps a long history compressed.
	packed bool
}

func (b branch) path() string {
	path := filepath.Join(histories, b.workflow, b.name+".json")
	if b.packed {
		path += ".gz"
	}
	return path
}

// recorder runs the branches.
type recorder struct {
	t          *testing.T
	data       string
	temporal   client.Client
	client     *workflows.Client
	workspaces *memory.Workspaces
	model      *modelScript
	// who calls, in the workspace of the branch.
	who record.Caller
}

func (r *recorder) keyed(key string) record.Caller {
	w := r.who
	w.Key = key
	return w
}

// check ends the recording on an error that is not the wanted one.
func (r *recorder) check(err error, want record.Code) {
	r.t.Helper()
	if record.ErrorCode(err) != want {
		r.t.Fatalf("%v, want code %q", err, want)
	}
}

// store changes the workspace without a workflow, for what comes before.
func (r *recorder) store(f func(*memory.Store) error) {
	r.t.Helper()
	if err := r.workspaces.Use(r.t.Context(), r.who.Workspace, f); err != nil {
		r.t.Fatal(err)
	}
}

// fact is a proposal under a key of its topic.
func (r *recorder) fact(topic, content string) record.ProposeFactResult {
	r.t.Helper()
	out, err := r.propose(strings.ReplaceAll(topic, " ", "-"), topic, content)
	r.check(err, "")
	return out
}

func (r *recorder) propose(key, topic, content string) (record.ProposeFactResult, error) {
	return r.client.ProposeFact(r.t.Context(), record.ProposeFact{Caller: r.keyed(key), Domain: "harbour", Topic: topic, Content: content})
}

// startRecorder runs the engine and a worker in this process. The worker keeps no
// workflow between its tasks: the queue it would be handed them on is named
// after the machine.
func startRecorder(t *testing.T) *recorder {
	t.Helper()
	// Before the engine, whose own workers share the cache.
	worker.SetStickyWorkflowCacheSize(0)
	e, err := engine.Start(t.Context(), engine.Config{Dir: t.TempDir(), Port: engine.AnyPort, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	tc, err := client.DialContext(t.Context(), client.Options{
		HostPort: e.Address(), Namespace: e.Namespace(), Identity: "recorder", Logger: quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tc.Close)
	r := &recorder{t: t, data: t.TempDir(), temporal: tc, client: workflows.NewClient(tc, 1), model: &modelScript{}}
	if r.workspaces, err = memory.NewWorkspaces(r.data, memory.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.workspaces.Close() })
	judge := stubJudge(t)
	for _, queue := range []string{workflows.ShardQueue(0), workflows.MaintenanceQueue(0)} {
		w := worker.New(tc, queue, worker.Options{
			Identity:            "recorder",
			DeploymentOptions:   worker.DeploymentOptions{Version: worker.WorkerDeploymentVersion{DeploymentName: "recorder", BuildID: "recorder"}},
			WorkflowPanicPolicy: worker.FailWorkflow, MaxConcurrentLocalActivityExecutionSize: 64,
		})
		workflows.Register(w)
		w.RegisterActivity(&activities.Store{Workspaces: r.workspaces})
		w.RegisterActivity(&activities.Reader{Workspaces: r.workspaces, Recall: recall.NewEngine(nil)})
		w.RegisterActivity(&activities.Upkeep{Workspaces: r.workspaces, Runs: r.client})
		w.RegisterActivity(r.model)
		w.RegisterActivity(&activities.Judge{Workspaces: r.workspaces, Client: judge})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	return r
}

// stubJudge finds a contradiction in every pair, in prose when the statements
// speak of rain.
func stubJudge(t *testing.T) *judge.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Messages []struct{ Content string } }
		var q judge.Question
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) != 2 || json.Unmarshal([]byte(body.Messages[1].Content), &q) != nil {
			t.Errorf("asked %+v: %v", body, err)
			return
		}
		content := fmt.Sprintf(`{"id":%q,"relation":"contradiction","reason":"One tracker at a time."}`, q.ID)
		if strings.Contains(q.Older, "rain") {
			content = "Hard to say."
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": content}}}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := judge.New(judge.Config{URL: server.URL, Model: "stub"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// judged refers the suspected pairs of the workspace to the judge and waits
// until there are none.
func (r *recorder) judged(want record.JudgeReport) string {
	r.t.Helper()
	r.check(r.client.ReferSuspicions(r.t.Context(), r.who), "")
	id := workflows.MaintenanceID(record.KindJudge, r.who.Workspace)
	var got record.JudgeReport
	if err := r.temporal.GetWorkflow(r.t.Context(), id, "").Get(r.t.Context(), &got); err != nil || got != want {
		r.t.Fatalf("%+v %v, want %+v", got, err, want)
	}
	return id
}

// TestRecord records what is missing; without -update it only checks that
// nothing is.
func TestRecord(t *testing.T) {
	var missing []branch
	for _, b := range branches() {
		if _, err := os.Stat(b.path()); os.IsNotExist(err) {
			missing = append(missing, b)
		}
	}
	if len(missing) == 0 {
		return
	}
	if !*update {
		for _, b := range missing {
			t.Errorf("%s is missing; record it with: go test ./tests/replay -update", b.path())
		}
		return
	}
	r := startRecorder(t)
	for i, b := range missing {
		t.Run(b.workflow+"/"+b.name, func(t *testing.T) {
			own := *r
			own.t = t
			own.who = record.Caller{Workspace: fmt.Sprintf("case-%d", i), Agent: "scout", Role: "coder"}
			id := b.run(&own)
			if t.Failed() {
				return
			}
			own.save(b, own.fetch(id, b.chain))
		})
	}
}

// fetch reads a run's whole history, that of the chain's nth run.
func (r *recorder) fetch(id string, chain int) *historypb.History {
	r.t.Helper()
	d, err := r.temporal.DescribeWorkflowExecution(r.t.Context(), id, "")
	if err != nil {
		r.t.Fatal(err)
	}
	run := d.GetWorkflowExecutionInfo().GetFirstRunId()
	for ; ; chain-- {
		h := &historypb.History{}
		it := r.temporal.GetWorkflowHistory(r.t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e, err := it.Next()
			if err != nil {
				r.t.Fatal(err)
			}
			h.Events = append(h.Events, e)
		}
		next := h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if chain == 0 || next == "" {
			return h
		}
		run = next
	}
}

// save writes the history unless a file is there.
func (r *recorder) save(b branch, h *historypb.History) {
	r.t.Helper()
	raw, err := protojson.MarshalOptions{Indent: "  "}.Marshal(h)
	if err != nil {
		r.t.Fatal(err)
	}
	// protojson varies its spaces on purpose; files should not.
	raw = append(bytes.ReplaceAll(raw, []byte(`":  `), []byte(`": `)), '\n')
	if b.packed {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = z.Write(raw)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		raw = packed.Bytes()
	}
	if err := os.MkdirAll(filepath.Dir(b.path()), 0o755); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(b.path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.Write(raw)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("%d events, %d bytes", len(h.Events), len(raw))
}

// newest finds the one run of a kind in the workspace whose id nobody chose,
// once the engine's list of runs has it.
func (r *recorder) newest(kind string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := r.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("%s = '%s' AND ExecutionStatus != 'Running'", workflows.AttributeWorkspace.GetName(), r.who.Workspace),
		})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range list.GetExecutions() {
			if id := e.GetExecution().GetWorkflowId(); strings.HasPrefix(id, kind+"/") {
				return id
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("no run of %s is listed", kind)
		}
	}
}

// remember seeds n session items; with an age they have outlived their time.
func (r *recorder) remember(n int, age time.Duration) {
	r.t.Helper()
	dir := filepath.Join(r.data, "workspaces", r.who.Workspace)
	s, err := memory.Open(r.t.Context(), dir, r.who.Workspace, memory.Options{Now: func() time.Time { return time.Now().Add(-age) }})
	if err != nil {
		r.t.Fatal(err)
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, 512)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			in := record.Remember{Caller: r.who, SessionID: "monday", Domain: "yard", Topic: fmt.Sprintf("shelf %d", i), Content: fmt.Sprintf("Shelf %d holds ropes", i)}
			if age > 0 {
				in.TTLSeconds = 60
			}
			if _, err := s.Remember(r.t.Context(), in); err != nil {
				r.t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// contradiction leaves an open conflict row and returns its id and the facts.
func (r *recorder) contradiction() (id, old, other string) {
	r.t.Helper()
	a := r.fact("deploy target", "The service deploys to prod")
	b, err := r.propose("second", "deploy target", "The service deploys to staging")
	r.check(err, "")
	res, err := r.client.RestoreFact(r.t.Context(), record.RestoreFact{Caller: r.keyed("restore"), FactID: a.FactID})
	r.check(err, "")
	if len(res.ConflictIDs) == 0 {
		r.t.Fatalf("no conflict is open: %+v", b)
	}
	return res.ConflictIDs[0], a.FactID, b.FactID
}

func (r *recorder) meeting(revision int64, decisions int) (string, error) {
	m := record.CaptureMeeting{Caller: r.who, MeetingID: "board-7", Title: "Harbour board", Revision: revision, Attendees: []string{"Ada", "Bo"}}
	for n := range decisions {
		m.Decisions = append(m.Decisions, record.Decision{Topic: fmt.Sprintf("quay %d", n), Text: fmt.Sprintf("Quay %d gets new bollards", n)})
	}
	_, err := r.client.CaptureMeetingDecisions(r.t.Context(), m)
	return workflows.MeetingID(r.who.Workspace, m.MeetingID, revision), err
}

const source = "6d6164652d75702d696d706f72742d736f757263652d666f722d72656c6179210a"

func items(page, n int) workflows.ImportPage {
	p := workflows.ImportPage{Page: page}
	for i := range n {
		p.Items = append(p.Items, record.ProposeFact{Domain: "cargo", Topic: fmt.Sprintf("ship %d", page*100+i), Content: fmt.Sprintf("Ship %d loads barley", page*100+i), Veracity: "imported"})
	}
	return p
}

// branches lists every recorded case. A case is added for a new way through a
// workflow; none is ever changed.
func branches() []branch {
	id := func(kind string, r *recorder, key string) string { return workflows.ID(kind, r.who.Workspace, key) }
	consolidate := func(r *recorder) string {
		_, err := r.client.ConsolidateMemory(r.t.Context(), record.Consolidate{Caller: r.who}, nil)
		r.check(err, "")
		return workflows.MaintenanceID(record.KindConsolidate, r.who.Workspace)
	}
	harmonize := func(r *recorder) string {
		_, err := r.client.HarmonizeMemory(r.t.Context(), record.Harmonize{Caller: r.who}, nil)
		r.check(err, "")
		return workflows.MaintenanceID(record.KindHarmonize, r.who.Workspace)
	}
	continued := func(r *recorder) string {
		// 200 pages of 200 items, and some: the run continues as new.
		r.remember(40100, 48*time.Hour)
		return consolidate(r)
	}
	// backfill runs with pages as the activity's answers.
	backfill := func(r *recorder, want record.Code, pages ...record.BackfillResult) string {
		r.model.pages = pages
		_, err := r.client.BackfillEmbeddings(r.t.Context(), record.Backfill{Caller: r.who}, nil)
		r.check(err, want)
		return workflows.MaintenanceID(record.KindBackfill, r.who.Workspace)
	}
	const model = "all-MiniLM-L6-v2@0123456789ab"
	full := record.BackfillReport{Considered: 512, Embedded: 511, Skipped: 1}
	manyPages := func(r *recorder) string {
		pages := []record.BackfillResult{{Model: model, Missing: 205*512 + 3}}
		for range 205 {
			pages = append(pages, record.BackfillResult{Model: model, Report: full, Next: fmt.Sprint(512 * len(pages))})
		}
		return backfill(r, "", append(pages, record.BackfillResult{Model: model, Report: record.BackfillReport{Considered: 3, Embedded: 3}})...)
	}
	// change installs or removes the model.
	change := func(r *recorder, refused error, want record.Code, call func() error) string {
		r.model.refused = refused
		r.check(call(), want)
		return workflows.ModelID(0)
	}
	install := func(r *recorder) func() error {
		return func() error {
			_, err := r.client.InstallModel(r.t.Context(), record.InstallModel{Caller: r.who, Source: "sentence-transformers/all-MiniLM-L6-v2"}, nil)
			return err
		}
	}
	remove := func(r *recorder) func() error {
		return func() error {
			_, err := r.client.RemoveModel(r.t.Context(), record.RemoveModel{Caller: r.who})
			return err
		}
	}
	backUp := func(r *recorder) string {
		r.fact("lamp", "The lamp is oil")
		_, err := r.client.BackUp(r.t.Context(), record.BackUp{Caller: r.who, Name: "weekly"})
		r.check(err, "")
		return id(record.KindBackUp, r, "weekly")
	}
	restore := func(r *recorder, want record.Code, overwrite bool) string {
		backUp(r)
		_, err := r.client.RestoreBackup(r.t.Context(), record.RestoreBackup{Caller: r.who, Name: "weekly", Overwrite: overwrite})
		r.check(err, want)
		return workflows.MaintenanceID(record.KindRestoreBackup, r.who.Workspace)
	}
	notFound := workflows.ApplicationError(record.Errorf(record.NotFound, "source", "there is no such model"), true)
	return []branch{
		{workflow: "ProposeFact", name: "created", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			return id(record.KindProposeFact, r, "lamp")
		}},
		{workflow: "ProposeFact", name: "re-mentioned", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			_, err := r.propose("again", "lamp", "the lamp is oil.")
			r.check(err, "")
			return id(record.KindProposeFact, r, "again")
		}},
		{workflow: "ProposeFact", name: "conflict", run: func(r *recorder) string {
			r.fact("deploy target", "The service deploys to prod")
			_, err := r.propose("second", "deploy target", "The service deploys to staging")
			r.check(err, "")
			return id(record.KindProposeFact, r, "second")
		}},
		{workflow: "ProposeFact", name: "refused", run: func(r *recorder) string {
			_, err := r.propose("blank", "lamp", "   ")
			r.check(err, record.ContentEmpty)
			return id(record.KindProposeFact, r, "blank")
		}},
		{workflow: "SupersedeFact", name: "superseded", run: func(r *recorder) string {
			a, b := r.fact("lamp", "The lamp is oil"), r.fact("light", "The light is electric")
			_, err := r.client.SupersedeFact(r.t.Context(), record.SupersedeFact{Caller: r.keyed("k"), Old: a.FactID, New: b.FactID})
			r.check(err, "")
			return id(record.KindSupersedeFact, r, "k")
		}},
		{workflow: "SupersedeFact", name: "refused", run: func(r *recorder) string {
			a := r.fact("lamp", "The lamp is oil")
			_, err := r.client.SupersedeFact(r.t.Context(), record.SupersedeFact{Caller: r.keyed("k"), Old: a.FactID, New: a.FactID})
			r.check(err, record.SupersedeInvalid)
			return id(record.KindSupersedeFact, r, "k")
		}},
		{workflow: "RestoreFact", name: "restored", run: func(r *recorder) string {
			a, b := r.fact("lamp", "The lamp is oil"), r.fact("light", "The light is electric")
			_, err := r.client.SupersedeFact(r.t.Context(), record.SupersedeFact{Caller: r.who, Old: a.FactID, New: b.FactID})
			r.check(err, "")
			_, err = r.client.RestoreFact(r.t.Context(), record.RestoreFact{Caller: r.keyed("k"), FactID: a.FactID})
			r.check(err, "")
			return id(record.KindRestoreFact, r, "k")
		}},
		{workflow: "ProposePolicy", name: "created", run: func(r *recorder) string {
			_, err := r.client.ProposePolicy(r.t.Context(), record.ProposePolicy{Caller: r.keyed("k"), Domain: "safety", Rule: "Wear a vest on the quay.", RequiredRole: "coder"})
			r.check(err, "")
			return id(record.KindProposePolicy, r, "k")
		}},
		{workflow: "ProposePolicy", name: "refused", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			_, err := r.client.SetGrant(r.t.Context(), record.SetGrant{Caller: r.who, ForRole: "coder", Domain: "harbour", Level: "none"})
			r.check(err, "")
			_, err = r.client.ProposePolicy(r.t.Context(), record.ProposePolicy{Caller: r.keyed("k"), Domain: "harbour", Rule: "Wear a vest on the quay."})
			r.check(err, record.InsufficientMemoryPermission)
			return id(record.KindProposePolicy, r, "k")
		}},
		{workflow: "SupersedePolicy", name: "replaced", run: func(r *recorder) string {
			p, err := r.client.ProposePolicy(r.t.Context(), record.ProposePolicy{Caller: r.who, Domain: "safety", Rule: "Wear a vest on the quay."})
			r.check(err, "")
			_, err = r.client.SupersedePolicy(r.t.Context(), record.SupersedePolicy{Caller: r.keyed("k"), PolicyID: p.PolicyID, Rule: "Wear a vest and a helmet on the quay."})
			r.check(err, "")
			return id(record.KindSupersedePolicy, r, "k")
		}},
		{workflow: "UpdateFact", name: "edited", run: func(r *recorder) string {
			a, text := r.fact("lamp", "The lamp is oil"), "The lamp is gas"
			_, err := r.client.UpdateFact(r.t.Context(), record.UpdateFact{Caller: r.keyed("k"), FactID: a.FactID, ExpectedVersion: 1, Content: &text})
			r.check(err, "")
			return id(record.KindUpdateFact, r, "k")
		}},
		{workflow: "UpdateFact", name: "refused", run: func(r *recorder) string {
			a, text := r.fact("lamp", "The lamp is oil"), "The lamp is gas"
			_, err := r.client.UpdateFact(r.t.Context(), record.UpdateFact{Caller: r.keyed("k"), FactID: a.FactID, ExpectedVersion: 7, Content: &text})
			r.check(err, record.VersionConflict)
			return id(record.KindUpdateFact, r, "k")
		}},
		{workflow: "DeleteFact", name: "deleted", run: func(r *recorder) string {
			a := r.fact("lamp", "The lamp is oil")
			_, err := r.client.DeleteFact(r.t.Context(), record.DeleteFact{Caller: r.keyed("k"), FactID: a.FactID})
			r.check(err, "")
			return id(record.KindDeleteFact, r, "k")
		}},
		{workflow: "UpdatePolicy", name: "edited", run: func(r *recorder) string {
			p, err := r.client.ProposePolicy(r.t.Context(), record.ProposePolicy{Caller: r.who, Domain: "safety", Rule: "Wear a vest on the quay."})
			r.check(err, "")
			rule := "Wear a vest and a helmet on the quay."
			_, err = r.client.UpdatePolicy(r.t.Context(), record.UpdatePolicy{Caller: r.keyed("k"), PolicyID: p.PolicyID, ExpectedVersion: 1, Rule: &rule})
			r.check(err, "")
			return id(record.KindUpdatePolicy, r, "k")
		}},
		{workflow: "DeletePolicy", name: "deleted", run: func(r *recorder) string {
			p, err := r.client.ProposePolicy(r.t.Context(), record.ProposePolicy{Caller: r.who, Domain: "safety", Rule: "Wear a vest on the quay."})
			r.check(err, "")
			_, err = r.client.DeletePolicy(r.t.Context(), record.DeletePolicy{Caller: r.keyed("k"), PolicyID: p.PolicyID})
			r.check(err, "")
			return id(record.KindDeletePolicy, r, "k")
		}},
		{workflow: "DeleteGrant", name: "deleted", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			_, err := r.client.DeleteGrant(r.t.Context(), record.DeleteGrant{Caller: r.keyed("k"), ForRole: "qa", Domain: "harbour"})
			r.check(err, "")
			return id(record.KindDeleteGrant, r, "k")
		}},
		{workflow: "SetGrant", name: "set", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			_, err := r.client.SetGrant(r.t.Context(), record.SetGrant{Caller: r.keyed("k"), ForRole: "qa", Domain: "harbour", Level: "read"})
			r.check(err, "")
			return id(record.KindSetGrant, r, "k")
		}},
		{workflow: "Remember", name: "kept", run: func(r *recorder) string {
			_, err := r.client.Remember(r.t.Context(), record.Remember{Caller: r.keyed("k"), SessionID: "monday", Content: "The ropes are wet", TTLSeconds: 3600})
			r.check(err, "")
			return id(record.KindRemember, r, "k")
		}},
		{workflow: "RecordObservation", name: "noted", run: func(r *recorder) string {
			_, err := r.client.RecordObservation(r.t.Context(), record.RecordObservation{Caller: r.keyed("k"), Text: "The tide is low."})
			r.check(err, "")
			return id(record.KindRecordObservation, r, "k")
		}},
		{workflow: "UpdateNotes", name: "replaced", run: func(r *recorder) string {
			_, err := r.client.UpdateNotes(r.t.Context(), record.UpdateNotes{Caller: r.keyed("k"), Text: "At the east pier."})
			r.check(err, "")
			return id(record.KindUpdateNotes, r, "k")
		}},
		{workflow: "UpdateNotes", name: "refused", run: func(r *recorder) string {
			version := int64(7)
			_, err := r.client.UpdateNotes(r.t.Context(), record.UpdateNotes{Caller: r.keyed("k"), Text: "At the east pier.", ExpectedVersion: &version})
			r.check(err, record.VersionConflict)
			return id(record.KindUpdateNotes, r, "k")
		}},
		{workflow: "ResolveConflict", name: "won", run: func(r *recorder) string {
			row, winner, _ := r.contradiction()
			_, err := r.client.ResolveConflict(r.t.Context(), record.ResolveConflict{Caller: r.keyed("k"), ConflictID: row, Winner: winner})
			r.check(err, "")
			return id(record.KindResolveConflict, r, "k")
		}},
		{workflow: "AssemblePreamble", name: "full", run: func(r *recorder) string {
			r.fact("lamp", "The lamp of the lighthouse is oil")
			_, err := r.client.ProposePolicy(r.t.Context(), record.ProposePolicy{Caller: r.who, Domain: "safety", Rule: "Wear a vest on the quay."})
			r.check(err, "")
			_, err = r.client.UpdateNotes(r.t.Context(), record.UpdateNotes{Caller: r.who, Text: "At the east pier."})
			r.check(err, "")
			_, err = r.client.AssemblePreamble(r.t.Context(), record.Dispatch{Caller: r.keyed("k"), Task: "Repair the lamp of the lighthouse", Context: []string{"The lamp is gas"}})
			r.check(err, "")
			return id(record.KindPreamble, r, "k")
		}},
		{workflow: "AssemblePreamble", name: "empty", run: func(r *recorder) string {
			_, err := r.client.AssemblePreamble(r.t.Context(), record.Dispatch{Caller: r.keyed("k"), Task: "Repair the lamp of the lighthouse"})
			r.check(err, "")
			return id(record.KindPreamble, r, "k")
		}},
		{workflow: "SearchMemory", name: "found", run: func(r *recorder) string {
			r.fact("lamp", "The lamp of the lighthouse is oil")
			_, err := r.client.SearchMemory(r.t.Context(), record.Search{Caller: r.who, Query: "lighthouse lamp", Mode: "keyword"})
			r.check(err, "")
			return r.newest(record.KindSearch)
		}},
		{workflow: "SearchMemory", name: "refused", run: func(r *recorder) string {
			r.fact("lamp", "The lamp of the lighthouse is oil")
			_, err := r.client.SearchMemory(r.t.Context(), record.Search{Caller: r.who, Query: "lamp", Mode: "psychic"})
			r.check(err, record.InvalidArgument)
			return r.newest(record.KindSearch)
		}},
		{workflow: "ReadMemory", name: "facts", run: func(r *recorder) string {
			r.fact("lamp", "The lamp of the lighthouse is oil")
			_, err := workflows.ReadAll[record.Fact](r.t.Context(), r.client, record.ReadMemory{Caller: r.who, What: record.ReadFacts})
			r.check(err, "")
			return r.newest(record.KindRead)
		}},
		{workflow: "ReadMemory", name: "refused", run: func(r *recorder) string {
			r.fact("lamp", "The lamp of the lighthouse is oil")
			_, err := r.client.History(r.t.Context(), r.who, "nothing")
			r.check(err, record.NotFound)
			return r.newest(record.KindRead)
		}},
		{workflow: "CaptureMeetingDecisions", name: "one-page", run: func(r *recorder) string {
			id, err := r.meeting(1, 3)
			r.check(err, "")
			return id
		}},
		{workflow: "CaptureMeetingDecisions", name: "empty", run: func(r *recorder) string {
			id, err := r.meeting(1, 0)
			r.check(err, "")
			return id
		}},
		{workflow: "CaptureMeetingDecisions", name: "later-revision", run: func(r *recorder) string {
			_, err := r.meeting(1, 3)
			r.check(err, "")
			id, err := r.meeting(2, 2)
			r.check(err, "")
			return id
		}},
		{workflow: "CaptureMeetingDecisions", name: "outdated", run: func(r *recorder) string {
			_, err := r.meeting(5, 3)
			r.check(err, "")
			id, err := r.meeting(4, 2)
			r.check(err, "")
			return id
		}},
		{workflow: "CaptureMeetingDecisions", name: "three-pages", run: func(r *recorder) string {
			id, err := r.meeting(1, 210)
			r.check(err, "")
			return id
		}},
		{workflow: "CaptureMeetingDecisions", name: "refused", run: func(r *recorder) string {
			id, err := r.meeting(0, 1)
			r.check(err, record.InvalidArgument)
			return id
		}},
		{workflow: "ConsolidateMemory", name: "nothing", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			return consolidate(r)
		}},
		{workflow: "ConsolidateMemory", name: "several-pages", run: func(r *recorder) string {
			r.remember(410, 0)
			return consolidate(r)
		}},
		{workflow: "ConsolidateMemory", name: "refused", run: func(r *recorder) string {
			_, err := r.client.ConsolidateMemory(r.t.Context(), record.Consolidate{Caller: r.who}, nil)
			r.check(err, record.NotFound)
			return workflows.MaintenanceID(record.KindConsolidate, r.who.Workspace)
		}},
		{workflow: "ConsolidateMemory", name: "continues-as-new", packed: true, run: continued},
		{workflow: "ConsolidateMemory", name: "continued", chain: 1, run: continued},
		{workflow: "HarmonizeMemory", name: "belief", run: func(r *recorder) string {
			r.fact("lamp", "The lamp of the lighthouse is oil")
			r.who.Agent = "mason"
			_, err := r.propose("other", "lamp", "The lamp of the lighthouse is oil")
			r.check(err, "")
			return harmonize(r)
		}},
		{workflow: "HarmonizeMemory", name: "several-pages", run: func(r *recorder) string {
			r.store(func(s *memory.Store) error {
				page := items(0, 250)
				_, err := s.ImportFactsPage(r.t.Context(), record.ImportFacts{Caller: r.keyed("seed"), Source: source, Items: page.Items})
				return err
			})
			return harmonize(r)
		}},
		{workflow: "JudgeConflicts", name: "nothing", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			return r.judged(record.JudgeReport{})
		}},
		{workflow: "JudgeConflicts", name: "verdicts", run: func(r *recorder) string {
			r.fact("tickets", "Tickets are tracked in Redmine.")
			_, err := r.propose("tickets-2", "tickets", "We moved our tickets from Redmine to Linear.")
			r.check(err, "")
			r.fact("weather", "The rain log is kept in Redmine.")
			_, err = r.propose("weather-2", "weather", "We moved the rain log from Redmine to Linear.")
			r.check(err, "")
			return r.judged(record.JudgeReport{Asked: 2, Settled: 1, Unanswered: 1})
		}},
		{workflow: "ImportFacts", name: "pages", run: func(r *recorder) string {
			imp, _, err := r.client.BeginImport(r.t.Context(), r.who, source)
			r.check(err, "")
			for page := range 3 {
				_, err = imp.Page(r.t.Context(), items(page, 2))
				r.check(err, "")
			}
			_, err = imp.Finish(r.t.Context())
			r.check(err, "")
			return id(record.KindImportFacts, r, source)
		}},
		{workflow: "ImportFacts", name: "begun-twice", run: func(r *recorder) string {
			imp, _, err := r.client.BeginImport(r.t.Context(), r.who, source)
			r.check(err, "")
			_, err = imp.Page(r.t.Context(), items(0, 2))
			r.check(err, "")
			imp, state, err := r.client.BeginImport(r.t.Context(), r.who, source)
			r.check(err, "")
			_, err = imp.Page(r.t.Context(), items(state.NextPage, 2))
			r.check(err, "")
			_, err = imp.Finish(r.t.Context())
			r.check(err, "")
			return id(record.KindImportFacts, r, source)
		}},
		{workflow: "ImportFacts", name: "page-refused", run: func(r *recorder) string {
			imp, _, err := r.client.BeginImport(r.t.Context(), r.who, source)
			r.check(err, "")
			_, err = imp.Page(r.t.Context(), items(0, 1))
			r.check(err, "")
			crowd := workflows.ImportPage{Page: 1, Items: make([]record.ProposeFact, 1001)}
			_, err = imp.Page(r.t.Context(), crowd)
			r.check(err, record.PayloadTooLarge)
			_, err = imp.Finish(r.t.Context())
			r.check(err, "")
			return id(record.KindImportFacts, r, source)
		}},
		{workflow: "BackfillEmbeddings", name: "pages", run: func(r *recorder) string {
			return backfill(r, "", record.BackfillResult{Model: model, Missing: 515}, record.BackfillResult{Model: model, Report: full, Next: "512"},
				record.BackfillResult{Model: model, Report: record.BackfillReport{Considered: 3, Embedded: 3}})
		}},
		{workflow: "BackfillEmbeddings", name: "no-model", run: func(r *recorder) string { return backfill(r, record.Unavailable, record.BackfillResult{}) }},
		{workflow: "BackfillEmbeddings", name: "another-model", run: func(r *recorder) string {
			return backfill(r, "", record.BackfillResult{Model: model, Missing: 515}, record.BackfillResult{Model: model, Report: full, Next: "512"},
				record.BackfillResult{Model: "other@1", Missing: 2}, record.BackfillResult{Model: "other@1", Report: record.BackfillReport{Considered: 2, Embedded: 2}})
		}},
		{workflow: "BackfillEmbeddings", name: "continues-as-new", packed: true, run: manyPages},
		{workflow: "BackfillEmbeddings", name: "continued", chain: 1, run: manyPages},
		{workflow: "InstallModel", name: "installed", run: func(r *recorder) string { return change(r, nil, "", install(r)) }},
		{workflow: "InstallModel", name: "refused", run: func(r *recorder) string { return change(r, notFound, record.NotFound, install(r)) }},
		{workflow: "RemoveModel", name: "removed", run: func(r *recorder) string { return change(r, nil, "", remove(r)) }},
		{workflow: "BackUpWorkspace", name: "copied", run: backUp},
		{workflow: "BackUpWorkspace", name: "refused", run: func(r *recorder) string {
			_, err := r.client.BackUp(r.t.Context(), record.BackUp{Caller: r.who, Name: "weekly"})
			r.check(err, record.NotFound)
			return id(record.KindBackUp, r, "weekly")
		}},
		{workflow: "RestoreBackup", name: "restored", run: func(r *recorder) string { return restore(r, "", true) }},
		{workflow: "RestoreBackup", name: "refused", run: func(r *recorder) string { return restore(r, record.InvalidArgument, false) }},
		{workflow: "DoctorWorkspace", name: "looked", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			_, err := r.client.Doctor(r.t.Context(), record.Doctor{Caller: r.who})
			r.check(err, "")
			return workflows.MaintenanceID(record.KindDoctor, r.who.Workspace)
		}},
		{workflow: "PruneLedger", name: "nothing-old", run: func(r *recorder) string {
			r.fact("lamp", "The lamp is oil")
			_, err := r.client.PruneLedger(r.t.Context(), record.PruneLedger{Caller: r.who, OlderThanSeconds: int64(record.MinLedgerAge / time.Second)}, nil)
			r.check(err, "")
			return workflows.MaintenanceID(record.KindPruneLedger, r.who.Workspace)
		}},
		{workflow: "RemoveModel", name: "refused", run: func(r *recorder) string { return change(r, notFound, record.NotFound, remove(r)) }},
		{workflow: "StateOpen", name: "opened", run: func(r *recorder) string {
			r.open("ship", "pay")
			return id(record.KindOpenObligation, r, "open-ship")
		}},
		{workflow: "StateOpen", name: "refused", run: func(r *recorder) string {
			r.open("ship", "pay")
			_, err := r.client.StateOpen(r.t.Context(), record.OpenObligation{Caller: r.keyed("k"), StepRef: stepOf("pay"), After: []string{"ship"}})
			r.check(err, record.InvalidArgument)
			return id(record.KindOpenObligation, r, "k")
		}},
		{workflow: "StateClaim", name: "claimed", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.StateClaim(r.t.Context(), record.ClaimObligation{Caller: r.keyed("k"), StepRef: stepOf("pay"), LeaseSeconds: 60})
			r.check(err, "")
			return id(record.KindClaimObligation, r, "k")
		}},
		{workflow: "StateClaim", name: "refused", run: func(r *recorder) string {
			r.open("ship", "pay")
			_, err := r.client.StateClaim(r.t.Context(), record.ClaimObligation{Caller: r.keyed("k"), StepRef: stepOf("ship")})
			r.check(err, record.OutOfOrder)
			return id(record.KindClaimObligation, r, "k")
		}},
		{workflow: "StateCommit", name: "committed", run: func(r *recorder) string {
			r.open("pay")
			r.commit("k", "pay")
			return id(record.KindCommitObligation, r, "k")
		}},
		{workflow: "StateCommit", name: "told", run: func(r *recorder) string {
			r.open("pay")
			r.open("ship", "pay")
			r.whileWaiting("ship", func() { r.commit("k", "pay") }, "")
			return id(record.KindCommitObligation, r, "k")
		}},
		{workflow: "StateCommit", name: "refused", run: func(r *recorder) string {
			r.open("ship", "pay")
			_, err := r.client.StateCommit(r.t.Context(), record.CommitObligation{Caller: r.keyed("k"), StepRef: stepOf("ship")})
			r.check(err, record.OutOfOrder)
			return id(record.KindCommitObligation, r, "k")
		}},
		{workflow: "StateFail", name: "failed", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.StateFail(r.t.Context(), record.FailObligation{Caller: r.keyed("k"), StepRef: stepOf("pay"), Reason: "card refused"})
			r.check(err, "")
			return id(record.KindFailObligation, r, "k")
		}},
		{workflow: "StateCancel", name: "cancelled", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.StateCancel(r.t.Context(), record.CancelObligation{Caller: r.keyed("k"), StepRef: stepOf("pay"), Reason: "not wanted"})
			r.check(err, "")
			return id(record.KindCancelObligation, r, "k")
		}},
		{workflow: "AppendEpisode", name: "kept", run: func(r *recorder) string {
			_, err := r.client.AppendEpisode(r.t.Context(), record.AppendEpisode{Caller: r.keyed("k"), TaskID: task, EpisodeRole: "user", Content: "Load the barley first"})
			r.check(err, "")
			return id(record.KindAppendEpisode, r, "k")
		}},
		{workflow: "CommitObligation", name: "at-once", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.CommitObligation(r.t.Context(), record.CommitObligation{Caller: r.keyed("k"), StepRef: stepOf("pay"), Result: "receipt 41"})
			r.check(err, "")
			return workflows.ObligationID(r.who.Workspace, stepOf("pay"))
		}},
		{workflow: "CommitObligation", name: "waited", run: func(r *recorder) string {
			r.open("pay")
			r.open("ship", "pay")
			r.whileWaiting("ship", func() { r.commit("k", "pay") }, "")
			return workflows.ObligationID(r.who.Workspace, stepOf("ship"))
		}},
		{workflow: "CommitObligation", name: "closed-by-another", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.StateClaim(r.t.Context(), record.ClaimObligation{Caller: record.Caller{Workspace: r.who.Workspace, Agent: "mason"}, StepRef: stepOf("pay")})
			r.check(err, "")
			r.whileWaiting("pay", func() {
				_, err := r.client.StateCommit(r.t.Context(), record.CommitObligation{Caller: record.Caller{Workspace: r.who.Workspace, Agent: "mason"}, StepRef: stepOf("pay"), Claim: 1})
				r.check(err, "")
			}, "")
			return workflows.ObligationID(r.who.Workspace, stepOf("pay"))
		}},
		{workflow: "CommitObligation", name: "never", run: func(r *recorder) string {
			r.open("pay")
			r.open("ship", "pay")
			r.whileWaiting("ship", func() {
				_, err := r.client.StateFail(r.t.Context(), record.FailObligation{Caller: r.keyed("k"), StepRef: stepOf("pay")})
				r.check(err, "")
			}, record.OutOfOrder)
			return workflows.ObligationID(r.who.Workspace, stepOf("ship"))
		}},
		{workflow: "CommitObligation", name: "expired", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.StateOpen(r.t.Context(), record.OpenObligation{Caller: r.keyed("k"), StepRef: stepOf("ship"), After: []string{"pay"}, Deadline: record.At(time.Now().Add(3 * time.Second))})
			r.check(err, "")
			r.whileWaiting("ship", func() {}, "")
			return workflows.ObligationID(r.who.Workspace, stepOf("ship"))
		}},
		{workflow: "CommitObligation", name: "not-opened", run: func(r *recorder) string {
			r.open("pay")
			_, err := r.client.AwaitObligation(r.t.Context(), r.who, stepOf("ship"))
			r.check(err, record.NotFound)
			return workflows.ObligationID(r.who.Workspace, stepOf("ship"))
		}},
	}
}

// task is the task whose steps are recorded.
const task = "cargo-7"

func stepOf(step string) record.StepRef { return record.StepRef{TaskID: task, Step: step} }

func (r *recorder) open(step string, after ...string) {
	r.t.Helper()
	_, err := r.client.StateOpen(r.t.Context(), record.OpenObligation{Caller: r.keyed("open-" + step), StepRef: stepOf(step), After: after})
	r.check(err, "")
}

func (r *recorder) commit(key, step string) {
	r.t.Helper()
	_, err := r.client.StateCommit(r.t.Context(), record.CommitObligation{Caller: r.keyed(key), StepRef: stepOf(step), Result: "receipt 41"})
	r.check(err, "")
}

// whileWaiting offers a commit of the step, runs f once the workflow waits, and
// checks how the offer ends.
func (r *recorder) whileWaiting(step string, f func(), want record.Code) {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := r.client.CommitObligation(r.t.Context(), record.CommitObligation{Caller: r.keyed("offer"), StepRef: stepOf(step), Result: "sent by van"})
		ended <- err
	}()
	id := workflows.ObligationID(r.who.Workspace, stepOf(step))
	for waits := false; !waits; {
		select {
		case err := <-ended:
			r.t.Fatalf("the offer ended at once: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		it := r.temporal.GetWorkflowHistory(r.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e, err := it.Next()
			if err != nil {
				break
			}
			waits = waits || e.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED
		}
	}
	f()
	r.check(<-ended, want)
}
