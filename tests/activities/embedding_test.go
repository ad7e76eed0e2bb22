package activities

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/workflows"
)

// bag is a model whose vectors tell texts of different length apart.
type bag struct{}

func (bag) ID() string { return "bag-1" }

func (bag) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, memory.Dimensions)
		out[i][len(text)%memory.Dimensions] = 1
	}
	return out, ctx.Err()
}

func (m bag) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	out, err := m.Embed(ctx, []string{text})
	return out[0], err
}

// keeper keeps a model in a variable.
type keeper struct {
	mu        sync.Mutex
	installed string
	calls     []string
	// lost makes the next change happen and its answer fail.
	lost bool
}

func (k *keeper) change(call, installed string) error {
	k.calls, k.installed = append(k.calls, call), installed
	if k.lost {
		k.lost = false
		return record.Errorf(record.Unavailable, "", "the answer was lost")
	}
	return nil
}

func (k *keeper) Install(ctx context.Context, source string, progress func(done, total int64)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	progress(1, 2)
	return errors.Join(k.change("install "+source, source), ctx.Err())
}

func (k *keeper) Remove(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.installed == "" {
		return record.Errorf(record.NotFound, "", "no embedding model is installed")
	}
	return k.change("remove", "")
}

func (k *keeper) Status() (record.EmbeddingModel, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return record.EmbeddingModel{Installed: k.installed != "", InUse: k.installed != "", ID: k.installed}, nil
}

func (b *bench) embedding() *activities.Embedding {
	return &activities.Embedding{Workspaces: b.workspaces, Embedder: recall.NewEmbedder(bag{}, slog.New(slog.DiscardHandler)), Keeper: b.keeper}
}

// seed imports n facts.
func (b *bench) seed(n int) {
	b.t.Helper()
	for page := 0; n > 0; page++ {
		in := record.ImportFacts{Caller: who(""), Source: "made-up", Page: page}
		for range min(n, 500) {
			in.Items = append(in.Items, record.ProposeFact{Domain: "cargo", Topic: "ship " + name(n), Content: "Ship " + name(n) + " loads barley"})
			n--
		}
		err := b.workspaces.Use(b.t.Context(), workspace, func(s *memory.Store) error {
			_, err := s.ImportFactsPage(b.t.Context(), in)
			return err
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// name spells a number, so that no two ships are near-twins.
func name(n int) string {
	var s []byte
	for ; n > 0; n /= 10 {
		s = append(s, "abcdefghij"[n%10], 'a'+byte(len(s)))
	}
	return string(s)
}

func (b *bench) health() (h record.Health) {
	b.t.Helper()
	err := b.workspaces.Use(b.t.Context(), workspace, func(s *memory.Store) error {
		return s.View(b.t.Context(), func(v *memory.View) (err error) {
			h, err = v.Health(false)
			return err
		})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

// TestBackfillPage_heartbeat goes on from the heartbeat of an attempt before.
func TestBackfillPage_heartbeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(60)
	total := int(b.health().FactsTotal)
	in := record.BackfillPage{Caller: who("page"), Model: bag{}.ID(), Limit: 40}
	var beats []record.BackfillResult
	b.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var at record.BackfillResult
		if err := details.Get(&at); err != nil {
			t.Error(err)
		}
		beats = append(beats, at)
	})
	b.env.SetHeartbeatDetails(record.BackfillResult{Model: bag{}.ID(), Next: "16", Report: record.BackfillReport{Considered: 16, Embedded: 16}})
	v, err := b.env.ExecuteActivity(workflows.ActivityBackfill, in)
	if err != nil {
		t.Fatal(err)
	}
	var out record.BackfillResult
	if err := v.Get(&out); err != nil {
		t.Fatal(err)
	}
	if out.Report.Considered != 40 || out.Report.Embedded != 40 || out.Next == "" {
		t.Errorf("%+v", out)
	}
	if h := b.health(); h.Embedded != 24 {
		t.Errorf("%d of %d facts were embedded, want those after the heartbeat", h.Embedded, total)
	}
	if len(beats) == 0 || beats[0].Report.Considered != 16 {
		t.Errorf("heartbeats %+v, want the place of the attempt before first", beats)
	}
}

// real prepares a workflow's environment with the activities of the bench.
func (b *bench) real(env *testsuite.TestWorkflowEnvironment) { env.RegisterActivity(b.embedding()) }

// scripted is the same with one activity of the test's own.
func scripted(name string, f any) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// flow runs a workflow.
func flow(t *testing.T, prepare func(*testsuite.TestWorkflowEnvironment), run, in any) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	workflows.Register(env)
	prepare(env)
	env.ExecuteWorkflow(run, in)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow did not end")
	}
	return env
}

func result[Out any](t *testing.T, env *testsuite.TestWorkflowEnvironment) (out Out) {
	t.Helper()
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBackfillEmbeddings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(600)
	total := int(b.health().FactsTotal)
	env := flow(t, b.real, workflows.BackfillEmbeddings, workflows.BackfillInput{Backfill: record.Backfill{Caller: who("")}})
	if out, want := result[record.BackfillReport](t, env), (record.BackfillReport{Considered: total, Embedded: total}); out != want {
		t.Errorf("%+v, want %+v", out, want)
	}
	v, err := env.QueryWorkflow(workflows.QueryProgress)
	var p workflows.BackfillProgress
	if err == nil {
		err = v.Get(&p)
	}
	if err != nil || p.Considered != int64(total) || p.Total != int64(total) || p.Model != (bag{}).ID() {
		t.Errorf("progress %+v of %d, %v", p, total, err)
	}
	if h := b.health(); h.Embedded != int64(total) || h.EmbeddingQueue != 0 {
		t.Errorf("%+v", h)
	}
	before := b.dump()
	another := func(env *testsuite.TestWorkflowEnvironment) {
		b.real(env)
		// The longest that ids can be: keys of the ledger are made of them.
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.MaintenanceID(record.KindBackfill, strings.Repeat("w", 64))})
	}
	in := workflows.BackfillInput{Backfill: record.Backfill{Caller: who("")}, Progress: workflows.BackfillProgress{Round: uuid.NewString()}}
	env = flow(t, another, workflows.BackfillEmbeddings, in)
	if out := result[record.BackfillReport](t, env); out != (record.BackfillReport{}) {
		t.Errorf("the second run: %+v", out)
	}
	if !slices.Equal(before, b.dump()) {
		t.Error("the second run changed the file")
	}
}

