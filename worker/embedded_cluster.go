//go:build cluster

package main

import (
	"context"
	"log/slog"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// startEmbedded says that this build, for workers of a cluster, has none.
func startEmbedded(context.Context, Config, *slog.Logger) (embedded, error) {
	return nil, record.Errorf(record.InvalidArgument, "TEMPORAL_ADDRESS", "this worker was built for a cluster and has no engine of its own; name the cluster's address")
}
