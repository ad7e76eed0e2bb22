package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// maxAwaited bounds the waiting runs that one call tells of a change; those
// beyond it find out by themselves, a little later.
const maxAwaited = 500

// maxNamed bounds the steps that an error's message names; its list has all.
const maxNamed = 10

// obligation is a row of the obligations table.
type obligation struct {
	record.Obligation
	seq int64
	// commitHash is the request hash of the commit that closed it.
	commitHash string
	awaited    bool
}

const obligationColumns = `o.seq, o.id, o.task_id, o.step, o.key, o.kind, o.state, o.opened_by, o.created_at, o.deadline,
	o.claim, o.claimed_by, o.claimed_at, o.lease_until, o.closed_by, o.closed_at, o.result, o.reason, o.commit_hash, o.awaited,
	(SELECT json_group_array(step) FROM (SELECT a.step FROM obligation_after a WHERE a.obligation = o.seq ORDER BY a.step))`

// scanObligation reads a row as it stands at now: past its deadline it has
// expired, whether or not a write has said so yet.
func scanObligation(r scanner, workspace string, now record.Time) (*obligation, error) {
	o := obligation{Obligation: record.Obligation{Workspace: workspace}}
	var created, deadline, claimed, lease, closed int64
	var after string
	err := r.Scan(&o.seq, &o.ID, &o.TaskID, &o.Step, &o.Key, &o.Kind, &o.State, &o.OpenedBy, &created, &deadline,
		&o.Claim, &o.ClaimedBy, &claimed, &lease, &o.ClosedBy, &closed, &o.Result, &o.Reason, &o.commitHash, &o.awaited, &after)
	if err != nil {
		return nil, err
	}
	o.CreatedAt, o.Deadline, o.ClaimedAt = record.FromMicros(created), record.FromMicros(deadline), record.FromMicros(claimed)
	o.LeaseUntil, o.ClosedAt = record.FromMicros(lease), record.FromMicros(closed)
	if err := json.Unmarshal([]byte(after), &o.After); err != nil {
		return nil, record.Wrap(record.StoreCorrupt, err, "obligation %s has unreadable steps", o.ID)
	}
	if !o.State.Closed() && passed(o.Deadline, now) {
		o.State, o.ClosedAt = record.ObligationExpired, o.Deadline
	}
	switch o.State {
	case record.ObligationClaimed:
		o.InDoubt = passed(o.LeaseUntil, now)
	case record.ObligationExpired:
		o.InDoubt = o.Claim > 0
	case record.ObligationCancelled:
		// Cancelled by another than the holder, who never told how it ended.
		o.InDoubt = o.Claim > 0 && o.ClosedBy != o.ClaimedBy
	}
	return &o, nil
}

// passed reports whether t is set and not after now.
func passed(t, now record.Time) bool { return !t.IsZero() && !t.After(now.Time) }

// getObligation returns the obligation of a task's step, or NotFound.
func (t *tx) getObligation(ref record.StepRef) (*obligation, error) {
	row := t.row("SELECT "+obligationColumns+" FROM obligations o WHERE o.task_id = ? AND o.key = ?", ref.TaskID, ref.ObligationKey())
	o, err := scanObligation(row, t.writer.store.workspace, t.now)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, record.Errorf(record.NotFound, "step", "the task has opened no such step")
	}
	return o, err
}

func checkOpen(req record.OpenObligation) error {
	if err := needAgent(req.Caller); err != nil {
		return err
	}
	if err := req.CheckStep(); err != nil {
		return err
	}
	if err := record.CheckName("kind", req.Kind); err != nil {
		return err
	}
	if len(req.After) > record.MaxAfter {
		return record.Errorf(record.InvalidArgument, "after", "a step waits for at most %d others", record.MaxAfter)
	}
	for _, step := range req.After {
		if err := record.CheckID("after", step); err != nil {
			return err
		}
		if step == req.Step {
			return record.Errorf(record.InvalidArgument, "after", "a step cannot wait for itself")
		}
	}
	return nil
}

