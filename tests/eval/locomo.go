package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/recall/embedding"
)

// row is one line of the result.
type row struct {
	Mode      string  `json:"mode"`
	Category  string  `json:"category"`
	Questions int     `json:"questions"`
	Recall5   float64 `json:"recall@5"`
	Recall10  float64 `json:"recall@10"`
	Recall20  float64 `json:"recall@20"`
	MRR       float64 `json:"mrr"`
}

// tally sums one row.
type tally struct {
	n                     int
	r5, r10, r20, reverse float64
}

func (t *tally) add(found []string, evidence []string) {
	recallAt := func(k int) float64 {
		hits := 0
		for _, e := range evidence {
			if slices.Contains(found[:min(k, len(found))], e) {
				hits++
			}
		}
		return float64(hits) / float64(len(evidence))
	}
	t.n++
	t.r5 += recallAt(5)
	t.r10 += recallAt(10)
	t.r20 += recallAt(20)
	for i, id := range found {
		if slices.Contains(evidence, id) {
			t.reverse += 1 / float64(i+1)
			break
		}
	}
}

func (t *tally) row(mode, category string) row {
	n := float64(max(1, t.n))
	return row{mode, category, t.n, t.r5 / n, t.r10 / n, t.r20 / n, t.reverse / n}
}

func evalLocomo(ctx context.Context, path string, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("locomo", flag.ContinueOnError)
	kind := flags.String("facts", "turns", "turns, or observations")
	folder := flags.String("model", "", "folder of the embedding model; without one the semantic voice is silent")
	tidy := flags.Bool("consolidated", false, "consolidate each conversation before the questions")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conversations, err := readConversations(path)
	if err != nil {
		return err
	}
	var model recall.Model
	if *folder != "" {
		m, err := embedding.Open(*folder, embedding.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }()
		model = m
	}
	tallies := map[string]map[string]*tally{}
	var modes []string
	for _, c := range conversations {
		fmt.Fprintf(stderr, "%s: %d questions\n", c.SampleID, len(c.QA))
		if err := evalConversation(ctx, c, *kind, *tidy, model, tallies, &modes); err != nil {
			return fmt.Errorf("%s: %w", c.SampleID, err)
		}
	}
	var rows []row
	for _, mode := range modes {
		for _, category := range []string{"1", "2", "3", "4", "1-4", "5"} {
			if t := tallies[mode][category]; t != nil {
				rows = append(rows, t.row(mode, category))
			}
		}
	}
	if *asJSON {
		return json.NewEncoder(stdout).Encode(map[string]any{"rows": rows})
	}
	w := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "mode\tcategory\tquestions\trecall@5\trecall@10\trecall@20\tMRR")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\n", r.Mode, r.Category, r.Questions, r.Recall5, r.Recall10, r.Recall20, r.MRR)
	}
	return w.Flush()
}

// load puts a conversation's facts into a fresh workspace whose time is the
// conversation's own last.
func load(ctx context.Context, c conversation, kind string, model recall.Model, dir string) (*memory.Store, error) {
	facts, last, err := c.proposals(kind)
	if err != nil {
		return nil, err
	}
	s, err := memory.Open(ctx, filepath.Join(dir, "eval"), "eval", memory.Options{Now: func() time.Time { return last }, Embedding: modelID(model)})
	if err != nil {
		return nil, err
	}
	for len(facts) > 0 {
		n := min(len(facts), 500)
		page := record.ImportFacts{Caller: record.Caller{Workspace: "eval"}, Items: facts[:n]}
		if report, err := s.ImportFactsPage(ctx, page); err != nil || len(report.Failed) > 0 {
			return s, fmt.Errorf("import: %v %w", report.Failed, err)
		}
		facts = facts[n:]
	}
	for model != nil {
		waiting, err := s.QueuedForEmbedding(ctx, 64)
		if err != nil || len(waiting) == 0 {
			return s, err
		}
		if _, err := recall.EmbedFacts(ctx, s, model, waiting); err != nil {
			return s, err
		}
	}
	return s, nil
}

// consolidate runs a whole consolidation.
func consolidate(ctx context.Context, s *memory.Store) error {
	for _, phase := range record.ConsolidationPhases() {
		page := record.MaintenancePage{Caller: record.Caller{Workspace: "eval"}, Phase: phase, Limit: 200}
		for more := true; more; more = page.Cursor != "" {
			done, err := s.ConsolidatePage(ctx, page)
			if err != nil {
				return err
			}
			page.Cursor = done.Next
		}
	}
	return nil
}

func modelID(m recall.Model) string {
	if m == nil {
		return ""
	}
	return m.ID()
}

// asker answers a question with turn ids, best first.
type asker struct {
	mode string
	ask  func(ctx context.Context, question string) ([]record.Hit, error)
}

func askers(s *memory.Store, model recall.Model) []asker {
	engine := recall.NewEngine(model)
	limit := 20
	ask := func(engine *recall.Engine, mode string) func(context.Context, string) ([]record.Hit, error) {
		return func(ctx context.Context, q string) ([]record.Hit, error) {
			res, err := engine.Search(ctx, s, record.Search{Caller: record.Caller{Workspace: "eval"}, Query: q, Mode: mode, Limit: &limit})
			return res.Facts, err
		}
	}
	all := []asker{{"voice lexical", ask(engine.Only("lexical").Ageless(), "hybrid")}}
	if model != nil {
		all = append(all, asker{"voice semantic", ask(engine.Only("semantic").Ageless(), "hybrid")})
	}
	return append(all,
		asker{"voice graph", ask(engine.Only("graph").Ageless(), "hybrid")},
		asker{"voice temporal", ask(engine.Only("temporal").Ageless(), "hybrid")},
		asker{"keyword", ask(engine, "keyword")},
		asker{"semantic", ask(engine, "semantic")},
		asker{"hybrid", ask(engine, "hybrid")},
		asker{"hybrid without decay", ask(engine.Ageless(), "hybrid")},
	)
}

func evalConversation(ctx context.Context, c conversation, kind string, tidy bool, model recall.Model, tallies map[string]map[string]*tally, modes *[]string) error {
	dir, err := os.MkdirTemp("", "polyphony-eval-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := load(ctx, c, kind, model, dir)
	if s != nil {
		defer func() { _ = s.Close() }()
	}
	if err != nil {
		return err
	}
	if tidy {
		if err := consolidate(ctx, s); err != nil {
			return err
		}
	}
	for _, a := range askers(s, model) {
		if tallies[a.mode] == nil {
			tallies[a.mode] = map[string]*tally{}
			*modes = append(*modes, a.mode)
		}
		for _, q := range c.QA {
			var evidence []string
			for _, e := range q.Evidence {
				evidence = append(evidence, splitIDs(e)...)
			}
			slices.Sort(evidence)
			if evidence = slices.Compact(evidence); len(evidence) == 0 {
				continue
			}
			hits, err := a.ask(ctx, q.Question)
			if err != nil {
				return err
			}
			var found []string
			for _, h := range hits {
				// A fact made of several turns finds each of them.
				for _, id := range h.SourceObservationIDs {
					if !slices.Contains(found, id) {
						found = append(found, id)
					}
				}
			}
			categories := []string{fmt.Sprint(q.Category)}
			if q.Category <= 4 {
				categories = append(categories, "1-4")
			}
			for _, category := range categories {
				if tallies[a.mode][category] == nil {
					tallies[a.mode][category] = &tally{}
				}
				tallies[a.mode][category].add(found, evidence)
			}
		}
	}
	return nil
}
