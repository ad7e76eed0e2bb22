package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// Row is a value with its place in the file, which a later page starts after.
type Row[T any] struct {
	Seq   int64
	Value T
}

// FactRow is a fact with what ranking needs beside it.
type FactRow struct {
	record.Fact
	// Seq is the fact's row in the lexical index; later facts have higher ones.
	Seq int64
	// DomainID is the row of its domain.
	DomainID int64
}

func (v *View) factRow(f *fact) *FactRow {
	f.Workspace = v.Workspace()
	return &FactRow{Fact: f.Fact, Seq: f.seq, DomainID: f.domainID}
}

// Fact returns one fact, current or not.
//
// Errors: NotFound.
func (v *View) Fact(id string) (record.Fact, error) {
	f, err := getFact(v, "fact_id", id)
	if err != nil {
		return record.Fact{}, err
	}
	return v.factRow(f).Fact, nil
}

// believed is the condition of a fact that was current at the time ?2: made by
// then, and neither superseded, archived nor expired yet.
const believed = "f.created_at <= ?2 AND (f.superseded_at = 0 OR f.superseded_at > ?2) AND (f.archived_at = 0 OR f.archived_at > ?2) AND (f.valid_until = 0 OR f.valid_until > ?2)"

// when is the time that a read in the scope asks about.
func (v *View) when(scope Scope) record.Time {
	if scope.At.IsZero() {
		return v.now
	}
	return scope.At
}

// FactsAt returns the facts in the given rows of the lexical index that are
// current at the scope's time and that the scope shows, in the rows' order. A
// view reads each row once: the voices of one search find the same facts, and
// share them.
func (v *View) FactsAt(seqs []int64, scope Scope) ([]*FactRow, error) {
	at := v.when(scope)
	if v.facts == nil || at != v.factsAt {
		v.facts, v.factsAt = map[int64]*FactRow{}, at
	}
	fresh := make([]int64, 0, len(seqs))
	for _, seq := range seqs {
		if _, ok := v.facts[seq]; !ok {
			fresh = append(fresh, seq)
			v.facts[seq] = nil
		}
	}
	if err := v.readFacts(fresh, at); err != nil {
		v.facts = nil
		return nil, err
	}
	out := make([]*FactRow, 0, len(seqs))
	for _, seq := range seqs {
		if f := v.facts[seq]; f != nil && !scope.Hidden(f.DomainID) {
			out = append(out, f)
		}
	}
	return out, nil
}

// readFacts reads those of the rows that are current at the time.
func (v *View) readFacts(seqs []int64, at record.Time) error {
	if len(seqs) == 0 {
		return nil
	}
	// In the order of the file, so that each page is found once.
	slices.Sort(seqs)
	list, err := json.Marshal(seqs)
	if err != nil {
		return err
	}
	rows, err := v.query("SELECT "+factColumns+" FROM json_each(?1) j JOIN facts f ON f.seq = j.value JOIN domains d ON d.id = f.domain_id WHERE "+believed, string(list), at.Micros())
	found, err := collect(rows, err, scanFact)
	for _, f := range found {
		v.facts[f.seq] = v.factRow(f)
	}
	return err
}

// firstPart is how many rows FirstAt reads at once at least.
const firstPart = 32

// FirstAt returns the first limit of the facts in the given rows, in the rows'
// order, that are current at the scope's time and that the scope shows. It
// reads no more of them than it takes to find so many.
func (v *View) FirstAt(seqs []int64, scope Scope, limit int) ([]*FactRow, error) {
	var out []*FactRow
	for len(seqs) > 0 && len(out) < limit {
		part := seqs[:min(len(seqs), max(limit-len(out), firstPart))]
		seqs = seqs[len(part):]
		rows, err := v.FactsAt(part, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, rows[:min(len(rows), limit-len(out))]...)
	}
	return out, nil
}

// recentWindow bounds the newest facts that Recent looks through.
const recentWindow = 1000

// Recent returns the newest facts that the scope shows, at most limit of them.
func (v *View) Recent(scope Scope, limit int) ([]*FactRow, error) {
	rows, err := v.query("SELECT "+factColumns+fromFacts+"WHERE (?1 = 0 OR f.domain_id = ?1) AND "+believed+fmt.Sprintf(" ORDER BY f.seq DESC LIMIT %d", recentWindow), scope.Domain, v.when(scope).Micros())
	found, err := collect(rows, err, scanFact)
	var out []*FactRow
	for _, f := range found {
		if !scope.Hidden(f.domainID) && len(out) < limit {
			out = append(out, v.factRow(f))
		}
	}
	return out, err
}

// Link is an edge between two rows, in either direction.
type Link struct {
	From, To int64
	// Weight is 0 to 1.
	Weight float64
}

