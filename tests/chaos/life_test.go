package chaos

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

const (
	// startPatience is how long a start may take on a machine that is busy.
	startPatience = 2 * time.Minute
	// callPatience bounds one attempt of a call. After a kill the engine waits
	// ten seconds for the lost worker before it hands its step to the next one.
	callPatience = 2 * time.Minute
)

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

// end returns the last lines.
func (o *output) end(lines int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Split(strings.TrimRight(o.buf.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// life is one run of the worker's process, from its start to its end.
type life struct {
	data   string
	cmd    *exec.Cmd
	log    *output
	exited chan struct{}
	// ctx ends with the process; calls of this life run under it.
	ctx      context.Context
	cancel   context.CancelFunc
	temporal client.Client
	client   *workflows.Client
}

// spawn runs the worker on a data folder without waiting for it to be ready.
func spawn(ctx context.Context, data string, env []string, args ...string) (*life, error) {
	l := &life{data: data, log: &output{}, exited: make(chan struct{})}
	l.cmd = exec.Command(binary, append([]string{"--data", data, "--port", "-1"}, args...)...)
	l.cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TEMPORAL_") || strings.HasPrefix(v, "POLYPHONY_")
	}), env)
	l.cmd.Stdout, l.cmd.Stderr = l.log, l.log
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancel(ctx)
	go func() {
		_ = l.cmd.Wait()
		l.cancel()
		close(l.exited)
	}()
	return l, nil
}

// ready waits until the worker has announced itself and connects to it. It
// returns an error when the process ended before.
func (l *life) ready() error {
	ctx, cancel := context.WithTimeout(l.ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if w, err := locate.Announced(l.data); err == nil && w.PID == l.cmd.Process.Pid {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the worker is not ready: %w\n%s", ctx.Err(), l.log.end(20))
		}
	}
	t, shards, err := locate.Connect(ctx, l.data, noEnvironment, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	l.temporal, l.client = t, workflows.NewClient(t, shards)
	return nil
}

// kill ends the process with SIGKILL and returns when it is gone.
func (l *life) kill() {
	_ = l.cmd.Process.Kill()
	<-l.exited
}

// ended waits for the end of the process, and returns an error when that was
// not by SIGKILL.
func (l *life) ended() error {
	<-l.exited
	status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return nil
	}
	return fmt.Errorf("the worker ended by itself, with code %d\n%s", l.cmd.ProcessState.ExitCode(), l.log.end(20))
}

// disconnect closes the connection of a life that is over.
func (l *life) disconnect() {
	if l.temporal != nil {
		l.temporal.Close()
	}
}

// terminate asks the process to stop and returns its exit code.
func (l *life) terminate() (int, error) {
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-l.exited:
		return l.cmd.ProcessState.ExitCode(), nil
	case <-time.After(time.Minute):
		l.kill()
		return 0, fmt.Errorf("the worker did not stop within a minute\n%s", l.log.end(20))
	}
}

// start runs the worker for a test and returns once it is ready.
func start(t testing.TB, data string, args ...string) *life {
	t.Helper()
	l, err := spawn(t.Context(), data, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.kill()
		l.disconnect()
		if t.Failed() {
			t.Logf("the worker's log ends:\n%s", l.log.end(20))
		}
	})
	if err := l.ready(); err != nil {
		t.Fatal(err)
	}
	return l
}
