package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// This file keeps the index of vectors in the workspace file: a vec0 table of
// the sqlite-vec extension with the sign bits of every vector. It is derived
// from embedding_bits and follows it by triggers that belong to the writer's
// connection, not to the file: a program without the extension can write the
// file, and then only notes that the index is behind.

// VectorIndex says what finds the nearest vectors.
type VectorIndex string

const (
	// VectorsInMemory scans sign bits that are kept in memory while the
	// workspace is open, 64 bytes a vector. The index in the file is kept for
	// other programs.
	VectorsInMemory VectorIndex = "memory"
	// VectorsInFile asks the index in the file, and keeps nothing in memory.
	VectorsInFile VectorIndex = "file"
	// VectorsWithoutExtension scans in memory and leaves sqlite-vec alone.
	VectorsWithoutExtension VectorIndex = "none"
)

// ParseVectorIndex reads a setting; "" is VectorsInMemory.
//
// Errors: InvalidArgument.
func ParseVectorIndex(s string) (VectorIndex, error) {
	switch i := VectorIndex(s); i {
	case "":
		return VectorsInMemory, nil
	case VectorsInMemory, VectorsInFile, VectorsWithoutExtension:
		return i, nil
	}
	return "", record.Errorf(record.InvalidArgument, "vector-index", "a vector index is %s, %s or %s", VectorsInMemory, VectorsInFile, VectorsWithoutExtension)
}

const (
	// createVectorIndex is no migration: only a program with the extension can
	// run it, and the file is whole without it. Vectors of one model are one
	// partition, so that others are never compared.
	createVectorIndex = "CREATE VIRTUAL TABLE embedding_index USING vec0(seq INTEGER PRIMARY KEY, model TEXT PARTITION KEY, domain_id INTEGER, bits bit[384])"
	// maxK is sqlite-vec's own bound on the neighbours of one query
	// (SQLITE_VEC_VEC0_K_MAX).
	maxK = 4096
)

// followVectors keeps the index in step with embedding_bits.
var followVectors = []string{
	`CREATE TEMP TRIGGER embedding_index_insert AFTER INSERT ON main.embedding_bits BEGIN
		INSERT INTO embedding_index (seq, model, domain_id, bits) VALUES (new.seq, new.model, new.domain_id, vec_bit(new.bits)); END`,
	`CREATE TEMP TRIGGER embedding_index_update AFTER UPDATE ON main.embedding_bits BEGIN
		DELETE FROM embedding_index WHERE seq = old.seq;
		INSERT INTO embedding_index (seq, model, domain_id, bits) VALUES (new.seq, new.model, new.domain_id, vec_bit(new.bits)); END`,
	`CREATE TEMP TRIGGER embedding_index_delete AFTER DELETE ON main.embedding_bits BEGIN
		DELETE FROM embedding_index WHERE seq = old.seq; END`,
}

// markVectors notes that the index has to be made anew. The note's value is the
// row up to which that is done.
var markVectors = func() (triggers []string) {
	for _, change := range []string{"INSERT", "UPDATE", "DELETE"} {
		triggers = append(triggers, fmt.Sprintf(`CREATE TEMP TRIGGER embedding_index_%s AFTER %s ON main.embedding_bits BEGIN
			INSERT INTO meta (key, value) VALUES ('vector_index_behind', 0) ON CONFLICT (key) DO UPDATE SET value = 0; END`, change, change))
	}
	return triggers
}()