// maxLinks bounds the edges taken for one hop from one fact.
const maxLinks = 24

// Links returns the strongest edges at each of the rows, seen from that row, in
// the rows' order.
func (v *View) Links(seqs []int64) ([]Link, error) {
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	rows, err := v.query(`SELECT j.value, e.target, e.weight FROM json_each(?1) j CROSS JOIN edges e ON e.source = j.value
		UNION ALL SELECT j.value, e.source, e.weight FROM json_each(?1) j CROSS JOIN edges e ON e.target = j.value`, string(list))
	found, err := collect(rows, err, func(r scanner) (l Link, err error) { return l, r.Scan(&l.From, &l.To, &l.Weight) })
	if err != nil {
		return nil, err
	}
	at := make(map[int64][]Link, len(seqs))
	for _, l := range found {
		at[l.From] = append(at[l.From], l)
	}
	var out []Link
	for _, seq := range seqs {
		links := at[seq]
		slices.SortFunc(links, func(a, b Link) int { return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.To, b.To)) })
		out = append(out, links[:min(len(links), maxLinks)]...)
	}
	return out, nil
}

// Disputed returns which of the facts stand in an open conflict.
func (v *View) Disputed(ids []string) (map[string]bool, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := v.query(`SELECT DISTINCT j.value FROM json_each(?) j WHERE
		EXISTS (SELECT 1 FROM conflicts c WHERE c.fact_a = j.value AND c.open = 1) OR EXISTS (SELECT 1 FROM conflicts c WHERE c.fact_b = j.value AND c.open = 1)`, string(list))
	found, err := collect(rows, err, scanOne[string])
	out := make(map[string]bool, len(found))
	for _, id := range found {
		out[id] = true
	}
	return out, err
}

// Facts lists the facts in scope, oldest first, after the cursor row; all
// includes superseded, archived and expired ones, marked.
func (v *View) Facts(scope Scope, all bool, after int64, limit int) ([]Row[record.Fact], error) {
	out := []Row[record.Fact]{}
	for len(out) < limit {
		rows, err := v.query("SELECT "+factColumns+fromFacts+`WHERE f.seq > ?1 AND (?2 = 0 OR f.domain_id = ?2)
			AND (?3 OR `+current+` AND (f.valid_until = 0 OR f.valid_until > ?4)) ORDER BY f.seq LIMIT ?5`, after, scope.Domain, all, v.now.Micros(), limit)
		found, err := collect(rows, err, scanFact)
		if err != nil || len(found) == 0 {
			return out, err
		}
		for _, f := range found {
			after = f.seq
			if !scope.Hidden(f.domainID) && len(out) < limit {
				out = append(out, Row[record.Fact]{f.seq, v.factRow(f).Fact})
			}
		}
	}
	return out, nil
}

// maxChain bounds the facts of one history that are read.
const maxChain = 1000

// History returns the whole chain that a fact belongs to: what it superseded,
// and what superseded it, oldest first, with every event of each.
//
// Errors: NotFound.
func (v *View) History(id string) (record.FactHistory, error) {
	h := record.FactHistory{FactID: id, Chain: []record.Fact{}, Events: []record.FactEvent{}}
	if _, err := v.Fact(id); err != nil {
		return h, err
	}
	ids, err := v.chain(id)
	if err != nil {
		return h, err
	}
	for _, id := range ids {
		f, err := v.Fact(id)
		if err != nil {
			return h, err
		}
		h.Chain = append(h.Chain, f)
		versions, err := v.versions(id)
		if err != nil {
			return h, err
		}
		h.Versions = append(h.Versions, versions...)
		rows, err := v.query("SELECT f.id, e.at, e.kind, e.agent, e.role, e.other, e.veracity, e.confidence, e.reason FROM facts f JOIN fact_events e ON e.fact = f.seq WHERE f.id = ? ORDER BY e.seq", id)
		events, err := collect(rows, err, func(r scanner) (e record.FactEvent, err error) {
			var at int64
			err = r.Scan(&e.FactID, &at, &e.Kind, &e.Agent, &e.Role, &e.Other, &e.Veracity, &e.Confidence, &e.Reason)
			e.At = record.FromMicros(at)
			return e, err
		})
		if err != nil {
			return h, err
		}
		h.Events = append(h.Events, events...)
	}
	slices.SortStableFunc(h.Events, func(a, b record.FactEvent) int { return a.At.Compare(b.At.Time) })
	return h, nil
}

