package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
)

// readersRow is what sixteen readers at once get, idle or during an import.
type readersRow struct {
	Facts int     `json:"facts"`
	While string  `json:"while"`
	Rate  float64 `json:"searches_a_second"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
}

const readers = 16

// benchReaders lets sixteen readers search a workspace, first alone, then
// while facts are imported page after page.
func benchReaders(ctx context.Context, dir string, n int, opts memory.Options) ([]readersRow, error) {
	opts.Embedding = plantedModel
	if err := fillVectors(ctx, dir, n, opts, &sizeRow{}); err != nil {
		return nil, err
	}
	s, err := memory.Open(ctx, dir, "bench", opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	asked, err := questions(ctx, s, n, 400)
	if err != nil {
		return nil, err
	}
	rows := []readersRow{}
	for _, while := range []string{"alone", "during an import"} {
		importing, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			if while == "alone" {
				ended <- nil
				return
			}
			ended <- importUntil(importing, s, corpus.New(11))
		}()
		row, err := readAll(ctx, s, asked)
		stop()
		if err := errors.Join(err, <-ended); err != nil {
			return nil, err
		}
		row.Facts, row.While = n, while
		rows = append(rows, row)
	}
	return rows, s.Close()
}

// importUntil imports pages of a hundred facts, as an import workflow does,
// until the context ends.
func importUntil(ctx context.Context, s *memory.Store, c *corpus.Corpus) error {
	const page, n = 100, 1 << 20
	for from := 0; ctx.Err() == nil; from += page {
		req := record.ImportFacts{Caller: record.Caller{Workspace: s.Workspace()}}
		for i := from; i < from+page; i++ {
			p := c.Proposal(s.Workspace(), i, n)
			p.Key = ""
			req.Items = append(req.Items, p)
		}
		if _, err := s.ImportFactsPage(context.WithoutCancel(ctx), req); err != nil {
			return err
		}
	}
	return nil
}

func readAll(ctx context.Context, s *memory.Store, asked []asking) (readersRow, error) {
	const each = 100
	var mu sync.Mutex
	var times []time.Duration
	var failed error
	var wg sync.WaitGroup
	start := time.Now()
	for r := range readers {
		wg.Go(func() {
			// A model of its own: it holds the vector of the next question.
			model := newPlanted()
			engine := recall.NewEngine(model)
			for i := range each {
				q := asked[(r*each+i)%len(asked)]
				model.next = model.of(q.seq, 1)
				one := time.Now()
				_, err := engine.Search(ctx, s, record.Search{Caller: record.Caller{Workspace: "bench"}, Query: q.text})
				mu.Lock()
				times, failed = append(times, time.Since(one)), errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	return readersRow{Rate: float64(len(times)) / took.Seconds(), P50: inMS(load.Percentile(times, 50)), P95: inMS(load.Percentile(times, 95))}, failed
}
