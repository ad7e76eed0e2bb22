package memory

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// purgePages is how many index pages one step of a purge merges: a step holds
// the writer for some milliseconds.
const purgePages = 256

// DeleteFact removes a fact for good, on a person's word: the row with its
// events, earlier versions, edges, vector and conflicts, its terms in the
// index, the beliefs that quote it, the session items it came from, and what
// histories of other facts and the ledger quote of it. The key of the call that
// made it stays in the ledger, so that a late retry does not bring it back, and
// neither does an old backup, an echo or a meeting's next revision.
//
// What remains is a hash of each thing it said, and its id as the other side of
// other facts' events. SQLite overwrites what is freed (secure_delete), and
// purge empties what FTS5 and the write-ahead log would keep for later.
//
// Errors: NotFound, VersionConflict; Unavailable while a long read keeps the
// deleted words in the write-ahead log: the same call again takes them out.
func (s *Store) DeleteFact(ctx context.Context, req record.DeleteFact) (record.DeleteFactResult, error) {
	res, err := applyAlone(ctx, s, record.KindDeleteFact, req, func(t *tx) (res record.DeleteFactResult, err error) {
		f, err := getFact(t, "fact_id", req.FactID)
		if err != nil {
			return res, err
		}
		if err := sameVersion(req.ExpectedVersion, f.Version); err != nil {
			return res, err
		}
		return record.DeleteFactResult{FactID: f.ID}, t.deleteFact(f)
	})
	if err != nil {
		return res, err
	}
	// Also for a repeated call: the first one may have died before this.
	return res, s.purge(ctx)
}

func (t *tx) deleteFact(f *fact) error {
	if _, err := t.unindex(f); err != nil {
		return err
	}
	if err := t.noteDeleted(f); err != nil {
		return err
	}
	if err := t.scrubLedger(f.ID); err != nil {
		return err
	}
	sources, err := json.Marshal(f.SourceObservationIDs)
	if err != nil {
		return err
	}
	own, err := t.beliefsOf([]*fact{f})
	if err != nil {
		return err
	}
	for _, derived := range []struct {
		query string
		args  []any
	}{
		{"DELETE FROM session_items WHERE fact_id = ? OR content = ? OR id IN (SELECT value FROM json_each(?))", []any{f.ID, f.Content, string(sources)}},
		{"UPDATE fact_events SET reason = '' WHERE other = ?", []any{f.ID}},
		{"DELETE FROM facts WHERE id = ?", []any{f.ID}},
	} {
		if err := t.exec(derived.query, derived.args...); err != nil {
			return err
		}
	}
	for _, b := range own {
		// Its statement is a copy of one of its facts'.
		if _, _, err := t.align(b.ID, true); err != nil {
			return err
		}
	}
	return t.exec(markPurge)
}

// unindex takes a fact's row out of the lexical index, with what it adds to the
// frequencies, and returns the name of its domain. The operation must be alone
// in its transaction: the row may not be pending.
func (t *tx) unindex(f *fact) (domainName string, err error) {
	if err := t.row("SELECT name FROM domains WHERE id = ?", f.domainID).Scan(&domainName); err != nil {
		return "", err
	}
	x := indexText(f.domainID, domainName, f.Topic, f.topicKey, f.Content)
	terms, err := json.Marshal(x.distinct)
	if err != nil {
		return "", err
	}
	if err := t.exec("DELETE FROM fact_index WHERE rowid = ?", f.seq); err != nil {
		return "", err
	}
	if err := t.exec("UPDATE terms SET df = df - 1 WHERE term IN (SELECT value FROM json_each(?))", string(terms)); err != nil {
		return "", err
	}
	if err := t.exec("DELETE FROM terms WHERE df <= 0 AND term IN (SELECT value FROM json_each(?))", string(terms)); err != nil {
		return "", err
	}
	return domainName, t.exec("UPDATE index_stats SET docs = max(0, docs - 1), tokens = max(0, tokens - ?) WHERE id = 1", x.tokens)
}

// quoting are the fields of stored results that may quote a statement.
var quoting = map[string]bool{"reason": true, "content_a": true, "content_b": true, "topic": true}

// scrubLedger blanks what stored results quote of a fact. The rows stay: they
// are what keeps a retry from doing the call again.
func (t *tx) scrubLedger(factID string) error {
	rows, err := t.query("SELECT key, result FROM operations WHERE instr(result, ?) > 0 ORDER BY key", factID)
	type stored struct{ key, result string }
	found, err := collect(rows, err, func(r scanner) (o stored, err error) { return o, r.Scan(&o.key, &o.result) })
	if err != nil {
		return err
	}
	for _, o := range found {
		var result any
		if err := json.Unmarshal([]byte(o.result), &result); err != nil {
			return record.Wrap(record.StoreCorrupt, err, "a stored result cannot be read")
		}
		raw, err := json.Marshal(blanked(result))
		if err != nil {
			return err
		}
		if err := t.exec("UPDATE operations SET result = ? WHERE key = ?", string(raw), o.key); err != nil {
			return err
		}
	}
	return nil
}

