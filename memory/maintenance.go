package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
		page.Report.Skipped = append([]string{}, found.skipped...)
		last, n := found.last, found.rows
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
		return t.eachFact(req, after, report, "f.valid_until <> 0 AND f.valid_until <= ?", func(f *fact) error {
			report.Expired++
			report.Would.Add(change(req, "expired", f, "", "its validity ended")...)
			return t.archive(f, "expired", "its validity ended")
		})
	case record.PhaseArchive:
		return t.eachFact(req, after, report, `(f.valid_until = 0 OR f.valid_until > ?) AND f.confidence < 0.5 AND f.recall_count = 0
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
func (t *tx) eachFact(req record.MaintenancePage, after int64, report *record.ConsolidationReport, where string, do func(*fact) error) (last int64, n int, err error) {
	page, err := pageOfFacts(t, req, after, where)
	if err != nil {
		return 0, 0, err
	}
	report.Skipped = append(report.Skipped, page.skipped...)
	for _, f := range page.facts {
		if err := do(f); err != nil {
			return 0, 0, err
		}
	}
	return page.last, page.rows, nil
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
// the weaker. A side that was merged meanwhile is stood for by what it was
// merged into, when that is a duplicate too; a pair of which a side is gone
// otherwise, or has changed, is passed over.
func (t *tx) mergePairs(req record.MaintenancePage, pairs []pair, report *record.ConsolidationReport) error {
	for _, p := range pairs {
		f, err := t.standing(p.a)
		if err != nil {
			return err
		}
		o, err := t.standing(p.b)
		if err != nil {
			return err
		}
		if f == nil || o == nil || f.topicKey == o.topicKey {
			continue
		}
		verdict := p.verdict
		if f.seq != p.a.seq || o.seq != p.b.seq {
			if verdict = conflict.Compare(f.statement(), o.statement()); verdict.Relation != conflict.Duplicate {
				continue
			}
		}
		if o.seq < f.seq {
			f, o = o, f
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
		reason := "the same statement in another topic: " + verdict.Reason
		if err := t.supersede(loser, winner, record.ConflictMerged, reason); err != nil {
			return err
		}
		if _, err := t.conflictRow(record.ConflictMerged, winner.ID, loser.ID, winner.ID, loser.ID, verdict.Rule, reason); err != nil {
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
	now, err := scanSound(t.row("SELECT "+factColumns+fromFacts+"WHERE f.seq = ? AND "+current, f.seq))
	if errors.Is(err, sql.ErrNoRows) || err == nil && (now.Expired(t.now) || now.Content != f.Content || now.topicKey != f.topicKey) {
		return nil, nil
	}
	if err == nil {
		now.parsed = f.parsed
	}
	return now, err
}

// standing is stillActive, and for a fact that was merged the active one that
// it was merged into, over several merges.
func (t *tx) standing(f *fact) (*fact, error) {
	now, err := t.stillActive(f)
	for hops := 0; err == nil && now == nil && hops < lookWindow; hops++ {
		var next *fact
		next, err = scanSound(t.row("SELECT "+factColumns+" FROM facts l JOIN facts f ON f.id = l.superseded_by JOIN domains d ON d.id = f.domain_id WHERE l.seq = ? AND l.superseded_kind = ?", f.seq, record.ConflictMerged))
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err == nil {
			f = next
			now, err = t.stillActive(f)
		}
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
		page.Report.Skipped = []string{}
		switch req.Phase {
		case record.PhaseBeliefs:
			page.Report.Considered, page.Report.Skipped = found.rows, append(page.Report.Skipped, found.skipped...)
			if err = t.harmonize(req, found, &page.Report); err == nil && found.rows == req.Limit {
				page.Next = strconv.FormatInt(found.last, 10)
			}
		case record.PhasePrune:
			err = t.pruneBeliefs(req, &page.Report)
		case record.PhaseFinish:
			err = t.finish("harmonized")
		default:
			err = record.Errorf(record.InvalidArgument, "phase", "unknown phase %q", req.Phase)
		}
		r := page.Report
		t.discard = req.DryRun || req.Phase != record.PhaseFinish && r.BeliefsCreated+r.BeliefsUpdated+r.BeliefsRemoved+r.ConflictsOpened == 0
		return page, err
	})
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

// finish notes when a maintenance run ended; kind is "consolidated" or
// "harmonized".
func (t *tx) finish(kind string) error {
	return t.exec("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", "last_"+kind, t.now.Micros())
}
