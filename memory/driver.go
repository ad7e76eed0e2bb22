package memory

import (
	"errors"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// driverName is the database/sql driver of the default build: SQLite in pure
// Go.
const driverName = "sqlite"

// errReadOnlyFS is what a read-only file system answers to an attempt to write.
var errReadOnlyFS = syscall.EROFS

// resultCode returns SQLite's primary result code in err's chain, 0 for none.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := resultCode(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// storeError names a failure of the database by its result code; nil stays
// nil and our own errors pass.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	var own *record.Error
	if errors.As(err, &own) {
		return own
	}
	switch resultCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return record.Wrap(record.StoreCorrupt, err, "the workspace file is damaged; restore it from a backup")
	case sqlite3.SQLITE_FULL:
		return record.Wrap(record.Unavailable, err, "the disk is full")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return record.Wrap(record.Unavailable, err, "the workspace file is locked by another process")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return record.Wrap(record.Unavailable, err, "the workspace file is read-only")
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return record.Wrap(record.Unavailable, err, "the workspace file cannot be read or written")
	}
	return record.Wrap(record.Unavailable, err, "the store failed")
}
