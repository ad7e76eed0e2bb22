package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// decisionsDomain is where the decisions of meetings go.
const decisionsDomain = "decisions"

// CheckMeeting refuses a capture that cannot be taken as a whole; a bad
// decision in it is reported by its index instead.
func CheckMeeting(m record.CaptureMeeting) error {
	if err := record.CheckName("meeting_id", m.MeetingID); err != nil {
		return err
	}
	if text.Blank(m.MeetingID) {
		return record.Errorf(record.InvalidArgument, "meeting_id", "a meeting needs an id")
	}
	if err := record.CheckName("title", m.Title); err != nil {
		return err
	}
	if m.Revision < 1 {
		return record.Errorf(record.InvalidArgument, "revision", "a revision is 1 or more")
	}
	return m.CheckSize()
}

// CaptureMeetingPage takes one page of a meeting's decisions under the page's
// own ledger key. The first page claims the revision, the last one withdraws
// what the revision no longer holds. A page of an outdated revision changes
// nothing.
func (s *Store) CaptureMeetingPage(ctx context.Context, page record.MeetingPage) (record.MeetingReport, error) {
	if err := CheckMeeting(page.CaptureMeeting); err != nil {
		return record.MeetingReport{}, err
	}
	return apply(ctx, s, record.KindCaptureMeeting, page, func(t *tx) (record.MeetingReport, error) {
		res := record.MeetingReport{MeetingID: page.MeetingID, Revision: page.Revision, Failed: []record.ItemError{}, FactIDs: []string{}}
		var have int64
		err := t.row("SELECT revision FROM meetings WHERE meeting_id = ?", page.MeetingID).Scan(&have)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return res, err
		}
		if have > page.Revision {
			res.Outdated, t.discard = true, true
			res.FactIDs, err = t.meetingFacts(page.MeetingID)
			return res, err
		}
		if err := t.claimRevision(page); err != nil {
			return res, err
		}
		if err := t.takeDecisions(page, &res); err != nil {
			return res, err
		}
		if page.Last {
			if err := t.withdrawVanished(page, &res); err != nil {
				return res, err
			}
			if res.FactIDs, err = t.meetingFacts(page.MeetingID); err != nil {
				return res, err
			}
		}
		return res, nil
	})
}

