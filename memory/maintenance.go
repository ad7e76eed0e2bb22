package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// fadedBelow and weakBelow say when a fact that nobody uses is archived
	// (behaviour.md 9).
	fadedBelow = 0.05
	weakBelow  = 0.5
)

func checkPage(cursor string, limit int) (after int64, err error) {
	if limit < 1 || limit > 1000 {
		return 0, record.Errorf(record.InvalidArgument, "limit", "a page considers 1 to 1000 items")
	}
	if cursor == "" {
		return 0, nil
	}
	after, err = strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		return 0, record.Errorf(record.InvalidArgument, "cursor", "the cursor is not one of a page")
	}
	return after, nil
}

// ConsolidatePage does one page of a consolidation phase. A page that changes
// nothing leaves no trace, not even in the ledger.
func (s *Store) ConsolidatePage(ctx context.Context, req record.MaintenancePage) (record.ConsolidationPage, error) {
	after, err := checkPage(req.Cursor, req.Limit)
	if err != nil {
		return record.ConsolidationPage{}, err
	}
	var found factPage
	if req.Phase == record.PhaseMerge {
		// Looking for duplicates takes far longer than a write may, so it is done
		// in a read; the write looks again at the pairs that it found.
		if found, err = s.lookAround(ctx, req, after, conflict.Duplicate); err != nil {
			return record.ConsolidationPage{}, err
		}
	}
	return apply(ctx, s, record.KindConsolidate, req, func(t *tx) (record.ConsolidationPage, error) {
		var page record.ConsolidationPage
		page.Report.Skipped = []string{}
		last, n := found.last, len(found.facts)
		if req.Phase == record.PhaseMerge {
			page.Report.Considered = n
			err = t.mergePairs(req, found.pairs, &page.Report)
		} else {
			last, n, err = t.consolidate(req, after, &page.Report)
		}
		if n == req.Limit {
			page.Next = strconv.FormatInt(last, 10)
		}
		r := page.Report
		t.discard = req.DryRun || req.Phase != record.PhaseFinish && r.Promoted+r.ReMentioned+r.Merged+r.Archived+r.Expired+r.Conflicts == 0
		return page, err
	})
}

// changeRunes is how much of a statement a dry run shows.
const changeRunes = 200

// change is what a dry run lists of a fact; a real run lists nothing.
func change(req record.MaintenancePage, what string, f *fact, other, reason string) []record.Change {
	if !req.DryRun {
		return nil
	}
	return []record.Change{{What: what, ID: f.ID, Other: other, Content: firstRunes(f.Content, changeRunes), Reason: firstRunes(reason, changeRunes)}}
}

// consolidate runs the page and returns its last row and how many it saw.
func (t *tx) consolidate(req record.MaintenancePage, after int64, report *record.ConsolidationReport) (last int64, n int, err error) {
	switch req.Phase {
	case record.PhaseFinish:
		return 0, 0, t.finish("consolidated")
	case record.PhaseExpireItems:
		return t.expireItems(req, after, report)
	case record.PhasePromote:
		return t.promoteItems(req, after, report)
	case record.PhaseExpireFacts:
		return t.eachFact(req, after, "f.valid_until <> 0 AND f.valid_until <= ?", func(f *fact) error {
			report.Expired++
			report.Would.Add(change(req, "expired", f, "", "its validity ended")...)
			return t.archive(f, "expired", "its validity ended")
		})
	case record.PhaseArchive:
		return t.eachFact(req, after, `(f.valid_until = 0 OR f.valid_until > ?) AND f.confidence < 0.5 AND f.recall_count = 0
			AND f.memory_type NOT IN ('instruction', 'preference', 'profile', 'relationship')
			AND NOT EXISTS (SELECT 1 FROM belief_facts b WHERE b.fact_id = f.id)
			AND NOT EXISTS (SELECT 1 FROM facts s WHERE s.superseded_by = f.id)
			AND NOT EXISTS (SELECT 1 FROM policies p WHERE p.superseded_at = 0 AND instr(p.rule, f.id) > 0)`, func(f *fact) error {
			if f.Confidence >= weakBelow || Decay(f.MemoryType, Confirmed(&f.Fact), t.now.Time) >= fadedBelow {
				return nil
			}
			report.Archived++
			report.Would.Add(change(req, "archived", f, "", "faded, weak and never recalled")...)
			return t.archive(f, "faded", "faded, weak and never recalled")
		})
	}
	return 0, 0, record.Errorf(record.InvalidArgument, "phase", "unknown phase %q", req.Phase)
}

