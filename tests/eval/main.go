// Eval measures how good polyphony's answers are, on labelled data that is
// given by path and never part of the project:
//
//	go run ./tests/eval locomo FILE [--facts turns|observations] [--model DIR] [--json]
//
// It asserts nothing; docs/recall.md holds what it printed.
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
		return fmt.Errorf("say what to evaluate and on which file: locomo FILE")
	}
	switch args[0] {
	case "locomo":
		return evalLocomo(ctx, args[1], args[2:], stdout, stderr)
	}
	return fmt.Errorf("unknown evaluation %q: locomo", args[0])
}
