package endtoend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// callTimeout bounds one call of a test. After a kill the engine waits ten
// seconds for the lost worker before it hands its step to the next one.
const callTimeout = 2 * time.Minute

// binary is the built worker, command the built command line.
var binary, command string

func TestMain(m *testing.M) {
	if job := os.Getenv(envJob); job != "" {
		os.Exit(runJob(job))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "polyphony-endtoend-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, command = filepath.Join(dir, "worker"), filepath.Join(dir, "starter")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "github.com/polyphony-memory/polyphony/worker", "github.com/polyphony-memory/polyphony/starter")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the programs:", err)
		return 1
	}
	return m.Run()
}

// environment is ours without what would lead the worker to another engine or
// folder.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TEMPORAL_") && !strings.HasPrefix(v, "POLYPHONY_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// noEnvironment looks nothing up.
func noEnvironment(string) (string, bool) { return "", false }

// output is what a process printed; it may be read while the process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// process is one run of the worker.
type process struct {
	t              testing.TB
	data           string
	cmd            *exec.Cmd
	stdout, stderr *output
	exited         chan struct{}
	temporal       client.Client
	shards         int
}

// spawn runs the worker without waiting for it to be ready.
func spawn(t testing.TB, data string, args ...string) *process {
	t.Helper()
	return spawnWith(t, nil, data, args...)
}

// spawnWith is spawn with more in the environment.
func spawnWith(t testing.TB, env []string, data string, args ...string) *process {
	t.Helper()
	p := &process{t: t, data: data, stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{"--data", data, "--port", "-1"}, args...)...)
	p.cmd.Env = environment(env...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the worker's log ends:\n%s", tail(p.stderr.String(), 30))
		}
	})
	return p
}

// start runs the worker and returns once it has announced itself.
func start(t testing.TB, data string, args ...string) *process {
	t.Helper()
	return announced(t, spawn(t, data, args...))
}

// announced waits for a worker to announce itself and connects to it.
func announced(t testing.TB, p *process) *process {
	t.Helper()
	data := p.data
	eventually(t, time.Minute, "the worker announces itself", func() bool {
		if p.gone() {
			t.Fatalf("the worker ended with code %d:\n%s", p.cmd.ProcessState.ExitCode(), tail(p.stderr.String(), 30))
		}
		w, err := locate.Announced(data)
		return err == nil && w.PID == p.cmd.Process.Pid
	})
	p.connect()
	return p
}

// connect gives the process a client, once it has announced itself.
func (p *process) connect() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	var err error
	p.temporal, p.shards, err = locate.Connect(ctx, p.data, noEnvironment, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.temporal.Close)
}

// client is the typed client of this run of the worker.
func (p *process) client() *workflows.Client { return workflows.NewClient(p.temporal, p.shards) }

func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill ends the process with SIGKILL, at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// terminate sends SIGTERM and waits; it returns the exit code and how long the
// stop took.
func (p *process) terminate() (code int, took time.Duration) {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait(time.Minute), time.Since(began)
}

// wait returns the exit code of a process that ends by itself.
func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		p.t.Fatalf("the worker did not end within %v", within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// folder is where a workspace lies.
func (p *process) folder(workspace string) string { return workspaceFolder(p.data, workspace) }

func workspaceFolder(data, workspace string) string {
	return filepath.Join(data, "workspaces", workspace)
}

// timed is the context of one call.
func timed(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until cond holds.
func eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// must returns v, or ends the test.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantCode checks that err is the store's own error of that name, and returns
// it.
func wantCode(t testing.TB, err error, code record.Code) *record.Error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	var e *record.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T %v is no *record.Error; want %s", err, err, code)
	}
	if e.Code != code {
		t.Fatalf("%v, want %s", e, code)
	}
	if e.Message == "" {
		t.Errorf("%s has no message", code)
	}
	return e
}

func caller(workspace string) record.Caller {
	return record.Caller{Workspace: workspace, Agent: "scout", Role: "coder"}
}

func keyed(c record.Caller, key string) record.Caller {
	c.Key = key
	return c
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// TestDefaultBuild: the fault points of tests/chaos are in a build with their
// tag only.
func TestDefaultBuild(t *testing.T) {
	t.Parallel()
	program := must[[]byte](t)(os.ReadFile(binary))
	for _, name := range []string{"POLYPHONY_FAULT", "memory/fault.Reach", "operation-written"} {
		if bytes.Contains(program, []byte(name)) {
			t.Errorf("the worker contains %q", name)
		}
	}
}
