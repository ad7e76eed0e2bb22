package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// maxSuspicions bounds one list of pairs for the judge.
	maxSuspicions = 100
	// maxJudgeWords is how many characters of a judge's words are kept.
	maxJudgeWords = 1000
)

// Suspicions lists the open pairs of kind suspected that no judge was asked
// about yet, oldest first.
//
// Errors: InvalidArgument.
func (s *Store) Suspicions(ctx context.Context, req record.ListSuspicions) (record.Suspicions, error) {
	out := record.Suspicions{ConflictIDs: []string{}}
	if req.Limit < 1 || req.Limit > maxSuspicions {
		return out, record.Errorf(record.InvalidArgument, "limit", "a list has 1 to %d pairs", maxSuspicions)
	}
	err := s.View(ctx, func(v *View) error {
		rows, err := v.query("SELECT id FROM conflicts WHERE open = 1 AND kind = 'suspected' AND judged_at = 0 ORDER BY created_at, id LIMIT ?", req.Limit)
		ids, err := collect(rows, err, scanOne[string])
		out.ConflictIDs = append(out.ConflictIDs, ids...)
		return err
	})
	return out, err
}

// Suspicion is a pair to be judged: the older statement and the newer one.
type Suspicion struct {
	ConflictID string
	Old, New   record.Fact
	// Alike says that the two have enough in common to be worth a question:
	// words, or nearness in the embedding model.
	Alike bool
}

// Suspicion reads the pair of an open row.
//
// Errors: NotFound, SupersedeInvalid (the row is closed or was judged).
func (s *Store) Suspicion(ctx context.Context, id string) (Suspicion, error) {
	out := Suspicion{ConflictID: id}
	err := s.View(ctx, func(v *View) error {
		c, err := getConflict(v, id)
		if err != nil {
			return err
		}
		if !c.Open || !c.JudgedAt.IsZero() || c.Kind != record.ConflictSuspected {
			return record.Errorf(record.SupersedeInvalid, "conflict_id", "the conflict is not one that waits for a judge")
		}
		old, err := getFact(v, "conflict_id", c.FactA)
		if err != nil {
			return err
		}
		new, err := getFact(v, "conflict_id", c.FactB)
		if err != nil {
			return err
		}
		if new.seq < old.seq {
			old, new = new, old
		}
		out.Old, out.New = old.Fact, new.Fact
		out.Alike = conflict.Likeness(old.statement(), new.statement()) >= conflict.LikenessFloor
		if out.Alike || s.model == "" {
			return nil
		}
		near, err := nearness(v, s.model, old.seq, new.seq)
		out.Alike = near >= conflict.NearFloor
		return err
	})
	return out, err
}

// nearness is the cosine of two facts' vectors of a model, 0 when one of them
// has none.
func nearness(q queryer, model string, a, b int64) (float64, error) {
	var x, y []byte
	err := q.row("SELECT a.vector, b.vector FROM embeddings a, embeddings b WHERE a.seq = ? AND b.seq = ? AND a.model = ?3 AND b.model = ?3", a, b, model).Scan(&x, &y)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (len(x) != 4*Dimensions || len(y) != 4*Dimensions) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return cosine(decodeVector(x), y), nil
}

// getConflict returns the row or NotFound.
func getConflict(q queryer, id string) (record.Conflict, error) {
	c, err := scanConflict(q.row("SELECT "+conflictColumns+fromConflicts+"WHERE c.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return c, record.Errorf(record.NotFound, "conflict_id", "there is no conflict with that id in this workspace")
	}
	return c, err
}

// RecordJudgement keeps what a judge said about a suspected pair, and acts on
// it where its voice is the second one: the rules suspected an opposition, so
// "contradiction" lets the stronger supersede the weaker, and "compatible"
// closes the row with both kept. Every other answer, and none, leaves the row
// open for a person. Nothing is deleted; RestoreFact undoes a supersession.
// Judging a row again changes nothing.
//
// Errors: NotFound, InvalidArgument (the relation is none).
func (s *Store) RecordJudgement(ctx context.Context, req record.RecordJudgement) (record.RecordJudgementResult, error) {
	switch conflict.Relation(req.Relation) {
	case "", conflict.Duplicate, conflict.Refinement, conflict.Contradiction, conflict.Compatible:
	default:
		return record.RecordJudgementResult{}, record.Errorf(record.InvalidArgument, "relation", "the relation is duplicate, refinement, contradiction, compatible or empty")
	}
	if err := errors.Join(record.CheckName("judge", req.Judge), record.CheckText("words", req.Words, record.MaxNameBytes)); err != nil {
		return record.RecordJudgementResult{}, err
	}
	return apply(ctx, s, record.KindRecordJudgement, req, func(t *tx) (res record.RecordJudgementResult, err error) {
		c, err := getConflict(t, req.ConflictID)
		if err != nil {
			return res, err
		}
		if !c.Open || !c.JudgedAt.IsZero() || c.Kind != record.ConflictSuspected {
			// Somebody resolved it, a side is gone, or it was judged: that stands.
			t.discard = true
			return record.RecordJudgementResult{Conflict: c}, nil
		}
		err = t.exec("UPDATE conflicts SET judge = ?, judgement = ?, judge_words = ?, judged_at = ? WHERE id = ?", req.Judge, req.Relation, firstRunes(req.Words, maxJudgeWords), t.now.Micros(), c.ID)
		if err != nil {
			return res, err
		}
		switch conflict.Relation(req.Relation) {
		case conflict.Contradiction:
			err = t.settleJudged(c, req.Judgement)
		case conflict.Compatible:
			err = t.exec("UPDATE conflicts SET open = 0, resolution = 'both', resolved_by = ?, closed_at = ? WHERE id = ?", "judge "+req.Judge, t.now.Micros(), c.ID)
		}
		if err != nil {
			return res, err
		}
		res.Conflict, err = getConflict(t, c.ID)
		return res, err
	})
}

// settleJudged lets the stronger side of a pair supersede the other; a tie goes
// to the newer.
func (t *tx) settleJudged(c record.Conflict, j record.Judgement) error {
	old, err := getFact(t, "conflict_id", c.FactA)
	if err != nil {
		return err
	}
	winner, err := getFact(t, "conflict_id", c.FactB)
	if err != nil {
		return err
	}
	if winner.seq < old.seq {
		old, winner = winner, old
	}
	loser := old
	if !beats(strength(winner.Confidence, winner.Veracity), strength(old.Confidence, old.Veracity)) {
		winner, loser = old, winner
	}
	if !winner.Active(t.now) || !loser.Active(t.now) {
		return nil
	}
	reason := fmt.Sprintf("%s; the judge %s agrees: %s", c.Reason, j.Judge, firstRunes(j.Words, maxJudgeWords))
	if err := t.supersede(loser, winner, record.ConflictSuspected, reason); err != nil {
		return err
	}
	return t.exec("UPDATE conflicts SET resolved_by = ? WHERE id = ?", "judge "+j.Judge, c.ID)
}

func firstRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
