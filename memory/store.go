package memory

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// FileName is the workspace file's name in its folder.
const FileName = "memory.db"

// maxReaders bounds the read-only connections of one open workspace.
const maxReaders = 4

// Options are the settings of an open workspace.
type Options struct {
	// Now gives the time; time.Now when nil.
	Now func() time.Time
	// Log receives what no caller is told; discarded when nil.
	Log *slog.Logger
	// Embedding names the model whose vectors new facts get; "" when none is
	// installed, and then none is queued.
	Embedding string
	// Embed returns the vector of a text by the model named, none (nil) when
	// that is no longer in use. It is asked about a proposal that the rules
	// cannot settle, before its transaction. Nil asks nobody.
	Embed func(ctx context.Context, model, text string) ([]float32, error)
	// OnQueued is told when a workspace has facts that wait for a vector. It
	// must return at once.
	OnQueued func(workspace string)
	// VectorIndex says what finds the nearest vectors; "" is VectorsInMemory.
	// The answers are the same.
	VectorIndex VectorIndex
	// OnSuspected is told, after the commit, when a workspace has pairs that a
	// judge may be asked about; nil when there is none. It must return at once.
	OnSuspected func(workspace string)
	// Owns reports whether a workspace of a data folder may be opened there:
	// whether it is of a shard that this process serves. All are when nil.
	Owns func(workspace string) bool
	// MaxBatch bounds the operations of one transaction, 1 to 256; 0 is 256.
	// 1 commits every operation alone, which the benchmarks compare with.
	MaxBatch int
	// Observer is told what the store does; nobody when nil.
	Observer Observer
}

// Store is one open workspace file. Its methods are safe for concurrent use.
type Store struct {
	workspace string
	path      string
	now       func() time.Time
	log       *slog.Logger
	maxBatch  int
	observer  Observer
	readOnly  bool
	// frozen is the state of a read-only file that nobody was writing when it
	// was opened; nil for all others.
	frozen fs.FileInfo

	writeDB *sql.DB
	writer  *writer
	readDB  *sql.DB
	// readers holds idle read connections, nil for one not opened yet.
	readers chan *conn
	// closed is closed when Close begins.
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
	recalls   recallCounter
	// model and onQueued are the options' Embedding and OnQueued.
	model    string
	onQueued func(string)
	embed    func(ctx context.Context, model, text string) ([]float32, error)
	vectors  vectorBits
	// index is what finds the nearest vectors, indexed whether the index in the
	// file is kept, and indexError why it is not although it should be.
	index      VectorIndex
	indexed    bool
	indexError error
	// onSuspected is the options' OnSuspected.
	onSuspected func(string)
}

