package memory

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// maxTTL bounds a session item's life: ten years, in seconds.
const maxTTL = 10 * 366 * 24 * 3600

func needAgent(c record.Caller) error {
	if text.Blank(c.Agent) {
		return record.Errorf(record.InvalidArgument, "agent", "name the agent whose memory this is")
	}
	return nil
}

func checkNotes(req record.UpdateNotes) error {
	if err := needAgent(req.Caller); err != nil {
		return err
	}
	if err := record.CheckText("text", req.Text, record.MaxContentBytes); err != nil {
		return err
	}
	return checkSecret("text", req.Text)
}

func checkObservation(req record.RecordObservation) error {
	if err := needAgent(req.Caller); err != nil {
		return err
	}
	return checkContent("text", req.Text, record.MaxContentBytes)
}

func checkRemember(req record.Remember) error {
	if err := needAgent(req.Caller); err != nil {
		return err
	}
	if err := checkContent("content", req.Content, record.MaxContentBytes); err != nil {
		return err
	}
	if err := record.CheckName("session_id", req.SessionID); err != nil {
		return err
	}
	if err := record.CheckName("topic", req.Topic); err != nil {
		return err
	}
	if err := record.CheckShare("importance", req.Importance); err != nil {
		return err
	}
	if req.TTLSeconds < 0 || req.TTLSeconds > maxTTL {
		return record.Errorf(record.InvalidArgument, "ttl_seconds", "a life is 1 to %d seconds, or 0 for no end", int64(maxTTL))
	}
	if req.Domain != "" {
		if _, err := parseDomain(req.Domain, req.Repo); err != nil {
			return err
		}
	}
	_, err := record.ParseMemoryType(req.MemoryType)
	return err
}

// notesOf returns the agent's page; version 0 when it was never written.
func notesOf(q queryer, agent string) (record.Notes, error) {
	n := record.Notes{Agent: agent}
	var at int64
	err := q.row("SELECT text, version, updated_at FROM notes WHERE agent = ?", agent).Scan(&n.Text, &n.Version, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return n, nil
	}
	n.UpdatedAt = record.FromMicros(at)
	return n, err
}

func (t *tx) writeNotes(agent, body string) (int64, error) {
	if len(body) > record.MaxContentBytes {
		return 0, record.Errorf(record.ContentTooLarge, "text", "the page would have %d bytes, over the limit of %d", len(body), record.MaxContentBytes)
	}
	var version int64
	err := t.row(`INSERT INTO notes (agent, text, version, updated_at) VALUES (?, ?, 1, ?)
		ON CONFLICT (agent) DO UPDATE SET text = excluded.text, version = version + 1, updated_at = excluded.updated_at RETURNING version`,
		agent, body, t.now.Micros()).Scan(&version)
	return version, err
}

// UpdateNotes replaces the agent's page; empty text clears it.
//
// Errors: InvalidArgument (no agent), ContentTooLarge, InvalidUTF8,
// VersionConflict, IdempotencyKeyReused, Unavailable.
func (s *Store) UpdateNotes(ctx context.Context, req record.UpdateNotes) (record.UpdateNotesResult, error) {
	return apply(ctx, s, record.KindUpdateNotes, req, func(t *tx) (res record.UpdateNotesResult, err error) {
		if err := checkNotes(req); err != nil {
			return res, err
		}
		have, err := notesOf(t, req.Agent)
		if err != nil {
			return res, err
		}
		if want := req.ExpectedVersion; want != nil && *want != have.Version {
			return res, record.Errorf(record.VersionConflict, "expected_version", "the page is at version %d, not %d; read it again", have.Version, *want)
		}
		res.Version, err = t.writeNotes(req.Agent, req.Text)
		res.Bytes = len(req.Text)
		return res, err
	})
}

// RecordObservation appends one line to the agent's page and keeps it under an
// id that facts may cite.
//
// Errors: InvalidArgument (no agent), ContentEmpty, ContentTooLarge (the line,
// or the page with it), InvalidUTF8, IdempotencyKeyReused, Unavailable.
func (s *Store) RecordObservation(ctx context.Context, req record.RecordObservation) (record.RecordObservationResult, error) {
	return apply(ctx, s, record.KindRecordObservation, req, func(t *tx) (res record.RecordObservationResult, err error) {
		if err := checkObservation(req); err != nil {
			return res, err
		}
		have, err := notesOf(t, req.Agent)
		if err != nil {
			return res, err
		}
		// One observation is one line, whatever breaks it holds.
		body := have.Text
		if body != "" && !strings.HasSuffix(body, "\n") {
			body += "\n"
		}
		body += strings.Join(strings.Fields(req.Text), " ") + "\n"
		if res.NotesVersion, err = t.writeNotes(req.Agent, body); err != nil {
			return res, err
		}
		if res.ObservationID, err = newID(); err != nil {
			return res, err
		}
		return res, t.exec("INSERT INTO observations (id, agent, text, created_at) VALUES (?, ?, ?, ?)", res.ObservationID, req.Agent, req.Text, t.now.Micros())
	})
}

