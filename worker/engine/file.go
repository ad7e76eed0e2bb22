package engine

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Names in the engine's folder.
const (
	fileName = "temporal.db"
	lockName = "temporal.lock"
)

const (
	// applicationID marks an engine file ("PLYE") in the header of SQLite.
	applicationID = 0x504c5945
	// driverName is what the server's SQLite plug-in registers its driver as.
	driverName = "sqlite"
	// clusterName is the one cluster of an engine; it is written into the file.
	clusterName = "active"
	// busyTimeout in milliseconds. Only this process writes the file, but a backup or a shell may read it.
	busyTimeout = "10000"
)

// synchronous is FULL: every step that the server acknowledges has reached the disk, so that not even a power cut
// takes back a workflow that a caller was told had started. With NORMAL a power cut (not a kill) could lose the
// last moments: runs in flight, never memory, whose ledger would make the repeat harmless. FULL costs an fsync a
// commit: at the median of BenchmarkRoundTrip, on two cores and a virtual disk, 10.5 ms a workflow against 8.3.
const synchronous = "FULL"

// generation makes the data source name of every start its own. The server's plug-in keeps connections by name for as
// long as the process lives, and a folder that was removed and made again must not be served by a connection to
// the removed file.
var generation atomic.Int64

// held keeps every open file reachable. A lock is a file descriptor, and a descriptor that the collector finds
// unreachable is closed: an owner who lets go of its Engine must not thereby let another process in.
var held sync.Map

// file is the engine's file: locked, complete and of the right version.
type file struct {
	path  string
	store *config.SQL
	lock  *flock.Flock

	closeOnce sync.Once
	closeErr  error
}

// openFile locks cfg.Dir and makes the engine's file there when there is none.
func openFile(ctx context.Context, cfg Config) (_ *file, err error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("engine: folder: %w", err)
	}
	lock := flock.New(filepath.Join(cfg.Dir, lockName))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("engine: lock the folder: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("%w: %s (held through %s)", ErrInUse, cfg.Dir, lockName)
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()

	path := filepath.Join(cfg.Dir, fileName)
	fresh, err := checkFile(path)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := createFile(ctx, path); err != nil {
			return nil, fmt.Errorf("engine: create %s: %w", fileName, err)
		}
	}
	f := &file{path: path, lock: lock, store: &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: escapePath(path),
		// Everything that is no parameter of SQLite's own is run as a pragma, in the order of the names.
		ConnectAttributes: map[string]string{
			"mode":         "rw",
			"busy_timeout": busyTimeout,
			"journal_mode": "WAL",
			"synchronous":  cfg.synchronous,
			// The plug-in acts on setup=true alone; another value tells the names of two starts apart.
			"setup": "done-" + strconv.FormatInt(generation.Add(1), 10),
		},
	}}
	held.Store(f, nil)
	return f, nil
}

// createNamespace makes the namespace unless it exists, and touches nothing of one that does.
func (f *file) createNamespace(cfg Config) error {
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, cfg.Namespace, false, cfg.SearchAttributes)
	if err != nil {
		return fmt.Errorf("engine: namespace %q: %w", cfg.Namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(cfg.Retention)
	if err := sqliteschema.CreateNamespaces(f.store, ns); err != nil {
		return fmt.Errorf("engine: namespace %q: %w", cfg.Namespace, err)
	}
	return nil
}

// database is the file as what the server keeps its runs in.
func (f *file) database() *Database {
	return &Database{Main: f.store, Visibility: f.store, HistoryShards: 1} // Fixed for the life of a file.
}

// close folds the write-ahead log into the file and gives the folder back. It may be called again.
func (f *file) close() error {
	f.closeOnce.Do(func() {
		f.closeErr = errors.Join(f.checkpoint(), f.lock.Close())
		held.Delete(f)
	})
	return f.closeErr
}

// checkpoint leaves one complete file behind, fit to be copied. The server's plug-in never closes its connections, so
// SQLite would not do it by itself.
func (f *file) checkpoint() error {
	db, err := sql.Open(driverName, dataSource(f.path, "rw", "busy_timeout="+busyTimeout))
	if err != nil {
		return fmt.Errorf("engine: checkpoint: %w", err)
	}
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("engine: checkpoint: %w", err)
	}
	return nil
}

