package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// This file reads the lexical index: FTS5 rows whose text memory/text has
// already normalised and split, the document frequency of every term, and the
// totals that ranking needs. pending.go writes it. It changes only when a fact's text does; which facts are
// current is asked of the facts table.
//
// Every row also carries scope tokens, so that one domain's or one topic's rows
// are found without ranking the others first.

func domainToken(domain int64) string { return fmt.Sprintf("d%d", domain) }

func topicToken(domain int64, topicKey string) string {
	return fmt.Sprintf("t%d.%x", domain, text.ContentKey(topicKey))
}

// indexedText is what one fact contributes to the index.
type indexedText struct {
	topic, content string
	// domainScope and topicScope are the row's scope tokens.
	domainScope, topicScope string
	// distinct are the terms whose document frequency the fact adds to.
	distinct []string
	tokens   int
}

func indexText(domain int64, domainName, topic, topicKey, content string) indexedText {
	// The domain's scope prefix is no text that anybody asks for.
	head := text.Terms(domainName + "\n" + topic)
	body := text.Terms(content)
	seen := make(map[string]bool, len(head)+len(body))
	x := indexedText{domainScope: domainToken(domain), topicScope: topicToken(domain, topicKey), tokens: len(head) + len(body)}
	join := func(terms []text.Term) string {
		var b strings.Builder
		for _, t := range terms {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(t.Text)
			if !seen[t.Text] {
				seen[t.Text] = true
				x.distinct = append(x.distinct, t.Text)
			}
		}
		return b.String()
	}
	x.topic, x.content = join(head), join(body)
	return x
}

// IndexStats are the totals that ranking needs.
type IndexStats struct {
	// Docs counts the indexed facts, current or not.
	Docs int64
	// Tokens counts their terms, so that Tokens/Docs is the mean length.
	Tokens int64
}

func indexStats(q queryer) (IndexStats, error) {
	var s IndexStats
	err := q.row("SELECT docs, tokens FROM index_stats WHERE id = 1").Scan(&s.Docs, &s.Tokens)
	if p := q.pending(); p != nil {
		s.Docs += int64(len(p.docs))
		s.Tokens += int64(p.tokens)
	}
	return s, err
}

// frequencies returns the document frequency of each term that the index
// holds; absent terms are not in the map.
func frequencies(q queryer, terms []string) (map[string]int64, error) {
	if len(terms) == 0 {
		return map[string]int64{}, nil
	}
	list, err := json.Marshal(terms)
	if err != nil {
		return nil, err
	}
	rows, err := q.query("SELECT t.term, t.df FROM json_each(?) j JOIN terms t ON t.term = j.value WHERE t.df > 0", string(list))
	type pair struct {
		term string
		df   int64
	}
	pairs, err := collect(rows, err, func(r scanner) (p pair, err error) {
		return p, r.Scan(&p.term, &p.df)
	})
	out := make(map[string]int64, len(pairs))
	for _, p := range pairs {
		out[p.term] = p.df
	}
	if p := q.pending(); p != nil {
		for _, term := range terms {
			if n := len(p.byTerm[term]); n > 0 {
				out[term] += int64(n)
			}
		}
	}
	return out, err
}

// postings returns the row ids of facts that hold term, newest first, at most
// limit of them. Scope, when not empty, is a scope token that they must carry
// as well.
func postings(q queryer, term, scope string, limit int) ([]int64, error) {
	var out []int64
	if p := q.pending(); p != nil {
		out = p.postings(term, scope, limit)
	}
	match := `{topic content} : "` + term + `"`
	if scope != "" {
		match = "(" + match + `) AND (scope : "` + scope + `")`
	}
	// The limit is counted here: a bound LIMIT makes SQLite compile the
	// statement again for every call.
	rows, err := q.query("SELECT rowid FROM fact_index WHERE fact_index MATCH ? ORDER BY rowid DESC", match)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for len(out) < limit && rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, err
		}
		out = append(out, seq)
	}
	return out, rows.Err()
}

// Stats returns the index totals.
func (v *View) Stats() (IndexStats, error) { return indexStats(v) }

// Frequencies returns the document frequency of the terms that are indexed.
func (v *View) Frequencies(terms []string) (map[string]int64, error) { return frequencies(v, terms) }

// Postings returns the row ids of at most limit facts that hold term, newest
// first; domain, when not 0, restricts them to one domain.
func (v *View) Postings(term string, domain int64, limit int) ([]int64, error) {
	scope := ""
	if domain != 0 {
		scope = domainToken(domain)
	}
	return postings(v, term, scope, limit)
}