func checkClaim(req record.ClaimObligation) error {
	if err := needAgent(req.Caller); err != nil {
		return err
	}
	if err := req.CheckStep(); err != nil {
		return err
	}
	if req.LeaseSeconds < 0 || req.LeaseSeconds > record.MaxLeaseSeconds {
		return record.Errorf(record.InvalidArgument, "lease_seconds", "a lease is 1 to %d seconds, or 0 for %d", record.MaxLeaseSeconds, record.DefaultLeaseSeconds)
	}
	return record.CheckClaim(req.Claim)
}

func checkCommit(req record.CommitObligation) error {
	if err := needAgent(req.Caller); err != nil {
		return err
	}
	return req.CheckCommit()
}

func checkEnd(caller record.Caller, ref record.StepRef, claim int64, reason string) error {
	if err := needAgent(caller); err != nil {
		return err
	}
	if err := ref.CheckStep(); err != nil {
		return err
	}
	if err := record.CheckClaim(claim); err != nil {
		return err
	}
	return record.CheckText("reason", reason, record.MaxContentBytes)
}

// OpenObligation commits a task to a step. The same definition again finds the
// obligation as it stands.
//
// Errors: InvalidArgument (a circle of steps among them), IdempotencyKeyReused
// (the step was opened with another kind, order or deadline), Unavailable.
func (s *Store) OpenObligation(ctx context.Context, req record.OpenObligation) (record.ObligationResult, error) {
	return apply(ctx, s, record.KindOpenObligation, req, func(t *tx) (record.ObligationResult, error) {
		if err := checkOpen(req); err != nil {
			return record.ObligationResult{}, err
		}
		after := slices.Compact(slices.Sorted(slices.Values(req.After)))
		o, err := t.getObligation(req.StepRef)
		switch {
		case record.ErrorCode(err) == record.NotFound:
			return t.insertObligation(req, after)
		case err != nil:
			return record.ObligationResult{}, err
		case o.Kind != req.Kind || !slices.Equal(o.After, after) || o.Deadline.Micros() != req.Deadline.Micros():
			return record.ObligationResult{}, record.Errorf(record.IdempotencyKeyReused, "step", "the step was opened before with another kind, order or deadline")
		}
		return t.found(o, record.OutcomeExists)
	})
}

