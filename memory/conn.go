package memory

import (
	"context"
	"database/sql"
	"errors"
)

// conn is one database connection with its prepared statements. The queries
// are those of this package's source, a fixed set, so the cache needs no bound.
// One goroutine uses it at a time.
type conn struct {
	raw   *sql.Conn
	stmts map[string]*sql.Stmt
}

func newConn(raw *sql.Conn) *conn { return &conn{raw: raw, stmts: map[string]*sql.Stmt{}} }

func (c *conn) prepared(query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.raw.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = st
	return st, nil
}

func (c *conn) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	st, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

func (c *conn) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (c *conn) row(ctx context.Context, query string, args ...any) scanner {
	st, err := c.prepared(query)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, args...)
}

func (c *conn) close() error {
	var err error
	for _, st := range c.stmts {
		err = errors.Join(err, st.Close())
	}
	return errors.Join(err, c.raw.Close())
}
