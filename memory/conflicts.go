package memory

import (
	"context"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// pairOf puts two ids in the order of a conflict row.
func pairOf(x, y string) (a, b string) {
	if x < y {
		return x, y
	}
	return y, x
}

// conflictRow writes the row of a pair and kind, or updates the one there is:
// there is one per unordered pair and kind. A winner closes it; without one it
// is open, unless the pair was resolved before, which stands.
func (t *tx) conflictRow(kind record.ConflictKind, x, y, winner, loser, rule, reason string) (record.ConflictRef, error) {
	a, b := pairOf(x, y)
	id, err := newID()
	if err != nil {
		return record.ConflictRef{}, err
	}
	open, resolution, closed := 1, "", int64(0)
	if winner != "" {
		open, resolution, closed = 0, "superseded", t.now.Micros()
	}
	err = t.exec(`INSERT INTO conflicts (id, kind, fact_a, fact_b, winner, loser, open, resolution, rule, reason, created_at, closed_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
		ON CONFLICT (fact_a, fact_b, kind) DO UPDATE SET winner = ?5, loser = ?6, open = ?7, resolution = ?8, rule = ?9, reason = ?10, closed_at = ?12
		WHERE ?5 <> ''`,
		id, kind, a, b, winner, loser, open, resolution, rule, reason, t.now.Micros(), closed)
	if err != nil {
		return record.ConflictRef{}, err
	}
	t.writer.suspected = t.writer.suspected || kind == record.ConflictSuspected
	ref := record.ConflictRef{Kind: kind, Winner: winner, Loser: loser, Reason: reason}
	return ref, t.row("SELECT id FROM conflicts WHERE fact_a = ? AND fact_b = ? AND kind = ?", a, b, kind).Scan(&ref.ID)
}

// closeConflicts closes the open rows of a fact that is no longer current: a
// conflict with one side gone is none. Rows with successor are settled by it.
func (t *tx) closeConflicts(gone, successor string) error {
	return t.exec(`UPDATE conflicts SET open = 0, closed_at = ?1,
		  resolution = CASE WHEN ?3 IN (fact_a, fact_b) THEN 'superseded' ELSE 'gone' END,
		  winner = CASE WHEN ?3 IN (fact_a, fact_b) THEN ?3 ELSE winner END,
		  loser = CASE WHEN ?3 IN (fact_a, fact_b) THEN ?2 ELSE loser END
		WHERE open = 1 AND (fact_a = ?2 OR fact_b = ?2)`, t.now.Micros(), gone, successor)
}

// reopenConflicts opens the closed rows of a pair again and returns their ids.
func (t *tx) reopenConflicts(x, y string) ([]string, error) {
	a, b := pairOf(x, y)
	rows, err := t.query(`UPDATE conflicts SET open = 1, winner = '', loser = '', resolution = '', resolved_by = '', closed_at = 0
		WHERE fact_a = ? AND fact_b = ? AND open = 0 AND kind <> 'manual' AND kind <> 'refinement' RETURNING id`, a, b)
	ids, err := collect(rows, err, scanOne[string])
	if ids == nil {
		ids = []string{}
	}
	return ids, err
}

const conflictColumns = `c.id, c.kind, c.fact_a, c.fact_b, c.winner, c.loser, c.open, c.resolution, c.rule, c.reason, a.content, b.content, c.resolved_by,
	c.judge, c.judgement, c.judge_words, c.judged_at, c.created_at, c.closed_at`

const fromConflicts = ` FROM conflicts c JOIN facts a ON a.id = c.fact_a JOIN facts b ON b.id = c.fact_b `

func scanConflict(r scanner) (c record.Conflict, err error) {
	var created, closed, judged int64
	err = r.Scan(&c.ID, &c.Kind, &c.FactA, &c.FactB, &c.Winner, &c.Loser, &c.Open, &c.Resolution, &c.Rule, &c.Reason, &c.ContentA, &c.ContentB, &c.ResolvedBy,
		&c.Judge, &c.Judgement, &c.JudgeWords, &judged, &created, &closed)
	c.JudgedAt, c.CreatedAt, c.ClosedAt = record.FromMicros(judged), record.FromMicros(created), record.FromMicros(closed)
	return c, err
}

// bothHold is the decision that a pair does not conflict.
const bothHold = "both"

// settled returns nil when a closed row says what is decided again.
//
// Errors: SupersedeInvalid.
func settled(c record.Conflict, winner string) error {
	switch {
	case c.Resolution == bothHold && winner == bothHold, c.Winner == winner:
		return nil
	case c.Resolution == bothHold:
		return record.Errorf(record.SupersedeInvalid, "conflict_id", "the conflict was decided already: both hold")
	case c.Winner != "":
		return record.Errorf(record.SupersedeInvalid, "conflict_id", "the conflict was decided already: %s holds", c.Winner)
	}
	return record.Errorf(record.SupersedeInvalid, "conflict_id", "the conflict is over: one of its facts is no longer current")
}

// ResolveConflict closes an open row: the winner supersedes the other, or both
// are kept and the pair is not raised again. The same decision again finds the
// row as the first left it.
//
// Errors: NotFound, InvalidArgument (the winner is not of the pair),
// SupersedeInvalid (the row is closed otherwise).
func (s *Store) ResolveConflict(ctx context.Context, req record.ResolveConflict) (record.ResolveConflictResult, error) {
	return apply(ctx, s, record.KindResolveConflict, req, func(t *tx) (res record.ResolveConflictResult, err error) {
		if err := record.CheckText("reason", req.Reason, record.MaxNameBytes); err != nil {
			return res, err
		}
		c, err := getConflict(t, req.ConflictID)
		if err != nil {
			return res, err
		}
		if req.Winner != bothHold && req.Winner != c.FactA && req.Winner != c.FactB {
			return res, record.Errorf(record.InvalidArgument, "winner", "the winner is one of the two facts of the conflict, or both")
		}
		if !c.Open {
			return record.ResolveConflictResult{Conflict: c}, settled(c, req.Winner)
		}
		reason := req.Reason
		if reason == "" {
			reason = "resolved on request"
		}
		c.Open, c.ClosedAt, c.ResolvedBy = false, t.now, req.Agent
		if req.Winner == bothHold {
			c.Resolution = bothHold
		} else {
			c.Resolution, c.Winner, c.Loser = "superseded", c.FactA, c.FactB
			if req.Winner == c.FactB {
				c.Winner, c.Loser = c.FactB, c.FactA
			}
			winner, err := getFact(t, "winner", c.Winner)
			if err != nil {
				return res, err
			}
			loser, err := getFact(t, "conflict_id", c.Loser)
			if err != nil {
				return res, err
			}
			if err := t.supersede(loser, winner, c.Kind, reason); err != nil {
				return res, err
			}
		}
		err = t.exec("UPDATE conflicts SET open = 0, winner = ?, loser = ?, resolution = ?, resolved_by = ?, closed_at = ? WHERE id = ?",
			c.Winner, c.Loser, c.Resolution, c.ResolvedBy, t.now.Micros(), c.ID)
		if err != nil {
			return res, err
		}
		for _, id := range []string{c.FactA, c.FactB} {
			f, err := getFact(t, "conflict_id", id)
			if err != nil {
				return res, err
			}
			other := c.FactA
			if id == c.FactA {
				other = c.FactB
			}
			if err := t.event(f, "resolved", other, reason); err != nil {
				return res, err
			}
		}
		return record.ResolveConflictResult{Conflict: c}, nil
	})
}
