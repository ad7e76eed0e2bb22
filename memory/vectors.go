package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// Dimensions is the size of an embedding.
	Dimensions = 384
	// rescored is how many of the nearest by sign bits are compared exactly.
	// At 400 the ten nearest of 100,000 random-like vectors are among them
	// (docs/benchmarks.md).
	rescored = 400
	// maxRescored bounds the exact comparisons when most of what is near is not
	// current any more.
	maxRescored = 8000
)

func encodeVector(v []float32) []byte {
	out := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(f))
	}
	return out
}

// decodeVector is the reverse of encodeVector; nil for what is not one.
func decodeVector(raw []byte) []float32 {
	if len(raw)%4 != 0 {
		return nil
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// validVector reports whether v can be compared: the right size, finite, not
// zero.
func validVector(v []float32) bool {
	if len(v) != Dimensions {
		return false
	}
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return sum > 0 && !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// queueEmbedding asks for a vector for a new fact, in the fact's own
// transaction, so that a crash forgets neither or both. The vector is made
// after the commit, by whoever owns the model.
func (t *tx) queueEmbedding(seq int64) error {
	if t.writer.store.model == "" {
		return nil
	}
	t.writer.queued = true
	return t.exec("INSERT INTO embedding_queue (seq) VALUES (?)", seq)
}

// announceQueue tells that an earlier run left facts waiting, or the index in
// the file behind.
func (s *Store) announceQueue(ctx context.Context) error {
	if s.model == "" || s.readOnly {
		return nil
	}
	waiting, err := s.QueuedForEmbedding(ctx, 1)
	behind := false
	if err == nil && s.indexed {
		behind, err = s.vectorsToIndex(ctx)
	}
	if err == nil && (behind || len(waiting) > 0) {
		s.onQueued(s.workspace)
	}
	return err
}

// ToEmbed is a fact that wants a vector.
type ToEmbed struct {
	Seq     int64
	Content string
}

// QueuedForEmbedding returns at most limit facts that wait for a vector, oldest
// first.
func (s *Store) QueuedForEmbedding(ctx context.Context, limit int) ([]ToEmbed, error) {
	return s.toEmbed(ctx, "SELECT f.seq, f.content FROM embedding_queue q JOIN facts f ON f.seq = q.seq ORDER BY q.seq LIMIT ?", limit)
}

// WithoutVector returns at most limit facts after the row that have no vector
// of the store's model, oldest first.
func (s *Store) WithoutVector(ctx context.Context, after int64, limit int) ([]ToEmbed, error) {
	return s.toEmbed(ctx, "SELECT f.seq, f.content FROM facts f LEFT JOIN embeddings e ON e.seq = f.seq AND e.model = ? WHERE e.seq IS NULL AND f.seq > ? ORDER BY f.seq LIMIT ?", s.model, after, limit)
}

// ToBackfill returns the facts of one page of a backfill.
func (s *Store) ToBackfill(ctx context.Context, req record.BackfillPage) ([]ToEmbed, error) {
	after, err := checkPage(req.Cursor, req.Limit)
	if err != nil {
		return nil, err
	}
	return s.WithoutVector(ctx, after, req.Limit)
}

// CountWithoutVector returns how many facts have no vector of the store's model.
func (s *Store) CountWithoutVector(ctx context.Context) (n int64, err error) {
	err = s.View(ctx, func(v *View) error {
		return v.row("SELECT count(*) FROM facts f LEFT JOIN embeddings e ON e.seq = f.seq AND e.model = ? WHERE e.seq IS NULL", s.model).Scan(&n)
	})
	return n, err
}

func (s *Store) toEmbed(ctx context.Context, query string, args ...any) (out []ToEmbed, err error) {
	err = s.View(ctx, func(v *View) error {
		rows, err := v.query(query, args...)
		out, err = collect(rows, err, func(r scanner) (e ToEmbed, err error) { return e, r.Scan(&e.Seq, &e.Content) })
		return err
	})
	return out, err
}

// Embedded is a vector for the fact in a row.
type Embedded struct {
	ToEmbed
	// Vector has 384 numbers and unit length; nil when the model made none, and
	// then the fact stops waiting for one.
	Vector []float32
}

// StoreVectors keeps vectors of the store's model and takes their facts off the
// queue. A vector that cannot be compared is none. It needs no ledger: the same
// vectors again leave the same rows.
func (s *Store) StoreVectors(ctx context.Context, vectors []Embedded) (stored int, err error) {
	var added addition
	_, err = apply(ctx, s, "store-vectors", record.Caller{Workspace: s.workspace}, func(t *tx) (_ struct{}, err error) {
		added, err = t.storeVectors(vectors)
		return struct{}{}, err
	})
	if err != nil {
		return 0, err
	}
	s.vectors.extend(added)
	return len(added.rows), nil
}

// BackfillPage is StoreVectors under the request's key: vectors are those of
// all facts that ToBackfill gives for it. A page that stores nothing leaves no
// trace in the ledger.
func (s *Store) BackfillPage(ctx context.Context, req record.BackfillPage, vectors []Embedded) (record.BackfillResult, error) {
	var added addition
	out, err := apply(ctx, s, record.KindBackfill, req, func(t *tx) (out record.BackfillResult, err error) {
		if added, err = t.storeVectors(vectors); err != nil {
			return out, err
		}
		stored := len(added.rows)
		out.Model = s.model
		out.Report = record.BackfillReport{Considered: len(vectors), Embedded: stored, Skipped: len(vectors) - stored}
		if len(vectors) == req.Limit {
			out.Next = strconv.FormatInt(vectors[len(vectors)-1].Seq, 10)
		}
		t.discard = stored == 0
		return out, nil
	})
	if err == nil {
		s.vectors.extend(added)
	}
	return out, err
}

// storeVectors writes vectors and returns those that were not there.
func (t *tx) storeVectors(vectors []Embedded) (added addition, err error) {
	if added.before, err = vectorEpoch(t); err != nil {
		return added, err
	}
	for _, e := range vectors {
		if err := t.exec("DELETE FROM embedding_queue WHERE seq = ?", e.Seq); err != nil {
			return added, err
		}
		if !validVector(e.Vector) {
			continue
		}
		p := packed{seq: e.Seq, model: t.writer.store.model, bits: signBits(e.Vector)}
		hash := sha256.Sum256([]byte(e.Content))
		n, err := t.affected(`INSERT INTO embeddings (seq, model, text_hash, vector) SELECT f.seq, ?, ?, ? FROM facts f WHERE f.seq = ? AND f.content = ?
			ON CONFLICT (seq) DO UPDATE SET model = excluded.model, text_hash = excluded.text_hash, vector = excluded.vector
			WHERE model <> excluded.model OR text_hash <> excluded.text_hash`, p.model, hash[:16], encodeVector(e.Vector), p.seq, e.Content)
		if err != nil {
			return added, err
		}
		if n == 0 {
			continue
		}
		if err := t.row("SELECT domain_id FROM facts WHERE seq = ?", p.seq).Scan(&p.domain); err != nil {
			return added, err
		}
		if err := t.writeBits(p); err != nil {
			return added, err
		}
		added.rows = append(added.rows, p)
	}
	added.after, err = vectorEpoch(t)
	return added, err
}

func (t *tx) writeBits(p packed) error {
	return t.exec(`INSERT INTO embedding_bits (seq, model, domain_id, bits) VALUES (?, ?, ?, ?)
		ON CONFLICT (seq) DO UPDATE SET model = excluded.model, domain_id = excluded.domain_id, bits = excluded.bits`, p.seq, p.model, p.domain, p.bits)
}

// Near is a fact with its cosine to a query, −1 to 1.
type Near struct {
	*FactRow
	Cosine float64
}

// Nearest returns at most limit facts in scope whose vectors are nearest to the
// query's, nearest first, then newest: the nearest by sign bits, compared
// exactly.
func (v *View) Nearest(query []float32, scope Scope, limit int) ([]Near, error) {
	if !validVector(query) || scope.Unknown || v.store.model == "" {
		return nil, nil
	}
	candidates := v.candidates(query, scope)
	cosines := map[int64]float64{}
	for want := rescored; ; want = min(want+rescored, maxRescored) {
		order, err := candidates(want)
		if err != nil {
			return nil, err
		}
		if err := v.rescore(query, order, cosines); err != nil {
			return nil, err
		}
		slices.SortFunc(order, func(a, b int64) int {
			return cmp.Or(cmp.Compare(cosines[b], cosines[a]), cmp.Compare(b, a))
		})
		last := len(order) < want || want == maxRescored
		for len(order) > 0 && math.IsInf(cosines[order[len(order)-1]], -1) {
			order = order[:len(order)-1]
		}
		facts, err := v.FirstAt(order, scope, limit)
		if err != nil {
			return nil, err
		}
		if len(facts) == limit || last {
			out := make([]Near, len(facts))
			for i, f := range facts {
				out[i] = Near{f, cosines[f.Seq]}
			}
			return out, nil
		}
	}
}

// candidates returns a function that gives the first so many rows in scope by
// sign bits, nearest first, then newest; fewer when there are no more. What
// finds them, the index in the file or the scan in memory, makes no difference
// to the answer.
func (v *View) candidates(query []float32, scope Scope) func(want int) ([]int64, error) {
	bits := signBits(query)
	var order []int64
	return func(want int) ([]int64, error) {
		if order == nil && v.store.index == VectorsInFile {
			if found, ok := v.nearestInFile(bits, scope, want); ok {
				return found, nil
			}
		}
		if order == nil {
			x, err := v.vectorsInMemory()
			if err != nil {
				return nil, err
			}
			order = byDistance(bits, x, scope)
		}
		return slices.Clone(order[:min(len(order), want)]), nil
	}
}

// rescore adds the exact cosines of the rows that have none in known yet. A row
// that has no comparable vector any more is as far away as can be.
func (v *View) rescore(query []float32, seqs []int64, known map[int64]float64) error {
	fresh := make([]int64, 0, len(seqs))
	for _, seq := range seqs {
		if _, ok := known[seq]; !ok {
			fresh = append(fresh, seq)
			known[seq] = math.Inf(-1)
		}
	}
	// In the order of the file, so that each page is found once.
	slices.Sort(fresh)
	list, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	rows, err := v.query("SELECT e.seq, e.vector FROM json_each(?) j JOIN embeddings e ON e.seq = j.value WHERE e.model = ?", string(list), v.store.model)
	_, err = collect(rows, err, func(r scanner) (struct{}, error) {
		var seq int64
		// Read where it lies, it is compared before the next row.
		var raw sql.RawBytes
		if err := r.Scan(&seq, &raw); err != nil {
			return struct{}{}, err
		}
		if len(raw) == 4*Dimensions {
			if c := cosine(query, raw); !math.IsNaN(c) && !math.IsInf(c, 0) {
				known[seq] = c
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return fmt.Errorf("compare vectors: %w", err)
	}
	return nil
}

func cosine(q []float32, raw []byte) float64 {
	var dot, a, b float64
	for i, x := range q {
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		x := float64(x)
		dot += x * y
		a += x * x
		b += y * y
	}
	return dot / math.Sqrt(a*b)
}
