// The worker owns workspace files and runs the workflows that change them. It
// starts the embedded Temporal engine, or joins a cluster that the environment
// names.
//
// This package wires the rooms together and starts and stops them in order. It
// must never hold a rule of memory, recall or dispatch.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

// run is main with its surroundings given; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	cfg := Config{lookup: lookup}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Serve polyphony's workspaces",
		Long: "The worker owns the workspace files of a data folder and runs the workflows that change them.\n" +
			"Without TEMPORAL_ADDRESS or TEMPORAL_PROFILE in the environment it starts the embedded\n" +
			"Temporal engine on a file in the data folder, so there is nothing else to install.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return record.Errorf(record.InvalidArgument, "", "the worker takes no argument %q", args[0])
			}
			return nil
		},
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(); err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, stdout, newLogger(cfg, stderr))
		},
	}
	cfg.flags(cmd.Flags())
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return record.Errorf(record.InvalidArgument, "", "%v", err)
	})
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var e *record.Error
	if !errors.As(err, &e) {
		e = record.Wrap(record.Unavailable, err, "%v", err)
	}
	fmt.Fprintln(stderr, e.Error())
	if cause := e.Unwrap(); cause != nil && cause.Error() != e.Message {
		fmt.Fprintln(stderr, "  because:", cause)
	}
	return e.Code.ExitCode()
}

func newLogger(cfg Config, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// serve runs the worker until the context ends, a signal comes, or a part
// fails. While another worker serves one of its shards it stands by.
func serve(ctx context.Context, cfg Config, stdout io.Writer, log *slog.Logger) (err error) {
	ctx, ignore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	shards, err := takeLocks(ctx, cfg, log)
	if err != nil || shards == nil {
		return err
	}
	// Last of all: until then the files may still be written.
	defer func() { err = errors.Join(err, shards.release()) }()

	app := fx.New(wiring(cfg, stdout, log))
	if err := app.Err(); err != nil {
		return unwrapFx(err)
	}
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := app.Start(startCtx); err != nil {
		if ctx.Err() != nil {
			log.Info("stopped while starting")
			return nil
		}
		return unwrapFx(err)
	}
	var code int
	select {
	case signal := <-app.Wait():
		code = signal.ExitCode
		log.Info("stopping: running work is finished or handed back", "signal", fmt.Sprint(signal.Signal))
	case <-ctx.Done():
		log.Info("stopping: running work is finished or handed back")
	}
	stopCtx, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelStop()
	if err := app.Stop(stopCtx); err != nil {
		return unwrapFx(err)
	}
	log.Info("stopped")
	if code != 0 {
		return record.Errorf(record.Unavailable, "", "the worker stopped because a part of it failed; see the log")
	}
	return nil
}

// unwrapFx returns our own error out of what Fx wraps around it.
func unwrapFx(err error) error {
	var e *record.Error
	if errors.As(err, &e) {
		return e
	}
	return err
}

// wiring is the whole application. Hooks start in the order of dependence:
// engine, store, client, workers, gateway, announcement; they stop in reverse.
func wiring(cfg Config, stdout io.Writer, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.Supply(cfg),
		fx.Provide(
			func() *slog.Logger { return log },
			func() io.Writer { return stdout },
			newKeys, newTelemetry, newSemantics, newConnection, newWorkspaces, newWorkers, newJudging, newReferrals, newGateway, newAnnouncement, newTour,
		),
		fx.Invoke(func(*referrals, *announcement, *tour) {}),
		fx.StartTimeout(startTimeout), fx.StopTimeout(stopTimeout),
		fx.WithLogger(func() fxevent.Logger {
			l := &fxevent.SlogLogger{Logger: log}
			l.UseLogLevel(slog.LevelDebug)
			return l
		}),
	)
}
