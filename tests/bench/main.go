// Bench measures polyphony and prints the tables of docs/benchmarks.md and docs/scale.md:
//
//	go run ./tests/bench store  [--facts N] [--dir DIR]
//	go run ./tests/bench engine [--facts N] [--dir DIR]
//	go run ./tests/bench load   [--window 10s] [--dir DIR]
//	go run ./tests/bench recall [--facts N] [--dir DIR] [--vector-index memory|file|none] [--json]
//	go run ./tests/bench start
//	go run ./tests/bench calls
//	go run ./tests/bench scale  [--workspaces N] [--facts N] [--dir DIR]
//
// It never asserts; a number depends on the machine, a ratio less so.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
)

// measurements are what can be asked for.
const measurements = "store, engine, load, recall, start, calls or scale"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to measure: %s", measurements)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	facts := flags.Int("facts", 100000, "the largest number of facts")
	workspaces := flags.Int("workspaces", 2000, "the workspaces of scale")
	window := flags.Duration("window", 10*time.Second, "load: how long each measurement lasts")
	dir := flags.String("dir", "", "folder for the files (default a temporary one); the disk decides what a sync costs; recall uses again what it finds there")
	index := flags.String("vector-index", "", "recall: what finds the nearest vectors (default memory)")
	asJSON := flags.Bool("json", false, "recall: print JSON instead of tables")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *dir == "" {
		var err error
		if *dir, err = os.MkdirTemp("", "polyphony-bench-"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(*dir) }()
	}
	sizes := []int{}
	for n := 1000; n <= *facts; n *= 10 {
		sizes = append(sizes, n)
	}
	if len(sizes) == 0 {
		return fmt.Errorf("--facts is 1000 or more")
	}
	switch args[0] {
	case "store":
		return benchStore(ctx, *dir, sizes)
	case "engine":
		return benchEngine(ctx, *dir, sizes)
	case "load":
		return benchLoad(ctx, *dir, *window)
	case "recall":
		i, err := memory.ParseVectorIndex(*index)
		if err != nil {
			return err
		}
		return benchRecall(ctx, *dir, sizes, memory.Options{VectorIndex: i}, *asJSON)
	case "start":
		return benchStart(ctx, *dir)
	case "calls":
		return benchCalls(ctx, *dir)
	case "scale":
		return benchScale(ctx, *dir, *workspaces, *facts)
	}
	return fmt.Errorf("unknown measurement %q: %s", args[0], measurements)
}
