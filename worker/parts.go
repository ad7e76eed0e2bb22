package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.uber.org/fx"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/fault"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/recall/embedding"
	"github.com/polyphony-memory/polyphony/worker/telemetry"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

// embedded is an engine inside this process.
type embedded interface {
	Address() string
	Namespace() string
	UIAddress() string
	// Failed delivers at most one error, after which the engine is of no use.
	Failed() <-chan error
	Stop(context.Context) error
}

// newKeys opens the keys that seal what the engine stores.
func newKeys(cfg Config) (*seal.Ring, error) {
	return locate.Keys(cfg.KeyFile, cfg.Data, cfg.lookup)
}

// newTelemetry starts what tells operators of the worker.
func newTelemetry(lc fx.Lifecycle, cfg Config, log *slog.Logger) (*telemetry.Telemetry, error) {
	t, err := telemetry.Start(context.Background(), telemetry.Options{Lookup: cfg.lookup, Version: buildID(), Log: log})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(t.Stop))
	return t, nil
}

// connection is the engine that the worker works for: the embedded one, or a
// cluster.
type connection struct {
	cfg    Config
	log    *slog.Logger
	keys   *seal.Ring
	tell   *telemetry.Telemetry
	engine embedded
	client client.Client
}

func newConnection(lc fx.Lifecycle, stop fx.Shutdowner, keys *seal.Ring, tell *telemetry.Telemetry, cfg Config, log *slog.Logger) *connection {
	c := &connection{cfg: cfg, log: log, keys: keys, tell: tell}
	lc.Append(fx.StartStopHook(func(ctx context.Context) error { return c.start(ctx, stop) }, c.stop))
	return c
}

func (c *connection) start(ctx context.Context, stop fx.Shutdowner) error {
	opts, _, err := c.options(ctx, stop)
	if err != nil {
		return err
	}
	opts.Logger = quiet(c.cfg, c.log)
	seal.Configure(&opts, c.keys)
	if err := c.tell.Configure(&opts); err != nil {
		return err
	}
	if c.client, err = client.DialContext(ctx, opts); err != nil {
		return record.Wrap(record.Unavailable, err, "the engine at %s cannot be reached", opts.HostPort)
	}
	if c.engine == nil {
		c.addSearchAttributes(ctx, cmp.Or(opts.Namespace, client.DefaultNamespace))
	}
	return nil
}

// options starts the embedded engine unless the environment names a cluster.
func (c *connection) options(ctx context.Context, stop fx.Shutdowner) (client.Options, int, error) {
	if locate.External(c.cfg.lookup) {
		return locate.Options(c.cfg.Data, c.cfg.lookup)
	}
	e, err := startEmbedded(ctx, c.cfg, c.log)
	if err != nil {
		return client.Options{}, 0, err
	}
	c.engine = e
	go func() {
		// Failed is closed or silent after Stop, which this goroutine's owner
		// calls; it ends with the process at the latest.
		if err, ok := <-e.Failed(); ok && err != nil {
			c.log.Error("the embedded engine failed", "error", err)
			_ = stop.Shutdown(fx.ExitCode(record.ExitUnavailable))
		}
	}()
	return client.Options{HostPort: e.Address(), Namespace: e.Namespace()}, c.cfg.Shards, nil
}

// addSearchAttributes registers ours with a cluster, where an operator may
// have done it, or may have to.
func (c *connection) addSearchAttributes(ctx context.Context, namespace string) {
	_, err := c.client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: workflows.SearchAttributes()})
	if err != nil {
		c.log.Warn("the search attributes could not be registered; an operator has to do it once", "error", err)
	}
}

func (c *connection) stop(ctx context.Context) error {
	if c.client != nil {
		c.client.Close()
	}
	if c.engine != nil {
		return c.engine.Stop(ctx)
	}
	return nil
}

// quiet is the log of Temporal's library, which tells of every refusal: only
// its warnings matter, and those at debug level.
func quiet(cfg Config, log *slog.Logger) sdklog.Logger {
	if cfg.level <= slog.LevelDebug {
		return sdklog.NewStructuredLogger(log)
	}
	return sdklog.NewStructuredLogger(slog.New(atLeast{log.Handler(), slog.LevelError}))
}

// atLeast is a handler that drops what is below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(a), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}

// semantics is what works with the embedding model. The model may come, change
// and go while the worker runs.
type semantics struct {
	keeper   *embedding.Keeper
	embedder *recall.Embedder
	engine   *recall.Engine
}

