package browser

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/gateway"
	pages "github.com/polyphony-memory/polyphony/gateway/browser"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

// engine runs each workflow in Temporal's test environment, over the store.
type engine struct {
	client.Client
	workspaces *memory.Workspaces
}

func (e engine) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, w any, args ...any) (client.WorkflowRun, error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	workflows.Register(env)
	env.RegisterActivity(&activities.Store{Workspaces: e.workspaces})
	env.RegisterActivity(&activities.Reader{Workspaces: e.workspaces, Recall: recall.NewEngine(nil)})
	env.SetStartWorkflowOptions(o)
	env.ExecuteWorkflow(w, args...)
	r := run{err: env.GetWorkflowError()}
	if r.err == nil {
		r.err = env.GetWorkflowResult(&r.raw)
	}
	return r, nil
}

func (e engine) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, context.Canceled
}

// run is a workflow that has ended.
type run struct {
	client.WorkflowRun
	raw json.RawMessage
	err error
}

func (r run) Get(_ context.Context, out any) error {
	if r.err != nil {
		return r.err
	}
	return json.Unmarshal(r.raw, out)
}

// site is a running gateway with the browser's pages.
type site struct {
	t          *testing.T
	url        string
	workspaces *memory.Workspaces
	clock      time.Time
}

func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, clock: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)}
	data := t.TempDir()
	var err error
	s.workspaces, err = memory.NewWorkspaces(data, memory.Options{Now: func() time.Time { return s.clock }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.workspaces.Close() })
	log := slog.New(slog.DiscardHandler)
	server, err := gateway.NewServer(gateway.Options{Address: "127.0.0.1:0", Tokens: tokens.Open(data, nil), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h, err := pages.NewHandler(pages.Options{Log: log, Now: func() time.Time { return s.clock }, Memory: &gateway.Memory{
		Client: workflows.NewClient(engine{workspaces: s.workspaces}, 1), Workspaces: s.workspaces,
		Recall: recall.NewEngine(nil), Owns: func(string) bool { return true },
	}})
	if err != nil {
		t.Fatal(err)
	}
	server.HandlePages("/", h)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.url = "http://" + server.Address()
	return s
}

// with runs f on the store of the workspace that the tests look at.
func (s *site) with(f func(*memory.Store) error) {
	s.t.Helper()
	if err := s.workspaces.Use(s.t.Context(), workspace, f); err != nil {
		s.t.Fatal(err)
	}
}

const workspace = "harbour"

func by(agent, role string) record.Caller {
	return record.Caller{Workspace: workspace, Agent: agent, Role: role}
}

// hold proposes a fact and returns its id.
func (s *site) hold(f record.ProposeFact) string {
	s.t.Helper()
	if f.Workspace == "" {
		f.Caller = by("ada", "coder")
	}
	var id string
	s.with(func(store *memory.Store) error {
		res, err := store.ProposeFact(s.t.Context(), f)
		id = res.FactID
		return err
	})
	return id
}

// path is the address of a page of the workspace.
func (s *site) path(rest string) string {
	return s.url + "/workspaces/" + workspace + "/settings/memory" + rest
}
