package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"
	"go.uber.org/fx"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

// httpGateway is the HTTP server for agents and people.
type httpGateway struct {
	cfg    Config
	log    *slog.Logger
	server *gateway.Server
}

func newGateway(lc fx.Lifecycle, stop fx.Shutdowner, c *connection, _ *workers, w *memory.Workspaces, r *recall.Engine, cfg Config, log *slog.Logger) (*httpGateway, error) {
	g := &httpGateway{cfg: cfg, log: log}
	if cfg.HTTP == httpOff {
		return g, nil
	}
	var err error
	g.server, err = gateway.NewServer(gateway.Options{
		Address: cfg.HTTP, Hosts: splitNames(cfg.HTTPHosts), Tokens: tokens.Open(cfg.Data, nil), Log: log.With("part", "gateway"),
	})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StartStopHook(func(ctx context.Context) error {
		g.mount(&gateway.Memory{
			Client: workflows.NewClient(c.client, cfg.Shards), Workspaces: w, Recall: r,
			Owns: func(workspace string) bool { return slices.Contains(cfg.own, workflows.Shard(workspace, cfg.Shards)) },
		}, c.client)
		return g.start(ctx, stop)
	}, g.server.Stop))
	return g, nil
}

// mount puts everything that is offered under its path.
func (g *httpGateway) mount(_ *gateway.Memory, c client.Client) {
	g.server.MountHealth(
		gateway.Check{Name: "engine", Run: func(ctx context.Context) error {
			_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
			return workflows.FromTemporal(err)
		}},
	)
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