func (t *tx) insertObligation(req record.OpenObligation, after []string) (res record.ObligationResult, err error) {
	if passed(req.Deadline, t.now) {
		return res, record.Errorf(record.InvalidArgument, "deadline", "the deadline has passed already")
	}
	if err := t.refuseCircle(req.StepRef, after); err != nil {
		return res, err
	}
	id, err := newID()
	if err != nil {
		return res, err
	}
	seq, err := t.insert("INSERT INTO obligations (id, task_id, step, key, kind, opened_by, created_at, deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		id, req.TaskID, req.Step, req.ObligationKey(), req.Kind, req.Agent, t.now.Micros(), req.Deadline.Micros())
	if err != nil {
		return res, err
	}
	for _, step := range after {
		err := t.exec("INSERT INTO obligation_after (obligation, task_id, key, step) VALUES (?, ?, ?, ?)", seq, req.TaskID, record.ObligationKey(req.TaskID, step), step)
		if err != nil {
			return res, err
		}
	}
	o, err := t.getObligation(req.StepRef)
	if err != nil {
		return res, err
	}
	return record.ObligationResult{Outcome: record.OutcomeOpened, Obligation: o.Obligation}, nil
}

// refuseCircle refuses a step that would, in the end, wait for itself. Only a
// step that another waits for already can close a circle.
func (t *tx) refuseCircle(ref record.StepRef, after []string) error {
	if len(after) == 0 {
		return nil
	}
	keys := make([]string, len(after))
	for i, step := range after {
		keys[i] = record.ObligationKey(ref.TaskID, step)
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	var circles int
	err = t.row(`WITH RECURSIVE before(key) AS (
		  SELECT value FROM json_each(?2) WHERE EXISTS (SELECT 1 FROM obligation_after WHERE task_id = ?1 AND key = ?3)
		  UNION
		  SELECT a.key FROM before b JOIN obligations o ON o.task_id = ?1 AND o.key = b.key JOIN obligation_after a ON a.obligation = o.seq
		)
		SELECT count(*) FROM before WHERE key = ?3`, ref.TaskID, string(list), ref.ObligationKey()).Scan(&circles)
	if err == nil && circles > 0 {
		return record.Errorf(record.InvalidArgument, "after", "the steps would wait for each other in a circle")
	}
	return err
}

// found is the answer of a call that changes nothing, except that a deadline
// that has passed is written down.
func (t *tx) found(o *obligation, outcome record.ObligationOutcome) (record.ObligationResult, error) {
	awaited, err := t.expire(o)
	return record.ObligationResult{Outcome: outcome, Obligation: o.Obligation, Awaited: awaited}, err
}

// expire writes down that an obligation's deadline has passed, if it has and
// nobody did before.
func (t *tx) expire(o *obligation) (awaited []string, err error) {
	if o.State != record.ObligationExpired {
		return nil, nil
	}
	n, err := t.affected("UPDATE obligations SET state = 'expired', closed_at = deadline WHERE seq = ? AND closed_at = 0", o.seq)
	if err != nil || n == 0 {
		return nil, err
	}
	return t.awaiting(o)
}

// awaiting lists the steps whose runs wait on what became of o: its own, and
// those that come after it.
func (t *tx) awaiting(o *obligation) ([]string, error) {
	var out []string
	if o.awaited {
		out = append(out, o.Step)
	}
	rows, err := t.query(fmt.Sprintf(`SELECT n.step FROM obligation_after a JOIN obligations n ON n.seq = a.obligation
		WHERE a.task_id = ? AND a.key = ? AND n.awaited = 1 AND n.closed_at = 0 ORDER BY n.seq LIMIT %d`, maxAwaited), o.TaskID, o.Key)
	after, err := collect(rows, err, scanOne[string])
	return append(out, after...), err
}

// predecessor is a step that an obligation waits for and that is not done.
type predecessor struct {
	step     string
	deadline record.Time
	// never says that it no longer can be done.
	never bool
}

// missing lists what o still waits for, by step.
func (t *tx) missing(o *obligation) ([]predecessor, error) {
	rows, err := t.query(`SELECT a.step, coalesce(p.closed_at, 0), coalesce(p.deadline, 0) FROM obligation_after a
		LEFT JOIN obligations p ON p.task_id = a.task_id AND p.key = a.key
		WHERE a.obligation = ? AND (p.state IS NULL OR p.state <> 'done') ORDER BY a.step`, o.seq)
	return collect(rows, err, func(r scanner) (p predecessor, err error) {
		var closed, deadline int64
		err = r.Scan(&p.step, &closed, &deadline)
		p.deadline = record.FromMicros(deadline)
		p.never = closed != 0 || passed(p.deadline, t.now)
		return p, err
	})
}

// needPredecessors refuses to go on with o before what it comes after is done.
func (t *tx) needPredecessors(o *obligation) error {
	before, err := t.missing(o)
	if err != nil || len(before) == 0 {
		return err
	}
	names := make([]string, len(before))
	for i, p := range before {
		names[i] = p.step
	}
	shown := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		shown += fmt.Sprintf(" and %d more", len(names)-maxNamed)
	}
	e := record.Errorf(record.OutOfOrder, "step", "not done yet: %s", shown)
	e.Missing = names
	return e
}

// mine reports whether a claim number, or without one the calling agent's
// name, is that of the claim that stands.
func (t *tx) mine(o *obligation, claim int64) bool {
	if o.State != record.ObligationClaimed {
		return false
	}
	if claim != 0 {
		return claim == o.Claim
	}
	return t.caller.Agent == o.ClaimedBy
}

// ClaimObligation takes an obligation for the calling agent until the lease
// ends. The outcome is claimed or extended, or held when another's lease lasts,
// or closed.
//
// Errors: InvalidArgument, NotFound, OutOfOrder (naming what is not done),
// IdempotencyKeyReused, Unavailable.
func (s *Store) ClaimObligation(ctx context.Context, req record.ClaimObligation) (record.ObligationResult, error) {
	return apply(ctx, s, record.KindClaimObligation, req, func(t *tx) (res record.ObligationResult, err error) {
		if err := checkClaim(req); err != nil {
			return res, err
		}
		o, err := t.getObligation(req.StepRef)
		if err != nil {
			return res, err
		}
		if o.State.Closed() {
			return t.found(o, record.OutcomeClosed)
		}
		lease := req.LeaseSeconds
		if lease == 0 {
			lease = record.DefaultLeaseSeconds
		}
		until := t.now.Micros() + lease*1_000_000
		if req.Claim != 0 {
			switch {
			case req.Claim > o.Claim:
				return res, record.Errorf(record.InvalidArgument, "claim", "the obligation has no claim of that number")
			case req.Claim < o.Claim || req.Agent != o.ClaimedBy:
				return t.found(o, record.OutcomeHeld)
			}
			res.Outcome = record.OutcomeExtended
			err = t.exec("UPDATE obligations SET lease_until = ? WHERE seq = ?", until, o.seq)
		} else {
			if o.State == record.ObligationClaimed {
				if !o.InDoubt {
					return t.found(o, record.OutcomeHeld)
				}
				res.Doubt = &record.Doubt{Key: o.Key, Claim: o.Claim, ClaimedBy: o.ClaimedBy, ClaimedAt: o.ClaimedAt, LeaseUntil: o.LeaseUntil}
			}
			if err := t.needPredecessors(o); err != nil {
				return res, err
			}
			res.Outcome = record.OutcomeClaimed
			err = t.exec("UPDATE obligations SET state = 'claimed', claim = claim + 1, claimed_by = ?, claimed_at = ?, lease_until = ? WHERE seq = ?",
				req.Agent, t.now.Micros(), until, o.seq)
		}
		if err != nil {
			return res, err
		}
		o, err = t.getObligation(req.StepRef)
		if err == nil {
			res.Obligation = o.Obligation
		}
		return res, err
	})
}

// CommitObligation records that a step is done. The outcome is committed, or
// held when another's claim stands, or closed: then the obligation says how, by
// whom and with which result.
//
// Errors: InvalidArgument, NotFound, OutOfOrder (naming what is not done),
// ContentTooLarge, InvalidUTF8, IdempotencyKeyReused, Unavailable.
func (s *Store) CommitObligation(ctx context.Context, req record.CommitObligation) (record.ObligationResult, error) {
	return apply(ctx, s, record.KindCommitObligation, req, func(t *tx) (record.ObligationResult, error) {
		if err := checkCommit(req); err != nil {
			return record.ObligationResult{}, err
		}
		return t.closeObligation(req.StepRef, ending{claim: req.Claim, state: record.ObligationDone, outcome: record.OutcomeCommitted, result: req.Result, hash: record.RequestHash(record.KindCommitObligation, req)})
	})
}

// FailObligation records that a step was tried and cannot be done. The
// outcomes are those of CommitObligation, with failed for committed.
//
// Errors: those of CommitObligation, less OutOfOrder.
func (s *Store) FailObligation(ctx context.Context, req record.FailObligation) (record.ObligationResult, error) {
	return apply(ctx, s, record.KindFailObligation, req, func(t *tx) (record.ObligationResult, error) {
		if err := checkEnd(req.Caller, req.StepRef, req.Claim, req.Reason); err != nil {
			return record.ObligationResult{}, err
		}
		return t.closeObligation(req.StepRef, ending{claim: req.Claim, state: record.ObligationFailed, outcome: record.OutcomeFailed, reason: req.Reason})
	})
}

// CancelObligation records that a step is no longer wanted. The outcomes are
// those of CommitObligation, with cancelled for committed; a claim in doubt
// does not hold it, and the doubt stays on record.
//
// Errors: those of CommitObligation, less OutOfOrder.
func (s *Store) CancelObligation(ctx context.Context, req record.CancelObligation) (record.ObligationResult, error) {
	return apply(ctx, s, record.KindCancelObligation, req, func(t *tx) (record.ObligationResult, error) {
		if err := checkEnd(req.Caller, req.StepRef, req.Claim, req.Reason); err != nil {
			return record.ObligationResult{}, err
		}
		return t.closeObligation(req.StepRef, ending{claim: req.Claim, state: record.ObligationCancelled, outcome: record.OutcomeCancelled, reason: req.Reason})
	})
}

// ending is how a call would close an obligation.
type ending struct {
	claim          int64
	state          record.ObligationState
	outcome        record.ObligationOutcome
	result, reason string
	// hash identifies the request of a commit.
	hash string
}

// closeObligation closes an obligation unless it is closed or another's claim
// stands: the look and the change are one transaction.
func (t *tx) closeObligation(ref record.StepRef, end ending) (res record.ObligationResult, err error) {
	o, err := t.getObligation(ref)
	if err != nil {
		return res, err
	}
	switch {
	case o.State.Closed():
		return t.found(o, record.OutcomeClosed)
	case end.claim > o.Claim:
		return res, record.Errorf(record.InvalidArgument, "claim", "the obligation has no claim of that number")
	case o.State == record.ObligationClaimed && !t.mine(o, end.claim) && (end.state != record.ObligationCancelled || !o.InDoubt):
		return t.found(o, record.OutcomeHeld)
	}
	if end.state == record.ObligationDone {
		if err := t.needPredecessors(o); err != nil {
			return res, err
		}
	}
	err = t.exec("UPDATE obligations SET state = ?, closed_by = ?, closed_at = ?, result = ?, reason = ?, commit_hash = ? WHERE seq = ?",
		end.state, t.caller.Agent, t.now.Micros(), end.result, end.reason, end.hash, o.seq)
	if err != nil {
		return res, err
	}
	if res.Awaited, err = t.awaiting(o); err != nil {
		return res, err
	}
	if o, err = t.getObligation(ref); err != nil {
		return res, err
	}
	res.Outcome, res.Obligation = end.outcome, o.Obligation
	return res, nil
}

// ObserveObligation shows how an obligation stands and what it waits for, and
// notes that a run waits on it. A deadline that has passed is written down.
//
// Errors: InvalidArgument, NotFound, Unavailable.
func (s *Store) ObserveObligation(ctx context.Context, req record.ObserveObligation) (record.Observed, error) {
	return apply(ctx, s, record.KindObserveObligation, req, func(t *tx) (record.Observed, error) {
		res := record.Observed{Missing: []string{}, Never: []string{}}
		if err := req.CheckStep(); err != nil {
			return res, err
		}
		o, err := t.getObligation(req.StepRef)
		if err != nil {
			return res, err
		}
		if res.Awaited, err = t.expire(o); err != nil {
			return res, err
		}
		res.Obligation, res.CommitHash = o.Obligation, o.commitHash
		if o.State.Closed() {
			return res, nil
		}
		if !o.awaited {
			if err := t.exec("UPDATE obligations SET awaited = 1 WHERE seq = ?", o.seq); err != nil {
				return res, err
			}
		}
		before, err := t.missing(o)
		if err != nil {
			return res, err
		}
		res.Due = o.Deadline
		for _, p := range before {
			res.Missing = append(res.Missing, p.step)
			switch {
			case p.never:
				res.Never = append(res.Never, p.step)
			case !p.deadline.IsZero() && (res.Due.IsZero() || p.deadline.Before(res.Due.Time)):
				res.Due = p.deadline
			}
		}
		return res, nil
	})
}

// Obligations lists the obligations of a task, or of the workspace when it is
// empty, in the order they were opened, after the cursor row.
func (v *View) Obligations(task string, openOnly bool, after int64, limit int) ([]Row[record.Obligation], error) {
	// A task's obligations have an index of their own.
	where := "o.seq > ?1 AND ?2 = ''"
	if task != "" {
		where = "o.seq > ?1 AND o.task_id = ?2"
	}
	where += " AND (NOT ?3 OR o.closed_at = 0 AND (o.deadline = 0 OR o.deadline > ?4))"
	rows, err := v.query("SELECT "+obligationColumns+" FROM obligations o WHERE "+where+" ORDER BY o.seq LIMIT ?5", after, task, openOnly, v.now.Micros(), limit)
	return collect(rows, err, func(r scanner) (Row[record.Obligation], error) {
		o, err := scanObligation(r, v.Workspace(), v.now)
		if err != nil {
			return Row[record.Obligation]{}, err
		}
		return Row[record.Obligation]{o.seq, o.Obligation}, nil
	})
}
