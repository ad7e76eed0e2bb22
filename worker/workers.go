package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.uber.org/fx"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// maintenanceSlots is how much of a shard's maintenance runs at once.
const maintenanceSlots = 4

// workers are the Temporal workers of the owned shards: one for the calls that
// somebody waits for and a small one for maintenance, each.
type workers struct{ running []worker.Worker }

func newWorkers(lc fx.Lifecycle, stop fx.Shutdowner, c *connection, w *memory.Workspaces, sem semantics, j *judging, cfg Config, log *slog.Logger) *workers {
	ws := &workers{}
	var all []any
	run := func(queue string, opts worker.Options) error {
		opts.Interceptors = []interceptor.WorkerInterceptor{c.tell.Activities()}
		opts.OnFatalError = func(err error) {
			log.Error("a worker failed", "queue", queue, "error", err)
			_ = stop.Shutdown(fx.ExitCode(record.ExitUnavailable))
		}
		tw := worker.New(c.client, queue, opts)
		workflows.Register(tw)
		for _, a := range all {
			tw.RegisterActivity(a)
		}
		if err := tw.Start(); err != nil {
			return record.Wrap(record.Unavailable, err, "the worker of the queue %s cannot be started", queue)
		}
		ws.running = append(ws.running, tw)
		return nil
	}
	lc.Append(fx.StartStopHook(func(context.Context) error {
		all = []any{
			&activities.Store{Workspaces: w},
			&activities.Reader{Workspaces: w, Recall: sem.engine, Keeper: sem.keeper},
			&activities.Embedding{Workspaces: w, Embedder: sem.embedder, Keeper: sem.keeper},
			// The connection is there once the hooks before have run.
			&activities.Upkeep{Workspaces: w, Runs: workflows.NewClient(c.client, cfg.Shards)},
			&activities.Judge{Workspaces: w, Client: j.client},
		}
		for _, shard := range cfg.own {
			if err := run(workflows.ShardQueue(shard), callOptions()); err != nil {
				return err
			}
			if err := run(workflows.MaintenanceQueue(shard), maintenanceOptions()); err != nil {
				return err
			}
		}
		return nil
	}, ws.stop))
	return ws
}

// stop gives running work its time, in all workers at once.
func (ws *workers) stop() {
	var wg sync.WaitGroup
	for _, tw := range ws.running {
		wg.Go(tw.Stop)
	}
	wg.Wait()
}

func callOptions() worker.Options {
	opts := sharedOptions()
	opts.MaxConcurrentActivityExecutionSize = 8
	opts.MaxConcurrentLocalActivityExecutionSize = 256
	opts.MaxConcurrentWorkflowTaskPollers = 8
	return opts
}

func maintenanceOptions() worker.Options {
	opts := sharedOptions()
	opts.MaxConcurrentActivityExecutionSize = maintenanceSlots
	opts.MaxConcurrentLocalActivityExecutionSize = maintenanceSlots
	return opts
}

func sharedOptions() worker.Options {
	return worker.Options{
		WorkerStopTimeout: workerStopTimeout,
		// Heartbeats carry what the command line shows as progress.
		MaxHeartbeatThrottleInterval: time.Second,
		DeploymentOptions: worker.DeploymentOptions{
			// Reported only: two versions cannot own one file side by side, so
			// runs are never pinned to one.
			Version: worker.WorkerDeploymentVersion{DeploymentName: "polyphony", BuildID: buildID()},
		},
	}
}
