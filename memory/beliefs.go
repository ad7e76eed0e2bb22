package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// belief is a row of beliefs, with what it quotes parsed.
type belief struct {
	record.Belief
	domainID   int64
	contentKey []byte
	parsed     *conflict.Parsed
}

const beliefColumns = `b.id, b.domain_id, d.repo, d.name, b.topic, b.statement, b.confidence, b.agents, b.version, b.created_at, b.updated_at,
	(SELECT json_group_array(fact_id) FROM (SELECT fact_id FROM belief_facts m WHERE m.belief_id = b.id ORDER BY fact_id))`

const fromBeliefs = ` FROM beliefs b JOIN domains d ON d.id = b.domain_id `

func scanBelief(r scanner) (*belief, error) {
	var b belief
	var repo, name, agents, facts string
	var created, updated int64
	err := r.Scan(&b.ID, &b.domainID, &repo, &name, &b.Topic, &b.Statement, &b.Confidence, &agents, &b.Version, &created, &updated, &facts)
	if err != nil {
		return nil, err
	}
	b.Domain, b.CreatedAt, b.UpdatedAt = fullName(repo, name), record.FromMicros(created), record.FromMicros(updated)
	if err := errors.Join(json.Unmarshal([]byte(agents), &b.Agents), json.Unmarshal([]byte(facts), &b.FactIDs)); err != nil {
		return nil, record.Wrap(record.StoreCorrupt, err, "belief %s is unreadable", b.ID)
	}
	return &b, nil
}

// agrees reports whether the fact states what the belief states.
func (b *belief) agrees(f *fact) bool {
	if b.contentKey == nil {
		key := text.ContentKey(b.Statement)
		b.contentKey = key[:]
	}
	if bytes.Equal(b.contentKey, f.contentKey) {
		return true
	}
	if b.parsed == nil {
		b.parsed = conflict.Parse(conflict.Statement{Content: b.Statement, Topic: b.Topic, Domain: b.Domain})
	}
	return conflict.Compare(b.parsed, f.statement()).Relation == conflict.Duplicate
}

// quote makes the fact's words those of the belief.
func (b *belief) quote(f *fact) {
	b.Topic, b.Statement, b.contentKey, b.parsed = f.Topic, f.Content, f.contentKey, f.parsed
}

// confidenceOf is the confidence in what n agents hold (behaviour.md 9).
func confidenceOf(members []*fact, agents int) float64 {
	mean := 0.0
	for _, f := range members {
		mean += f.Confidence / float64(len(members))
	}
	return math.Min(0.95, math.Max(0.5, mean+math.Min(0.2, 0.1*float64(agents-1))))
}

// holders returns the distinct agents that stated or mentioned the facts.
func (t *tx) holders(facts []*fact) ([]string, error) {
	list, err := idList(facts)
	if err != nil {
		return nil, err
	}
	rows, err := t.query(`SELECT DISTINCT e.agent FROM json_each(?) j JOIN facts f ON f.id = j.value JOIN fact_events e ON e.fact = f.seq
		WHERE e.kind IN ('created', 're-mentioned') AND e.agent <> '' ORDER BY e.agent`, list)
	return collect(rows, err, scanOne[string])
}

// idList is the ids of the facts as a JSON array.
func idList(facts []*fact) (string, error) {
	ids := make([]string, len(facts))
	for i, f := range facts {
		ids[i] = f.ID
	}
	list, err := json.Marshal(ids)
	return string(list), err
}

// beliefsOf returns the beliefs that rest on the facts, oldest first, by id.
func (t *tx) beliefsOf(facts []*fact) ([]*belief, error) {
	list, err := idList(facts)
	if err != nil {
		return nil, err
	}
	rows, err := t.query("SELECT "+beliefColumns+fromBeliefs+
		"WHERE b.id IN (SELECT m.belief_id FROM json_each(?) j JOIN belief_facts m ON m.fact_id = j.value) ORDER BY b.created_at, b.id", list)
	return collect(rows, err, scanBelief)
}

// unattached returns those of the facts that no belief rests on.
func (t *tx) unattached(facts []*fact) ([]*fact, error) {
	list, err := idList(facts)
	if err != nil {
		return nil, err
	}
	rows, err := t.query("SELECT m.fact_id FROM json_each(?) j JOIN belief_facts m ON m.fact_id = j.value ORDER BY m.fact_id", list)
	taken, err := collect(rows, err, scanOne[string])
	return slices.DeleteFunc(slices.Clone(facts), func(f *fact) bool { return slices.Contains(taken, f.ID) }), err
}

// alignment is what align did to a belief.
type alignment int

const (
	kept alignment = iota
	updated
	removed
)

