package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/temporal"
)

// helperDir names, in the environment of a process started by a test, the folder to run an engine on.
const helperDir = "POLYPHONY_ENGINE_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		if err := helper(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// helper runs an engine with a workflow that waits for a signal, says so and stays until it is killed.
func helper(dir string) error {
	ctx := context.Background()
	e, err := Start(ctx, Config{Dir: dir, Port: AnyPort})
	if err != nil {
		return err
	}
	c, err := client.Dial(client.Options{HostPort: e.Address(), Namespace: e.Namespace(), Logger: quiet()})
	if err != nil {
		return err
	}
	w := worker.New(c, resumedQueue, worker.Options{})
	w.RegisterWorkflow(waitForSignal)
	if err := w.Start(); err != nil {
		return err
	}
	if _, err := startWaiting(ctx, c, "killed", resumedQueue); err != nil {
		return err
	}
	fmt.Println("waiting")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

const resumedQueue = "resumed"

func greet(ctx workflow.Context, name string) (string, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: 10 * time.Second})
	var out string
	err := workflow.ExecuteLocalActivity(ctx, greeting, name).Get(ctx, &out)
	return out, err
}

func greeting(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func waitForSignal(ctx workflow.Context) (string, error) {
	waiting := false
	if err := workflow.SetQueryHandler(ctx, "waiting", func() (bool, error) { return waiting, nil }); err != nil {
		return "", err
	}
	waiting = true
	var got string
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &got)
	return got, nil
}

func TestStart_Restart(t *testing.T) {
	t.Parallel()
	// A folder may have any name.
	dir := filepath.Join(t.TempDir(), "a b%20?#ü")
	logs := new(syncBuffer)
	cfg := Config{Dir: dir, Port: AnyPort, Logger: slog.New(slog.NewTextHandler(logs, nil))}
	e := mustStart(t, cfg)
	if logs.Len() > 0 {
		t.Errorf("an ordinary start is not quiet:\n%s", logs)
	}
	c := dial(t, e)
	queue := startWorker(t, c)

	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: uuid.NewString(), TaskQueue: queue}, greet, "polyphony")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != "hello polyphony" {
		t.Fatalf("greet = %q, %v", got, err)
	}
	if _, err := startWaiting(t.Context(), c, "resumed", queue); err != nil {
		t.Fatal(err)
	}
	stop(t, e)
	if err := e.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, fileName+"-wal")); err == nil && info.Size() > 0 {
		t.Errorf("the log still holds %d bytes after Stop", info.Size())
	}
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info.Mode(), err)
	}

	e = mustStart(t, cfg)
	c = dial(t, e)
	startWorkerOn(t, c, queue)
	if err := c.SignalWorkflow(t.Context(), "resumed", "", "go", "on"); err != nil {
		t.Fatal(err)
	}
	if err := c.GetWorkflow(t.Context(), "resumed", "").Get(t.Context(), &got); err != nil || got != "on" {
		t.Fatalf("resumed workflow = %q, %v", got, err)
	}
	stop(t, e)
	// Usually there is none; what a machine under load makes the server say is no fault.
	t.Logf("log: %q", logs)
}

