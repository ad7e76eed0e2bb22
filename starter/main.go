// Command starter is polyphony's command line: it starts and watches the
// workflows that change and read a workspace, imports and exports facts.
//
// It must never hold rules or SQL; it only calls.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/polyphony-memory/polyphony/starter/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks to stop; a second one is not caught any more.
	defer context.AfterFunc(ctx, stop)()
	return cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
}