// align brings a belief in line with what it rests on: facts that are no
// longer current are let go; when none of the others is what it quotes, it
// quotes another and lets go of those that do not say the same; its agents and
// its confidence follow. A belief that fewer than two agents hold goes. changed
// says that it gained or lost a fact.
func (t *tx) align(id string, changed bool) (*belief, alignment, error) {
	b, err := scanBelief(t.row("SELECT "+beliefColumns+fromBeliefs+"WHERE b.id = ?", id))
	if err != nil {
		return nil, kept, err
	}
	rows, err := t.query("SELECT "+factColumns+" FROM belief_facts m JOIN facts f ON f.id = m.fact_id JOIN domains d ON d.id = f.domain_id WHERE m.belief_id = ? AND "+current+
		" AND (f.valid_until = 0 OR f.valid_until > ?) ORDER BY f.seq", id, t.now.Micros())
	members, err := collectSound(rows, err, func(*fact, error) {})
	if err != nil {
		return nil, kept, err
	}
	topic := b.Topic
	quoted := slices.IndexFunc(members, func(f *fact) bool { return f.Content == b.Statement })
	switch {
	case quoted >= 0:
		b.Topic = members[quoted].Topic
	case len(members) > 0:
		b.quote(members[max(0, slices.IndexFunc(members, b.agrees))])
		members = slices.DeleteFunc(members, func(f *fact) bool { return !b.agrees(f) })
		changed = true
	}
	agents, err := t.holders(members)
	if err != nil {
		return nil, kept, err
	}
	if len(agents) < 2 {
		return b, removed, t.exec("DELETE FROM beliefs WHERE id = ?", id)
	}
	confidence := confidenceOf(members, len(agents))
	if !changed && len(members) == len(b.FactIDs) && slices.Equal(b.Agents, agents) && math.Abs(b.Confidence-confidence) < strengthTolerance && b.Topic == topic {
		return b, kept, nil
	}
	held, err := json.Marshal(agents)
	if err != nil {
		return nil, kept, err
	}
	list, err := idList(members)
	if err != nil {
		return nil, kept, err
	}
	err = t.exec("UPDATE beliefs SET topic = ?, statement = ?, confidence = ?, agents = ?, version = version + 1, updated_at = ? WHERE id = ?",
		b.Topic, b.Statement, confidence, string(held), t.now.Micros(), id)
	if err == nil {
		err = t.exec("DELETE FROM belief_facts WHERE belief_id = ? AND fact_id NOT IN (SELECT value FROM json_each(?))", id, list)
	}
	return b, updated, err
}

// alignEdited aligns the belief that rests on a fact which was edited; it
// lets go of the fact when that says something else now.
func (t *tx) alignEdited(f *fact) error {
	own, err := t.beliefsOf([]*fact{f})
	if err != nil || len(own) == 0 {
		return err
	}
	if !own[0].agrees(f) {
		if err := t.exec("DELETE FROM belief_facts WHERE fact_id = ?", f.ID); err != nil {
			return err
		}
	}
	_, _, err = t.align(own[0].ID, true)
	return err
}

// harmonizing is a page of harmonization under way.
type harmonizing struct {
	*tx
	req    record.MaintenancePage
	report *record.HarmonizationReport
	// aligned are the beliefs that this page aligned or made, true when it
	// reported them.
	aligned map[string]bool
	// changed are those that gained or lost a fact since, in order.
	changed []string
}

// harmonize looks at the facts of a page and what stands around each. A fact
// stays in its belief as long as it says what that says; one without joins the
// oldest belief of its duplicates, or makes one with them when at least two
// agents hold it. So the outcome does not hang on how many of the duplicates a
// fact sees, and a second run finds nothing to do. A fact of other agents that
// opposes it opens a row.
func (t *tx) harmonize(req record.MaintenancePage, found factPage, report *record.HarmonizationReport) error {
	h := harmonizing{tx: t, req: req, report: report, aligned: map[string]bool{}}
	around := map[int64][]pair{}
	for _, p := range found.pairs {
		around[p.a.seq] = append(around[p.a.seq], p)
	}
	for _, f := range found.facts {
		f, err := t.stillActive(f)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		var same []*fact
		for _, p := range around[f.seq] {
			o, err := t.stillActive(p.b)
			if err != nil {
				return err
			}
			if o == nil {
				continue
			}
			if p.verdict.Relation == conflict.Duplicate {
				same = append(same, o)
			} else if o.seq > f.seq {
				opened := report.ConflictsOpened
				if err := t.oppose(f, related{o, p.verdict}, report); err != nil {
					return err
				}
				if report.ConflictsOpened > opened {
					report.Would.Add(change(req, "conflict", f, o.ID, p.verdict.Reason)...)
				}
			}
		}
		if err := h.place(f, same); err != nil {
			return err
		}
	}
	for _, id := range h.changed {
		if err := h.alignNow(id, true); err != nil {
			return err
		}
	}
	return nil
}

// place finds the belief of a fact.
func (h *harmonizing) place(f *fact, same []*fact) error {
	stays, err := h.stays(f)
	if err != nil || stays {
		return err
	}
	beliefs, err := h.beliefsOf(same)
	if err != nil {
		return err
	}
	for _, b := range beliefs {
		if b.domainID == f.domainID && b.agrees(f) {
			h.note(b.ID)
			return h.exec("INSERT INTO belief_facts (fact_id, belief_id) VALUES (?, ?)", f.ID, b.ID)
		}
	}
	return h.believe(append(same, f))
}

