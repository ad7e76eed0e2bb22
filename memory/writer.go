package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/polyphony-memory/polyphony/memory/fault"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// maxBatch bounds the operations of one transaction: enough to spread the
	// cost of a sync thin (measured in docs/benchmarks.md), few enough that a
	// transaction stays short for other processes.
	maxBatch = 256
	// queueDepth bounds the operations that wait; a caller past it blocks.
	queueDepth = 1024
	// busyPatience is how long the writer waits for another process's
	// transactions before it reports Unavailable.
	busyPatience = 60 * time.Second
)

// operation is one queued change: its identity in the ledger and its effect.
type operation struct {
	ctx    context.Context
	kind   string
	key    string
	hash   string
	caller record.Caller
	effect func(*tx) (any, error)
	// alone keeps the operation out of a batch: it changes index rows that an
	// earlier operation of one might not have written yet.
	alone bool
	// after, when not nil, runs once the operation's transaction is committed;
	// its error is the operation's.
	after    func(*writer) error
	result   []byte
	err      error
	finished chan struct{}
}

// writer is the one goroutine that changes the file.
type writer struct {
	store *Store
	conn  *conn
	// index is what the open transaction has yet to index.
	index pendingIndex
	// queued is true when the open transaction queued a fact for embedding.
	queued bool
	// suspected is true when the open transaction opened a suspected pair.
	suspected bool
	queue     chan *operation
	// mu guards closed against a send on queue.
	mu     sync.RWMutex
	closed bool
	done   chan struct{}
	// trouble is why the latest write failed when that was not its own fault; nil
	// once one was committed again.
	trouble atomic.Pointer[string]
}

func newWriter(s *Store, c *conn) *writer {
	w := &writer{
		store: s, conn: c,
		queue: make(chan *operation, queueDepth), done: make(chan struct{}),
	}
	go w.run()
	return w
}

// close lets queued operations finish and ends the goroutine.
func (w *writer) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.queue {
		for first != nil {
			var batch []*operation
			batch, first = w.fill(first)
			w.note(batch, w.commit(batch))
			for _, op := range batch {
				close(op.finished)
			}
		}
	}
}

