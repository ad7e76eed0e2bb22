package memory

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// walWarning is the size of the write-ahead log, in bytes, past which health
// says so: something holds a read open.
const walWarning = 64 << 20

// Health counts what the file holds. deep also checks every page and the
// lexical index, which takes about a second for each 100 MB.
func (v *View) Health(deep bool) (record.Health, error) {
	h := record.Health{Workspace: v.Workspace(), Problems: []string{}}
	if err := v.row("SELECT user_version FROM pragma_user_version").Scan(&h.SchemaVersion); err != nil {
		return h, err
	}
	for query, dest := range map[string]*int64{
		"SELECT count(*) FROM facts": &h.FactsTotal,
		"SELECT count(*) FROM facts f WHERE " + current + " AND (f.valid_until = 0 OR f.valid_until > ?1)": &h.FactsActive,
		"SELECT docs FROM index_stats WHERE id = 1":                                                        &h.Indexed,
		"SELECT count(*) FROM policies WHERE superseded_at = 0":                                            &h.Policies,
		"SELECT count(*) FROM domains":                                                                     &h.Domains,
		"SELECT count(*) FROM edges":                                                                       &h.Edges,
		"SELECT count(*) FROM conflicts WHERE open = 1":                                                    &h.OpenConflicts,
		"SELECT count(*) FROM beliefs":                                                                     &h.Beliefs,
		"SELECT count(*) FROM session_items WHERE state = 'kept'":                                          &h.SessionItems,
		"SELECT count(*) FROM operations":                                                                  &h.Operations,
		"SELECT count(*) FROM embeddings":                                                                  &h.Embedded,
		"SELECT count(*) FROM embedding_queue":                                                             &h.EmbeddingQueue,
	} {
		if err := v.row(query, v.now.Micros()).Scan(dest); err != nil {
			return h, err
		}
	}
	for key, dest := range map[string]*record.Time{"last_consolidated": &h.LastConsolidated, "last_harmonized": &h.LastHarmonized} {
		var at int64
		err := v.row("SELECT value FROM meta WHERE key = ?", key).Scan(&at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return h, err
		}
		*dest = record.FromMicros(at)
	}
	h.FileBytes, h.WALBytes = fileSize(v.store.path), fileSize(v.store.path+"-wal")
	h.Queue, h.Model = len(v.store.writer.queue), v.store.model
	if h.Indexed != h.FactsTotal {
		h.Problems = append(h.Problems, fmt.Sprintf("the lexical index holds %d of %d facts", h.Indexed, h.FactsTotal))
	}
	if h.WALBytes > walWarning {
		h.Problems = append(h.Problems, fmt.Sprintf("the write-ahead log has %d bytes", h.WALBytes))
	}
	if v.store.readOnly {
		h.Problems = append(h.Problems, "the file is read-only")
	}
	if deep {
		// The check trusts what FTS5 remembers of the index's structure, which
		// may be of an older moment; a look into the index makes it read anew.
		if _, err := postings(v, "integrity", "", 1); err != nil {
			return h, err
		}
		rows, err := v.query("SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
		bad, err := collect(rows, err, scanOne[string])
		if err != nil {
			return h, err
		}
		h.Problems = append(h.Problems, bad...)
		var indexed int64
		if err := v.row("SELECT count(*) FROM fact_index_docsize").Scan(&indexed); err != nil {
			return h, err
		}
		if indexed != h.FactsTotal {
			h.Problems = append(h.Problems, fmt.Sprintf("the lexical index has rows for %d of %d facts", indexed, h.FactsTotal))
		}
	}
	h.OK = len(h.Problems) == 0
	return h, nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