// stays reports whether the fact is in a belief that it agrees with; it leaves
// one that it does not agree with.
func (h *harmonizing) stays(f *fact) (bool, error) {
	for {
		own, err := h.beliefsOf([]*fact{f})
		if err != nil || len(own) == 0 {
			return false, err
		}
		b := own[0]
		if _, done := h.aligned[b.ID]; !done {
			// It may quote another from now on, or be gone.
			if err := h.alignNow(b.ID, false); err != nil {
				return false, err
			}
			continue
		}
		if b.agrees(f) {
			return true, nil
		}
		h.note(b.ID)
		return false, h.exec("DELETE FROM belief_facts WHERE fact_id = ?", f.ID)
	}
}

// note notes that the belief gained or lost a fact.
func (h *harmonizing) note(id string) {
	if !slices.Contains(h.changed, id) {
		h.changed = append(h.changed, id)
	}
}

// alignNow aligns the belief and reports what came of it, once a page.
func (h *harmonizing) alignNow(id string, changed bool) error {
	b, outcome, err := h.align(id, changed)
	if err != nil {
		return err
	}
	told := h.aligned[id]
	h.aligned[id] = told || outcome != kept
	what := "belief updated"
	switch {
	case outcome == removed:
		h.report.BeliefsRemoved++
		what = "belief removed"
	case outcome == updated && !told:
		h.report.BeliefsUpdated++
	default:
		return nil
	}
	if h.req.DryRun {
		h.report.Would.Add(record.Change{What: what, ID: b.ID, Content: firstRunes(b.Statement, changeRunes)})
	}
	return nil
}

// believe makes a belief of facts that say the same, when several agents hold
// them; those that are in another stay there. The oldest stands for it, and
// with it come all of the same words.
func (h *harmonizing) believe(cluster []*fact) error {
	cluster, err := h.unattached(cluster)
	if err != nil {
		return err
	}
	slices.SortFunc(cluster, func(a, b *fact) int { return cmp.Compare(a.seq, b.seq) })
	var b belief
	first := cluster[0]
	b.quote(first)
	b.Domain = first.Domain
	rows, err := h.query("SELECT "+factColumns+fromFacts+"WHERE f.content_key = ? AND f.domain_id = ? AND "+current+
		" AND (f.valid_until = 0 OR f.valid_until > ?) AND NOT EXISTS (SELECT 1 FROM belief_facts m WHERE m.fact_id = f.id) ORDER BY f.seq", first.contentKey, first.domainID, h.now.Micros())
	members, err := collectSound(rows, err, func(*fact, error) {})
	if err != nil {
		return err
	}
	for _, f := range cluster {
		if !slices.ContainsFunc(members, func(m *fact) bool { return m.seq == f.seq }) && b.agrees(f) {
			members = append(members, f)
		}
	}
	slices.SortFunc(members, func(a, b *fact) int { return cmp.Compare(a.seq, b.seq) })
	agents, err := h.holders(members)
	if err != nil || len(agents) < 2 {
		return err
	}
	list, err := idList(members)
	if err != nil {
		return err
	}
	held, err := json.Marshal(agents)
	if err != nil {
		return err
	}
	id, err := newID()
	if err != nil {
		return err
	}
	h.report.BeliefsCreated++
	h.aligned[id] = true
	h.report.Would.Add(change(h.req, "belief", first, "", fmt.Sprintf("held by %d agents in %d facts", len(agents), len(members)))...)
	err = h.exec("INSERT INTO beliefs (id, domain_id, topic, statement, confidence, agents, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)",
		id, first.domainID, first.Topic, first.Content, confidenceOf(members, len(agents)), string(held), h.now.Micros(), h.now.Micros())
	if err != nil {
		return err
	}
	return h.exec("INSERT INTO belief_facts (fact_id, belief_id) SELECT value, ? FROM json_each(?)", id, list)
}

// pruneBeliefs aligns the beliefs that rest on what is no longer current, or
// on nothing. The others were aligned when their facts were looked at.
func (t *tx) pruneBeliefs(req record.MaintenancePage, report *record.HarmonizationReport) error {
	rows, err := t.query(`SELECT m.belief_id FROM belief_facts m JOIN facts f ON f.id = m.fact_id WHERE NOT (`+current+`) OR f.valid_until <> 0 AND f.valid_until <= ?
		UNION SELECT b.id FROM beliefs b WHERE NOT EXISTS (SELECT 1 FROM belief_facts m WHERE m.belief_id = b.id) ORDER BY 1`, t.now.Micros())
	ids, err := collect(rows, err, scanOne[string])
	if err != nil {
		return err
	}
	h := harmonizing{tx: t, req: req, report: report, aligned: map[string]bool{}}
	for _, id := range ids {
		if err := h.alignNow(id, false); err != nil {
			return err
		}
	}
	return nil
}
