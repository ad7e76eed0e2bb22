package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/polyphony-memory/polyphony/tests/bench/load"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

const (
	// starts is how often each start is timed, rest after what time of quiet the
	// memory is read.
	starts = 5
	rest   = 5 * time.Second
)

// benchStart builds the worker with its engine and the one for a cluster, and
// tells their size, how long they take to serve, and what they hold at rest.
func benchStart(ctx context.Context, dir string) error {
	fmt.Println("| worker | binary MB | start ms (median) | resident MB at rest | file descriptors |\n| --- | --- | --- | --- | --- |")
	data := filepath.Join(dir, "data")
	alone, err := buildStripped(ctx, filepath.Join(dir, "worker-alone"))
	if err != nil {
		return err
	}
	announced := func(pid int) bool {
		w, err := locate.Announced(data)
		return err == nil && w.PID == pid
	}
	if err := timeStarts("with its engine", alone, []string{"--data", data, "--port", "-1"}, nil, announced); err != nil {
		return err
	}

	joining, err := buildStripped(ctx, filepath.Join(dir, "worker-joining"), "-tags", "cluster")
	if err != nil {
		return err
	}
	// Any engine is a cluster to it.
	stop, err := startWorker(ctx, data)
	if err != nil {
		return err
	}
	w, err := locate.Announced(data)
	if err != nil {
		return errors.Join(err, stop())
	}
	const shards = 16
	t, _, err := locate.Connect(ctx, data, func(string) (string, bool) { return "", false }, slog.New(slog.DiscardHandler))
	if err != nil {
		return errors.Join(err, stop())
	}
	client := workflows.NewClient(t, shards)
	answers := func(int) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		// Not shard 0, which the other one serves.
		return client.CheckShards(ctx, []int{1, 2, 3, 4, 5, 6, 7, 8}) == nil
	}
	err = timeStarts("for a cluster, 8 shards", joining, []string{"--data", filepath.Join(dir, "joining"), "--shards", fmt.Sprint(shards), "--own", "1-8"}, []string{"TEMPORAL_ADDRESS=" + w.Address}, answers)
	t.Close()
	return errors.Join(err, stop())
}

func buildStripped(ctx context.Context, binary string, args ...string) (string, error) {
	args = append(append([]string{"build", "-ldflags=-s -w", "-o", binary}, args...), "./worker")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the worker: %w\n%s", err, out)
	}
	return binary, nil
}

// timeStarts starts the binary again and again, until serves says so, and prints
// a row.
func timeStarts(name, binary string, args, env []string, serves func(pid int) bool) error {
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	var took []time.Duration
	var h holding
	for i := range starts {
		cmd := exec.Command(binary, append(args, "--log-level", "error")...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stderr = os.Stderr
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		for !serves(cmd.Process.Pid) && time.Since(began) < 2*time.Minute {
			time.Sleep(2 * time.Millisecond)
		}
		took = append(took, time.Since(began))
		if i == starts-1 {
			time.Sleep(rest)
			h = heldBy(fmt.Sprint(cmd.Process.Pid))
		}
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			return err
		}
	}
	fmt.Printf("| %s | %.1f | %s | %d | %d |\n", name, float64(info.Size())/1e6, load.MS(load.Percentile(took, 50)), h.bytes>>20, h.files)
	return nil
}