// checkFile reports whether path has yet to be made, or what speaks against using what is there.
func checkFile(path string) (fresh bool, err error) {
	r, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("engine: %w", err)
	}
	defer func() { _ = r.Close() }()
	// https://www.sqlite.org/fileformat.html#the_database_header. Both numbers are set once, before the file has
	// its name and a write-ahead log, so the header in the file itself has them.
	var header [72]byte
	switch _, err := io.ReadFull(r, header[:]); {
	case errors.Is(err, io.EOF):
		return true, nil // An empty file is what a database is before its first page.
	case errors.Is(err, io.ErrUnexpectedEOF):
		return false, fmt.Errorf("%w: %s is cut short", ErrForeignFile, fileName)
	case err != nil:
		return false, fmt.Errorf("engine: %w", err)
	}
	if !strings.HasPrefix(string(header[:]), "SQLite format 3\x00") || binary.BigEndian.Uint32(header[68:]) != applicationID {
		return false, fmt.Errorf("%w: %s was made by another program: move it away", ErrForeignFile, fileName)
	}
	want, err := schemaVersion()
	if err != nil {
		return false, err
	}
	if got := binary.BigEndian.Uint32(header[60:]); got != want {
		return false, fmt.Errorf("%w: %s has schema %d and this program %d: finish the runs in flight with the version "+
			"that made it, then move it away (memory is not in it)", ErrForeignFile, fileName, got, want)
	}
	return false, nil
}

// createFile builds a complete engine file beside path and gives it its name at the end.
func createFile(ctx context.Context, path string) error {
	version, err := schemaVersion()
	if err != nil {
		return err
	}
	unfinished := path + ".new"
	for _, suffix := range []string{"", "-journal"} {
		if err := os.Remove(unfinished + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// SQLite takes over the mode of a file it finds, for its log as well.
	empty, err := os.OpenFile(unfinished, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := empty.Close(); err != nil {
		return err
	}
	if err := buildSchema(ctx, unfinished, version); err != nil {
		return err
	}
	// A log that outlived its database would be read into the new one.
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// buildSchema fills the database at path in one transaction and closes it.
func buildSchema(ctx context.Context, path string, version uint32) (err error) {
	db, err := sql.Open(driverName, dataSource(path, "rw", "journal_mode=DELETE", "synchronous=FULL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := sqliteschema.SetupSchemaOnDB(schemaTx{ctx: ctx, tx: tx}); err != nil {
		return err
	}
	for _, pragma := range []string{
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", version),
	} {
		if _, err := tx.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// schemaTx lets the server's schema be set up inside a transaction of ours. Of the interface, setting up a schema
// uses Exec alone.
type schemaTx struct {
	sqlplugin.AdminDB
	ctx context.Context
	tx  *sql.Tx
}

// Exec runs one statement of the schema.
func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.ExecContext(s.ctx, stmt, args...)
	return err
}

// schemaVersion is the server's two schema versions as one number for the header of the file.
func schemaVersion() (uint32, error) {
	main, err := versionNumber(sqliteschema.Version)
	if err != nil {
		return 0, err
	}
	visibility, err := versionNumber(sqliteschema.VisibilityVersion)
	if err != nil {
		return 0, err
	}
	return main*10_000 + visibility, nil
}

// versionNumber turns major.minor into major*1000+minor.
func versionNumber(version string) (uint32, error) {
	major, minor, _ := strings.Cut(version, ".")
	a, errA := strconv.ParseUint(major, 10, 8)
	b, errB := strconv.ParseUint(minor, 10, 8)
	if err := errors.Join(errA, errB); err != nil {
		return 0, fmt.Errorf("engine: schema version %q: %w", version, err)
	}
	return uint32(a)*1000 + uint32(b), nil
}

// dataSource names the file at path for the driver, in the given mode and with pragmas run on every connection.
func dataSource(path, mode string, pragmas ...string) string {
	query := url.Values{"mode": {mode}, "_pragma": pragmas}
	return "file:" + escapePath(path) + "?" + query.Encode()
}

// escapePath writes an absolute path as the path of a file: URI, so that a folder may have any name.
func escapePath(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // A drive letter.
		path = "/" + path
	}
	return (&url.URL{Path: path}).EscapedPath()
}

// syncDir makes a rename in dir outlast a power cut, where folders can be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