// TestBackfillEmbeddings_continued carries its place and its counts over.
func TestBackfillEmbeddings_continued(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(600)
	total := int(b.health().FactsTotal)
	in := workflows.BackfillInput{Backfill: record.Backfill{Caller: who("")}}
	runs := 0
	for {
		suggested := func(env *testsuite.TestWorkflowEnvironment) {
			b.real(env)
			env.SetContinueAsNewSuggested(true)
		}
		env := flow(t, suggested, workflows.BackfillEmbeddings, in)
		runs++
		var again *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &again) {
			if out, want := result[record.BackfillReport](t, env), (record.BackfillReport{Considered: total, Embedded: total}); out != want {
				t.Errorf("%+v, want %+v", out, want)
			}
			break
		}
		in = workflows.BackfillInput{}
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
			t.Fatal(err)
		}
	}
	if runs < 3 {
		t.Errorf("%d runs; want one for the model, one for each full page", runs)
	}
}

// TestBackfillEmbeddings_model: there is none, or another comes on the way.
func TestBackfillEmbeddings_model(t *testing.T) {
	t.Parallel()
	script := func(t *testing.T, pages ...record.BackfillResult) (*testsuite.TestWorkflowEnvironment, []record.BackfillPage) {
		t.Helper()
		var asked []record.BackfillPage
		env := flow(t, scripted(workflows.ActivityBackfill, func(_ context.Context, in record.BackfillPage) (record.BackfillResult, error) {
			asked = append(asked, in)
			return pages[len(asked)-1], nil
		}), workflows.BackfillEmbeddings, workflows.BackfillInput{Backfill: record.Backfill{Caller: who("")}})
		return env, asked
	}
	one := record.BackfillReport{Considered: 1, Embedded: 1}
	for name, pages := range map[string][]record.BackfillResult{
		"none": {{}}, "removed": {{Model: "a", Missing: 9}, {Model: "a", Report: one, Next: "1"}, {}},
	} {
		env, _ := script(t, pages...)
		err := workflows.FromTemporal(env.GetWorkflowError())
		var e *record.Error
		if !errors.As(err, &e) || e.Code != record.Unavailable || e.Field != "model" {
			t.Errorf("%s: %v", name, err)
		}
	}
	env, asked := script(t,
		record.BackfillResult{Model: "a", Missing: 9}, record.BackfillResult{Model: "a", Report: one, Next: "1"},
		record.BackfillResult{Model: "b", Missing: 7}, record.BackfillResult{Model: "b", Report: one})
	if out := result[record.BackfillReport](t, env); out != (record.BackfillReport{Considered: 2, Embedded: 2}) {
		t.Errorf("%+v", out)
	}
	if last := asked[3]; last.Cursor != "" || last.Model != "b" || last.Key == asked[1].Key {
		t.Errorf("with another model it asks %+v after %+v, want to begin again under another key", last, asked[1])
	}
}

// TestChangeModel retries what may pass, and takes an answer that was lost for
// what it was.
func TestChangeModel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	install := record.InstallModel{Caller: who(""), Source: "somebody/model"}
	b.keeper.lost = true
	out := result[record.EmbeddingModel](t, flow(t, b.real, workflows.InstallModel, install))
	if !out.InUse || out.ID != install.Source || out.Hash() != install.Identity() {
		t.Errorf("%+v", out)
	}
	b.keeper.lost = true
	gone := result[record.EmbeddingModel](t, flow(t, b.real, workflows.RemoveModel, record.RemoveModel{Caller: who("")}))
	if gone.Installed || gone.Hash() != (record.RemoveModel{}).Identity() || gone.Hash() == out.Hash() {
		t.Errorf("%+v", gone)
	}
	if want := []string{"install somebody/model", "install somebody/model", "remove"}; !slices.Equal(b.keeper.calls, want) {
		t.Errorf("%q, want %q", b.keeper.calls, want)
	}
	err := workflows.FromTemporal(flow(t, b.real, workflows.RemoveModel, record.RemoveModel{Caller: who("")}).GetWorkflowError())
	if record.ErrorCode(err) != record.NotFound {
		t.Errorf("removing what is not there: %v", err)
	}
	// A hub that stays away ends the installation.
	tries := 0
	env := flow(t, scripted(workflows.ActivityInstallModel, func(context.Context, record.InstallModel) (record.EmbeddingModel, error) {
		tries++
		return record.EmbeddingModel{}, temporal.NewApplicationError("the hub cannot be reached", string(record.Unavailable))
	}), workflows.InstallModel, install)
	if err := workflows.FromTemporal(env.GetWorkflowError()); record.ErrorCode(err) != record.Unavailable || tries != 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
}
