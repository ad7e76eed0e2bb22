package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// maxPrunePage bounds the ledger rows of one page.
const maxPrunePage = 10_000

// PruneLedgerPage forgets one page of ledger rows that are older than the
// request says, in the order of their keys. open tells whether a key belongs to
// one of the runs that are still open: theirs stay, because a run that goes on
// may do a step again. The page needs no row of its own: again it prunes what
// is left.
func (s *Store) PruneLedgerPage(ctx context.Context, req record.PruneLedgerPage, open func(key string) bool) (record.PruneLedgerResult, error) {
	if req.Limit < 1 || req.Limit > maxPrunePage {
		return record.PruneLedgerResult{}, record.Errorf(record.InvalidArgument, "limit", "a page considers 1 to %d rows", maxPrunePage)
	}
	if s.Now().Sub(req.Before.Time) < record.MinLedgerAge {
		return record.PruneLedgerResult{}, record.Errorf(record.InvalidArgument, "before", "ledger rows stay at least %v", record.MinLedgerAge)
	}
	return applyAs(ctx, s, record.KindPruneLedger, "", req, func(t *tx) (out record.PruneLedgerResult, err error) {
		rows, err := t.query("SELECT key FROM operations WHERE key > ? AND committed_at < ? ORDER BY key LIMIT ?", req.Cursor, req.Before.Micros(), req.Limit)
		keys, err := collect(rows, err, scanOne[string])
		if err != nil {
			return out, err
		}
		out.Report.Considered = len(keys)
		if len(keys) == req.Limit {
			out.Next = keys[len(keys)-1]
		}
		keys = slices.DeleteFunc(keys, open)
		out.Report.Pruned = len(keys)
		out.Report.Kept = out.Report.Considered - len(keys)
		for _, key := range keys {
			if err := t.exec("DELETE FROM operations WHERE key = ?", key); err != nil {
				return out, err
			}
		}
		return out, nil
	})
}

// KeysOf returns a function that tells whether a ledger key belongs to one of
// the workflows. A key that is only a hash may be of any of them.
func KeysOf(workflows []string) func(key string) bool {
	return func(key string) bool {
		id, _, found := strings.Cut(key, "#")
		if !found {
			return len(workflows) > 0 && strings.HasPrefix(key, "h.")
		}
		return slices.Contains(workflows, id)
	}
}
