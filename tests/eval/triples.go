package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// statement is a fact of a triple; the confidence is the stored value.
type statement struct {
	Content    string          `json:"content"`
	Confidence float64         `json:"confidence"`
	Veracity   record.Veracity `json:"veracity"`
	AgeDays    int             `json:"age_days"`
}

// triple is existing facts and a new one, how they truly relate, and what
// should become of them.
type triple struct {
	ID        string              `json:"id"`
	Domain    string              `json:"domain"`
	Topic     string              `json:"topic"`
	Existing  []statement         `json:"existing"`
	New       statement           `json:"new"`
	Relations []conflict.Relation `json:"relations"`
	Expect    struct {
		Status string `json:"status"`
		// ActiveAfter holds indexes, and "new".
		ActiveAfter []any `json:"active_after"`
	} `json:"expect"`
}

// wrongTriple is one that came out otherwise than expected.
type wrongTriple struct {
	ID          string   `json:"id"`
	Status      string   `json:"status"`
	ActiveAfter []any    `json:"active_after"`
	Want        string   `json:"want_status"`
	WantActive  []any    `json:"want_active_after"`
	Reasons     []string `json:"reasons"`
}

// tripleReport is what evalTriples prints as JSON. Exact is the share of
// triples whose status and active facts both came out as expected; Resolved is
// the same with the true relations given, which leaves the detection out.
type tripleReport struct {
	Triples  int           `json:"triples"`
	Exact    float64       `json:"exact"`
	Resolved float64       `json:"resolved_given_relations"`
	Failures []wrongTriple `json:"failures"`
	// Unresolved failed even with the relations given.
	Unresolved []wrongTriple `json:"unresolved"`
}

func evalTriples(path string, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("triples", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	triples, err := readLines[triple](path)
	if err != nil {
		return err
	}
	report := tripleReport{Triples: len(triples), Failures: []wrongTriple{}, Unresolved: []wrongTriple{}}
	for _, t := range triples {
		if len(t.Relations) != len(t.Existing) {
			return fmt.Errorf("%s: %d relations for %d facts", t.ID, len(t.Relations), len(t.Existing))
		}
		if w, wrong := t.judge(nil); wrong {
			report.Failures = append(report.Failures, w)
		}
		if w, wrong := t.judge(func(i int) conflict.Verdict { return conflict.Verdict{Relation: t.Relations[i]} }); wrong {
			report.Unresolved = append(report.Unresolved, w)
		}
	}
	report.Exact = share(len(triples)-len(report.Failures), len(triples))
	report.Resolved = share(len(triples)-len(report.Unresolved), len(triples))
	if *asJSON {
		return json.NewEncoder(stdout).Encode(report)
	}
	for _, f := range report.Failures {
		fmt.Fprintf(stdout, "%s: %s %v, want %s %v\n", f.ID, f.Status, f.ActiveAfter, f.Want, f.WantActive)
		for _, r := range f.Reasons {
			fmt.Fprintf(stdout, "  %s\n", r)
		}
	}
	for _, f := range report.Unresolved {
		fmt.Fprintf(stdout, "%s with the relations given: %s %v, want %s %v\n", f.ID, f.Status, f.ActiveAfter, f.Want, f.WantActive)
	}
	_, err = fmt.Fprintf(stdout, "exact %.3f of %d, with the relations given %.3f\n", report.Exact, report.Triples, report.Resolved)
	return err
}

// judge proposes the new statement beside the existing ones and reports whether
// the outcome is another than expected.
func (t *triple) judge(relation func(int) conflict.Verdict) (wrongTriple, bool) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fact := func(s statement) record.Fact {
		return record.Fact{Domain: t.Domain, Topic: t.Topic, Content: s.Content, Confidence: s.Confidence, Veracity: s.Veracity,
			CreatedAt: record.Time{Time: now.AddDate(0, 0, -s.AgeDays)}}
	}
	existing := make([]record.Fact, len(t.Existing))
	for i, s := range t.Existing {
		existing[i] = fact(s)
	}
	j := memory.Judge(existing, fact(t.New), relation)
	status := string(j.Status)
	if j.Status == record.StatusCreated && len(j.Retired) > 0 {
		status = "superseded_others"
	}
	active := []any{}
	for i := range existing {
		if !slices.Contains(j.Retired, i) {
			active = append(active, float64(i))
		}
	}
	if j.Status != record.StatusReMentioned && j.Status != record.StatusSupersededBy {
		active = append(active, "new")
	}
	w := wrongTriple{ID: t.ID, Status: status, ActiveAfter: active, Want: t.Expect.Status, WantActive: t.Expect.ActiveAfter}
	for i, v := range j.Verdicts {
		if v.Relation != t.Relations[i] {
			w.Reasons = append(w.Reasons, fmt.Sprintf("%q is %s, judged %s by %s: %s", t.Existing[i].Content, t.Relations[i], v.Relation, v.Rule, v.Reason))
		}
	}
	return w, status != t.Expect.Status || !slices.Equal(active, t.Expect.ActiveAfter)
}
