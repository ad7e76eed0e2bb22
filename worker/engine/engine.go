package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/temporal"

	"github.com/polyphony-memory/polyphony/workflows"
)

// Defaults of [Config].
const (
	DefaultHost      = "127.0.0.1"
	DefaultPort      = 7233
	DefaultNamespace = "default"
	DefaultRetention = 30 * 24 * time.Hour
)

// AnyPort asks for a free port where zero means something else.
const AnyPort = -1

// Errors that a caller may want to tell apart, with [errors.Is].
var (
	// ErrInUse says that another engine runs on the same folder.
	ErrInUse = errors.New("engine: the folder is in use by another engine")
	// ErrPortTaken says that a port asked for by number is taken.
	ErrPortTaken = errors.New("engine: the port is taken")
	// ErrForeignFile says that temporal.db is not an engine file of this version.
	ErrForeignFile = errors.New("engine: not an engine file of this version")
)

const (
	// startLimit bounds a start whose context has no deadline. A start takes under a second on an idle machine.
	startLimit = 90 * time.Second
	// startAttempts is how often free ports are chosen again after another program took one in between.
	startAttempts = 4
)

// Config says where the engine runs and what its namespace looks like. Only Dir is required.
type Config struct {
	// Dir is the folder of the engine's file, made when missing.
	Dir string
	// Database is where the engine keeps its runs in place of a file; Dir is then of no use.
	Database *Database
	// Host is the loopback address to listen on; default [DefaultHost]. Anything else is refused: the engine
	// asks nobody who they are.
	Host string
	// Port of the frontend. Zero takes [DefaultPort], or a free one when that is taken; [AnyPort] a free one;
	// a port by number is that one or [ErrPortTaken].
	Port int
	// UIPort of Temporal's Web UI. Zero serves none, [AnyPort] takes a free one, a port by number is that one or
	// [ErrPortTaken].
	UIPort int
	// Namespace that is created when it does not exist; default [DefaultNamespace].
	Namespace string
	// Retention of closed workflows in a namespace that is created; default [DefaultRetention]. A namespace that
	// exists keeps its own.
	Retention time.Duration
	// SearchAttributes of the namespace; nil means [workflows.SearchAttributes]. They are stored in clear text: ids and names belong in them, never what a
	// memory says. Those that an existing namespace lacks are
	// added; none is ever removed.
	SearchAttributes map[string]enumspb.IndexedValueType
	// Logger takes the server's log; default [slog.Default].
	Logger *slog.Logger
	// LogLevel is the least level that reaches Logger; nil means [slog.LevelWarn].
	LogLevel slog.Leveler

	// The rest varies in this package's own tests and measurements only.
	synchronous string
	dynamic     dynamicconfig.StaticClient
}

// Database is a database server that holds an engine's runs. Its schemas must be there, and the program must have
// linked the server's plug-in for it.
type Database struct {
	// Main holds the runs, Visibility what they are found by.
	Main, Visibility *config.SQL
	// HistoryShards is the number of the server's own shards, fixed when the database is first used.
	HistoryShards int32
}

// withDefaults returns c completed, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Database == nil {
		if c.Dir == "" {
			return c, errors.New("engine: no folder given")
		}
		dir, err := filepath.Abs(c.Dir)
		if err != nil {
			return c, fmt.Errorf("engine: folder: %w", err)
		}
		c.Dir = dir
	}
	switch c.Host {
	case "", "localhost":
		c.Host = DefaultHost
	}
	ip := net.ParseIP(c.Host)
	if ip == nil || !ip.IsLoopback() {
		return c, fmt.Errorf("engine: host %q is not a loopback address", c.Host)
	}
	c.Host = ip.String()
	for name, port := range map[string]int{"port": c.Port, "UI port": c.UIPort} {
		if port < AnyPort || port > 65535 {
			return c, fmt.Errorf("engine: %s %d is out of range", name, port)
		}
	}
	if c.Port > 0 && c.Port == c.UIPort {
		return c, fmt.Errorf("engine: port %d is asked for twice", c.Port)
	}
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.Retention < 0 {
		return c, fmt.Errorf("engine: retention %v is negative", c.Retention)
	}
	if c.SearchAttributes == nil {
		c.SearchAttributes = workflows.SearchAttributes()
	} else {
		c.SearchAttributes = maps.Clone(c.SearchAttributes)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.LogLevel == nil {
		c.LogLevel = slog.LevelWarn
	}
	if c.synchronous == "" {
		c.synchronous = synchronous
	}
	return c, nil
}

// Engine is a running Temporal server. Its methods may be called from any goroutine.
type Engine struct {
	address   string
	namespace string
	uiAddress string

	server temporal.Server
	ui     *webUI
	file   *file // nil on a database server.
	failed *failure

	stopOnce sync.Once
	stopped  chan struct{}
	stopErr  error
}