// Open opens the file of one workspace in dir, making folder and file when
// they are missing and migrating an older schema. Any number of processes may
// open one file at once. The workspace id must have been checked.
//
// Errors: StoreNewer, StoreCorrupt, WorkspaceInvalid (the folder or the file is
// a link), Unavailable.
func Open(ctx context.Context, dir, workspace string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.VectorIndex == "" {
		opts.VectorIndex = VectorsInMemory
	}
	if opts.OnQueued == nil {
		opts.OnQueued = func(string) {}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxBatch <= 0 || opts.MaxBatch > maxBatch {
		opts.MaxBatch = maxBatch
	}
	if opts.Observer == nil {
		opts.Observer = unobserved{}
	}
	s := &Store{
		workspace: workspace, observer: opts.Observer, path: filepath.Join(dir, FileName),
		model: opts.Embedding, onQueued: opts.OnQueued, embed: opts.Embed, onSuspected: opts.OnSuspected, index: opts.VectorIndex,
		now: opts.Now, log: opts.Log, maxBatch: opts.MaxBatch, closed: make(chan struct{}),
	}
	if err := s.prepare(ctx, dir); err != nil {
		return nil, err
	}
	c, err := s.writeDB.Conn(ctx)
	if err == nil {
		err = s.watchVectors(ctx, c)
	}
	if err != nil {
		_ = s.writeDB.Close()
		return nil, storeError(err)
	}
	s.readDB, err = s.openDB("ro")
	if err != nil {
		_ = s.writeDB.Close()
		return nil, storeError(err)
	}
	s.readDB.SetMaxOpenConns(maxReaders)
	s.readDB.SetMaxIdleConns(maxReaders)
	s.readers = make(chan *conn, maxReaders)
	for range maxReaders {
		s.readers <- nil
	}
	s.writer = newWriter(s, newConn(c))
	if err := s.announceQueue(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the folder and the file and brings its schema up to date, one
// process at a time: the switch to WAL and the first schema cannot be left to
// SQLite's busy handler alone.
func (s *Store) prepare(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return record.Wrap(record.Unavailable, err, "the workspace folder cannot be made")
	}
	for _, p := range []string{dir, s.path} {
		if info, err := os.Lstat(p); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return record.Errorf(record.WorkspaceInvalid, "workspace", "a workspace is a folder and a file, not a link")
		}
	}
	lock := flock.New(filepath.Join(dir, "open.lock"), flock.SetPermissions(0o600))
	locked, err := lock.TryLockContext(ctx, 5*time.Millisecond)
	switch {
	case err != nil && errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnlyFS):
		s.readOnly = true
	case err != nil || !locked:
		return record.Wrap(record.Unavailable, err, "the workspace cannot be locked for opening")
	default:
		defer func() { _ = lock.Unlock() }()
	}
	if !s.readOnly {
		f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
		switch {
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnlyFS):
			s.readOnly = true
		case err != nil:
			return record.Wrap(record.Unavailable, err, "the workspace file cannot be opened")
		default:
			_ = f.Close()
		}
	}
	mode := "rw"
	if s.readOnly {
		mode = "ro"
		if err := s.freeze(); err != nil {
			return err
		}
	}
	s.writeDB, err = s.openDB(mode)
	if err != nil {
		return storeError(err)
	}
	s.writeDB.SetMaxOpenConns(1)
	conn, err := s.writeDB.Conn(ctx)
	if err == nil {
		err = s.bringUp(ctx, conn)
		_ = conn.Close()
	}
	if err != nil {
		_ = s.writeDB.Close()
		return opError(err)
	}
	return nil
}

func (s *Store) bringUp(ctx context.Context, conn *sql.Conn) error {
	version, err := checkIdentity(ctx, conn)
	if err != nil {
		return err
	}
	if !s.readOnly {
		if err := useLog(ctx, conn); err != nil {
			return err
		}
		if version < len(migrations) {
			if err := migrate(ctx, conn); err != nil {
				return err
			}
		}
	}
	return s.makeVectorIndex(ctx, conn)
}

// useLog has the file use a write-ahead log. A restored one does not yet; asking
// first spares an open one the lock.
func useLog(ctx context.Context, conn *sql.Conn) error {
	var mode string
	err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	if err == nil && mode != "wal" {
		_, err = conn.ExecContext(ctx, "PRAGMA journal_mode = WAL")
	}
	return storeError(err)
}

// pragmas are what every connection is set to, the busy timeout first because
// the ones after it may have to wait.
var pragmas = []string{
	"busy_timeout = 10000", "synchronous = FULL", "foreign_keys = 1", "secure_delete = ON", "temp_store = MEMORY",
	"cache_size = -16384", "journal_size_limit = 67108864", "wal_autocheckpoint = 1000",
}

// openDB opens the file as mode says: "rw", or "ro" to read only.
func (s *Store) openDB(mode string) (*sql.DB, error) {
	if s.frozen != nil {
		return openFile(s.path, mode, "immutable", "1")
	}
	return openFile(s.path, mode)
}

