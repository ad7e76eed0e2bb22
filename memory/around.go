package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"unicode/utf8"

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
	// rows is how many rows the page read, the unsound ones too, and last the
	// last of them.
	rows int
	last int64
	// skipped says of each unsound row what is wrong with it.
	skipped []string
	pairs   []pair
}

// lookAround reads the page of active facts after a row and finds the facts of
// their domains that stand in one of the relations to them. Candidates come
// from the postings of a fact's rarest terms, so the cost of a fact does not
// grow with the workspace; facts of the same words find each other whatever
// their number, by the oldest of them. When only duplicates are wanted, each
// other pair is found once, by its earlier fact.
func (s *Store) lookAround(ctx context.Context, req record.MaintenancePage, after int64, relations ...conflict.Relation) (factPage, error) {
	var page factPage
	err := s.View(ctx, func(v *View) error {
		var err error
		page, err = pageOfFacts(v, req, after, "(f.valid_until = 0 OR f.valid_until > ?)")
		if err != nil {
			return err
		}
		later := !slices.Contains(relations, conflict.Contradiction)
		parsed := map[int64]*conflict.Parsed{}
		for _, f := range page.facts {
			near, err := domainRelatives(v, f, later)
			if err != nil {
				return err
			}
			first, err := firstOfSame(v, f)
			if err != nil {
				return err
			}
			if first != nil && !slices.ContainsFunc(near, func(o *fact) bool { return o.seq == first.seq }) {
				near = append(near, first)
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
// that meet where, which takes the time as its one argument. One unsound row
// stops no page: it is passed over and said.
func pageOfFacts(q queryer, req record.MaintenancePage, after int64, where string) (factPage, error) {
	var page factPage
	rows, err := q.query("SELECT "+factColumns+fromFacts+"WHERE "+current+" AND "+where+" AND f.seq > ? AND (? = '' OR f.agent = ?) ORDER BY f.seq LIMIT ?",
		q.clock().Micros(), after, req.ForAgent, req.ForAgent, req.Limit)
	page.facts, err = collectSound(rows, err, func(f *fact, unsound error) {
		page.rows++
		page.last = f.seq
		if unsound != nil {
			page.skipped = append(page.skipped, unsound.Error())
		}
	})
	return page, err
}

// scanSound is scanFact that refuses what only damage can have written.
func scanSound(r scanner) (*fact, error) {
	f, err := scanFact(r)
	switch {
	case err != nil:
		return f, err
	case !(f.Confidence >= 0 && f.Confidence <= 1):
		return f, record.Errorf(record.StoreCorrupt, "", "fact %s has the confidence %g, which is not from 0 to 1", f.ID, f.Confidence)
	case !utf8.ValidString(f.Content) || !utf8.ValidString(f.Topic):
		return f, record.Errorf(record.StoreCorrupt, "", "fact %s has a text that is not UTF-8", f.ID)
	}
	return f, nil
}

// collectSound collects the sound facts and shows each row to seen.
func collectSound(rows *sql.Rows, err error, seen func(f *fact, unsound error)) ([]*fact, error) {
	all, err := collect(rows, err, func(r scanner) (*fact, error) {
		f, err := scanSound(r)
		if err != nil && (f == nil || record.ErrorCode(err) != record.StoreCorrupt) {
			return nil, err
		}
		seen(f, err)
		if err != nil {
			return nil, nil
		}
		return f, nil
	})
	return slices.DeleteFunc(all, func(f *fact) bool { return f == nil }), err
}

// firstOfSame returns the oldest active fact of f's domain with the same words,
// nil when that is f itself.
func firstOfSame(q queryer, f *fact) (*fact, error) {
	first, err := scanSound(q.row("SELECT "+factColumns+fromFacts+"WHERE f.content_key = ? AND f.domain_id = ? AND "+current+
		" AND (f.valid_until = 0 OR f.valid_until > ?) ORDER BY f.seq LIMIT 1", f.contentKey, f.domainID, q.clock().Micros()))
	switch {
	case errors.Is(err, sql.ErrNoRows) || record.ErrorCode(err) == record.StoreCorrupt:
		return nil, nil
	case err != nil || first.seq == f.seq:
		return nil, err
	}
	return first, nil
}

// domainRelatives returns the active facts of f's domain that share its rarest
// terms, f left out, and with later those that came before it. When copies of
// few statements fill the window, one of each further statement follows.
func domainRelatives(q queryer, f *fact, later bool) ([]*fact, error) {
	terms, scope := text.QueryTerms(f.Content), domainToken(f.domainID)
	near, err := rareRelatives(q, terms, scope, math.MaxInt, rareTerms, lookFrequency)
	if err == nil && len(near) == 0 {
		// It has no rare word, not even of its own.
		near, err = relatives(q, terms, scope, math.MaxInt)
	}
	if err != nil {
		return nil, err
	}
	wanted := func(near []relative) (seqs []int64) {
		for _, r := range near {
			if r.seq > f.seq || r.seq < f.seq && !later {
				seqs = append(seqs, r.seq)
			}
		}
		return seqs
	}
	window := min(len(near), lookWindow)
	out, err := activeOf(q, wanted(near[:window]))
	if err != nil || window < lookWindow {
		return out, err
	}
	seen := map[string]bool{string(f.contentKey): true}
	for _, o := range out {
		seen[string(o.contentKey)] = true
	}
	if len(seen) > lookWindow/2 {
		return out, nil
	}
	// The words of so many copies are no rare ones.
	common, err := relatives(q, terms, scope, math.MaxInt)
	if err != nil {
		return nil, err
	}
	others, err := distinctOf(q, wanted(append(near[window:], common...)), seen, lookWindow-len(seen))
	if err != nil {
		return nil, err
	}
	more, err := activeOf(q, others)
	return append(out, more...), err
}

// activeOf returns the active facts in the rows, in order.
func activeOf(q queryer, seqs []int64) ([]*fact, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	rows, err := q.query("SELECT "+factColumns+" FROM json_each(?) j JOIN facts f ON f.seq = j.value JOIN domains d ON d.id = f.domain_id WHERE "+current+
		" AND (f.valid_until = 0 OR f.valid_until > ?) ORDER BY j.key", string(list), q.clock().Micros())
	return collectSound(rows, err, func(*fact, error) {})
}

// distinctOf returns of the rows at most limit active ones whose words are not
// seen, the first of each.
func distinctOf(q queryer, seqs []int64, seen map[string]bool, limit int) ([]int64, error) {
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	type row struct {
		seq int64
		key []byte
	}
	rows, err := q.query("SELECT f.seq, f.content_key FROM json_each(?) j JOIN facts f ON f.seq = j.value WHERE "+current+" ORDER BY j.key", string(list))
	all, err := collect(rows, err, func(r scanner) (x row, err error) { return x, r.Scan(&x.seq, &x.key) })
	var out []int64
	for _, x := range all {
		if !seen[string(x.key)] && len(out) < limit {
			seen[string(x.key)] = true
			out = append(out, x.seq)
		}
	}
	return out, err
}
