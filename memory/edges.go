package memory

import (
	"cmp"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// maxEdges bounds the facts that a new one is linked to (behaviour.md 3).
	maxEdges = 5
	// rareTerms and rarePostings bound what looking for relatives reads, so
	// that its cost does not grow with the workspace; linkTerms is the same for
	// linking, which every new fact pays for.
	rareTerms    = 6
	rarePostings = 64
	linkTerms    = 3
	// linkShare is the share of documents, and linkFloor the number, up to
	// which a shared term says that two facts have to do with each other.
	linkShare = 0.01
	linkFloor = 16
	// topicWeight is the weight of the edge to the preceding fact of the same
	// topic. What was written within oneBreath of it belongs together, an
	// answer to its question, and the edge has weight 1 (docs/recall.md).
	topicWeight = 0.3
	oneBreath   = time.Hour
)

// idf is the inverse document frequency of BM25 (Robertson and Spärck Jones,
// with the +1 that keeps it positive).
func idf(docs, df int64) float64 {
	return math.Log(1 + (float64(docs)-float64(df)+0.5)/(float64(df)+0.5))
}

// relative is a fact that shares rare terms with a text.
type relative struct {
	seq int64
	// share is the idf of the shared rare terms over the idf of all the
	// text's terms, 0 to 1.
	share float64
	// exact says that a whole identifier is among the shared terms.
	exact bool
}

// relatives finds at most limit indexed facts that share the rarest of terms,
// best first, then newest. Scope restricts them to one domain or topic.
func relatives(q queryer, terms []text.Term, scope string, limit int) ([]relative, error) {
	return rareRelatives(q, terms, scope, limit, rareTerms, math.MaxInt64)
}

// rareRelatives is relatives by at most rare of the terms, those that more
// than maxDF facts hold left out.
func rareRelatives(q queryer, terms []text.Term, scope string, limit, rare int, maxDF int64) ([]relative, error) {
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = t.Text
	}
	df, err := frequencies(q, names)
	if err != nil {
		return nil, err
	}
	stats, err := indexStats(q)
	if err != nil {
		return nil, err
	}
	total := 0.0
	known := make([]text.Term, 0, len(terms))
	for _, t := range terms {
		total += idf(stats.Docs, df[t.Text])
		if n := df[t.Text]; n > 0 && n <= maxDF {
			known = append(known, t)
		}
	}
	slices.SortStableFunc(known, func(a, b text.Term) int {
		return cmp.Or(cmp.Compare(df[a.Text], df[b.Text]), cmp.Compare(a.Text, b.Text))
	})
	found := map[int64]*relative{}
	for _, t := range known[:min(len(known), rare)] {
		seqs, err := postings(q, t.Text, scope, rarePostings)
		if err != nil {
			return nil, err
		}
		for _, seq := range seqs {
			r := found[seq]
			if r == nil {
				r = &relative{seq: seq}
				found[seq] = r
			}
			r.share += idf(stats.Docs, df[t.Text]) / total
			r.exact = r.exact || t.Exact
		}
	}
	out := make([]relative, 0, len(found))
	for _, r := range found {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b relative) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(b.seq, a.seq))
	})
	return out[:min(len(out), limit)], nil
}

// link writes the edges from a new fact, not yet in the index, to the active
// facts it has to do with.
func (t *tx) link(f *fact, terms []text.Term) error {
	stats, err := indexStats(t)
	if err != nil {
		return err
	}
	before, linked, err := t.linkPreceding(f)
	if err != nil {
		return err
	}
	maxDF := max(linkFloor, int64(linkShare*float64(stats.Docs)))
	near, err := rareRelatives(t, terms, "", 4*maxEdges, linkTerms, maxDF)
	if err != nil {
		return err
	}
	for _, r := range near {
		if linked == maxEdges {
			break
		}
		if r.seq == before {
			continue
		}
		kind := "related_to"
		if r.exact {
			kind = "references"
		}
		ok, err := t.edge(f.seq, r.seq, kind, math.Min(1, r.share))
		if err != nil {
			return err
		}
		if ok {
			linked++
		}
	}
	return nil
}

// linkPreceding writes the edge to the fact that was written before this one
// under the same topic, and returns its row, 0 for none, and how many edges
// were written.
func (t *tx) linkPreceding(f *fact) (before int64, linked int, err error) {
	var at int64
	err = t.row("SELECT f.seq, f.created_at FROM facts f WHERE f.domain_id = ? AND f.topic_key = ? AND "+current+" AND f.seq < ? ORDER BY f.seq DESC LIMIT 1",
		f.domainID, f.topicKey, f.seq).Scan(&before, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	weight := topicWeight
	if f.CreatedAt.Sub(record.FromMicros(at).Time).Abs() <= oneBreath {
		weight = 1
	}
	ok, err := t.edge(f.seq, before, "contextual", weight)
	if ok {
		linked = 1
	}
	return before, linked, err
}

// edge links source to the fact in row target, when that is active.
func (t *tx) edge(source, target int64, kind string, weight float64) (bool, error) {
	n, err := t.affected(`INSERT INTO edges (source, target, kind, weight, created_at)
		SELECT ?, f.seq, ?, ?, ? FROM facts f WHERE f.seq = ? AND `+current+` AND (f.valid_until = 0 OR f.valid_until > ?)
		ON CONFLICT DO NOTHING`, source, kind, weight, t.now.Micros(), target, t.now.Micros())
	return n > 0, err
}

// Edges lists the edges at one fact, strongest first.
func (v *View) Edges(factID string) ([]record.Edge, error) {
	rows, err := v.query(`SELECT a.id, b.id, e.kind, e.weight, e.created_at FROM facts f JOIN edges e ON e.source = f.seq OR e.target = f.seq
		JOIN facts a ON a.seq = e.source JOIN facts b ON b.seq = e.target WHERE f.id = ? ORDER BY e.weight DESC, e.source, e.target, e.kind`, factID)
	return collect(rows, err, func(r scanner) (e record.Edge, err error) {
		var at int64
		err = r.Scan(&e.Source, &e.Target, &e.Kind, &e.Weight, &at)
		e.CreatedAt = record.FromMicros(at)
		return e, err
	})
}
