// Eval measures how good polyphony's answers are, on labelled data that is
// given by path and never part of the project:
//
//	go run ./tests/eval locomo FILE [--facts turns|observations] [--model DIR] [--consolidated] [--json]
//	go run ./tests/eval conflicts FILE [--model DIR] [--json]
//	go run ./tests/eval triples FILE [--json]
//
// It asserts nothing; docs/recall.md and docs/conflicts.md hold what it printed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("say what to evaluate and on which file: locomo FILE, conflicts FILE or triples FILE")
	}
	switch args[0] {
	case "locomo":
		return evalLocomo(ctx, args[1], args[2:], stdout, stderr)
	case "conflicts":
		return evalConflicts(ctx, args[1], args[2:], stdout)
	case "triples":
		return evalTriples(args[1], args[2:], stdout)
	}
	return fmt.Errorf("unknown evaluation %q: locomo, conflicts or triples", args[0])
}