// fill returns the operations that share first's transaction, and the one
// after them when that wants one of its own.
func (w *writer) fill(first *operation) (batch []*operation, next *operation) {
	batch = append(make([]*operation, 0, maxBatch), first)
	for !first.alone && len(batch) < w.store.maxBatch {
		select {
		case op, open := <-w.queue:
			if !open {
				return batch, nil
			}
			if op.alone {
				return batch, op
			}
			batch = append(batch, op)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// submit queues op and waits for it. When the caller's context ends first the
// operation may still commit; the caller can ask again with the same key.
func (w *writer) submit(ctx context.Context, op *operation) error {
	w.mu.RLock()
	if w.closed {
		w.mu.RUnlock()
		return record.Errorf(record.Unavailable, "", "the workspace is closing")
	}
	select {
	case w.queue <- op:
		w.mu.RUnlock()
	case <-ctx.Done():
		w.mu.RUnlock()
		return record.Wrap(record.Unavailable, ctx.Err(), "the caller gave up before the write was queued")
	}
	select {
	case <-op.finished:
		return op.err
	case <-ctx.Done():
		return record.Wrap(record.Unavailable, ctx.Err(), "the caller gave up before the write was answered")
	}
}

// commit runs the batch in one transaction. Each operation has its own
// savepoint, so one that fails leaves the others; a failure of the transaction
// itself fails them all, and nothing of them is written. It reports whether
// anything was.
func (w *writer) commit(batch []*operation) (wrote bool) {
	began := time.Now()
	w.index, w.queued, w.suspected = pendingIndex{}, false, false
	if err := w.begin(); err != nil {
		failAll(batch, err)
		return false
	}
	fault.Reach(fault.BatchBegun)
	for _, op := range batch {
		changed, err := w.one(op)
		if err != nil {
			_ = w.raw("ROLLBACK")
			failAll(batch, err)
			return false
		}
		wrote = wrote || changed
	}
	end := "COMMIT"
	if wrote {
		t := &tx{writer: w, now: record.At(w.store.now())}
		if err := w.index.flush(t); err != nil {
			_ = w.raw("ROLLBACK")
			failAll(batch, storeError(err))
			return false
		}
		if err := t.writeRecalls(w.store.recalls.take()); err != nil {
			w.store.log.Warn("recall counts were not written", "workspace", w.store.workspace, "error", err)
		}
		fault.Reach(fault.Committing)
	} else {
		end = "ROLLBACK"
	}
	if err := w.raw(end); err != nil {
		_ = w.raw("ROLLBACK")
		failAll(batch, storeError(err))
		return false
	}
	if wrote {
		fault.Reach(fault.Committed)
		w.store.observer.Committed(len(batch), time.Since(began))
	}
	if wrote && w.queued {
		w.store.onQueued(w.store.workspace)
	}
	if wrote && w.suspected && w.store.onSuspected != nil {
		w.store.onSuspected(w.store.workspace)
	}
	if op := batch[0]; op.after != nil && op.err == nil {
		if err := op.after(w); err != nil {
			op.err = opError(err)
		}
	}
	return wrote
}

// note keeps for health what a batch says about the file: that it cannot be
// written, or that it can.
func (w *writer) note(batch []*operation, wrote bool) {
	for _, op := range batch {
		code := record.ErrorCode(op.err)
		if op.ctx.Err() == nil && (code == record.Unavailable || code == record.StoreCorrupt) {
			why := op.err.Error()
			w.trouble.Store(&why)
			return
		}
	}
	if wrote {
		w.trouble.Store(nil)
	}
}

// begin takes SQLite's write lock, waiting for other processes.
func (w *writer) begin() error {
	deadline := time.Now().Add(busyPatience)
	for {
		err := w.raw("BEGIN IMMEDIATE")
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return storeError(err)
		}
	}
}

// one runs a single operation; changed says whether it left something to
// commit. The error is one of the transaction, after which nothing in it can
// be trusted; the operation's own error is in op.err.
func (w *writer) one(op *operation) (changed bool, txErr error) {
	if err := op.ctx.Err(); err != nil {
		op.err = record.Wrap(record.Unavailable, err, "the caller gave up before the write began")
		return false, nil
	}
	t := &tx{writer: w, caller: op.caller, now: record.At(w.store.now())}
	if op.key != "" {
		var hash string
		var result []byte
		err := t.row("SELECT request_hash, result FROM operations WHERE key = ?", op.key).Scan(&hash, &result)
		switch {
		case err == nil && hash != op.hash:
			op.err = record.Errorf(record.IdempotencyKeyReused, "key", "the key was used before with another request")
			return false, nil
		case err == nil:
			op.result = result
			return false, nil
		case !errors.Is(err, sql.ErrNoRows):
			return false, storeError(err)
		}
	}
	if err := w.raw("SAVEPOINT operation"); err != nil {
		return false, storeError(err)
	}
	indexed := w.index.mark()
	result, err := runEffect(t, op)
	if err == nil {
		op.result, err = json.Marshal(result)
	}
	if err == nil && op.key != "" && !t.discard {
		err = t.exec("INSERT INTO operations (key, kind, request_hash, result, committed_at) VALUES (?, ?, ?, ?, ?)",
			op.key, op.kind, op.hash, string(op.result), t.now.Micros())
	}
	if err != nil || t.discard {
		op.err = opError(err)
		w.index.truncate(indexed)
		if rb := w.raw("ROLLBACK TO operation"); rb != nil {
			return false, storeError(errors.Join(err, rb))
		}
		if rb := w.raw("RELEASE operation"); rb != nil {
			return false, storeError(errors.Join(err, rb))
		}
		return false, nil
	}
	fault.Reach(fault.OperationWritten)
	if err := w.raw("RELEASE operation"); err != nil {
		return false, storeError(err)
	}
	return true, nil
}

// runEffect keeps a panic in one operation from ending the process.
func runEffect(t *tx, op *operation) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			t.writer.store.log.Error("a write panicked", "kind", op.kind, "workspace", op.caller.Workspace, "agent", op.caller.Agent, "panic", fmt.Sprint(r))
			err = record.Errorf(record.Unavailable, "", "internal error in a write")
		}
	}()
	return op.effect(t)
}

