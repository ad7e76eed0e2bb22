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
	"sync"
	"syscall"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
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
	c := newCorpus(3)
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
	stop, err := startWorker(ctx, data)
	if err != nil {
		return err
	}
	noEnv := func(string) (string, bool) { return "", false }
	t, shards, err := locate.Connect(ctx, data, noEnv, slog.New(slog.DiscardHandler))
	if err != nil {
		return errors.Join(err, stop())
	}
	client := workflows.NewClient(t, shards)
	err = errors.Join(benchDispatch(ctx, client, sizes, asked), benchProposals(ctx, client, c))
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
			q := question(asked[n][rng.IntN(n)].Content, rng)
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
		fmt.Printf("| %d | %s | %s | %s | %s |\n", n, ms(percentile(dispatches, 50)), ms(percentile(dispatches, 95)), ms(percentile(searches, 50)), ms(percentile(searches, 95)))
	}
	return nil
}

func benchProposals(ctx context.Context, client *workflows.Client, c *corpus) error {
	fmt.Println("\n| callers | proposals/s through the engine | p50 ms | p95 ms |\n| --- | --- | --- | --- |")
	for _, callers := range []int{1, 8, 64} {
		n := 150 * min(callers, 12)
		next := make(chan record.ProposeFact)
		var mu sync.Mutex
		var times []time.Duration
		var failed error
		var wg sync.WaitGroup
		start := time.Now()
		for range callers {
			wg.Go(func() {
				for r := range next {
					one := time.Now()
					_, err := client.ProposeFact(ctx, r)
					mu.Lock()
					times, failed = append(times, time.Since(one)), errors.Join(failed, err)
					mu.Unlock()
				}
			})
		}
		for i := range n {
			next <- c.proposal(fmt.Sprintf("callers-%d", callers), i, n)
		}
		close(next)
		wg.Wait()
		if failed != nil {
			return failed
		}
		fmt.Printf("| %d | %.0f | %s | %s |\n", callers, float64(n)/time.Since(start).Seconds(), ms(percentile(times, 50)), ms(percentile(times, 95)))
	}
	return nil
}
