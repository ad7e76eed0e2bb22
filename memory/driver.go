//go:build !native

package memory

import (
	"database/sql"
	"errors"
	"net/url"

	"modernc.org/sqlite"
	_ "modernc.org/sqlite/vec" // sqlite-vec, for every connection of the driver
)

// driverName is the database/sql driver of the default build: SQLite in pure
// Go.
const driverName = "sqlite"

// openDriver opens a database by its URI, every connection of it with the
// pragmas.
func openDriver(uri string) (*sql.DB, error) {
	q := url.Values{}
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	return sql.Open(driverName, uri+"&"+q.Encode())
}

// resultCode returns SQLite's primary result code in err's chain, 0 for none.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
