// Package load measures how many calls a running polyphony answers and how
// fast, through the typed client that other programs use. It knows workers and
// their engine only as what answers, and never asserts a time.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/workflows"
)

const (
	// workspaces is how many the callers share, evenly.
	workspaces = 16
	// facts is what a workspace holds at first; page is how many come in one call.
	facts, page = 1000, 100
	// A window begins after a fifth of its length, for caches and pollers.
	warmUp = 5
)

// Row is what callers at once measured of one operation.
type Row struct {
	Operation string
	Callers   int
	// Calls is how many were answered within the window.
	Calls int
	// Rate is in calls a second.
	Rate          float64
	P50, P95, P99 time.Duration
}

// Run fills the workspaces and has 1, 8 and 64 callers propose, dispatch and
// search by words, each for a window and without rest.
func Run(ctx context.Context, client *workflows.Client, window time.Duration) ([]Row, error) {
	asked, err := fill(ctx, client)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, o := range []struct {
		name string
		call func(ctx context.Context, caller record.Caller, p record.ProposeFact, question string) error
	}{
		{"propose", func(ctx context.Context, caller record.Caller, p record.ProposeFact, _ string) error {
			p.Caller, p.Key = caller, uuid.NewString()
			out, err := client.ProposeFact(ctx, p)
			if err == nil && out.FactID == "" {
				err = errors.New("a proposal has no fact")
			}
			return err
		}},
		{"dispatch", func(ctx context.Context, caller record.Caller, _ record.ProposeFact, question string) error {
			out, err := client.AssemblePreamble(ctx, record.Dispatch{Caller: caller, Task: question + " please look into it"})
			if err == nil && len(out.FactIDs) == 0 {
				err = errors.New("a preamble holds no fact")
			}
			return err
		}},
		{"search", func(ctx context.Context, caller record.Caller, _ record.ProposeFact, question string) error {
			out, err := client.SearchMemory(ctx, record.Search{Caller: caller, Query: question, Mode: "keyword"})
			if err == nil && len(out.Facts) == 0 {
				err = errors.New("a search finds nothing")
			}
			return err
		}},
	} {
		for _, n := range []int{1, 8, 64} {
			row, err := measure(ctx, n, window, func(ctx context.Context, caller int, words *corpus.Corpus, rng *rand.Rand) error {
				ws := workspace(caller)
				who := record.Caller{Workspace: ws, Agent: fmt.Sprintf("agent-%d", caller)}
				return o.call(ctx, who, words.Proposal(ws, rng.IntN(facts), facts), corpus.Question(asked[ws][rng.IntN(facts)], rng))
			})
			if err != nil {
				return nil, fmt.Errorf("%s with %d callers: %w", o.name, n, err)
			}
			row.Operation = o.name
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func workspace(caller int) string { return fmt.Sprintf("load-%d", caller%workspaces) }

// fill imports what the workspaces hold at first and returns the statements of
// each.
func fill(ctx context.Context, client *workflows.Client) (map[string][]string, error) {
	asked := map[string][]string{}
	for w := range workspaces {
		ws := workspace(w)
		var err error
		asked[ws], err = Import(ctx, client, record.Caller{Workspace: ws, Agent: "importer"}, fmt.Sprintf("%064x", w+1), corpus.New(uint64(100+w)), facts)
		if err != nil {
			return nil, err
		}
	}
	return asked, nil
}

// Import brings n statements, a multiple of a hundred, into the caller's
// workspace as what a source holds, a hundred to a call, and returns them.
func Import(ctx context.Context, client *workflows.Client, caller record.Caller, source string, words *corpus.Corpus, n int) ([]string, error) {
	in, _, err := client.BeginImport(ctx, caller, source)
	if err != nil {
		return nil, err
	}
	var said []string
	for p := range n / page {
		items := make([]record.ProposeFact, page)
		for i := range items {
			items[i] = words.Proposal(caller.Workspace, p*page+i, n)
			items[i].Caller = record.Caller{}
			said = append(said, items[i].Content)
		}
		if _, err := in.Page(ctx, workflows.ImportPage{Page: p, Items: items}); err != nil {
			return nil, err
		}
	}
	_, err = in.Finish(ctx)
	return said, err
}

// measure has callers call without rest for a window and what comes before it.
// The first error ends all of them.
func measure(ctx context.Context, callers int, window time.Duration, call func(context.Context, int, *corpus.Corpus, *rand.Rand) error) (Row, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := time.Now().Add(window / warmUp)
	to := from.Add(window)
	took := make([][]time.Duration, callers)
	var wg sync.WaitGroup
	for i := range callers {
		words, rng := corpus.New(uint64(1000*callers+i)), rand.New(rand.NewPCG(uint64(callers), uint64(i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if began.After(to) {
					return
				}
				if err := call(ctx, i, words, rng); err != nil {
					cancel(err)
					return
				}
				// A call counts where it ends, so that the rate is of calls answered.
				if ended := time.Now(); ended.After(from) && ended.Before(to) {
					took[i] = append(took[i], ended.Sub(began))
				}
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return Row{}, err
	}
	all := slices.Concat(took...)
	if len(all) == 0 {
		return Row{}, errors.New("no call was answered within the window")
	}
	return Row{
		Callers: callers, Calls: len(all), Rate: float64(len(all)) / window.Seconds(),
		P50: Percentile(all, 50), P95: Percentile(all, 95), P99: Percentile(all, 99),
	}, nil
}

// Percentile returns the p-th percentile, 0 to 100, of the samples; 0 of none.
func Percentile(samples []time.Duration, p float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	return s[min(len(s)-1, int(p/100*float64(len(s))))]
}

// MS writes a duration in milliseconds with one digit behind the point.
func MS(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// Print writes the rows as a table.
func Print(w io.Writer, rows []Row) error {
	text := "| operation | callers | calls | calls/s | p50 ms | p95 ms | p99 ms |\n| --- | --- | --- | --- | --- | --- | --- |\n"
	for _, r := range rows {
		text += fmt.Sprintf("| %s | %d | %d | %.0f | %s | %s | %s |\n", r.Operation, r.Callers, r.Calls, r.Rate, MS(r.P50), MS(r.P95), MS(r.P99))
	}
	_, err := io.WriteString(w, text)
	return err
}
