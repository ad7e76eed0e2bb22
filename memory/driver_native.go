//go:build native

package memory

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	vec "github.com/asg017/sqlite-vec-go-bindings/cgo"
	"github.com/mattn/go-sqlite3"
)

// driverName is the database/sql driver of the native build: SQLite in C. It
// needs the tag sqlite_fts5 beside native, and the header sqlite3.h.
const driverName = "sqlite3"

// openDriver opens a database by its URI, every connection of it with the
// pragmas.
func openDriver(uri string) (*sql.DB, error) {
	// For every connection from here on; a second call changes nothing.
	vec.Auto()
	d := &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		for _, p := range pragmas {
			if _, err := c.Exec("PRAGMA "+p, nil); err != nil {
				return err
			}
		}
		return nil
	}}
	return sql.OpenDB(connector{d, uri}), nil
}

// connector opens connections of a driver that only opens by name.
type connector struct {
	driver *sqlite3.SQLiteDriver
	uri    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.uri) }

func (c connector) Driver() driver.Driver { return c.driver }

// resultCode returns SQLite's primary result code in err's chain, 0 for none.
func resultCode(err error) int {
	var e sqlite3.Error
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return 0
}
