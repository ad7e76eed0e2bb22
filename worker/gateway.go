package main

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/gateway/browser"
	"github.com/polyphony-memory/polyphony/gateway/codec"
	"github.com/polyphony-memory/polyphony/gateway/mcp"
	"github.com/polyphony-memory/polyphony/gateway/rpc"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/worker/telemetry"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

// httpGateway is the HTTP server for agents and people.
type httpGateway struct {
	log    *slog.Logger
	tell   *telemetry.Telemetry
	server *gateway.Server
}

func newGateway(lc fx.Lifecycle, stop fx.Shutdowner, c *connection, _ *workers, w *memory.Workspaces, sem semantics, tell *telemetry.Telemetry, cfg Config, log *slog.Logger) (*httpGateway, error) {
	g := &httpGateway{log: log.With("part", "gateway"), tell: tell}
	if cfg.HTTP == httpOff {
		return g, nil
	}
	var err error
	g.server, err = gateway.NewServer(gateway.Options{
		Address: cfg.HTTP, Hosts: splitNames(cfg.HTTPHosts), Tokens: tokens.Open(cfg.Data, nil), Log: g.log,
	})
	if err != nil {
		return nil, err
	}
	g.server.Metrics.Show(tell.Registry)
	lc.Append(fx.StartStopHook(func(ctx context.Context) error {
		g.server.HandleForeign("/codec/", codec.NewHandler(codec.Options{Ring: c.keys, Origins: codecOrigins(cfg, c), Log: g.log}))
		err := g.mount(&gateway.Memory{
			Client: workflows.NewClient(c.client, cfg.Shards), Workspaces: w, Recall: sem.engine,
			Owns: cfg.owns,
		}, c.client)
		if err != nil {
			return err
		}
		return g.start(ctx, stop)
	}, g.server.Stop))
	return g, nil
}

// codecOrigins are the Web UIs whose pages may ask the codec endpoint: those
// that were named, and the embedded engine's own.
func codecOrigins(cfg Config, c *connection) []string {
	origins := splitNames(cfg.CodecOrigins)
	if c.engine != nil && c.engine.UIAddress() != "" {
		origins = append(origins, "http://"+c.engine.UIAddress())
	}
	return origins
}

// mount puts everything that is offered under its path.
func (g *httpGateway) mount(m *gateway.Memory, c client.Client) error {
	g.server.MountHealth(
		gateway.Check{Name: "engine", Run: func(ctx context.Context) error {
			_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
			return workflows.FromTemporal(err)
		}},
		gateway.Check{Name: "files", Run: func(context.Context) error {
			_, err := m.Workspaces.List()
			return err
		}},
	)
	g.server.Metrics.Gauge("polyphony_workspaces", "Workspaces in the data folder.", func() float64 {
		ids, err := m.Workspaces.List()
		if err != nil {
			return math.NaN()
		}
		return float64(len(ids))
	})
	count := func(surface string) func(string, time.Time, error) {
		return func(name string, began time.Time, err error) { g.server.Metrics.Call(surface, name, began, err) }
	}
	agents, err := mcp.NewServer(mcp.Options{Memory: m, Identify: g.server.Gate().Identify, Count: count("mcp"), Tracer: g.tell.Tracer(), Version: buildID(), Log: g.log})
	if err != nil {
		return err
	}
	g.server.Handle("/mcp", mcp.NewHandler(agents))
	g.server.Handle("/rpc", rpc.NewHandler(rpc.Options{Memory: m, Count: count("rpc"), Tracer: g.tell.Tracer(), Log: g.log}))
	pages, err := browser.NewHandler(browser.Options{Memory: m, Tracer: g.tell.Tracer(), Log: g.log})
	if err != nil {
		return err
	}
	g.server.HandlePages("/", pages)
	return nil
}

func (g *httpGateway) start(ctx context.Context, stop fx.Shutdowner) error {
	if err := g.server.Start(ctx); err != nil {
		return err
	}
	go func() {
		// Ends with the server, which the stop hook stops.
		if err := g.server.Wait(); err != nil {
			g.log.Error("the gateway failed", "error", err)
			_ = stop.Shutdown(fx.ExitCode(record.ExitUnavailable))
		}
	}()
	g.log.Info("gateway listens", "address", "http://"+g.address())
	return nil
}

// address is where the gateway listens, empty without one.
func (g *httpGateway) address() string {
	if g.server == nil {
		return ""
	}
	return g.server.Address()
}

func splitNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