func (t *tx) claimRevision(page record.MeetingPage) error {
	attendees, err := json.Marshal(page.Attendees)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO meetings (meeting_id, revision, title, held_at, attendees, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (meeting_id) DO UPDATE SET revision = excluded.revision, title = excluded.title, held_at = excluded.held_at, attendees = excluded.attendees, updated_at = excluded.updated_at`,
		page.MeetingID, page.Revision, page.Title, page.HeldAt.Micros(), string(attendees), t.now.Micros())
}

func (t *tx) meetingFacts(meeting string) ([]string, error) {
	rows, err := t.query("SELECT DISTINCT m.fact_id FROM meeting_decisions m JOIN facts f ON f.id = m.fact_id WHERE m.meeting_id = ? AND "+current+" ORDER BY m.fact_id", meeting)
	ids, err := collect(rows, err, scanOne[string])
	if ids == nil {
		ids = []string{}
	}
	return ids, err
}

func (t *tx) takeDecisions(page record.MeetingPage, res *record.MeetingReport) error {
	ids, err := t.meetingFacts(page.MeetingID)
	if err != nil {
		return err
	}
	siblings := make(map[string]bool, len(ids))
	for _, id := range ids {
		siblings[id] = true
	}
	for i, d := range page.Decisions {
		err := t.takeDecision(page, d, siblings, res)
		var refused *record.Error
		switch {
		case err == nil:
		case errors.As(err, &refused) && refused.Code != record.Unavailable && refused.Code != record.StoreCorrupt:
			res.Failed = append(res.Failed, record.ItemError{Index: page.First + i, Code: refused.Code, Message: refused.Message, Field: refused.Field})
		default:
			return err
		}
	}
	return nil
}

// takeDecision adds one decision, or confirms it when an earlier revision had
// it. Whatever can refuse it does so before anything is written.
func (t *tx) takeDecision(page record.MeetingPage, d record.Decision, siblings map[string]bool, res *record.MeetingReport) error {
	topic := d.Topic
	if text.Blank(topic) {
		topic = "meeting " + page.MeetingID
	}
	if err := record.CheckName("decided_by", d.DecidedBy); err != nil {
		return err
	}
	full := 1.0
	p, err := checkProposal(record.ProposeFact{
		Caller: page.Caller, Domain: decisionsDomain, Topic: topic, Content: d.Text, Veracity: string(record.Stated),
		Confidence: &full, MemoryType: string(record.TypeDecision), OccurredAt: page.HeldAt,
		SourceObservationIDs: []string{"meeting:" + page.MeetingID},
	})
	if err != nil {
		return err
	}
	p.siblings = siblings
	var factID string
	var revision int64
	err = t.row("SELECT fact_id, revision FROM meeting_decisions WHERE meeting_id = ? AND topic_key = ? AND content_key = ?", page.MeetingID, p.topicKey, p.contentKey).Scan(&factID, &revision)
	switch {
	case err == nil && revision == page.Revision:
		// Twice in one revision is once.
		return nil
	case err == nil:
		return t.keepDecision(page, p, factID, res)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	out, err := t.propose(p)
	if err != nil {
		return err
	}
	made := out.Status != record.StatusReMentioned
	if made {
		res.Added++
		reason := fmt.Sprintf("decided in meeting %s, revision %d", page.MeetingID, page.Revision)
		if d.DecidedBy != "" {
			reason += ", by " + d.DecidedBy
		}
		if err := t.exec("UPDATE fact_events SET reason = ? WHERE fact = (SELECT seq FROM facts WHERE id = ?) AND kind = 'created'", reason, out.FactID); err != nil {
			return err
		}
	} else {
		res.ReMentioned++
	}
	siblings[out.FactID] = true
	return t.exec("INSERT INTO meeting_decisions (meeting_id, topic_key, content_key, fact_id, revision, made) VALUES (?, ?, ?, ?, ?, ?)",
		page.MeetingID, p.topicKey, p.contentKey, out.FactID, page.Revision, made)
}

// keepDecision confirms a decision that this revision still holds, once a
// revision, unless the fact was retired by something else meanwhile.
func (t *tx) keepDecision(page record.MeetingPage, p *proposal, factID string, res *record.MeetingReport) error {
	f, err := getFact(t, "decisions", factID)
	if err != nil {
		return err
	}
	if f.Active(t.now) {
		reason := fmt.Sprintf("kept in meeting %s, revision %d", page.MeetingID, page.Revision)
		if _, err := t.reMention(f, p, reason); err != nil {
			return err
		}
		res.ReMentioned++
	}
	return t.exec("UPDATE meeting_decisions SET revision = ? WHERE meeting_id = ? AND topic_key = ? AND content_key = ?", page.Revision, page.MeetingID, p.topicKey, p.contentKey)
}

// withdrawVanished retires the decisions that the revision no longer holds. A
// fact that the meeting only confirmed, or that another meeting decided too,
// stays.
func (t *tx) withdrawVanished(page record.MeetingPage, res *record.MeetingReport) error {
	rows, err := t.query(`SELECT m.fact_id, m.made AND NOT EXISTS (SELECT 1 FROM meeting_decisions o WHERE o.fact_id = m.fact_id AND (o.meeting_id <> m.meeting_id OR o.revision = ?2))
		FROM meeting_decisions m WHERE m.meeting_id = ?1 AND m.revision < ?2 ORDER BY m.topic_key, m.content_key`, page.MeetingID, page.Revision)
	type gone struct {
		id     string
		retire bool
	}
	vanished, err := collect(rows, err, func(r scanner) (g gone, err error) { return g, r.Scan(&g.id, &g.retire) })
	if err != nil {
		return err
	}
	for _, g := range vanished {
		f, err := getFact(t, "decisions", g.id)
		if err != nil {
			return err
		}
		if g.retire && f.SupersededAt.IsZero() && f.ArchivedAt.IsZero() {
			err := t.exec("UPDATE facts SET superseded_kind = 'withdrawn', superseded_at = ?, updated_at = ?, version = version + 1 WHERE seq = ?", t.now.Micros(), t.now.Micros(), f.seq)
			if err != nil {
				return err
			}
			if err := t.event(f, "withdrawn", "", fmt.Sprintf("no longer in meeting %s at revision %d", page.MeetingID, page.Revision)); err != nil {
				return err
			}
			if err := t.closeConflicts(f.ID, ""); err != nil {
				return err
			}
		}
		res.Withdrawn++
	}
	return t.exec("DELETE FROM meeting_decisions WHERE meeting_id = ? AND revision < ?", page.MeetingID, page.Revision)
}
