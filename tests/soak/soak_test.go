package soak

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// envSoak says for how long.
const envSoak = "POLYPHONY_SOAK"

const (
	// samples is how many are taken over the whole time.
	samples = 60
	// agents call at once, each every pace at most, in workspaces of their own.
	agents = 16
	pace   = 250 * time.Millisecond
	// callTimeout bounds one call on a loaded machine.
	callTimeout = 2 * time.Minute
)

// sample is what the worker holds at one time. Sizes are in MB; wal is that of the
// largest write-ahead log, which SQLite folds into its file at 4 MB.
type sample struct {
	at                                time.Duration
	goroutines, heap, rss, files, wal int
	calls                             int64
}

// bound is how much of something may be added from the second third of the time
// to the last: a share of what it was, and an amount below which growth is
// noise.
type bound struct {
	name  string
	of    func(sample) int
	share float64
	slack int
}

var bounds = []bound{
	{"goroutines", func(s sample) int { return s.goroutines }, 0.05, 20},
	{"live heap MB", func(s sample) int { return s.heap }, 0.15, 10},
	{"resident MB", func(s sample) int { return s.rss }, 0.15, 20},
	{"file descriptors", func(s sample) int { return s.files }, 0.05, 8},
	{"largest write-ahead log MB", func(s sample) int { return s.wal }, 0.25, 8},
}

// notFlat names what grew from the second third of the samples to the last, by
// their medians. The first third fills caches.
func notFlat(all []sample) []string {
	third := len(all) / 3
	var found []string
	for _, b := range bounds {
		before, after := median(all[third:2*third], b.of), median(all[2*third:], b.of)
		if limit := before + int(b.share*float64(before)) + b.slack; after > limit {
			found = append(found, fmt.Sprintf("%s went from %d to %d, over %d", b.name, before, after, limit))
		}
	}
	return found
}

func median(some []sample, of func(sample) int) int {
	var values []int
	for _, s := range some {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func TestSoak(t *testing.T) {
	text := os.Getenv(envSoak)
	if text == "" {
		t.Skipf("set %s to how long it should take, like 20m", envSoak)
	}
	if runtime.GOOS != "linux" {
		t.Skip("what a process holds is read from /proc")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < time.Minute {
		t.Fatalf("%s is %q; a soak takes at least 1m", envSoak, text)
	}
	step := length / samples
	data := t.TempDir()
	worker, tr := startWorker(t, data, step)
	temporal, shards, err := locate.Connect(t.Context(), data, noEnvironment, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()

	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var calls atomic.Int64
	var wg sync.WaitGroup
	for i := range agents {
		a := agent{client: workflows.NewClient(temporal, shards), name: fmt.Sprintf("soak-%d", i), calls: &calls}
		wg.Go(func() {
			if err := a.run(ctx); err != nil {
				stop(fmt.Errorf("%s: %w", a.name, err))
			}
		})
	}
	var all []sample
	began := time.Now()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for len(all) < samples && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			all = append(all, take(t, worker.Pid, data, tr, time.Since(began), calls.Load()))
		}
	}
	failed := context.Cause(ctx)
	stop(nil)
	wg.Wait()

	var table strings.Builder
	table.WriteString("| minutes | calls | goroutines | live heap MB | resident MB | file descriptors | largest write-ahead log MB |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for i := samples/12 - 1; i < len(all); i += samples / 12 {
		s := all[i]
		fmt.Fprintf(&table, "| %.1f | %d | %d | %d | %d | %d | %d |\n", s.at.Minutes(), s.calls, s.goroutines, s.heap, s.rss, s.files, s.wal)
	}
	t.Logf("%v of load:\n%s", length, table.String())
	if failed != nil {
		t.Fatalf("a call failed: %v\n%s", failed, tr.log())
	}
	for _, found := range notFlat(all) {
		t.Error(found)
	}
}

func noEnvironment(string) (string, bool) { return "", false }

// startWorker builds the worker and runs it until the test ends.
func startWorker(t *testing.T, data string, step time.Duration) (*os.Process, *trace) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "worker")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "./worker")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	tr := &trace{}
	cmd := exec.Command(binary, "--data", data, "--port", "-1")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TEMPORAL_") || strings.HasPrefix(v, "POLYPHONY_")
	}), fmt.Sprintf("GODEBUG=gctrace=1,scheddetail=1,schedtrace=%d", step.Milliseconds()))
	cmd.Stderr = tr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("the worker was gone: %v\n%s", err, tr.log())
			return
		}
		if err := <-exited; err != nil {
			t.Errorf("the worker ended: %v\n%s", err, tr.log())
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if w, err := locate.Announced(data); err == nil && w.PID == cmd.Process.Pid {
			return cmd.Process, tr
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the worker ended: %v\n%s", err, tr.log())
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		case <-tick.C:
		}
	}
}

// take looks at what the worker holds.
func take(t *testing.T, pid int, data string, tr *trace, at time.Duration, calls int64) sample {
	t.Helper()
	s := sample{at: at, calls: calls}
	s.goroutines, s.heap = tr.seen()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kb), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			s.rss = n >> 10
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	s.files = len(open)
	var largest int64
	err = filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "-wal") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			largest = max(largest, info.Size())
		}
		return err
	})
	// A file may go while the folder is walked.
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	s.wal = int(largest >> 20)
	return s
}

// agent is one caller that does a bit of everything, again and again.
type agent struct {
	client *workflows.Client
	name   string
	calls  *atomic.Int64
}

func (a *agent) run(ctx context.Context) error {
	turn := time.NewTicker(pace)
	defer turn.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
		if err := a.call(ctx, i); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		a.calls.Add(1)
	}
}

func (a *agent) call(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caller := record.Caller{Workspace: a.name, Agent: a.name, Role: "coder"}
	what := fmt.Sprintf("station%d", i/5)
	var err error
	switch i % 5 {
	case 0:
		_, err = a.client.ProposeFact(ctx, record.ProposeFact{Caller: caller, Domain: "soak", Topic: what, Content: "The train of " + a.name + " halts at " + what})
	case 1:
		_, err = a.client.SearchMemory(ctx, record.Search{Caller: caller, Query: "Which train halts at " + what})
	case 2:
		_, err = a.client.AssemblePreamble(ctx, record.Dispatch{Caller: caller, Task: "Meet the train that halts at " + what})
	case 3:
		_, err = a.client.UpdateNotes(ctx, record.UpdateNotes{Caller: caller, Text: "waiting at " + what})
	case 4:
		if i%200 == 4 {
			_, err = a.client.ConsolidateMemory(ctx, record.Consolidate{Caller: caller}, nil)
			break
		}
		_, err = a.client.Health(ctx, caller, false)
	}
	return err
}
