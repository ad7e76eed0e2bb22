package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/polyphony-memory/polyphony/activities/judge"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// referRetry is how long the judging waits after the engine refused a start.
const referRetry = 5 * time.Second

// judging starts the runs that ask the judge, after the commits that opened
// suspected pairs and never inside one. What a crash leaves is found when the
// worker starts again, since the pairs are in the files. The client is nil when
// no judge is configured, and then it does nothing.
type judging struct {
	client *judge.Client
	log    *slog.Logger
	wake   chan struct{}

	mu      sync.Mutex
	waiting []string
}

func newJudging(lc fx.Lifecycle, cfg Config, log *slog.Logger) (*judging, error) {
	j := &judging{log: log, wake: make(chan struct{}, 1)}
	if cfg.Judge.URL == "" {
		return j, nil
	}
	c, err := judge.New(cfg.Judge)
	if err != nil {
		return nil, record.Wrap(record.InvalidArgument, err, "%v", err)
	}
	j.client = c
	lc.Append(fx.StopHook(c.Close))
	log.Info("a judge is asked about suspected pairs; their statements are sent to it", "url", cfg.Judge.URL, "model", c.Model())
	return j, nil
}

// suspected notes a workspace with suspected pairs. It returns at once.
func (j *judging) suspected(workspace string) {
	j.mu.Lock()
	if !slices.Contains(j.waiting, workspace) {
		j.waiting = append(j.waiting, workspace)
	}
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *judging) next() (string, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		return "", false
	}
	w := j.waiting[0]
	j.waiting = j.waiting[1:]
	return w, true
}

// referrals is the running part of judging.
type referrals struct{}

// newReferrals runs the judging between the start of the workers and their
// stop.
func newReferrals(lc fx.Lifecycle, j *judging, c *connection, w *memory.Workspaces, _ *workers, cfg Config) *referrals {
	if j.client == nil {
		return &referrals{}
	}
	var cancel context.CancelFunc
	done := make(chan struct{})
	lc.Append(fx.StartStopHook(func() error {
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		client := workflows.NewClient(c.client, cfg.Shards)
		go func() {
			defer close(done)
			j.resume(ctx, w)
			j.run(ctx, client)
		}()
		return nil
	}, func() {
		cancel()
		<-done
	}))
	return &referrals{}
}

// resume notes the workspaces that an earlier run left with unjudged pairs.
func (j *judging) resume(ctx context.Context, w *memory.Workspaces) {
	ids, err := w.List()
	if err != nil {
		j.log.Warn("the workspaces could not be listed for the judge", "error", err)
		return
	}
	for _, id := range ids {
		err := w.Use(ctx, id, func(s *memory.Store) error {
			pairs, err := s.Suspicions(ctx, record.ListSuspicions{Limit: 1})
			if err == nil && len(pairs.ConflictIDs) > 0 {
				j.suspected(id)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			j.log.Warn("a workspace could not be read for the judge", "workspace", id, "error", err)
		}
	}
}

func (j *judging) run(ctx context.Context, c *workflows.Client) {
	for {
		workspace, ok := j.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-j.wake:
			}
			continue
		}
		if err := c.ReferSuspicions(ctx, record.Caller{Workspace: workspace}); err != nil && ctx.Err() == nil {
			j.log.Warn("suspected pairs wait for the judge", "workspace", workspace, "error", err)
			j.suspected(workspace)
			select {
			case <-ctx.Done():
			case <-time.After(referRetry):
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}
