package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// backupEnd ends the file name of a backup.
	backupEnd = ".db"
	// partialBegin begins the name of a folder in which a backup is made.
	partialBegin = ".partial-"
	// restoringName is the file that is about to become a workspace's.
	restoringName = "memory.db.restoring"
	// metaMadeAt and metaRestored are rows of a copy's meta table: when it was
	// made, and which restoration put it where it is.
	metaMadeAt   = "backup_made_at"
	metaRestored = "restored_by"
)

func (w *Workspaces) backupPath(workspace, name string) string {
	return filepath.Join(w.backups, workspace, name+backupEnd)
}

// BackUp copies the workspace's file as it is at one moment, while it is
// written and read. The copy is made by SQLite in one read transaction (VACUUM
// INTO): it holds all that was committed before and nothing after, no free
// pages and so no deleted text, and is one file. It is checked and on the disk
// before it gets its name; a backup of that name that is there is the answer.
//
// Errors: NotFound (the workspace), StoreCorrupt, Unavailable.
func (w *Workspaces) BackUp(ctx context.Context, req record.BackUp) (record.Backup, error) {
	if err := req.Check(); err != nil {
		return record.Backup{}, err
	}
	if !w.Exists(req.Workspace) {
		return record.Backup{}, record.Errorf(record.NotFound, "workspace", "there is no workspace %s", req.Workspace)
	}
	final := w.backupPath(req.Workspace, req.Name)
	if _, err := os.Stat(final); err == nil {
		return inspect(ctx, final)
	}
	partial := filepath.Join(filepath.Dir(final), partialBegin+req.Name)
	// What an attempt left that was ended half-way.
	err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o700))
	if err != nil {
		return record.Backup{}, record.Wrap(record.Unavailable, err, "the backup's folder cannot be made")
	}
	defer func() { _ = os.RemoveAll(partial) }()
	made := filepath.Join(partial, FileName)
	if err := w.Use(ctx, req.Workspace, func(s *Store) error { return s.copyTo(ctx, made) }); err != nil {
		return record.Backup{}, err
	}
	if _, err := inspect(ctx, made); err != nil {
		return record.Backup{}, err
	}
	if err := errors.Join(syncPath(made), os.Rename(made, final), syncPath(filepath.Dir(final))); err != nil {
		return record.Backup{}, record.Wrap(record.Unavailable, err, "the backup cannot be put in its place")
	}
	return inspect(ctx, final)
}

// copyTo writes the file as it is now to path, which must not be there.
func (s *Store) copyTo(ctx context.Context, path string) error {
	// SQLite takes an empty file, and leaves it readable by its user only.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return record.Wrap(record.Unavailable, err, "the backup's file cannot be made")
	}
	at := s.Now()
	db, err := s.openDB("ro")
	if err != nil {
		return storeError(err)
	}
	// A connection of its own: those of the store are in use.
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", path)
	if err := errors.Join(err, db.Close()); err != nil {
		return gaveUp(ctx, err)
	}
	return setMeta(ctx, path, metaMadeAt, at.Micros())
}

// gaveUp names an error that the end of the context may be the cause of.
func gaveUp(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return record.Wrap(record.Unavailable, ctx.Err(), "the caller gave up")
	}
	return storeError(err)
}

// setMeta writes one row of a file's meta table that nobody has open.
func setMeta(ctx context.Context, path, key string, value any) error {
	db, err := openFile(path, "rw")
	if err != nil {
		return storeError(err)
	}
	_, err = db.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, value)
	return gaveUp(ctx, errors.Join(err, db.Close()))
}