func TestStart_AfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	cmd.Stderr = t.Output()
	if _, err := cmd.StdinPipe(); err != nil { // Held open: the helper stays until it is killed.
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said != "waiting\n" {
		t.Fatalf("helper said %q, %v", said, err)
	}

	cfg := Config{Dir: dir, Port: AnyPort}
	if e, err := Start(t.Context(), cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("Start beside another process = %v, %v; want ErrInUse", e, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	c := dial(t, mustStart(t, cfg))
	startWorkerOn(t, c, resumedQueue)
	if err := c.SignalWorkflow(t.Context(), "killed", "", "go", "on"); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := c.GetWorkflow(t.Context(), "killed", "").Get(t.Context(), &got); err != nil || got != "on" {
		t.Fatalf("workflow of the killed process = %q, %v", got, err)
	}
}

func TestStart_Namespace(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Port: AnyPort, Namespace: "memory", UIPort: AnyPort}
	e := mustStart(t, cfg)

	t.Run("in_use", func(t *testing.T) {
		if again, err := Start(t.Context(), cfg); !errors.Is(err, ErrInUse) {
			t.Errorf("second Start = %v, %v; want ErrInUse", again, err)
		}
	})
	t.Run("explicit_port_taken", func(t *testing.T) {
		_, port, err := net.SplitHostPort(e.Address())
		if err != nil {
			t.Fatal(err)
		}
		taken, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []Config{{Port: taken}, {Port: AnyPort, UIPort: taken}} {
			other.Dir = t.TempDir()
			if got, err := Start(t.Context(), other); !errors.Is(err, ErrPortTaken) {
				t.Errorf("Start(%+v) = %v, %v; want ErrPortTaken", other, got, err)
			}
			// A start that failed gives the folder back.
			checkUnlocked(t, other.Dir)
		}
	})
	t.Run("ui", func(t *testing.T) { checkUI(t, e) })

	c := dial(t, e)
	if got, want := retention(t, c, "memory"), 30*24*time.Hour; got != want {
		t.Errorf("retention = %v, want %v", got, want)
	}
	want := map[string]enumspb.IndexedValueType{
		"MemoryWorkspace": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "MemoryAgent": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"MemoryDomain": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "MemoryOutcome": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}
	checkSearchAttributes(t, c, "memory", want)
	stop(t, e)

	// What exists keeps its retention and its attributes; what is missing is added.
	cfg.Retention, cfg.UIPort = time.Hour, 0
	cfg.SearchAttributes = map[string]enumspb.IndexedValueType{
		"MemoryAgent": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "MemoryCount": enumspb.INDEXED_VALUE_TYPE_INT,
	}
	e = mustStart(t, cfg)
	if e.UIAddress() != "" {
		t.Errorf("UIAddress = %q without a UI", e.UIAddress())
	}
	c = dial(t, e)
	if got, want := retention(t, c, "memory"), 30*24*time.Hour; got != want {
		t.Errorf("retention after a second start = %v, want %v", got, want)
	}
	want["MemoryCount"] = enumspb.INDEXED_VALUE_TYPE_INT
	checkSearchAttributes(t, c, "memory", want)
	stop(t, e)

	cfg.SearchAttributes = map[string]enumspb.IndexedValueType{"MemoryAgent": enumspb.INDEXED_VALUE_TYPE_INT}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "MemoryAgent") {
		t.Errorf("Start with another type for an attribute: %v", err)
	}
	checkUnlocked(t, cfg.Dir)
}

func TestStart_DefaultPort(t *testing.T) {
	t.Parallel()
	// Whoever has the usual port, this test or somebody else, the engine takes another.
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(DefaultHost, strconv.Itoa(DefaultPort)))
	if err == nil {
		defer func() { _ = l.Close() }()
	}
	e := mustStart(t, Config{Dir: t.TempDir(), Retention: time.Hour})
	host, port, err := net.SplitHostPort(e.Address())
	if err != nil || host != DefaultHost || port == strconv.Itoa(DefaultPort) {
		t.Errorf("Address = %q, %v", e.Address(), err)
	}
	if got, want := retention(t, dial(t, e), DefaultNamespace), time.Hour; got != want {
		t.Errorf("retention = %v, want %v", got, want)
	}
}

func TestStart_Cancelled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := Start(ctx, Config{Dir: dir, Port: AnyPort}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Start = %v, %v; want context.Canceled", e, err)
	}
	waitUnlocked(t, dir)

	// Stop returns with its context and finishes behind it.
	e := mustStart(t, Config{Dir: dir, Port: AnyPort})
	if err := e.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v; want context.Canceled", err)
	}
	if err := e.Stop(t.Context()); err != nil {
		t.Errorf("Stop again = %v", err)
	}
	checkUnlocked(t, dir)
}

// A program that takes a port between its choice and the server's bind must come back as that very error, for
// startServer to choose again, and not end this process.
func TestNewServer_PortTakenMeanwhile(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, t.TempDir())
	f, err := openFile(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.close() }()
	p, err := choosePorts(t.Context(), cfg.Host, AnyPort)
	if err != nil {
		t.Fatal(err)
	}
	thief, err := listen(t.Context(), cfg.Host, p.history)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = thief.Close() }()

	failed := newFailure()
	logger := newServerLog(slog.New(slog.DiscardHandler), cfg.LogLevel, failed)
	var server temporal.Server
	err = guard(failed, func() (err error) {
		server, err = newServer(cfg, p, f.database(), logger)
		return err
	})
	if err == nil {
		err = guard(failed, server.Start)
		defer func() { _ = guard(failed, server.Stop) }()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("start = %v, want EADDRINUSE", err)
	}
}

