package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

const planted = "Quetzalcoatlus"

func quiet(t *testing.T, env map[string]string) (*Telemetry, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	tell, err := Start(t.Context(), Options{Lookup: func(n string) (string, bool) { v, ok := env[n]; return v, ok }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tell.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tell, &log
}

// gathered returns the values of the metrics without attributes, and all text.
func gathered(t *testing.T, tell *Telemetry) (values map[string]float64, text string) {
	t.Helper()
	families, err := tell.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]float64{}
	var all strings.Builder
	for _, f := range families {
		all.WriteString(f.String() + "\n")
		for _, m := range f.GetMetric() {
			switch {
			case m.GetGauge() != nil:
				values[f.GetName()] += m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				values[f.GetName()+" count"] += float64(m.GetHistogram().GetSampleCount())
				values[f.GetName()+" sum"] += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return values, all.String()
}

// TestMetrics watches a real workspace.
func TestMetrics(t *testing.T) {
	t.Parallel()
	tell, _ := quiet(t, nil)
	w, err := memory.NewWorkspaces(t.TempDir(), memory.Options{Observer: tell, Embedding: "model-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	err = w.Use(t.Context(), "demo", func(s *memory.Store) error {
		for _, content := range []string{"The service deploys to prod", planted + " flies"} {
			_, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: record.Caller{Workspace: "demo", Agent: "a"}, Domain: "d", Topic: content, Content: content})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tell.Watch(w); err != nil {
		t.Fatal(err)
	}
	_, end := tell.Voice(t.Context(), "lexical")
	end(nil)
	values, text := gathered(t, tell)
	for name, want := range map[string]float64{
		"polyphony_workspaces_open": 1, "polyphony_embeddings_backlog": 2, "polyphony_index_drift": 0, "polyphony_writes_waiting": 0, "polyphony_conflicts_open": 0,
		"polyphony_commit_operations count": 2, "polyphony_commit_operations sum": 2, "polyphony_commit_duration_seconds count": 2,
		"polyphony_recall_voice_duration_seconds count": 1,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %v, %v; want %v of %v", name, got, ok, want, values)
		}
	}
	if strings.Contains(text, planted) || strings.Contains(text, "demo") {
		t.Errorf("the metrics tell of a workspace:\n%s", text)
	}
}

// broken is an activity that fails as it is told.
func broken(_ context.Context, in record.ProposeFact) (string, error) {
	return "", workflows.ApplicationError(record.Errorf(record.Code(in.Topic), "", "it says %s", in.Content), true)
}

// TestActivities logs what failed with who and where, and no refusal; spans say
// for whom they are.
func TestActivities(t *testing.T) {
	t.Parallel()
	tell, log := quiet(t, nil)
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	tell.tracer = tracer
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	for _, code := range []record.Code{record.Unavailable, record.StoreCorrupt, record.NotFound} {
		env := suite.NewTestActivityEnvironment()
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{tell.Activities()}})
		env.RegisterActivityWithOptions(broken, activity.RegisterOptions{Name: "ProposeFact"})
		_, err := env.ExecuteActivity("ProposeFact", record.ProposeFact{Caller: record.Caller{Workspace: "demo", Agent: "scout"}, Topic: string(code), Content: planted})
		if record.ErrorCode(workflows.FromTemporal(err)) != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("the log:\n%s", log)
	}
	for i, code := range []string{"Unavailable", "StoreCorrupt"} {
		for _, part := range []string{"error=" + code, "activity=ProposeFact", "workspace=demo", "agent=scout", "workflow=default-test-workflow-id", "run=default-test-run-id", "attempt=1"} {
			if !strings.Contains(lines[i], part) {
				t.Errorf("the log lacks %s: %s", part, lines[i])
			}
		}
	}
	if strings.Contains(log.String(), planted) {
		t.Errorf("the log tells what was said:\n%s", log)
	}
	values, text := gathered(t, tell)
	if values["polyphony_activity_duration_seconds count"] != 3 || strings.Contains(text, planted) || !strings.Contains(text, "NotFound") {
		t.Errorf("%v\n%s", values, text)
	}

	// A span of the store tells the error's name, not its message.
	ctx, root := tracer.Start(t.Context(), "root")
	_, end := tell.Begin(ctx, "demo", "view")
	end(record.Errorf(record.NotFound, "", "no %s", planted))
	root.End()
	_, end = tell.Begin(t.Context(), "demo", "view")
	end(errors.New("outside of any trace"))
	ended := spans.Ended()
	if len(ended) != 2 || ended[0].Name() != "store view" || ended[0].Status().Description != "NotFound" || len(ended[0].Events()) != 0 {
		t.Fatalf("%d spans: %+v", len(ended), ended)
	}
	if a := ended[0].Attributes(); len(a) != 1 || a[0] != attribute.String("polyphony.workspace", "demo") {
		t.Errorf("%v", a)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	lookup := func(env map[string]string) func(string) (string, bool) {
		return func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	}
	_, err := Start(t.Context(), Options{Lookup: lookup(map[string]string{envEndpoint: "http://127.0.0.1:1", envProtocol: "http/protobuf"}), Log: slog.New(slog.DiscardHandler)})
	if record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("another protocol: %v", err)
	}
	for name, env := range map[string]map[string]string{
		"nothing": {}, "disabled": {envEndpoint: "http://127.0.0.1:1", envDisabled: "true"}, "metrics only": {envMetrics: "http://127.0.0.1:1"},
	} {
		tell, err := Start(t.Context(), Options{Lookup: lookup(env), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if tell.tracing {
			t.Errorf("%s: traces are sent", name)
		}
		// A collector that is not there does not hold up the end.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := tell.Stop(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
