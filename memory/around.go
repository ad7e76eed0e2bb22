package memory

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// lookWindow bounds the facts that one fact is compared with when looking for
// duplicates and contradictions across topics.
const lookWindow = 16

// lookFrequency is in how many facts a term may stand to lead to duplicates:
// the postings of commoner terms cost more with every fact, and duplicates
// share the rare ones too.
const lookFrequency = 512

// pair is two facts of one domain that relate.
type pair struct {
	a, b    *fact
	verdict conflict.Verdict
}

// factPage is a page of active facts, by row, and what relates to them.
type factPage struct {
	facts []*fact
	last  int64
	pairs []pair
}

// lookAround reads the page of active facts after a row and finds the facts of
// their domains that stand in one of the relations to them. Candidates come
// from the postings of a fact's rarest terms, so the cost of a fact does not
// grow with the workspace. When only duplicates are wanted, each pair is found
// once, by its earlier fact.
func (s *Store) lookAround(ctx context.Context, req record.MaintenancePage, after int64, relations ...conflict.Relation) (factPage, error) {
	var page factPage
	err := s.View(ctx, func(v *View) error {
		var err error
		page.facts, err = pageOfFacts(v, req, after, "(f.valid_until = 0 OR f.valid_until > ?)")
		if err != nil {
			return err
		}
		later := !slices.Contains(relations, conflict.Contradiction)
		parsed := map[int64]*conflict.Parsed{}
		for _, f := range page.facts {
			page.last = f.seq
			near, err := domainRelatives(v, f, later)
			if err != nil {
				return err
			}
			for _, o := range near {
				if o.parsed = parsed[o.seq]; o.parsed == nil {
					parsed[o.seq] = o.statement()
				}
				if f.parsed == nil {
					f.parsed = parsed[f.seq]
				}
				verdict := conflict.Compare(f.statement(), o.statement())
				if slices.Contains(relations, verdict.Relation) {
					page.pairs = append(page.pairs, pair{f, o, verdict})
				}
			}
		}
		return ctx.Err()
	})
	return page, err
}

// pageOfFacts reads at most req.Limit active facts after a row, oldest first,
// that meet where, which takes the time as its one argument.
func pageOfFacts(q queryer, req record.MaintenancePage, after int64, where string) ([]*fact, error) {
	rows, err := q.query("SELECT "+factColumns+fromFacts+"WHERE "+current+" AND "+where+" AND f.seq > ? AND (? = '' OR f.agent = ?) ORDER BY f.seq LIMIT ?",
		q.clock().Micros(), after, req.ForAgent, req.ForAgent, req.Limit)
	return collect(rows, err, scanFact)
}

// domainRelatives returns the active facts of f's domain that share its rarest
// terms, f left out, and with later those that came before it.
func domainRelatives(q queryer, f *fact, later bool) ([]*fact, error) {
	terms, scope := text.QueryTerms(f.Content), domainToken(f.domainID)
	near, err := rareRelatives(q, terms, scope, lookWindow, rareTerms, lookFrequency)
	if err == nil && len(near) == 0 {
		// It has no rare word, not even of its own.
		near, err = relatives(q, terms, scope, lookWindow)
	}
	if err != nil {
		return nil, err
	}
	seqs := make([]int64, 0, len(near))
	for _, r := range near {
		if r.seq > f.seq || r.seq < f.seq && !later {
			seqs = append(seqs, r.seq)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	rows, err := q.query("SELECT "+factColumns+" FROM json_each(?) j JOIN facts f ON f.seq = j.value JOIN domains d ON d.id = f.domain_id WHERE "+current+
		" AND (f.valid_until = 0 OR f.valid_until > ?) ORDER BY j.key", string(list), q.clock().Micros())
	return collect(rows, err, scanFact)
}
