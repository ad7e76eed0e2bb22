//go:build !cluster

package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/worker/engine"
)

// startEmbedded starts the embedded engine on its file in the data folder.
func startEmbedded(ctx context.Context, cfg Config, log *slog.Logger) (embedded, error) {
	e, err := engine.Start(ctx, engine.Config{
		Dir: filepath.Join(cfg.Data, "engine"), Port: cfg.Port, UIPort: cfg.UIPort, Logger: log,
	})
	if err != nil {
		return nil, record.Wrap(record.Unavailable, err, "the embedded engine cannot be started")
	}
	return e, nil
}
