package recall

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// postingBudget bounds the index entries that one query reads. Terms are
	// taken rarest first, so what is left out are words that a large part of
	// the facts hold, which tell little and cost most (docs/benchmarks.md).
	postingBudget = 6000
	// pool is how many of the facts with the most telling terms are scored in
	// full.
	pool = 128
	// chunk is how many facts are fetched at once while filling the pool.
	chunk = 128
	// k1 and b are BM25's constants, as tuned for short passages (docs/recall.md;
	// the usual 1.2 and 0.75 are made for documents).
	k1, b = 0.9, 0.4
	// topicWeight is what a term in a fact's topic counts beside one in its
	// content.
	topicWeight = 0.3
	// priorDocs is how many documents without any of the words are imagined
	// beside the real ones, so that in a small workspace, where every count is
	// small, a word's weight says little.
	priorDocs = 100
	// phraseBoost is what the whole query, word for word in a fact, adds.
	phraseBoost = 1.5
	// maxPhrase is how long, in bytes, a query may be to be looked for as a
	// whole.
	maxPhrase = 400
	// coverageFloor is the share of the query's weight that a find must cover:
	// results are never filled up with facts that share one common word.
	coverageFloor = 0.08
	// exactBoost is what a whole identifier, path, hash, flag, code or number
	// counts beside a word of the same rarity.
	exactBoost = 2.0
)

// Lexical finds facts by the words of the query.
type Lexical struct{}

// Name returns "lexical".
func (Lexical) Name() string { return "lexical" }

// weighted is a query term with what it says about a fact.
type weighted struct {
	text.Term
	df  int64
	idf float64
}

// Lexicon is what a query's terms weigh in one workspace.
type Lexicon struct {
	terms []weighted
	// total is the weight of all the query's terms, those that no fact holds
	// included.
	total  float64
	meanOf float64
	// phrase is the whole query, normalised; empty when it is too long.
	phrase string
	// heads are the terms of topics: many facts share one.
	heads map[string][]text.Term
}

// NewLexicon weighs the terms of a query.
func NewLexicon(v *memory.View, query string) (*Lexicon, error) {
	terms := text.QueryTerms(query)
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = t.Text
	}
	df, err := v.Frequencies(names)
	if err != nil {
		return nil, err
	}
	stats, err := v.Stats()
	if err != nil {
		return nil, err
	}
	l := &Lexicon{meanOf: 1, heads: map[string][]text.Term{}}
	if len(query) <= maxPhrase {
		l.phrase = strings.TrimSpace(text.Normalize(query))
	}
	if stats.Docs > 0 {
		l.meanOf = math.Max(1, float64(stats.Tokens)/float64(stats.Docs))
	}
	for _, t := range terms {
		w := weighted{Term: t, df: df[t.Text]}
		w.idf = math.Log(1 + (float64(stats.Docs+priorDocs)-float64(w.df)+0.5)/(float64(w.df)+0.5))
		l.total += w.idf
		l.terms = append(l.terms, w)
	}
	slices.SortStableFunc(l.terms, func(a, b weighted) int {
		return cmp.Or(cmp.Compare(a.df, b.df), cmp.Compare(a.Text, b.Text))
	})
	return l, nil
}

// Empty reports whether the query has no word to look for.
func (l *Lexicon) Empty() bool { return len(l.terms) == 0 }

// Terms returns the query's terms, rarest first.
func (l *Lexicon) Terms() []text.Term {
	out := make([]text.Term, len(l.terms))
	for i, t := range l.terms {
		out[i] = t.Term
	}
	return out
}

// Score returns the BM25 score of a text under the query's terms, and the
// share, 0 to 1, of the query's weight that the text covers.
func (l *Lexicon) Score(topic, content string) (score, coverage float64) {
	head, known := l.heads[topic]
	if !known {
		head = text.Terms(topic)
		l.heads[topic] = head
	}
	body := text.Terms(content)
	tf := make(map[string]float64, len(l.terms))
	exact := make(map[string]bool)
	for _, t := range l.terms {
		tf[t.Text] = 0
	}
	count := func(terms []text.Term, weight float64) {
		for _, t := range terms {
			if n, asked := tf[t.Text]; asked {
				tf[t.Text] = n + weight
				if t.Exact {
					exact[t.Text] = true
				}
			}
		}
	}
	count(head, topicWeight)
	count(body, 1)
	norm := k1 * (1 - b + b*float64(len(head)+len(body))/l.meanOf)
	covered := 0.0
	for _, t := range l.terms {
		n := tf[t.Text]
		if n == 0 {
			continue
		}
		covered += t.idf
		gain := t.idf * n * (k1 + 1) / (n + norm)
		if t.Exact && exact[t.Text] {
			gain *= exactBoost
		}
		score += gain
	}
	if score > 0 && utf8.RuneCountInString(l.phrase) > 1 && strings.Contains(text.Normalize(content), l.phrase) {
		score *= phraseBoost
	}
	if l.total > 0 {
		coverage = covered / l.total
	}
	return score, coverage
}

// Find ranks facts by BM25 over the query's terms. Candidates come from the
// rarest terms that fit the posting budget; every term counts in the score.
func (Lexical) Find(ctx context.Context, v *memory.View, q Query) ([]Candidate, error) {
	l := q.Lexicon
	seqs, err := l.candidates(v, q.Scope)
	if err != nil {
		return nil, err
	}
	var found []Candidate
	for len(seqs) > 0 && len(found) < max(pool, q.Limit) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := seqs[:min(chunk, len(seqs))]
		seqs = seqs[len(part):]
		rows, err := v.FactsAt(part, q.Scope)
		if err != nil {
			return nil, err
		}
		before := len(found)
		for _, f := range rows {
			if score, coverage := l.Score(f.Domain+"\n"+f.Topic, f.Content); coverage >= coverageFloor {
				found = append(found, Candidate{f, score})
			}
		}
		if len(rows) > 0 && len(found) == before {
			// The rest shares even less with the query.
			break
		}
	}
	slices.SortFunc(found, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq))
	})
	return found[:min(len(found), q.Limit)], nil
}

// candidates returns the rows that hold the query's rarest terms, those with
// the most telling ones first, then newest.
func (l *Lexicon) candidates(v *memory.View, scope memory.Scope) ([]int64, error) {
	if scope.Unknown {
		return nil, nil
	}
	weight := map[int64]float64{}
	budget := int64(postingBudget)
	taken := 0
	for _, t := range l.terms {
		if t.df == 0 {
			continue
		}
		if taken > 0 && t.df > budget {
			break
		}
		rows, err := v.Postings(t.Text, scope.Domain, int(max(budget, 1)))
		if err != nil {
			return nil, err
		}
		for _, seq := range rows {
			weight[seq] += t.idf
		}
		budget -= int64(len(rows))
		taken++
	}
	seqs := make([]int64, 0, len(weight))
	for seq := range weight {
		seqs = append(seqs, seq)
	}
	slices.SortFunc(seqs, func(x, y int64) int {
		return cmp.Or(cmp.Compare(weight[y], weight[x]), cmp.Compare(y, x))
	})
	return seqs, nil
}
