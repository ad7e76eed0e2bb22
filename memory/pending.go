package memory

import "encoding/json"

// pendingIndex holds the index rows of the open transaction until just before
// its commit. FTS5 writes a segment to disk at every savepoint, and each
// operation has one, so rows that went in one by one would make as many tiny
// segments; together they make one. What the transaction itself looks up is
// found here as well, so that an operation's outcome does not depend on which
// others share its transaction.
type pendingIndex struct {
	docs     []pendingDoc
	byTerm   map[string][]int
	tokens   int
	episodes []pendingEpisode
}

type pendingEpisode struct {
	seq            int64
	content, scope string
}

type pendingDoc struct {
	seq int64
	indexedText
}

func (p *pendingIndex) add(seq int64, x indexedText) {
	if p.byTerm == nil {
		p.byTerm = map[string][]int{}
	}
	for _, term := range x.distinct {
		p.byTerm[term] = append(p.byTerm[term], len(p.docs))
	}
	p.docs = append(p.docs, pendingDoc{seq, x})
	p.tokens += x.tokens
}

// mark is a place in what is pending.
type mark struct{ docs, episodes int }

func (p *pendingIndex) mark() mark { return mark{len(p.docs), len(p.episodes)} }

// truncate forgets what was added after m.
func (p *pendingIndex) truncate(m mark) {
	p.episodes = p.episodes[:m.episodes]
	for len(p.docs) > m.docs {
		last := p.docs[len(p.docs)-1]
		for _, term := range last.distinct {
			p.byTerm[term] = p.byTerm[term][:len(p.byTerm[term])-1]
		}
		p.docs = p.docs[:len(p.docs)-1]
		p.tokens -= last.tokens
	}
}

// postings returns the pending rows that hold term and carry scope, newest
// first, at most limit.
func (p *pendingIndex) postings(term, scope string, limit int) []int64 {
	var out []int64
	rows := p.byTerm[term]
	for i := len(rows) - 1; i >= 0 && len(out) < limit; i-- {
		if d := p.docs[rows[i]]; scope == "" || d.inScope(scope) {
			out = append(out, d.seq)
		}
	}
	return out
}

func (x indexedText) inScope(token string) bool {
	return x.domainScope == token || x.topicScope == token
}

// flush writes the pending rows, the frequencies of their terms and the totals.
func (p *pendingIndex) flush(t *tx) error {
	for _, e := range p.episodes {
		if err := t.exec("INSERT INTO episode_index (rowid, content, scope) VALUES (?, ?, ?)", e.seq, e.content, e.scope); err != nil {
			return err
		}
	}
	if len(p.docs) == 0 {
		return nil
	}
	added := make(map[string]int, len(p.byTerm))
	for term, rows := range p.byTerm {
		if len(rows) > 0 {
			added[term] = len(rows)
		}
	}
	// An object's keys are encoded in order, so the rows are written in order.
	terms, err := json.Marshal(added)
	if err != nil {
		return err
	}
	for _, d := range p.docs {
		if err := t.exec("INSERT INTO fact_index (rowid, topic, content, scope) VALUES (?, ?, ?, ?)", d.seq, d.topic, d.content, d.domainScope+" "+d.topicScope); err != nil {
			return err
		}
	}
	if err := t.exec("INSERT INTO terms (term, df) SELECT key, value FROM json_each(?) WHERE true ON CONFLICT (term) DO UPDATE SET df = df + excluded.df", string(terms)); err != nil {
		return err
	}
	return t.exec("UPDATE index_stats SET docs = docs + ?, tokens = tokens + ? WHERE id = 1", len(p.docs), p.tokens)
}
