package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// standByInterval is how often a worker that stands by looks whether the other
// one ended.
const standByInterval = 250 * time.Millisecond

// locks are the shards of a data folder that this process alone serves. The
// system lets go of them when the process ends, however it ends.
type locks struct{ held []*flock.Flock }

// takeLocks locks the worker's shards, all of them or none. While another
// worker serves one of them it stands by, and takes over when that one ends.
// It returns nil locks when the context ends before.
func takeLocks(ctx context.Context, cfg Config, log *slog.Logger) (*locks, error) {
	dir := filepath.Join(cfg.Data, "shards")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, record.Wrap(record.Unavailable, err, "the data folder %s cannot be made", cfg.Data)
	}
	tick := time.NewTicker(standByInterval)
	defer tick.Stop()
	for told := false; ; {
		l := &locks{}
		taken, err := l.take(dir, cfg.own)
		if err != nil {
			return nil, record.Wrap(record.Unavailable, errors.Join(err, l.release()), "the shards of the data folder %s cannot be locked", cfg.Data)
		}
		if taken < 0 {
			if told {
				log.Info("taking over: the other worker ended", "folder", cfg.Data)
			}
			return l, nil
		}
		if err := l.release(); err != nil {
			return nil, record.Wrap(record.Unavailable, err, "the shards of the data folder %s cannot be unlocked", cfg.Data)
		}
		if !told {
			log.Warn("standing by: another worker serves this shard; this one serves nothing yet and takes over when that one ends",
				"shard", taken, "folder", cfg.Data, "stop", "Ctrl-C")
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-tick.C:
		}
	}
}

// take locks the shards in their order up to the first that is taken, and
// returns that, or -1. What it locked it holds.
func (l *locks) take(dir string, shards []int) (taken int, err error) {
	for _, shard := range shards {
		f := flock.New(filepath.Join(dir, fmt.Sprintf("%d.lock", shard)), flock.SetPermissions(0o600))
		ok, err := f.TryLock()
		if err != nil {
			return -1, err
		}
		if !ok {
			return shard, nil
		}
		l.held = append(l.held, f)
	}
	return -1, nil
}

func (l *locks) release() error {
	var err error
	for _, f := range l.held {
		err = errors.Join(err, f.Close())
	}
	l.held = nil
	return err
}