func blanked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if _, text := inner.(string); text && quoting[name] {
				v[name] = ""
			} else {
				v[name] = blanked(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = blanked(v[i])
		}
	}
	return v
}

// noteDeleted keeps the hashes of what the fact said, now and before edits.
func (t *tx) noteDeleted(f *fact) error {
	type said struct{ topic, content string }
	rows, err := t.query("SELECT topic, content FROM fact_versions WHERE fact = ? ORDER BY version", f.seq)
	all, err := collect(rows, err, func(r scanner) (s said, err error) { return s, r.Scan(&s.topic, &s.content) })
	if err != nil {
		return err
	}
	for _, s := range append(all, said{f.Topic, f.Content}) {
		key := text.ContentKey(s.content)
		err := t.exec("INSERT INTO deleted_facts (domain_id, hash, deleted_at) VALUES (?, ?, ?) ON CONFLICT (domain_id, hash) DO UPDATE SET deleted_at = excluded.deleted_at",
			f.domainID, deletedHash(text.Key(s.topic), key[:]), t.now.Micros())
		if err != nil {
			return err
		}
	}
	return nil
}

// deletedHash identifies a deleted statement without saying it.
func deletedHash(topicKey string, contentKey []byte) []byte {
	sum := sha256.Sum256(append([]byte(topicKey+"\x00"), contentKey...))
	return sum[:]
}

// refuseDeleted refuses a statement that a person deleted and that nobody
// states anew: out of an old backup, an echo of our own text, or the minutes of
// a meeting. Who states it again on purpose may.
func (t *tx) refuseDeleted(p *proposal) error {
	if p.veracity != record.Imported && !p.echo && p.siblings == nil {
		return nil
	}
	var at int64
	err := t.row("SELECT deleted_at FROM deleted_facts WHERE domain_id = ? AND hash = ?", p.domainID, deletedHash(p.topicKey, p.contentKey)).Scan(&at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case p.at.Before(t.now.Time) && p.at.Micros() > at:
		// Dated after the deletion: news.
		return nil
	}
	return record.Errorf(record.SupersedeInvalid, "content", "a person deleted this statement")
}

// markPurge notes that deleted words are still somewhere in the files.
const markPurge = "INSERT INTO meta (key, value) VALUES ('purge', 1) ON CONFLICT (key) DO NOTHING"

// purge takes the terms of deleted facts out of the index's files, where they
// would else stay until much later writes, and empties the write-ahead log. It
// goes in small steps, between which others write. It fails with Unavailable
// while a reader that began before keeps the log from being emptied for longer
// than SQLite waits.
func (s *Store) purge(ctx context.Context) error {
	due := false
	err := s.View(ctx, func(v *View) error {
		return v.row("SELECT count(*) FROM meta WHERE key = 'purge'").Scan(&due)
	})
	if err != nil || !due {
		return err
	}
	caller := record.Caller{Workspace: s.workspace}
	// A negative number begins to merge every segment, a positive one goes on.
	for pages := -purgePages; ; pages = purgePages {
		changed, err := applyAlone(ctx, s, "purge", caller, func(t *tx) (int64, error) { return t.mergeIndex(pages) })
		if err != nil {
			return err
		}
		// FTS5 says "nothing was done" by changing fewer than two rows.
		if changed < 2 {
			break
		}
	}
	op := &operation{ctx: ctx, kind: "purge", alone: true, after: func(w *writer) error {
		err := w.emptyLog()
		if err != nil {
			// The next purge is to try again.
			return errors.Join(err, w.raw(markPurge))
		}
		return nil
	}}
	_, err = submit(ctx, s, op, caller, func(t *tx) (struct{}, error) {
		return struct{}{}, t.exec("DELETE FROM meta WHERE key = 'purge'")
	})
	return err
}

// mergeIndex does one step of merging the index's segments and returns how many
// rows it changed.
func (t *tx) mergeIndex(pages int) (int64, error) {
	var before, after int64
	if err := t.row("SELECT total_changes()").Scan(&before); err != nil {
		return 0, err
	}
	if err := t.exec("INSERT INTO fact_index (fact_index, rank) VALUES ('merge', ?)", pages); err != nil {
		return 0, err
	}
	err := t.row("SELECT total_changes()").Scan(&after)
	return after - before, err
}
