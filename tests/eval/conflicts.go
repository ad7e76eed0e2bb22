package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/recall/embedding"
)

// labelled is two statements under one topic and how the new one relates to
// the old.
type labelled struct {
	ID     string            `json:"id"`
	Domain string            `json:"domain"`
	Topic  string            `json:"topic"`
	Old    string            `json:"old"`
	New    string            `json:"new"`
	Label  conflict.Relation `json:"label"`
	Lang   string            `json:"lang"`
}

// labels are the relations a pair can have; a judgement may be uncertain
// besides, which stores an open row of kind suspected.
var labels = []conflict.Relation{conflict.Duplicate, conflict.Refinement, conflict.Contradiction, conflict.Compatible}

// confusion counts judgements by true label and judged relation.
type confusion map[conflict.Relation]map[conflict.Relation]int

func newConfusion() confusion {
	c := confusion{}
	for _, l := range labels {
		c[l] = map[conflict.Relation]int{}
		for _, j := range append(slices.Clone(labels), conflict.Uncertain) {
			c[l][j] = 0
		}
	}
	return c
}

// score is precision, recall and F1 of one label, each 0 to 1.
type score struct {
	Pairs     int     `json:"pairs"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// conflictScores are what one set of pairs measures.
type conflictScores struct {
	Pairs int `json:"pairs"`
	// MacroF1 is the mean F1 of the labels that occur.
	MacroF1 float64 `json:"macro_f1"`
	// WrongRetirementRate is compatible pairs where something was superseded
	// or merged, over compatible pairs.
	WrongRetirementRate float64 `json:"wrong_retirement_rate"`
	// ContradictionsCaught is superseded or suspected, over contradictions.
	ContradictionsCaught float64 `json:"contradictions_caught"`
	// SupersedingPrecision is of the pairs where one side was superseded, those
	// that are refinements or contradictions.
	SupersedingPrecision float64          `json:"superseding_precision"`
	MergePrecision       float64          `json:"merge_precision"`
	MergeRecall          float64          `json:"merge_recall"`
	Labels               map[string]score `json:"per_label"`
	Confusion            confusion        `json:"confusion"`
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (c confusion) scores() conflictScores {
	row := func(l conflict.Relation) (n int) {
		for _, v := range c[l] {
			n += v
		}
		return n
	}
	column := func(j conflict.Relation) (n int) {
		for _, l := range labels {
			n += c[l][j]
		}
		return n
	}
	s := conflictScores{Labels: map[string]score{}, Confusion: c}
	occur := 0
	for _, l := range labels {
		n := row(l)
		s.Pairs += n
		if n == 0 {
			continue
		}
		occur++
		p, r := share(c[l][l], column(l)), share(c[l][l], n)
		f := 0.0
		if p+r > 0 {
			f = 2 * p * r / (p + r)
		}
		s.Labels[string(l)] = score{n, p, r, f}
		s.MacroF1 += f
	}
	s.MacroF1 /= math.Max(1, float64(occur))
	com, con := c[conflict.Compatible], c[conflict.Contradiction]
	s.WrongRetirementRate = share(com[conflict.Duplicate]+com[conflict.Refinement]+com[conflict.Contradiction], row(conflict.Compatible))
	s.ContradictionsCaught = share(con[conflict.Contradiction]+con[conflict.Refinement]+con[conflict.Uncertain], row(conflict.Contradiction))
	right := 0
	for _, l := range []conflict.Relation{conflict.Refinement, conflict.Contradiction} {
		right += c[l][conflict.Refinement] + c[l][conflict.Contradiction]
	}
	s.SupersedingPrecision = share(right, column(conflict.Refinement)+column(conflict.Contradiction))
	s.MergePrecision = share(c[conflict.Duplicate][conflict.Duplicate], column(conflict.Duplicate))
	s.MergeRecall = share(c[conflict.Duplicate][conflict.Duplicate], row(conflict.Duplicate))
	return s
}

// missed is a pair that was judged otherwise than it is labelled.
type missed struct {
	labelled
	Judged conflict.Relation `json:"judged"`
	Rule   string            `json:"rule"`
	Reason string            `json:"reason"`
	Cosine float64           `json:"cosine,omitempty"`
}

// conflictReport is what evalConflicts prints as JSON.
type conflictReport struct {
	conflictScores
	PerLanguage map[string]conflictScores `json:"per_language"`
	Failures    []missed                  `json:"failures"`
}

// evalConflicts judges every pair of the file as a proposal would and compares
// with the labels.
func evalConflicts(ctx context.Context, path string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("conflicts", flag.ContinueOnError)
	folder := flags.String("model", "", "folder of the embedding model; without one the rules judge alone")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pairs, err := readLines[labelled](path)
	if err != nil {
		return err
	}
	var cosines []float64
	if *folder != "" {
		m, err := embedding.Open(*folder, embedding.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }()
		if cosines, err = pairCosines(ctx, m, pairs); err != nil {
			return err
		}
	}
	report := judgePairs(pairs, cosines)
	if *asJSON {
		return json.NewEncoder(stdout).Encode(report)
	}
	return printConflicts(stdout, report)
}

func judgePairs(pairs []labelled, cosines []float64) conflictReport {
	all, languages := newConfusion(), map[string]confusion{}
	report := conflictReport{PerLanguage: map[string]conflictScores{}, Failures: []missed{}}
	for i, p := range pairs {
		old := conflict.Parse(conflict.Statement{Content: p.Old, Topic: p.Topic, Domain: p.Domain})
		new := conflict.Parse(conflict.Statement{Content: p.New, Topic: p.Topic, Domain: p.Domain})
		v := conflict.Compare(old, new)
		cosine := 0.0
		if cosines != nil {
			cosine = cosines[i]
			v = conflict.Near(v, old, new, cosine)
		}
		if languages[p.Lang] == nil {
			languages[p.Lang] = newConfusion()
		}
		all[p.Label][v.Relation]++
		languages[p.Lang][p.Label][v.Relation]++
		if v.Relation != p.Label {
			report.Failures = append(report.Failures, missed{p, v.Relation, v.Rule, v.Reason, cosine})
		}
	}
	report.conflictScores = all.scores()
	for lang, c := range languages {
		report.PerLanguage[lang] = c.scores()
	}
	return report
}

// pairCosines returns how near the two statements of each pair are.
func pairCosines(ctx context.Context, m recall.Model, pairs []labelled) ([]float64, error) {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		v, err := m.Embed(ctx, []string{p.Old, p.New})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ID, err)
		}
		for k := range v[0] {
			out[i] += float64(v[0][k]) * float64(v[1][k])
		}
	}
	return out, nil
}

// readLines decodes a file of one JSON value a line.
func readLines[T any](path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []T
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, len(data)+1)
	for line := 1; sc.Scan(); line++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, line, err)
		}
		out = append(out, v)
	}
	return out, sc.Err()
}

func printConflicts(stdout io.Writer, r conflictReport) error {
	for _, f := range r.Failures {
		fmt.Fprintf(stdout, "%s %s: %s judged %s by %s: %s\n  old %s\n  new %s\n", f.ID, f.Lang, f.Label, f.Judged, f.Rule, f.Reason, f.Old, f.New)
	}
	w := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nlabel \\ judged\tduplicate\trefinement\tcontradiction\tcompatible\tsuspected\tprecision\trecall\tF1")
	for _, l := range labels {
		c, s := r.Confusion[l], r.Labels[string(l)]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.3f\t%.3f\n", l, c[conflict.Duplicate], c[conflict.Refinement], c[conflict.Contradiction], c[conflict.Compatible], c[conflict.Uncertain], s.Precision, s.Recall, s.F1)
	}
	fmt.Fprintln(w, "\nlanguage\tpairs\tmacro F1\twrong retirement\tcaught\tsuperseding precision\tmerge precision\tmerge recall")
	line := func(name string, s conflictScores) {
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", name, s.Pairs, s.MacroF1, s.WrongRetirementRate, s.ContradictionsCaught, s.SupersedingPrecision, s.MergePrecision, s.MergeRecall)
	}
	for _, lang := range sortedKeys(r.PerLanguage) {
		line(lang, r.PerLanguage[lang])
	}
	line("all", r.conflictScores)
	return w.Flush()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