// chain returns the ids of every fact joined to id by supersession, oldest
// first.
func (v *View) chain(id string) ([]string, error) {
	rows, err := v.query(`WITH RECURSIVE chain(id) AS (
		  SELECT ?1
		  UNION
		  SELECT x.id FROM (
		    SELECT f.superseded_by AS id, f.id AS via FROM facts f WHERE f.superseded_by IS NOT NULL
		    UNION ALL
		    SELECT f.id AS id, f.superseded_by AS via FROM facts f WHERE f.superseded_by IS NOT NULL
		  ) x JOIN chain c ON x.via = c.id
		)
		SELECT f.id FROM chain c JOIN facts f ON f.id = c.id ORDER BY f.created_at, f.seq LIMIT ?2`, id, maxChain)
	return collect(rows, err, scanOne[string])
}

// HistoryLength counts the facts of a fact's chain up to itself: 1 when it
// superseded nothing.
func (v *View) HistoryLength(id string) (int, error) {
	var n int
	err := v.row(`WITH RECURSIVE before(id) AS (SELECT ?1 UNION SELECT f.id FROM facts f JOIN before b ON f.superseded_by = b.id)
		SELECT count(*) FROM before`, id).Scan(&n)
	return n, err
}

// Conflicts lists conflict rows, newest first, from before the cursor.
func (v *View) Conflicts(openOnly bool, scope Scope, before string, limit int) ([]record.Conflict, error) {
	rows, err := v.query("SELECT "+conflictColumns+`, a.domain_id, b.domain_id`+fromConflicts+`WHERE (?1 = 0 OR c.open = 1) AND (?2 = '' OR c.id < ?2) ORDER BY c.id DESC LIMIT ?3`, openOnly, before, limit)
	out := []record.Conflict{}
	_, err = collect(rows, err, func(r scanner) (struct{}, error) {
		var da, db int64
		c, err := scanConflict(withMore{r, []any{&da, &db}})
		if err == nil && !scope.Hidden(da) && !scope.Hidden(db) {
			out = append(out, c)
		}
		return struct{}{}, err
	})
	return out, err
}

// withMore scans further columns after those that the inner scan names.
type withMore struct {
	scanner
	more []any
}

func (w withMore) Scan(dest ...any) error { return w.scanner.Scan(append(dest, w.more...)...) }

// StaleMatch is a superseded fact that a statement repeats, and what holds now.
type StaleMatch struct {
	Old, Current record.Fact
	// Replaced is false when it was withdrawn without a successor.
	Replaced bool
}

// StaleVersion looks for a superseded fact with the statement's identity, in
// any topic that does not hold it as current somewhere.
func (v *View) StaleVersion(statement string) (*StaleMatch, error) {
	key := text.ContentKey(statement)
	contentKey := key[:]
	var active int
	if err := v.row("SELECT count(*) FROM (SELECT 1 FROM facts f WHERE f.content_key = ? AND "+current+" LIMIT 1)", contentKey).Scan(&active); err != nil {
		return nil, err
	}
	if active > 0 {
		return nil, nil
	}
	rows, err := v.query("SELECT "+factColumns+fromFacts+"WHERE f.content_key = ? AND f.superseded_at > 0 ORDER BY f.superseded_at DESC, f.seq DESC LIMIT 1", contentKey)
	found, err := collect(rows, err, scanFact)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	m := &StaleMatch{Old: v.factRow(found[0]).Fact}
	next, replaced, err := v.successor(m.Old)
	if err != nil {
		return nil, err
	}
	if replaced {
		m.Current, m.Replaced = next, true
	}
	return m, nil
}

// BelievedAt returns the confidence of the beliefs that rest on the facts in the
// given rows, by row; facts without a belief are left out.
func (v *View) BelievedAt(seqs []int64) (map[int64]float64, error) {
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	type row struct {
		seq        int64
		confidence float64
	}
	rows, err := v.query("SELECT f.seq, b.confidence FROM json_each(?) j JOIN facts f ON f.seq = j.value JOIN belief_facts m ON m.fact_id = f.id JOIN beliefs b ON b.id = m.belief_id", string(list))
	found, err := collect(rows, err, func(r scanner) (x row, err error) { return x, r.Scan(&x.seq, &x.confidence) })
	out := make(map[int64]float64, len(found))
	for _, x := range found {
		out[x.seq] = x.confidence
	}
	return out, err
}

// Beliefs lists what several agents hold, in scope, by domain, then oldest
// first.
func (v *View) Beliefs(scope Scope) ([]record.Belief, error) {
	rows, err := v.query("SELECT " + beliefColumns + fromBeliefs + "ORDER BY d.repo, d.name_key, b.created_at, b.id")
	out := []record.Belief{}
	_, err = collect(rows, err, func(r scanner) (struct{}, error) {
		b, err := scanBelief(r)
		if err == nil && !scope.Hidden(b.domainID) {
			out = append(out, b.Belief)
		}
		return struct{}{}, err
	})
	return out, err
}
