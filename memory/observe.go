package memory

import (
	"context"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Observer is told what a store does. Its methods return at once and never get
// stored text.
type Observer interface {
	// Begin is told that a read ("view") or a write (its kind) of a workspace
	// begins, and returns the context for it and what is told its end.
	Begin(ctx context.Context, workspace, what string) (context.Context, func(error))
	// Committed is told of a transaction that wrote: how many operations were in
	// it and how long it took.
	Committed(operations int, took time.Duration)
}

// unobserved tells nobody.
type unobserved struct{}

func (unobserved) Begin(ctx context.Context, _, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (unobserved) Committed(int, time.Duration) {}

// Totals sums the open workspaces.
type Totals struct {
	// Open counts them.
	Open int64
	// Queue is how many writes wait, WALBytes the size of their logs.
	Queue, WALBytes int64
	// Drift counts facts that the lexical index lacks or has too many,
	// EmbeddingQueue facts that wait for a vector.
	Drift, EmbeddingQueue int64
	// OpenConflicts counts pairs of facts that wait for a decision.
	OpenConflicts int64
}

// Totals sums the workspaces that are open now. It opens none.
//
// Errors: StoreCorrupt, Unavailable.
func (w *Workspaces) Totals(ctx context.Context) (Totals, error) {
	var sum Totals
	w.mu.Lock()
	ids := w.open.Keys()
	w.mu.Unlock()
	for _, id := range ids {
		err := w.ifOpen(id, func(s *Store) error {
			sum.Open++
			sum.Queue += int64(len(s.writer.queue))
			sum.WALBytes += fileSize(s.path + "-wal")
			return s.View(ctx, func(v *View) error {
				var drift, waiting, open int64
				err := v.row(`SELECT abs((SELECT docs FROM index_stats WHERE id = 1) - (SELECT count(*) FROM facts)),
					(SELECT count(*) FROM embedding_queue), (SELECT count(*) FROM conflicts WHERE open = 1)`).Scan(&drift, &waiting, &open)
				sum.Drift += drift
				sum.EmbeddingQueue += waiting
				sum.OpenConflicts += open
				return err
			})
		})
		if err != nil && record.ErrorCode(err) != record.NotFound {
			return sum, err
		}
	}
	return sum, nil
}