// Remember stores a session item for the agent.
//
// Errors: InvalidArgument, ContentEmpty, ContentTooLarge, InvalidUTF8,
// IdempotencyKeyReused, Unavailable.
func (s *Store) Remember(ctx context.Context, req record.Remember) (record.RememberResult, error) {
	return apply(ctx, s, record.KindRemember, req, func(t *tx) (res record.RememberResult, err error) {
		if err := checkRemember(req); err != nil {
			return res, err
		}
		kind, err := record.ParseMemoryType(req.MemoryType)
		if err != nil {
			return res, err
		}
		if kind == "" {
			kind = classifyType(req.Content)
		}
		importance := 0.5
		if req.Importance != nil {
			importance = *req.Importance
		}
		res = record.RememberResult{SessionID: req.SessionID, MemoryType: kind}
		if res.SessionID == "" {
			res.SessionID = "default"
		}
		if req.TTLSeconds > 0 {
			res.ExpiresAt = record.At(t.now.Add(time.Duration(req.TTLSeconds) * time.Second))
		}
		if res.ItemID, err = newID(); err != nil {
			return res, err
		}
		return res, t.exec(`INSERT INTO session_items (id, session_id, agent, role, content, memory_type, veracity, importance, domain, topic, expires_at, created_at)
			VALUES (?, ?, ?, ?, ?, ?, 'inferred', ?, ?, ?, ?, ?)`,
			res.ItemID, res.SessionID, req.Agent, req.Role, req.Content, kind, importance, req.Domain, req.Topic, res.ExpiresAt.Micros(), t.now.Micros())
	})
}

// Notes returns one agent's page.
func (v *View) Notes(agent string) (record.Notes, error) { return notesOf(v, agent) }

// Observations lists an agent's observations, newest first, from before the
// cursor row.
func (v *View) Observations(agent string, before int64, limit int) ([]Row[record.Observation], error) {
	rows, err := v.query("SELECT seq, id, agent, text, created_at FROM observations WHERE agent = ? AND (? = 0 OR seq < ?) ORDER BY seq DESC LIMIT ?", agent, before, before, limit)
	return collect(rows, err, func(r scanner) (o Row[record.Observation], err error) {
		var at int64
		err = r.Scan(&o.Seq, &o.Value.ID, &o.Value.Agent, &o.Value.Text, &at)
		o.Value.CreatedAt = record.FromMicros(at)
		return o, err
	})
}

const itemColumns = "seq, id, session_id, agent, role, content, memory_type, veracity, importance, domain, topic, expires_at, fact_id, created_at"

type sessionItem struct {
	record.SessionItem
	role string
}

func scanItem(r scanner) (i Row[sessionItem], err error) {
	var expires, created int64
	v := &i.Value
	err = r.Scan(&i.Seq, &v.ID, &v.SessionID, &v.Agent, &v.role, &v.Content, &v.MemoryType, &v.Veracity, &v.Importance, &v.Domain, &v.Topic, &expires, &v.FactID, &created)
	v.ExpiresAt, v.CreatedAt = record.FromMicros(expires), record.FromMicros(created)
	return i, err
}

// SessionItems lists an agent's kept session items, oldest first, after the
// cursor row.
func (v *View) SessionItems(agent string, after int64, limit int) ([]Row[record.SessionItem], error) {
	rows, err := v.query("SELECT "+itemColumns+" FROM session_items WHERE agent = ? AND state = 'kept' AND (expires_at = 0 OR expires_at > ?) AND seq > ? ORDER BY seq LIMIT ?", agent, v.now.Micros(), after, limit)
	items, err := collect(rows, err, scanItem)
	out := make([]Row[record.SessionItem], len(items))
	for i, it := range items {
		out[i] = Row[record.SessionItem]{it.Seq, it.Value.SessionItem}
	}
	return out, err
}
