package conflict

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// pair is one labelled example: two statements under one topic.
type pair struct {
	ID     string   `json:"id"`
	Domain string   `json:"domain"`
	Topic  string   `json:"topic"`
	Old    string   `json:"old"`
	New    string   `json:"new"`
	Label  Relation `json:"label"`
	Lang   string   `json:"lang"`
}

// TestPairs measures the rules on a file of labelled pairs.
func TestPairs(t *testing.T) {
	t.Parallel()
	path := os.Getenv("POLYPHONY_PAIRS")
	if path == "" {
		t.Skip("POLYPHONY_PAIRS names no file of labelled pairs")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	relations := []Relation{Duplicate, Refinement, Contradiction, Compatible, Uncertain}
	matrix := map[Relation]map[Relation]int{}
	for _, r := range relations {
		matrix[r] = map[Relation]int{}
	}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var p pair
		if err := json.Unmarshal(sc.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		v := Classify(Statement{p.Old, p.Topic, p.Domain}, Statement{p.New, p.Topic, p.Domain})
		matrix[p.Label][v.Relation]++
		if v.Relation != p.Label {
			t.Logf("%s %s: %s judged %s by %s: %s\n\told %s\n\tnew %s", p.ID, p.Lang, p.Label, v.Relation, v.Rule, v.Reason, p.Old, p.New)
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}

	t.Logf("%-14s %5s %5s %5s %5s %5s", "label \\ judged", "dup", "ref", "con", "com", "unc")
	for _, l := range relations[:4] {
		m := matrix[l]
		t.Logf("%-14s %5d %5d %5d %5d %5d", l, m[Duplicate], m[Refinement], m[Contradiction], m[Compatible], m[Uncertain])
	}
	ratio := func(a, b int) float64 {
		if b == 0 {
			return 0
		}
		return float64(a) / float64(b)
	}
	sum := func(m map[Relation]int) (n int) {
		for _, v := range m {
			n += v
		}
		return n
	}
	column := func(r Relation) (n int) {
		for _, l := range relations {
			n += matrix[l][r]
		}
		return n
	}
	com, con, dup, ref := matrix[Compatible], matrix[Contradiction], matrix[Duplicate], matrix[Refinement]
	retired := com[Duplicate] + com[Refinement] + com[Contradiction]
	superseding := column(Refinement) + column(Contradiction)
	right := ref[Refinement] + con[Contradiction] + ref[Contradiction] + con[Refinement]
	t.Logf("wrong_retirement_rate  %.3f", ratio(retired, sum(com)))
	t.Logf("superseding_precision  %.3f (exact relation %.3f)", ratio(right, superseding), ratio(ref[Refinement]+con[Contradiction], superseding))
	t.Logf("contradictions_caught  %.3f (judged contradiction %.3f)", ratio(con[Contradiction]+con[Uncertain], sum(con)), ratio(con[Contradiction], sum(con)))
	t.Logf("refinement_recall      %.3f", ratio(ref[Refinement], sum(ref)))
	t.Logf("merge_precision        %.3f", ratio(dup[Duplicate], column(Duplicate)))
	t.Logf("merge_recall           %.3f", ratio(dup[Duplicate], sum(dup)))
	t.Logf("review_rate_compatible %.3f", ratio(com[Uncertain], sum(com)))
}