// openFile opens a file as mode says, with further parameters of its URI.
func openFile(path, mode string, more ...string) (*sql.DB, error) {
	q := url.Values{"mode": {mode}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return openDriver((&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String())
}

// freeze takes a file that cannot be written, and that no writer has open, for
// one that does not change: SQLite opens a file with a write-ahead log in no
// other way where it may not make the log.
func (s *Store) freeze() error {
	if _, err := os.Stat(s.path + "-wal"); err == nil {
		return nil
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return record.Wrap(record.Unavailable, err, "the workspace file cannot be read")
	}
	s.frozen = info
	return nil
}

// thawed reports whether somebody with more rights has begun to write a frozen
// file.
func (s *Store) thawed() bool {
	if s.frozen == nil {
		return false
	}
	_, walErr := os.Stat(s.path + "-wal")
	info, err := os.Stat(s.path)
	return walErr == nil || err != nil || info.Size() != s.frozen.Size() || !info.ModTime().Equal(s.frozen.ModTime())
}

// Close lets queued writes and running reads finish and closes the file. A
// second call waits for the first.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.flushRecalls()
		close(s.closed)
		s.writer.close()
		s.closeErr = s.writer.conn.close()
		for range maxReaders {
			if c := <-s.readers; c != nil {
				s.closeErr = errors.Join(s.closeErr, c.close())
			}
		}
		s.closeErr = errors.Join(s.closeErr, s.readDB.Close(), s.writeDB.Close())
	})
	return s.closeErr
}

// Workspace returns the id of the workspace.
func (s *Store) Workspace() string { return s.workspace }

// Model returns the id of the model whose vectors count here, "" for none. It
// stays the same while the store is open.
func (s *Store) Model() string { return s.model }

// Now returns the store's time.
func (s *Store) Now() record.Time { return record.At(s.now()) }

// scanner is one row to be read.
type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// queryer is what a read needs, inside a write or in a view.
type queryer interface {
	query(query string, args ...any) (*sql.Rows, error)
	row(query string, args ...any) scanner
	clock() record.Time
	// pending is what the open transaction has yet to index; nil in a view.
	pending() *pendingIndex
}

// View is a consistent read of the file at one moment.
type View struct {
	store *Store
	ctx   context.Context
	conn  *conn
	now   record.Time
	// facts holds the facts that FactsAt has read, nil for rows that were not
	// current at factsAt.
	facts   map[int64]*FactRow
	factsAt record.Time
}

// View runs f over one snapshot of the file. It never waits for the writer,
// only for one of the read connections to be free.
func (s *Store) View(ctx context.Context, f func(*View) error) (err error) {
	ctx, end := s.observer.Begin(ctx, s.workspace, "view")
	defer func() { end(err) }()
	var c *conn
	select {
	case <-s.closed:
		return record.Errorf(record.Unavailable, "", "the workspace is closing")
	default:
	}
	select {
	case c = <-s.readers:
	case <-s.closed:
		return record.Errorf(record.Unavailable, "", "the workspace is closing")
	case <-ctx.Done():
		return record.Wrap(record.Unavailable, ctx.Err(), "the caller gave up before the read began")
	}
	defer func() { s.readers <- c }()
	// select picks at random when a reader is free and the caller gave up too.
	if err := ctx.Err(); err != nil {
		return record.Wrap(record.Unavailable, err, "the caller gave up before the read began")
	}
	if s.thawed() {
		return record.Errorf(record.Unavailable, "", "the read-only workspace file was changed by another program; open it again")
	}
	if c == nil {
		raw, err := s.readDB.Conn(ctx)
		if err != nil {
			return storeError(err)
		}
		c = newConn(raw)
	}
	if _, err := c.exec(ctx, "BEGIN"); err != nil {
		return storeError(err)
	}
	defer func() { _, _ = c.exec(context.WithoutCancel(ctx), "ROLLBACK") }()
	return opError(f(&View{store: s, ctx: ctx, conn: c, now: s.Now()}))
}

// Workspace returns the id of the workspace.
func (v *View) Workspace() string { return v.store.workspace }

// Now returns the fixed time of this view.
func (v *View) Now() record.Time { return v.now }

func (v *View) clock() record.Time { return v.now }

func (v *View) pending() *pendingIndex { return nil }

func (v *View) query(query string, args ...any) (*sql.Rows, error) {
	return v.conn.query(v.ctx, query, args...)
}

func (v *View) row(query string, args ...any) scanner {
	return v.conn.row(v.ctx, query, args...)
}

// collect reads all rows with scan.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// scanOne scans rows of one column.
func scanOne[T any](r scanner) (T, error) {
	var v T
	err := r.Scan(&v)
	return v, err
}
