// Engine runs the embedded Temporal server on PostgreSQL in place of a file: the
// server of docker-compose.yml as a process, for tests on machines without
// Docker.
//
//	go run ./tests/topology/engine --database 127.0.0.1:5432 --user temporal --set-up
//	go run ./tests/topology/engine --database 127.0.0.1:5432 --user temporal
//
// The first makes the two databases with their schemas and ends. The second
// prints the address that it listens on and runs until a signal comes. It must
// never serve anything but tests: it asks nobody who they are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/polyphony-memory/polyphony/worker/engine"
)

// historyShards is what docker-compose.yml sets.
const historyShards = 16

// patience bounds starting and stopping.
const patience = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	server := server{}
	flags.StringVar(&server.address, "database", "127.0.0.1:5432", "host and port of PostgreSQL")
	flags.StringVar(&server.user, "user", "temporal", "role that may make databases")
	flags.StringVar(&server.password, "password", "", "its password")
	setUp := flags.Bool("set-up", false, "make the databases and their schemas, and end")
	port := flags.Int("port", engine.AnyPort, "port to listen on; -1 any free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *setUp {
		return server.setUp()
	}
	starting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := engine.Start(starting, engine.Config{
		Database: &engine.Database{Main: server.database(mainDatabase), Visibility: server.database(visibilityDatabase), HistoryShards: historyShards},
		Port:     *port, Logger: slog.New(slog.NewTextHandler(stderr, nil)),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, e.Address())
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-e.Failed():
		}
	}
	stopping, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancelStop()
	return errors.Join(err, e.Stop(stopping))
}