// Start runs an engine and returns when its frontend answers for the namespace. When ctx ends first, Start returns
// at once, what had been started is stopped behind it and the folder is given back after that.
func Start(ctx context.Context, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	type outcome struct {
		engine *Engine
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		e, err := start(ctx, cfg)
		done <- outcome{e, err}
	}()
	select {
	case o := <-done:
		cancel()
		return o.engine, o.err
	case <-ctx.Done():
		go func() {
			defer cancel()
			if o := <-done; o.engine != nil {
				_ = o.engine.Stop(context.WithoutCancel(ctx))
			}
		}()
		return nil, fmt.Errorf("engine: start: %w", context.Cause(ctx))
	}
}

// starting holds one token: engines of one process choose their ports one after the other.
var starting = make(chan struct{}, 1)

func start(ctx context.Context, cfg Config) (_ *Engine, err error) {
	select {
	case starting <- struct{}{}:
		defer func() { <-starting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	var f *file
	database := cfg.Database
	if database == nil {
		if f, err = openFile(ctx, cfg); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, f.close())
			}
		}()
		if err := f.createNamespace(cfg); err != nil {
			return nil, err
		}
		database = f.database()
	}

	var uiListener net.Listener
	if cfg.UIPort != 0 {
		uiListener, err = listen(ctx, cfg.Host, max(cfg.UIPort, 0))
		if err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = uiListener.Close()
			}
		}()
	}

	e := &Engine{namespace: cfg.Namespace, file: f, stopped: make(chan struct{})}
	if err := e.startServer(ctx, cfg, database); err != nil {
		return nil, err
	}
	if err = e.await(ctx, cfg); err == nil && uiListener != nil {
		e.ui, err = serveUI(uiListener, e.address, cfg)
	}
	e.failed.started(err == nil)
	if err != nil {
		// The file is closed by Stop, in its turn; the deferred close finds nothing left to do.
		_ = e.Stop(context.WithoutCancel(ctx))
		return nil, err
	}
	if e.ui != nil {
		e.uiAddress = "http://" + uiListener.Addr().String()
	}
	return e, nil
}

// startServer builds and starts the server, with other free ports when one was taken between choosing and binding.
func (e *Engine) startServer(ctx context.Context, cfg Config, database *Database) error {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		ports, err := choosePorts(ctx, cfg.Host, cfg.Port)
		if err != nil {
			return err
		}
		failed := newFailure()
		failed.starting.Store(true)
		logger := newServerLog(cfg.Logger, cfg.LogLevel, failed)
		var server temporal.Server
		err = guard(failed, func() (err error) {
			server, err = newServer(cfg, ports, database, logger)
			return err
		})
		if err == nil {
			err = guard(failed, server.Start)
		}
		if err == nil {
			e.server, e.failed = server, failed
			e.address = net.JoinHostPort(cfg.Host, strconv.Itoa(ports.frontend))
			return nil
		}
		final := !errors.Is(err, syscall.EADDRINUSE) || attempt == startAttempts
		failed.started(!final)
		failed.quiet()
		if server != nil {
			_ = guard(failed, server.Stop)
		}
		if final {
			return fmt.Errorf("engine: start the server: %w", err)
		}
	}
}

// Address returns host and port of the frontend, for a Temporal client to dial.
func (e *Engine) Address() string { return e.address }

// Namespace returns the namespace that the engine was started with.
func (e *Engine) Namespace() string { return e.namespace }

// UIAddress returns the URL of the Web UI, or "" when none was asked for.
func (e *Engine) UIAddress() string { return e.uiAddress }

// Failed delivers an error when the server meets something that it would have ended its process for. The engine is
// then of no more use: stop it. At most one error is delivered, and none because of Stop.
func (e *Engine) Failed() <-chan error { return e.failed.ch }

// Stop stops the Web UI and the server, folds the log of the file into it and gives the folder back. It returns when
// that is done or ctx ends, whichever is first; what is left then is finished behind it. Stopping again waits for
// the same end and returns the same error. It takes about a second: the server drains its own long polls. Stop the
// workers and close the clients first.
func (e *Engine) Stop(ctx context.Context) error {
	e.stopOnce.Do(func() {
		go func() {
			defer close(e.stopped)
			e.failed.quiet()
			var errs []error
			if e.ui != nil {
				errs = append(errs, e.ui.stop(ctx))
			}
			errs = append(errs, guard(e.failed, e.server.Stop))
			if e.file != nil {
				errs = append(errs, e.file.close())
			}
			e.stopErr = errors.Join(errs...)
		}()
	})
	select {
	case <-e.stopped:
		return e.stopErr
	default:
	}
	select {
	case <-e.stopped:
		return e.stopErr
	case <-ctx.Done():
		return fmt.Errorf("engine: stop: %w", context.Cause(ctx))
	}
}
