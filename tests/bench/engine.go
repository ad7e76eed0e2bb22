package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// startWorker builds the worker and runs it on a data folder until stop.
func startWorker(ctx context.Context, data string) (stop func() error, err error) {
	binary := filepath.Join(filepath.Dir(data), "worker")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./worker").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the worker: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, binary, "--data", data, "--port", "-1", "--log-level", "warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if w, err := locate.Announced(data); err == nil && w.PID == cmd.Process.Pid {
			return stop, nil
		}
	}
	return nil, errors.Join(errors.New("the worker did not start"), stop())
}

func benchEngine(ctx context.Context, dir string, sizes []int) error {
	data := filepath.Join(dir, "data")
	c := corpus.New(3)
	asked := map[int][]record.ProposeFact{}
	for _, n := range sizes {
		ws := fmt.Sprintf("bench-%d", n)
		s, err := memory.Open(ctx, filepath.Join(data, "workspaces", ws), ws, memory.Options{})
		if err != nil {
			return err
		}
		if asked[n], _, err = fill(ctx, s, c, 0, n, 256); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return withWorker(ctx, data, func(_ client.Client, c *workflows.Client) error { return benchDispatch(ctx, c, sizes, asked) })
}

// benchLoad measures many callers at once on the embedded engine; the test of
// the topology measures the same on PostgreSQL.
func benchLoad(ctx context.Context, dir string, window time.Duration) error {
	return withWorker(ctx, filepath.Join(dir, "data"), func(_ client.Client, c *workflows.Client) error {
		rows, err := load.Run(ctx, c, window)
		if err != nil {
			return err
		}
		return load.Print(os.Stdout, rows)
	})
}

// withWorker runs a worker on a data folder while use calls it.
func withWorker(ctx context.Context, data string, use func(client.Client, *workflows.Client) error) error {
	stop, err := startWorker(ctx, data)
	if err != nil {
		return err
	}
	t, shards, err := locate.Connect(ctx, data, func(string) (string, bool) { return "", false }, slog.New(slog.DiscardHandler))
	if err != nil {
		return errors.Join(err, stop())
	}
	err = use(t, workflows.NewClient(t, shards))
	t.Close()
	return errors.Join(err, stop())
}

func benchDispatch(ctx context.Context, client *workflows.Client, sizes []int, asked map[int][]record.ProposeFact) error {
	fmt.Println("| facts | dispatch p50 ms | dispatch p95 ms | search p50 ms | search p95 ms |\n| --- | --- | --- | --- | --- |")
	rng := rand.New(rand.NewPCG(8, 8))
	for _, n := range sizes {
		caller := record.Caller{Workspace: fmt.Sprintf("bench-%d", n), Agent: "agent-1"}
		var dispatches, searches []time.Duration
		for i := range 220 {
			q := corpus.Question(asked[n][rng.IntN(n)].Content, rng)
			start := time.Now()
			if _, err := client.AssemblePreamble(ctx, record.Dispatch{Caller: caller, Task: q + " please look into it"}); err != nil {
				return err
			}
			took := time.Since(start)
			start = time.Now()
			if _, err := client.SearchMemory(ctx, record.Search{Caller: caller, Query: q, Mode: "keyword"}); err != nil {
				return err
			}
			if i >= 20 {
				dispatches, searches = append(dispatches, took), append(searches, time.Since(start))
			}
		}
		fmt.Printf("| %d | %s | %s | %s | %s |\n", n, load.MS(load.Percentile(dispatches, 50)), load.MS(load.Percentile(dispatches, 95)), load.MS(load.Percentile(searches, 50)), load.MS(load.Percentile(searches, 95)))
	}
	return nil
}