// makeVectorIndex makes the index in a file that has none, when vectors are to
// be written and the extension is there. Vectors that are there already wait
// for IndexVectors.
func (s *Store) makeVectorIndex(ctx context.Context, conn *sql.Conn) error {
	if s.index == VectorsWithoutExtension {
		return nil
	}
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT vec_version()").Scan(&version); err != nil {
		s.index, s.indexError = VectorsInMemory, err
		s.log.Warn("sqlite-vec cannot be loaded; vectors are compared in memory", "workspace", s.workspace, "error", err)
		return nil
	}
	exists, err := hasVectorIndex(ctx, conn)
	s.indexed = exists
	if err != nil || exists || s.model == "" || s.readOnly {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE; "+createVectorIndex+`;
		INSERT INTO meta (key, value) SELECT 'vector_index_behind', 0 FROM embedding_bits LIMIT 1; COMMIT`); err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return storeError(err)
	}
	s.indexed = true
	return nil
}

func hasVectorIndex(ctx context.Context, conn *sql.Conn) (exists bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'embedding_index')").Scan(&exists)
	if err != nil {
		return false, storeError(err)
	}
	return exists, nil
}

// watchVectors gives the writer's connection the triggers that keep the index
// in step, or those that note that it is not.
func (s *Store) watchVectors(ctx context.Context, conn *sql.Conn) error {
	if s.readOnly {
		return nil
	}
	triggers := followVectors
	if !s.indexed {
		exists, err := hasVectorIndex(ctx, conn)
		if err != nil || !exists {
			return err
		}
		triggers = markVectors
	}
	for _, t := range triggers {
		if _, err := conn.ExecContext(ctx, t); err != nil {
			return storeError(err)
		}
	}
	return nil
}

// vectorIndexBehind returns the row up to which an index that is being made
// anew is done; behind is false when it is in step.
func vectorIndexBehind(q queryer) (done int64, behind bool, err error) {
	err = q.row("SELECT value FROM meta WHERE key = 'vector_index_behind'").Scan(&done)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return done, err == nil, err
}

// IndexVectors makes the index in the file anew when vectors were written
// without the extension, at most limit vectors a call, so that other writes get
// their turn; left says that there are more. It goes on where a crash ended it.
func (s *Store) IndexVectors(ctx context.Context, limit int) (left bool, err error) {
	if !s.indexed || s.readOnly {
		return false, nil
	}
	if left, err = s.vectorsToIndex(ctx); err != nil || !left {
		return false, err
	}
	return apply(ctx, s, "index-vectors", record.Caller{Workspace: s.workspace}, func(t *tx) (bool, error) {
		done, behind, err := vectorIndexBehind(t)
		if err != nil || !behind {
			return false, err
		}
		if done == 0 {
			if err := t.exec("DROP TABLE embedding_index"); err != nil {
				return false, err
			}
			if err := t.exec(createVectorIndex); err != nil {
				return false, err
			}
		}
		rows, err := t.query("SELECT seq, model, domain_id, bits FROM embedding_bits WHERE seq > ? ORDER BY seq LIMIT ?", done, limit)
		vectors, err := collect(rows, err, func(r scanner) (p packed, err error) {
			return p, r.Scan(&p.seq, &p.model, &p.domain, &p.bits)
		})
		if err != nil {
			return false, err
		}
		if len(vectors) == 0 {
			return false, t.exec("DELETE FROM meta WHERE key = 'vector_index_behind'")
		}
		for _, p := range vectors {
			// What is written meanwhile goes into the index by itself.
			if err := t.exec("DELETE FROM embedding_index WHERE seq = ?", p.seq); err != nil {
				return false, err
			}
			if err := t.exec("INSERT INTO embedding_index (seq, model, domain_id, bits) VALUES (?, ?, ?, vec_bit(?))", p.seq, p.model, p.domain, p.bits); err != nil {
				return false, err
			}
		}
		return true, t.exec("UPDATE meta SET value = ? WHERE key = 'vector_index_behind'", vectors[len(vectors)-1].seq)
	})
}

func (s *Store) vectorsToIndex(ctx context.Context) (behind bool, err error) {
	err = s.View(ctx, func(v *View) error {
		_, behind, err = vectorIndexBehind(v)
		return err
	})
	return behind, err
}

// nearestInFile asks the index in the file for the first rows in scope by sign
// bits, nearest first, then newest. ok is false when it cannot tell: it is
// behind or broken, or more rows than it gives at once are equally far.
func (v *View) nearestInFile(bits []byte, scope Scope, want int) (seqs []int64, ok bool) {
	if _, behind, err := vectorIndexBehind(v); err != nil || behind || !v.store.indexed {
		return nil, false
	}
	type row struct{ seq, distance int64 }
	domains, err := v.shown(scope)
	if err != nil {
		return nil, false
	}
	for k := min(2*want, maxK); ; k = min(2*k, maxK) {
		rows, err := v.query(`SELECT seq, CAST(distance AS INTEGER) FROM embedding_index WHERE bits MATCH vec_bit(?) AND k = ? AND model = ?
			AND domain_id IN (SELECT value FROM json_each(?))`, bits, k, v.store.model, domains)
		found, err := collect(rows, err, func(r scanner) (x row, err error) { return x, r.Scan(&x.seq, &x.distance) })
		if err != nil {
			v.store.log.Warn("the vector index in the file does not answer; vectors are compared in memory", "workspace", v.store.workspace, "error", err)
			return nil, false
		}
		slices.SortFunc(found, func(a, b row) int {
			return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.seq, a.seq))
		})
		// Of the rows at the furthest distance some may be missing.
		if len(found) < k || found[want-1].distance < found[k-1].distance {
			for _, r := range found[:min(len(found), want)] {
				seqs = append(seqs, r.seq)
			}
			return seqs, true
		}
		if k == maxK {
			return nil, false
		}
	}
}

// shown lists the domains that a scope shows, as JSON.
func (v *View) shown(scope Scope) (string, error) {
	rows, err := v.query("SELECT id FROM domains ORDER BY id")
	ids, err := collect(rows, err, scanOne[int64])
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(slices.DeleteFunc(ids, scope.Hidden))
	return string(list), err
}

// vectorHealth tells what finds the nearest vectors, and what the index in the
// file lacks; deep compares every row of it.
func (v *View) vectorHealth(h *record.Health, deep bool) {
	s := v.store
	h.VectorIndex = string(s.index)
	if s.indexError != nil {
		h.Problems = append(h.Problems, "sqlite-vec cannot be loaded; vectors are compared in memory")
	}
	if !s.indexed {
		return
	}
	// Of all models: those of another wait for it to come back.
	var stored int64
	err := v.row("SELECT count(*) FROM embedding_bits").Scan(&stored)
	var differ int64
	if err == nil {
		differ, err = v.vectorDrift(h, deep)
	}
	switch {
	case err != nil:
		h.Problems = append(h.Problems, "the vector index cannot be read; vectors are compared in memory")
	case h.VectorsIndexed != stored:
		h.Problems = append(h.Problems, fmt.Sprintf("the vector index holds %d of %d vectors", h.VectorsIndexed, stored))
	case differ > 0:
		h.Problems = append(h.Problems, fmt.Sprintf("the vector index differs in %d vectors", differ))
	}
}

// vectorDrift counts the vectors that the index holds, and with deep those that
// it lacks or has otherwise.
func (v *View) vectorDrift(h *record.Health, deep bool) (differ int64, err error) {
	// The row ids are a table of their own, so that counting reads no vector.
	err = v.row("SELECT count(*) FROM embedding_index_rowids").Scan(&h.VectorsIndexed)
	if err != nil || !deep {
		return 0, err
	}
	err = v.row(`SELECT count(*) FROM embedding_bits b LEFT JOIN embedding_index i ON i.seq = b.seq
		WHERE i.seq IS NULL OR i.model <> b.model OR i.domain_id <> b.domain_id OR i.bits <> b.bits`).Scan(&differ)
	return differ, err
}