// inspect reads what a backup is, and checks all of it.
//
// Errors: StoreCorrupt, StoreNewer, Unavailable.
func inspect(ctx context.Context, path string) (record.Backup, error) {
	name := filepath.Base(path)
	b := record.Backup{Workspace: filepath.Base(filepath.Dir(path)), Name: strings.TrimSuffix(name, backupEnd)}
	db, err := openFile(path, "ro")
	if err != nil {
		return b, storeError(err)
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return b, gaveUp(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	if b.SchemaVersion, err = checkIdentity(ctx, conn); err != nil {
		return b, err
	}
	if b.SchemaVersion == 0 {
		return b, record.Errorf(record.StoreCorrupt, "", "the file holds no workspace")
	}
	var verdict string
	var at int64
	err = conn.QueryRowContext(ctx, "SELECT quick_check FROM pragma_quick_check LIMIT 1").Scan(&verdict)
	if err == nil && verdict != "ok" {
		return b, record.Errorf(record.StoreCorrupt, "", "the backup is damaged")
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, "SELECT count(*), coalesce((SELECT value FROM meta WHERE key = ?), 0) FROM facts", metaMadeAt).Scan(&b.Facts, &at)
	}
	if err != nil {
		return b, gaveUp(ctx, err)
	}
	b.MadeAt = record.FromMicros(at)
	if b.Bytes, b.SHA256, err = sumOf(ctx, path); err != nil {
		return b, record.Wrap(record.Unavailable, err, "the backup cannot be read")
	}
	return b, nil
}

func sumOf(ctx context.Context, path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	size, err = io.Copy(h, whileWanted{ctx, f})
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// whileWanted reads until the context ends.
type whileWanted struct {
	ctx context.Context
	r   io.Reader
}

func (w whileWanted) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// Backups returns the names of a workspace's backups, in order; the workspace
// need not exist any more.
func (w *Workspaces) Backups(workspace string) ([]string, error) {
	if err := record.CheckWorkspace(workspace); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(w.backups, workspace))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, record.Wrap(record.Unavailable, err, "the backups cannot be listed")
	}
	names := []string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), backupEnd)
		if ok && e.Type().IsRegular() && record.CheckBackupName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Restore puts a copy of a backup in the place of the workspace's file. Until
// it is there, calls for the workspace are answered with Unavailable, and a
// crash leaves either the old file or the new one. The request's key marks the
// copy, so that the same request again does not take back what was written
// after it.
//
// Errors: NotFound (the backup), InvalidArgument (the workspace exists and
// overwrite was not asked for), StoreCorrupt, StoreNewer, Unavailable.
func (w *Workspaces) Restore(ctx context.Context, req record.RestoreBackup) (record.Backup, error) {
	if err := req.Check(); err != nil {
		return record.Backup{}, err
	}
	from := w.backupPath(req.Source(), req.Name)
	if _, err := os.Stat(from); err != nil {
		return record.Backup{}, record.Wrap(record.NotFound, err, "there is no backup %s of workspace %s", req.Name, req.Source())
	}
	info, err := inspect(ctx, from)
	if err != nil {
		return info, err
	}
	return info, w.replace(ctx, req.Workspace, func(dir string) error {
		current := filepath.Join(dir, FileName)
		if _, err := os.Lstat(current); err == nil {
			if req.Key != "" && restoredBy(ctx, current) == req.Key {
				return nil
			}
			if !req.Overwrite {
				return record.Errorf(record.InvalidArgument, "overwrite", "workspace %s exists; restoring into it takes back all that was written since the backup", req.Workspace)
			}
		}
		fresh := filepath.Join(dir, restoringName)
		err := errors.Join(os.MkdirAll(dir, 0o700), copyContents(ctx, from, fresh))
		if err != nil {
			return record.Wrap(record.Unavailable, err, "the backup cannot be copied")
		}
		if err := setMeta(ctx, fresh, metaRestored, req.Key); err != nil {
			return err
		}
		// The old log must not be taken for the new file's. It is empty: the file
		// was closed, and what a crash left in it goes with the old file.
		for _, end := range []string{"-wal", "-shm"} {
			if err := os.Remove(current + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return record.Wrap(record.Unavailable, err, "the old file's log cannot be removed")
			}
		}
		if err := errors.Join(syncPath(fresh), os.Rename(fresh, current), syncPath(dir)); err != nil {
			return record.Wrap(record.Unavailable, err, "the restored file cannot be put in its place")
		}
		return nil
	})
}

// restoredBy is the key of the restoration that made the file, "" for none or
// for a file that cannot be asked.
func restoredBy(ctx context.Context, path string) string {
	db, err := openFile(path, "rw")
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }()
	var key string
	_ = db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", metaRestored).Scan(&key)
	return key
}

func copyContents(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, whileWanted{ctx, in})
	return errors.Join(err, out.Close())
}

// syncPath has the disk keep a file or a folder.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
	}
	return nil
}