func failAll(batch []*operation, err error) {
	for _, op := range batch {
		op.result, op.err = nil, opError(err)
	}
}

// opError passes our own errors through and names the others.
func opError(err error) error {
	if err == nil {
		return nil
	}
	var e *record.Error
	if errors.As(err, &e) {
		return err
	}
	return storeError(err)
}

// raw runs a statement without arguments. Statements of the writer run with a
// background context: a half-done operation is undone by its savepoint, never
// by an interrupt in the middle of a batch that others share.
func (w *writer) raw(query string) error {
	_, err := w.conn.exec(context.Background(), query)
	return err
}

// emptyLog moves the write-ahead log into the file and cuts it to nothing. It
// fails with Unavailable when a reader is in the way for longer than SQLite
// waits.
func (w *writer) emptyLog() error {
	var busy, frames, moved int64
	err := w.conn.row(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	switch {
	case err != nil:
		return storeError(err)
	case busy != 0:
		return record.Errorf(record.Unavailable, "", "a reader is in the way of emptying the write-ahead log")
	}
	return nil
}

// tx is what an effect sees: the open transaction, one fixed time, the caller.
type tx struct {
	writer *writer
	caller record.Caller
	now    record.Time
	// discard asks for the result without the change (a dry run).
	discard bool
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.affected(query, args...)
	return err
}

// affected runs query and returns how many rows it changed.
func (t *tx) affected(query string, args ...any) (int64, error) {
	res, err := t.writer.conn.exec(context.Background(), query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert runs an INSERT and returns the new row id.
func (t *tx) insert(query string, args ...any) (int64, error) {
	res, err := t.writer.conn.exec(context.Background(), query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	return t.writer.conn.query(context.Background(), query, args...)
}

func (t *tx) row(query string, args ...any) scanner {
	return t.writer.conn.row(context.Background(), query, args...)
}

func (t *tx) clock() record.Time { return t.now }

func (t *tx) pending() *pendingIndex { return &t.writer.index }

// apply is the one way to change a workspace: the request's identity in the
// ledger, its effect and its result commit together.
func apply[Res any](ctx context.Context, s *Store, kind string, req record.Request, effect func(*tx) (Res, error)) (Res, error) {
	caller := req.Origin()
	return applyAs(ctx, s, kind, caller.Key, req, effect)
}

// applyAs is apply under another ledger key than the caller's, for one step of
// a larger call.
func applyAs[Res any](ctx context.Context, s *Store, kind, key string, req record.Request, effect func(*tx) (Res, error)) (Res, error) {
	return submit(ctx, s, &operation{ctx: ctx, kind: kind, key: key}, req, effect)
}

// applyAlone is apply in a transaction that no other operation shares.
func applyAlone[Res any](ctx context.Context, s *Store, kind string, req record.Request, effect func(*tx) (Res, error)) (Res, error) {
	return submit(ctx, s, &operation{ctx: ctx, kind: kind, key: req.Origin().Key, alone: true}, req, effect)
}

// submit completes the operation, queues it and waits for its result.
func submit[Res any](ctx context.Context, s *Store, op *operation, req record.Request, effect func(*tx) (Res, error)) (Res, error) {
	var zero Res
	if err := req.Origin().Check(); err != nil {
		return zero, err
	}
	if s.readOnly {
		return zero, record.Errorf(record.Unavailable, "", "the workspace file is read-only")
	}
	op.hash, op.caller, op.finished = record.RequestHash(op.kind, req), req.Origin(), make(chan struct{})
	op.effect = func(t *tx) (any, error) {
		res, err := effect(t)
		if r, ok := any(&res).(interface{ Stamp(string) }); ok {
			r.Stamp(op.hash)
		}
		return res, err
	}
	ctx, end := s.observer.Begin(ctx, s.workspace, op.kind)
	err := s.writer.submit(ctx, op)
	end(err)
	if err != nil {
		return zero, err
	}
	var out Res
	if err := json.Unmarshal(op.result, &out); err != nil {
		return zero, record.Wrap(record.StoreCorrupt, err, "a stored result cannot be read")
	}
	return out, nil
}

// newID returns a UUIDv7.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", record.Wrap(record.Unavailable, err, "no randomness for an id")
	}
	return id.String(), nil
}