func TestConfig_Invalid(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no_dir":             {},
		"wildcard_host":      {Dir: "x", Host: "0.0.0.0"},
		"named_host":         {Dir: "x", Host: "example.com"},
		"port_out_of_range":  {Dir: "x", Port: 65536},
		"negative_port":      {Dir: "x", UIPort: -2},
		"one_port_for_both":  {Dir: "x", Port: 8000, UIPort: 8000},
		"negative_retention": {Dir: "x", Retention: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := cfg.withDefaults(); err == nil {
				t.Errorf("accepted as %+v", got)
			}
		})
	}
	for _, host := range []string{"", "localhost", "127.0.0.1", "127.0.0.2", "::1"} {
		if _, err := (Config{Dir: "x", Host: host}).withDefaults(); err != nil {
			t.Errorf("host %q: %v", host, err)
		}
	}
}

func checkUI(t *testing.T, e *Engine) {
	t.Helper()
	get := func(path, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.UIAddress()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := get("/", ""); code != http.StatusOK || !strings.Contains(strings.ToLower(body), "<html") {
		t.Errorf("GET / = %d, %.80q", code, body)
	}
	if code, body := get("/", "memory.example:80"); code != http.StatusMisdirectedRequest {
		t.Errorf("GET / of another host = %d, %.80q", code, body)
	}
	if code, body := get("/api/v1/namespaces", ""); code != http.StatusOK || !strings.Contains(body, `"memory"`) {
		t.Errorf("GET /api/v1/namespaces = %d, %.200q", code, body)
	}
	var settings struct{ DefaultNamespace string }
	code, body := get("/api/v1/settings", "localhost")
	if err := json.Unmarshal([]byte(body), &settings); code != http.StatusOK || err != nil || settings.DefaultNamespace != "memory" {
		t.Errorf("GET /api/v1/settings = %d, %.200q, %v", code, body, err)
	}
}

func retention(t *testing.T, c client.Client, namespace string) time.Duration {
	t.Helper()
	resp, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
}

func checkSearchAttributes(t *testing.T, c client.Client, namespace string, want map[string]enumspb.IndexedValueType) {
	t.Helper()
	resp, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	got := resp.GetCustomAttributes()
	for name, kind := range want {
		if got[name] != kind {
			t.Errorf("search attribute %s is %v, want %v", name, got[name], kind)
		}
	}
	if len(got) != len(want) {
		t.Errorf("search attributes %v, want %v", got, want)
	}
}

func checkUnlocked(t *testing.T, dir string) {
	t.Helper()
	lock := flock.New(filepath.Join(dir, lockName))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Errorf("the folder is still locked: %v, %v", ok, err)
	}
	_ = lock.Close()
}

// waitUnlocked waits until what goes on behind a cancelled start is over.
func waitUnlocked(t *testing.T, dir string) {
	t.Helper()
	lock := flock.New(filepath.Join(dir, lockName))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
}

func mustStart(tb testing.TB, cfg Config) *Engine {
	tb.Helper()
	e, err := Start(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			tb.Errorf("Stop: %v", err)
		}
		select {
		case err := <-e.Failed():
			tb.Errorf("the engine failed: %v", err)
		default:
		}
	})
	return e
}

func stop(tb testing.TB, e *Engine) {
	tb.Helper()
	began := time.Now()
	if err := e.Stop(tb.Context()); err != nil {
		tb.Fatalf("Stop: %v", err)
	}
	tb.Logf("stopped in %v", time.Since(began))
}

func dial(tb testing.TB, e *Engine) client.Client {
	tb.Helper()
	c, err := client.DialContext(tb.Context(), client.Options{HostPort: e.Address(), Namespace: e.Namespace(), Logger: quiet()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// startWorker runs a worker of this file's workflows on a task queue of its own.
func startWorker(tb testing.TB, c client.Client) (queue string) {
	tb.Helper()
	queue = "test-" + uuid.NewString()
	startWorkerOn(tb, c, queue)
	return queue
}

func startWorkerOn(tb testing.TB, c client.Client, queue string) {
	tb.Helper()
	w := worker.New(c, queue, worker.Options{WorkflowPanicPolicy: worker.FailWorkflow})
	w.RegisterWorkflow(greet)
	w.RegisterWorkflow(waitForSignal)
	if err := w.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Stop)
}

// startWaiting starts waitForSignal and returns when it waits.
func startWaiting(ctx context.Context, c client.Client, id, queue string) (client.WorkflowRun, error) {
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, waitForSignal)
	if err != nil {
		return nil, err
	}
	value, err := c.QueryWorkflow(ctx, id, run.GetRunID(), "waiting")
	if err != nil {
		return nil, err
	}
	var waiting bool
	if err := value.Get(&waiting); err != nil || !waiting {
		return nil, fmt.Errorf("waiting = %v, %w", waiting, err)
	}
	return run, nil
}

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// syncBuffer collects a log that many goroutines write.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Len()
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