// newSemantics opens the model when one is installed. A model that somebody
// named must open; one that is merely there and does not is left out, with a
// warning, since the other voices answer without it.
func newSemantics(lc fx.Lifecycle, tell *telemetry.Telemetry, cfg Config, log *slog.Logger) (semantics, error) {
	keeper := embedding.NewKeeper(cfg.Data, cfg.Model, embedding.Installer{Get: newDownload(), Hub: cfg.ModelHub})
	if err := keeper.Load(); err != nil {
		if cfg.Model != "" {
			return semantics{}, err
		}
		log.Warn("the embedding model cannot be used; search goes on without its voice", "error", err)
	}
	lc.Append(fx.StopHook(keeper.Close))
	m, id := inUse(keeper.Model())
	logModel(log, id)
	return semantics{keeper, recall.NewEmbedder(m, log), recall.NewEngine(m).Observed(tell.Voice)}, nil
}

// inUse returns a model as recall knows it, and its id; nil and "" for none.
func inUse(m *embedding.Model) (recall.Model, string) {
	if m == nil {
		return nil, ""
	}
	return m, m.ID()
}

func logModel(log *slog.Logger, id string) {
	if id == "" {
		log.Info("no embedding model: facts get no vectors", "install", "starter model install")
		return
	}
	log.Info("embedding model", "id", id)
}

func newWorkspaces(lc fx.Lifecycle, sem semantics, j *judging, tell *telemetry.Telemetry, cfg Config, log *slog.Logger) (*memory.Workspaces, error) {
	_, id := inUse(sem.keeper.Model())
	opts := memory.Options{
		Now: fault.Clock(), Log: log, VectorIndex: cfg.index, Embedding: id, Embed: sem.embedder.EmbedText,
		OnQueued: sem.embedder.Queued, Observer: tell, Owns: cfg.owns,
	}
	if j.client != nil {
		opts.OnSuspected = j.suspected
	}
	w, err := memory.NewWorkspaces(cfg.Data, opts)
	if err == nil {
		err = tell.Watch(w)
	}
	if err != nil {
		return nil, err
	}
	strays, err := w.Strays()
	if err != nil {
		return nil, err
	}
	if len(strays) > 0 {
		log.Warn("workspaces lie here whose shards this worker does not serve; move them to the worker that does", "number", len(strays), "first", strays[0], "shard", workflows.Shard(strays[0], cfg.Shards))
	}
	lc.Append(fx.StopHook(w.Close))
	// What an earlier run, or an earlier model, left in the queues of workspaces
	// that nobody opens is embedded too.
	queueAll := func() error {
		ids, err := w.List()
		for _, id := range ids {
			sem.embedder.Queued(id)
		}
		return err
	}
	sem.keeper.OnChange(func(m *embedding.Model) error {
		model, id := inUse(m)
		logModel(log, id)
		sem.engine.UseModel(model)
		sem.embedder.UseModel(model)
		return errors.Join(w.UseModel(id), queueAll())
	})
	lc.Append(fx.StartStopHook(func() error {
		sem.embedder.Start(w)
		return queueAll()
	}, sem.embedder.Stop))
	return w, nil
}

// buildID names the program's version: the revision it was built from.
func buildID() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unversioned"
}

// announcement tells callers on this machine where the worker is.
type announcement struct{}

func newAnnouncement(lc fx.Lifecycle, c *connection, _ *workers, g *httpGateway, cfg Config, log *slog.Logger) *announcement {
	lc.Append(fx.StartStopHook(func(context.Context) error {
		log.Info("workspaces", "folder", filepath.Join(cfg.Data, "workspaces"), "shards", cfg.Shards, "serving", len(cfg.own))
		if c.engine == nil {
			log.Info("ready", "engine", "the cluster that the environment names")
			return nil
		}
		w := locate.Worker{Address: c.engine.Address(), Namespace: c.engine.Namespace(), UI: c.engine.UIAddress(), HTTP: g.address(), Shards: cfg.Shards, KeyFile: c.keys.Path(), PID: os.Getpid(), StartedAt: record.At(nowUTC())}
		if err := locate.Announce(cfg.Data, w); err != nil {
			return record.Wrap(record.Unavailable, err, "the worker cannot be announced in the data folder")
		}
		log.Info("engine listens", "address", w.Address, "namespace", w.Namespace, "file", filepath.Join(cfg.Data, "engine"))
		if w.UI != "" {
			log.Info("Temporal's Web UI listens", "address", w.UI)
		}
		log.Info("ready", "stop", "Ctrl-C")
		return nil
	}, func(context.Context) error { return locate.Withdraw(cfg.Data, os.Getpid()) }))
	return &announcement{}
}
