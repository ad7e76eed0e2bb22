package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/gateway/browser"
	"github.com/polyphony-memory/polyphony/gateway/mcp"
	"github.com/polyphony-memory/polyphony/gateway/rpc"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

// engine runs each workflow in Temporal's test environment, over the real
// store: what the gateway's calls do, without the engine's start of a second.
type engine struct {
	client.Client
	workspaces *memory.Workspaces
}

type run struct {
	client.WorkflowRun
	value converter.EncodedValue
	err   error
}

func (r run) Get(_ context.Context, out any) error {
	if r.err != nil {
		return r.err
	}
	return r.value.Get(out)
}

func (e engine) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, w any, args ...any) (client.WorkflowRun, error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	// Its own limit of three seconds is a matter of how busy the machine is.
	env.SetTestTimeout(time.Minute)
	workflows.Register(env)
	env.RegisterActivity(&activities.Store{Workspaces: e.workspaces})
	env.RegisterActivity(&activities.Reader{Workspaces: e.workspaces, Recall: recall.NewEngine(nil)})
	env.SetStartWorkflowOptions(o)
	env.ExecuteWorkflow(w, args...)
	if err := env.GetWorkflowError(); err != nil {
		return run{err: err}, nil
	}
	var value valueOf
	err := env.GetWorkflowResult(&value.raw)
	return run{value: value}, err
}

// valueOf is a result that is decoded later.
type valueOf struct{ raw json.RawMessage }

func (v valueOf) HasValue() bool    { return v.raw != nil }
func (v valueOf) Get(out any) error { return json.Unmarshal(v.raw, out) }
func (v valueOf) String() string    { return string(v.raw) }
func (e engine) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, io.EOF
}

// site is a running gateway over a data folder.
type site struct {
	t      testing.TB
	data   string
	url    string
	memory *gateway.Memory
	tokens *tokens.File
	server *gateway.Server
	log    *lockedBuffer
	// spans are those of the gateway's calls.
	spans *tracetest.SpanRecorder
	// ahead is how far the stores' clock is ahead of the machine's, in nanoseconds.
	ahead atomic.Int64
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// open starts a gateway on a free loopback port.
func open(t testing.TB, change ...func(*gateway.Options)) *site {
	t.Helper()
	s := &site{t: t, data: t.TempDir(), log: &lockedBuffer{}, spans: tracetest.NewSpanRecorder()}
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans)).Tracer("test")
	s.tokens = tokens.Open(s.data, nil)
	workspaces, err := memory.NewWorkspaces(s.data, memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = workspaces.Close() })
	s.memory = &gateway.Memory{
		Client: workflows.NewClient(engine{workspaces: workspaces}, 1), Workspaces: workspaces,
		Recall: recall.NewEngine(nil), Owns: func(string) bool { return true },
	}
	log := logTo(s.log)
	opts := gateway.Options{Address: "127.0.0.1:0", Tokens: s.tokens, Log: log}
	for _, f := range change {
		f(&opts)
	}
	if s.server, err = gateway.NewServer(opts); err != nil {
		t.Fatal(err)
	}
	s.server.MountHealth()
	agents, err := mcp.NewServer(mcp.Options{
		Memory: s.memory, Identify: s.server.Gate().Identify, Version: "test", Log: log, Tracer: tracer,
		Count: func(name string, began time.Time, err error) { s.server.Metrics.Call("mcp", name, began, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.server.Handle("/mcp", mcp.NewHandler(agents))
	s.server.Handle("/rpc", rpc.NewHandler(rpc.Options{
		Memory: s.memory, Log: log, Tracer: tracer,
		Count: func(name string, began time.Time, err error) { s.server.Metrics.Call("rpc", name, began, err) },
	}))
	pages, err := browser.NewHandler(browser.Options{Memory: s.memory, Log: log, Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	s.server.HandlePages("/", pages)
	if err := s.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.url = "http://" + s.server.Address()
	return s
}

// token makes a token of the workspace.
func (s *site) token(workspace, agent, role string) (secret, id string) {
	s.t.Helper()
	secret, made, err := s.tokens.Create(s.t.Context(), tokens.Token{Workspace: workspace, Agent: agent, Role: role}, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret, made.ID
}

// request sends a request with the headers, given as name and value in turn.
func (s *site) request(method, path, body string, headers ...string) (status int, answer string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// withHeaders adds headers to every request.
type withHeaders []string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for i := 0; i+1 < len(h); i += 2 {
		r.Header.Set(h[i], h[i+1])
	}
	return http.DefaultTransport.RoundTrip(r)
}

// agent connects an MCP client whose settings hold the headers.
func (s *site) agent(headers ...string) *sdk.ClientSession {
	s.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test-client", Version: "1"}, nil)
	session, err := c.Connect(s.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: withHeaders(headers)}, MaxRetries: -1,
	}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

// called calls a tool that must succeed and decodes its structured result.
func called[T any](t testing.TB, c *sdk.ClientSession, name string, args any) T {
	t.Helper()
	out, failed := tried[T](t, c, name, args)
	if failed != "" {
		t.Fatalf("%s: %s", name, failed)
	}
	return out
}

// tried calls a tool and decodes its structured result, or returns its error.
func tried[T any](t testing.TB, c *sdk.ClientSession, name string, args any) (out T, failed string) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if res.IsError {
		return out, text(res)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out, ""
}

// refused calls a tool that must fail with the error's name.
func refused(t testing.TB, c *sdk.ClientSession, name string, args any, code record.Code) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !res.IsError || !strings.HasPrefix(text(res), string(code)+": ") {
		t.Fatalf("%s answers %q, want %s", name, text(res), code)
	}
	return text(res)
}

func text(res *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

type args = map[string]any

func logTo(b *lockedBuffer) *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }
