package memory

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// walWarning is the size of the write-ahead log, in bytes, past which health
// says so: something holds a read open.
const walWarning = 64 << 20

// consolidationDue is how long after a consolidation kept session items are
// worth a warning.
const consolidationDue = 30 * 24 * time.Hour

// warnings says what waits for somebody.
func warnings(h record.Health, now record.Time) (out []string) {
	add := func(n int64, one, many string) {
		switch {
		case n == 1:
			out = append(out, "1 "+one)
		case n > 1:
			out = append(out, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(h.EmbeddingQueue, "fact waits for its vector", "facts wait for their vectors")
	add(h.OpenConflicts, "conflict waits for a decision", "conflicts wait for a decision")
	if now.Sub(h.LastConsolidated.Time) > consolidationDue {
		add(h.SessionItems, "session item waits for a consolidation", "session items wait for a consolidation")
	}
	return out
}

// Health counts what the file holds. deep also checks every page and the
// lexical index, which takes about a second for each 100 MB.
func (v *View) Health(deep bool) (record.Health, error) {
	h := record.Health{Workspace: v.Workspace(), Problems: []string{}}
	if err := v.row("SELECT user_version FROM pragma_user_version").Scan(&h.SchemaVersion); err != nil {
		return h, err
	}
	type count struct {
		dest *int64
		args []any
	}
	now := []any{v.now.Micros()}
	for query, c := range map[string]count{
		"SELECT count(*) FROM facts":                                                               {&h.FactsTotal, nil},
		"SELECT docs FROM index_stats WHERE id = 1":                                                {&h.Indexed, nil},
		"SELECT count(*) FROM policies WHERE superseded_at = 0":                                    {&h.Policies, nil},
		"SELECT count(*) FROM domains":                                                             {&h.Domains, nil},
		"SELECT count(*) FROM edges":                                                               {&h.Edges, nil},
		"SELECT count(*) FROM conflicts WHERE open = 1":                                            {&h.OpenConflicts, nil},
		"SELECT count(*) FROM beliefs":                                                             {&h.Beliefs, nil},
		"SELECT count(*) FROM session_items WHERE state = 'kept'":                                  {&h.SessionItems, nil},
		"SELECT count(*) FROM obligations WHERE closed_at = 0 AND (deadline = 0 OR deadline > ?1)": {&h.Obligations, now},
		"SELECT count(*) FROM obligations WHERE state = 'claimed' AND lease_until <= ?1 AND (deadline = 0 OR deadline > ?1)": {&h.InDoubt, now},
		"SELECT count(*) FROM episodes":                    {&h.Episodes, nil},
		"SELECT count(*) FROM operations":                  {&h.Operations, nil},
		"SELECT count(*) FROM embeddings WHERE model = ?1": {&h.Embedded, []any{v.store.model}},
		"SELECT count(*) FROM embedding_queue":             {&h.EmbeddingQueue, nil},
	} {
		if err := v.row(query, c.args...).Scan(c.dest); err != nil {
			return h, err
		}
	}
	if err := v.row("SELECT count(*) FROM facts f WHERE "+current+" AND (f.valid_until = 0 OR f.valid_until > ?)", v.now.Micros()).Scan(&h.FactsActive); err != nil {
		return h, err
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
	v.vectorHealth(&h, deep)
	if h.Indexed != h.FactsTotal {
		h.Problems = append(h.Problems, fmt.Sprintf("the lexical index holds %d of %d facts", h.Indexed, h.FactsTotal))
	}
	if h.WALBytes > walWarning {
		h.Problems = append(h.Problems, fmt.Sprintf("the write-ahead log has %d bytes", h.WALBytes))
	}
	if v.store.readOnly {
		h.Problems = append(h.Problems, "the file is read-only")
	}
	if why := v.store.writer.trouble.Load(); why != nil {
		h.Problems = append(h.Problems, "the latest write failed: "+*why)
	}
	if deep {
		bad, err := v.integrity()
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
		if err := v.row("SELECT count(*) FROM episode_index_docsize").Scan(&indexed); err != nil {
			return h, err
		}
		if indexed != h.Episodes {
			h.Problems = append(h.Problems, fmt.Sprintf("the index of episodes has rows for %d of %d", indexed, h.Episodes))
		}
	}
	h.OK, h.Warnings = len(h.Problems) == 0, warnings(h, v.now)
	return h, nil
}

// integrity checks every page of the file and the structure of its indexes, and
// returns what is wrong.
func (v *View) integrity() ([]string, error) {
	// The check looks at an index as the connection last saw it, and takes what
	// was written since for damage. A search makes it look anew.
	for _, index := range []string{"fact_index", "episode_index"} {
		var n int
		if err := v.row("SELECT count(*) FROM " + index + " WHERE " + index + " MATCH 'a'").Scan(&n); err != nil {
			return nil, err
		}
	}
	rows, err := v.query("SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
	return collect(rows, err, scanOne[string])
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
