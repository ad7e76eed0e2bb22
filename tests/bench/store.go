package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/polyphony-memory/polyphony/dispatch"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
)

// fill proposes facts from to n with callers at once and returns how long it
// took.
func fill(ctx context.Context, s *memory.Store, c *corpus.Corpus, from, n, callers int) ([]record.ProposeFact, time.Duration, error) {
	reqs := make([]record.ProposeFact, 0, n-from)
	for i := from; i < n; i++ {
		reqs = append(reqs, c.Proposal(s.Workspace(), i, n))
	}
	next := make(chan record.ProposeFact)
	errs := make(chan error, callers)
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for r := range next {
				if _, err := s.ProposeFact(ctx, r); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for _, r := range reqs {
		next <- r
	}
	close(next)
	wg.Wait()
	took := time.Since(start)
	select {
	case err := <-errs:
		return reqs, took, err
	default:
		return reqs, took, nil
	}
}

func benchStore(ctx context.Context, dir string, sizes []int) error {
	if err := benchCommit(ctx, dir); err != nil {
		return err
	}
	fmt.Println("\n| facts | proposals/s (256 callers) | open ms | bytes a fact | search p50 ms | search p95 ms | preamble p50 ms | preamble p95 ms |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	path := filepath.Join(dir, "grow")
	c := corpus.New(1)
	var asked []record.ProposeFact
	have := 0
	for _, n := range sizes {
		s, err := memory.Open(ctx, path, "bench", memory.Options{})
		if err != nil {
			return err
		}
		reqs, took, err := fill(ctx, s, c, have, n, 256)
		if err != nil {
			return err
		}
		asked = append(asked, reqs...)
		rate := float64(n-have) / took.Seconds()
		have = n
		if err := s.Close(); err != nil {
			return err
		}
		start := time.Now()
		if s, err = memory.Open(ctx, path, "bench", memory.Options{}); err != nil {
			return err
		}
		opened := time.Since(start)
		info, err := os.Stat(filepath.Join(path, memory.FileName))
		if err != nil {
			return err
		}
		search, preamble, err := benchReads(ctx, s, asked)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.0f | %s | %d | %s | %s | %s | %s |\n", n, rate, load.MS(opened), info.Size()/int64(n),
			load.MS(load.Percentile(search, 50)), load.MS(load.Percentile(search, 95)), load.MS(load.Percentile(preamble, 50)), load.MS(load.Percentile(preamble, 95)))
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// benchCommit compares group commit with one commit for each proposal, on the
// same machine and disk.
func benchCommit(ctx context.Context, dir string) error {
	fmt.Println("| commit | callers | proposals/s |\n| --- | --- | --- |")
	const n = 4000
	rates := map[string]float64{}
	for _, m := range []struct {
		name    string
		batch   int
		callers int
		facts   int
	}{{"one each", 1, 1, n / 4}, {"one each", 1, 256, n / 4}, {"group", 0, 256, n}} {
		s, err := memory.Open(ctx, filepath.Join(dir, fmt.Sprintf("commit-%d-%d", m.batch, m.callers)), "bench", memory.Options{MaxBatch: m.batch})
		if err != nil {
			return err
		}
		_, took, err := fill(ctx, s, corpus.New(2), 0, m.facts, m.callers)
		if err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
		rates[m.name] = float64(m.facts) / took.Seconds()
		fmt.Printf("| %s | %d | %.0f |\n", m.name, m.callers, rates[m.name])
	}
	fmt.Printf("\ngroup commit : one each = %.1f\n", rates["group"]/rates["one each"])
	return nil
}

func benchReads(ctx context.Context, s *memory.Store, asked []record.ProposeFact) (search, preamble []time.Duration, err error) {
	rng := rand.New(rand.NewPCG(5, 5))
	engine := recall.NewEngine(nil)
	const rounds = 400
	for i := range rounds + 20 {
		q := corpus.Question(asked[rng.IntN(len(asked))].Content, rng)
		start := time.Now()
		if _, err := engine.Search(ctx, s, record.Search{Caller: record.Caller{Workspace: "bench"}, Query: q, Mode: "keyword"}); err != nil {
			return nil, nil, err
		}
		found := time.Since(start)
		start = time.Now()
		if _, err := dispatch.Assemble(ctx, s, record.Dispatch{Caller: record.Caller{Workspace: "bench", Agent: "agent-1"}, Task: q + " please look into it"}); err != nil {
			return nil, nil, err
		}
		if i >= 20 {
			search, preamble = append(search, found), append(preamble, time.Since(start))
		}
	}
	return search, preamble, nil
}