// eachFact runs do over the page of active facts that meet where, which takes
// the time as its one argument, oldest first.
func (t *tx) eachFact(req record.MaintenancePage, after int64, where string, do func(*fact) error) (last int64, n int, err error) {
	facts, err := pageOfFacts(t, req, after, where)
	if err != nil {
		return 0, 0, err
	}
	for _, f := range facts {
		last = f.seq
		if err := do(f); err != nil {
			return 0, 0, err
		}
	}
	return last, len(facts), nil
}

func (t *tx) keptItems(req record.MaintenancePage, after int64, where string) ([]Row[sessionItem], error) {
	rows, err := t.query("SELECT "+itemColumns+" FROM session_items WHERE state = 'kept' AND "+where+" AND seq > ? AND (? = '' OR agent = ?) ORDER BY seq LIMIT ?", t.now.Micros(), after, req.ForAgent, req.ForAgent, req.Limit)
	return collect(rows, err, scanItem)
}

func (t *tx) expireItems(req record.MaintenancePage, after int64, report *record.ConsolidationReport) (last int64, n int, err error) {
	items, err := t.keptItems(req, after, "expires_at > 0 AND expires_at <= ?")
	if err != nil {
		return 0, 0, err
	}
	for _, it := range items {
		last = it.Seq
		report.Considered++
		report.Expired++
		if req.DryRun {
			report.Would.Add(record.Change{What: "expired", ID: it.Value.ID, Content: firstRunes(it.Value.Content, changeRunes), Reason: "its time is over"})
		}
		if err := t.exec("UPDATE session_items SET state = 'expired' WHERE seq = ?", it.Seq); err != nil {
			return 0, 0, err
		}
	}
	return last, len(items), nil
}

