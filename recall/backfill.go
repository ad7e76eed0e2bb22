package recall

import (
	"context"
	"fmt"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// Backfill gives the facts of a page that have no vector one, batch by batch.
// Each batch is committed under the page's key and its own place, so that a
// page that begins again after a crash finds what it had done, and counts it
// once. at is where to begin, the zero value at the page's start; done, after
// each batch, hears how far the page is, which is what a later attempt takes as
// at.
//
// When the page's model is not the one in use, nothing is done, and the result
// names the one in use and counts what has no vector of it.
//
// Errors: InvalidArgument, Unavailable.
func (e *Embedder) Backfill(ctx context.Context, s *memory.Store, req record.BackfillPage, at record.BackfillResult, done func(record.BackfillResult)) (record.BackfillResult, error) {
	m := e.model.get()
	if m == nil {
		return record.BackfillResult{}, nil
	}
	if m.ID() != s.Model() {
		return at, record.Errorf(record.Unavailable, "", "the embedding model is being changed")
	}
	if req.Model != m.ID() {
		missing, err := s.CountWithoutVector(ctx)
		return record.BackfillResult{Model: m.ID(), Missing: missing}, err
	}
	if at.Model != m.ID() {
		at = record.BackfillResult{Model: m.ID(), Next: req.Cursor}
	}
	for at.Report.Considered < req.Limit {
		batch := req
		batch.Cursor, batch.Limit = at.Next, min(embedBatch, req.Limit-at.Report.Considered)
		batch.Key = fmt.Sprintf("%s/%s", req.Key, batch.Cursor)
		facts, err := s.ToBackfill(ctx, batch)
		if err != nil {
			return at, err
		}
		embedded, err := embedFacts(ctx, m, facts)
		if err != nil {
			return at, err
		}
		out, err := s.BackfillPage(ctx, batch, embedded)
		if err != nil {
			return at, err
		}
		at.Report.Add(out.Report)
		if at.Next = out.Next; at.Next == "" {
			break
		}
		done(at)
	}
	return at, nil
}
