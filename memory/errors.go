package memory

import (
	"errors"
	"syscall"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// errReadOnlyFS is what a read-only file system answers to an attempt to write.
var errReadOnlyFS = syscall.EROFS

// SQLite's primary result codes that are told apart (sqlite.org/rescode.html);
// they are the same in every driver.
const (
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26
)

func isBusy(err error) bool {
	c := resultCode(err)
	return c == codeBusy || c == codeLocked
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
	case codeCorrupt, codeNotADB:
		return record.Wrap(record.StoreCorrupt, err, "the workspace file is damaged; restore it from a backup")
	case codeFull:
		return record.Wrap(record.Unavailable, err, "the disk is full")
	case codeBusy, codeLocked:
		return record.Wrap(record.Unavailable, err, "the workspace file is locked by another process")
	case codeReadOnly, codePerm:
		return record.Wrap(record.Unavailable, err, "the workspace file is read-only")
	case codeIOErr, codeCantOpen:
		return record.Wrap(record.Unavailable, err, "the workspace file cannot be read or written")
	}
	return record.Wrap(record.Unavailable, err, "the store failed")
}