// promoteItems proposes the kept session items, oldest first, as facts of
// their agents. One that cannot be taken is skipped and reported.
func (t *tx) promoteItems(req record.MaintenancePage, after int64, report *record.ConsolidationReport) (last int64, n int, err error) {
	items, err := t.keptItems(req, after, "(expires_at = 0 OR expires_at > ?)")
	if err != nil {
		return 0, 0, err
	}
	for _, it := range items {
		last = it.Seq
		report.Considered++
		item := it.Value
		out, err := t.promote(item)
		var refused *record.Error
		if errors.As(err, &refused) && refused.Code != record.Unavailable && refused.Code != record.StoreCorrupt {
			report.Skipped = append(report.Skipped, fmt.Sprintf("item %s: %s", item.ID, refused.Code))
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		if out.Status == record.StatusReMentioned {
			report.ReMentioned++
		} else {
			report.Promoted++
		}
		report.Conflicts += len(out.Conflicts)
		if req.DryRun {
			what := "promoted"
			if out.Status == record.StatusReMentioned {
				what = "re-mentioned"
			}
			report.Would.Add(record.Change{What: what, ID: item.ID, Content: firstRunes(item.Content, changeRunes), Reason: "as " + string(out.Status) + " in " + out.Domain + "/" + out.Topic})
		}
		if err := t.exec("UPDATE session_items SET state = 'promoted', fact_id = ? WHERE seq = ?", out.FactID, it.Seq); err != nil {
			return 0, 0, err
		}
	}
	return last, len(items), nil
}

// promote proposes one session item. Without a domain of its own it goes to
// working-memory, without a topic under its session.
func (t *tx) promote(item sessionItem) (record.ProposeFactResult, error) {
	domain, topic := item.Domain, item.Topic
	if domain == "" {
		domain = "working-memory"
	}
	if text.Blank(topic) {
		topic = "session " + item.SessionID
	}
	p, err := checkProposal(record.ProposeFact{
		Caller: record.Caller{Agent: item.Agent, Role: item.role}, Domain: domain, Topic: topic, Content: item.Content,
		Veracity: string(item.Veracity), Confidence: &item.Importance, MemoryType: string(item.MemoryType), OccurredAt: item.CreatedAt,
		SourceObservationIDs: []string{item.ID},
	})
	if err != nil {
		return record.ProposeFactResult{}, err
	}
	return t.propose(p)
}

// mergePairs retires the later of each two duplicates in different topics, or
// the weaker. A pair of which a side is gone or has changed is passed over.
func (t *tx) mergePairs(req record.MaintenancePage, pairs []pair, report *record.ConsolidationReport) error {
	for _, p := range pairs {
		if p.a.topicKey == p.b.topicKey {
			continue
		}
		f, err := t.stillActive(p.a)
		if err != nil {
			return err
		}
		o, err := t.stillActive(p.b)
		if err != nil {
			return err
		}
		if f == nil || o == nil {
			continue
		}
		winner, loser := f, o
		if strength(o.Confidence, o.Veracity) > strength(f.Confidence, f.Veracity)+strengthTolerance {
			winner, loser = o, f
		}
		kept, err := t.sourceOfBelief(loser.ID)
		if err != nil {
			return err
		}
		if kept {
			continue
		}
		reason := "the same statement in another topic: " + p.verdict.Reason
		if err := t.supersede(loser, winner, record.ConflictMerged, reason); err != nil {
			return err
		}
		if _, err := t.conflictRow(record.ConflictMerged, winner.ID, loser.ID, winner.ID, loser.ID, p.verdict.Rule, reason); err != nil {
			return err
		}
		err = t.exec("UPDATE facts SET mention_count = mention_count + ?, confidence = max(confidence, ?), version = version + 1 WHERE seq = ?", loser.MentionCount, loser.Confidence, winner.seq)
		if err != nil {
			return err
		}
		report.Merged++
		report.Would.Add(change(req, "merged", loser, winner.ID, reason)...)
	}
	return nil
}

// stillActive reads a fact again; nil when it is no longer active, or says
// something else by now.
func (t *tx) stillActive(f *fact) (*fact, error) {
	now, err := scanFact(t.row("SELECT "+factColumns+fromFacts+"WHERE f.seq = ? AND "+current, f.seq))
	if errors.Is(err, sql.ErrNoRows) || err == nil && (now.Expired(t.now) || now.Content != f.Content || now.topicKey != f.topicKey) {
		return nil, nil
	}
	return now, err
}

func (t *tx) sourceOfBelief(id string) (bool, error) {
	var n int
	err := t.row("SELECT count(*) FROM belief_facts WHERE fact_id = ?", id).Scan(&n)
	return n > 0, err
}

// HarmonizePage does one page of a harmonization phase.
func (s *Store) HarmonizePage(ctx context.Context, req record.MaintenancePage) (record.HarmonizationPage, error) {
	after, err := checkPage(req.Cursor, req.Limit)
	if err != nil {
		return record.HarmonizationPage{}, err
	}
	var found factPage
	if req.Phase == record.PhaseBeliefs {
		if found, err = s.lookAround(ctx, req, after, conflict.Duplicate, conflict.Contradiction); err != nil {
			return record.HarmonizationPage{}, err
		}
	}
	return apply(ctx, s, record.KindHarmonize, req, func(t *tx) (record.HarmonizationPage, error) {
		var page record.HarmonizationPage
		var err error
		switch req.Phase {
		case record.PhaseBeliefs:
			page.Report.Considered = len(found.facts)
			if err = t.harmonize(req, found, &page.Report); err == nil && len(found.facts) == req.Limit {
				page.Next = strconv.FormatInt(found.last, 10)
			}
		case record.PhasePrune:
			err = t.pruneBeliefs(&page.Report)
		case record.PhaseFinish:
			err = t.finish("harmonized")
		default:
			err = record.Errorf(record.InvalidArgument, "phase", "unknown phase %q", req.Phase)
		}
		r := page.Report
		t.discard = req.DryRun || req.Phase != record.PhaseFinish && r.BeliefsCreated+r.BeliefsUpdated+r.BeliefsRemoved+r.ConflictsOpened+r.ConflictsClosed == 0
		return page, err
	})
}

// holders returns the distinct agents that stated or mentioned the facts.
func (t *tx) holders(facts []*fact) ([]string, error) {
	ids := make([]string, len(facts))
	for i, f := range facts {
		ids[i] = f.ID
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := t.query(`SELECT DISTINCT e.agent FROM json_each(?) j JOIN facts f ON f.id = j.value JOIN fact_events e ON e.fact = f.seq
		WHERE e.kind IN ('created', 're-mentioned') AND e.agent <> '' ORDER BY e.agent`, string(list))
	return collect(rows, err, scanOne[string])
}

// harmonize looks at the facts of a page and what stands around each: its
// cluster of agreeing facts becomes a belief when at least two agents hold it,
// and a fact of other agents that opposes it opens a row.
func (t *tx) harmonize(req record.MaintenancePage, found factPage, report *record.HarmonizationReport) error {
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
		cluster := []*fact{f}
		for _, p := range around[f.seq] {
			o, err := t.stillActive(p.b)
			if err != nil {
				return err
			}
			if o == nil {
				continue
			}
			if p.verdict.Relation == conflict.Duplicate {
				cluster = append(cluster, o)
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
		slices.SortFunc(cluster, func(a, b *fact) int { return cmp.Compare(a.seq, b.seq) })
		if cluster[0] == f {
			// The oldest of a cluster stands for it; the others pass.
			known := report.BeliefsCreated + report.BeliefsUpdated
			if err := t.believe(cluster, report); err != nil {
				return err
			}
			if report.BeliefsCreated+report.BeliefsUpdated > known {
				report.Would.Add(change(req, "belief", f, "", fmt.Sprintf("held by several agents in %d facts", len(cluster)))...)
			}
		}
	}
	return nil
}

// believe makes or updates the belief of a cluster that several agents hold.
func (t *tx) believe(cluster []*fact, report *record.HarmonizationReport) error {
	agents, err := t.holders(cluster)
	if err != nil || len(agents) < 2 {
		return err
	}
	mean := 0.0
	ids := make([]string, len(cluster))
	for i, f := range cluster {
		mean += f.Confidence / float64(len(cluster))
		ids[i] = f.ID
	}
	slices.Sort(ids)
	confidence := math.Min(0.95, math.Max(0.5, mean+math.Min(0.2, 0.1*float64(len(agents)-1))))
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	held, err := json.Marshal(agents)
	if err != nil {
		return err
	}
	rows, err := t.query(`SELECT b.id, b.domain_id, '', '', b.topic, b.statement, b.confidence, b.agents, b.version, b.created_at, b.updated_at,
		  (SELECT json_group_array(fact_id) FROM (SELECT fact_id FROM belief_facts m WHERE m.belief_id = b.id ORDER BY fact_id))
		FROM beliefs b WHERE b.id IN (SELECT m.belief_id FROM json_each(?) j JOIN belief_facts m ON m.fact_id = j.value) ORDER BY b.created_at, b.id LIMIT 1`, string(list))
	existing, err := collect(rows, err, func(r scanner) (record.Belief, error) {
		b, _, err := scanBelief(r)
		return b, err
	})
	if err != nil {
		return err
	}
	first := cluster[0]
	var id string
	if len(existing) > 0 {
		b := existing[0]
		if slices.Equal(b.FactIDs, ids) && slices.Equal(b.Agents, agents) && math.Abs(b.Confidence-confidence) < strengthTolerance && b.Statement == first.Content {
			return nil
		}
		id = b.ID
		report.BeliefsUpdated++
		err = t.exec("UPDATE beliefs SET topic = ?, statement = ?, confidence = ?, agents = ?, version = version + 1, updated_at = ? WHERE id = ?", first.Topic, first.Content, confidence, string(held), t.now.Micros(), id)
	} else {
		if id, err = newID(); err != nil {
			return err
		}
		report.BeliefsCreated++
		err = t.exec("INSERT INTO beliefs (id, domain_id, topic, statement, confidence, agents, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)", id, first.domainID, first.Topic, first.Content, confidence, string(held), t.now.Micros(), t.now.Micros())
	}
	if err != nil {
		return err
	}
	if err := t.exec("DELETE FROM belief_facts WHERE belief_id = ?", id); err != nil {
		return err
	}
	return t.exec("INSERT INTO belief_facts (fact_id, belief_id) SELECT value, ? FROM json_each(?) WHERE true ON CONFLICT (fact_id) DO UPDATE SET belief_id = excluded.belief_id", id, string(list))
}

// oppose opens a row between facts that different agents hold, unless the pair
// has a row already, open or settled.
func (t *tx) oppose(f *fact, r related, report *record.HarmonizationReport) error {
	mine, err := t.holders([]*fact{f})
	if err != nil {
		return err
	}
	theirs, err := t.holders([]*fact{r.fact})
	if err != nil {
		return err
	}
	if len(mine) == 0 || len(theirs) == 0 || slices.ContainsFunc(mine, func(a string) bool { return slices.Contains(theirs, a) }) {
		return nil
	}
	a, b := pairOf(f.ID, r.fact.ID)
	var known int
	if err := t.row("SELECT count(*) FROM conflicts WHERE fact_a = ? AND fact_b = ?", a, b).Scan(&known); err != nil || known > 0 {
		return err
	}
	who := fmt.Sprintf("held by %s against %s: ", strings.Join(mine, ", "), strings.Join(theirs, ", "))
	if _, err := t.conflictRow(record.ConflictCrossAgent, f.ID, r.fact.ID, "", "", r.verdict.Rule, who+r.verdict.Reason); err != nil {
		return err
	}
	report.ConflictsOpened++
	return nil
}

// pruneBeliefs lets go of facts that are no longer current, and of beliefs
// that fewer than two agents hold then.
func (t *tx) pruneBeliefs(report *record.HarmonizationReport) error {
	err := t.exec(`DELETE FROM belief_facts WHERE fact_id IN (SELECT m.fact_id FROM belief_facts m JOIN facts f ON f.id = m.fact_id
		WHERE NOT (`+current+`) OR f.valid_until <> 0 AND f.valid_until <= ?)`, t.now.Micros())
	if err != nil {
		return err
	}
	n, err := t.affected(`DELETE FROM beliefs WHERE id IN (SELECT b.id FROM beliefs b WHERE
		(SELECT count(DISTINCT e.agent) FROM belief_facts m JOIN facts f ON f.id = m.fact_id JOIN fact_events e ON e.fact = f.seq
		 WHERE m.belief_id = b.id AND e.kind IN ('created', 're-mentioned') AND e.agent <> '') < 2)`)
	report.BeliefsRemoved += int(n)
	return err
}

func scanBelief(r scanner) (b record.Belief, domain int64, err error) {
	var repo, name, agents, facts string
	var created, updated int64
	err = r.Scan(&b.ID, &domain, &repo, &name, &b.Topic, &b.Statement, &b.Confidence, &agents, &b.Version, &created, &updated, &facts)
	if err != nil {
		return b, 0, err
	}
	b.Domain, b.CreatedAt, b.UpdatedAt = fullName(repo, name), record.FromMicros(created), record.FromMicros(updated)
	if err := errors.Join(json.Unmarshal([]byte(agents), &b.Agents), json.Unmarshal([]byte(facts), &b.FactIDs)); err != nil {
		return b, 0, record.Wrap(record.StoreCorrupt, err, "belief %s is unreadable", b.ID)
	}
	return b, domain, nil
}

// finish notes when a maintenance run ended; kind is "consolidated" or
// "harmonized".
func (t *tx) finish(kind string) error {
	return t.exec("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", "last_"+kind, t.now.Micros())
}
