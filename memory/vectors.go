package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// Dimensions is the size of an embedding.
	Dimensions = 384
	// words is how many 64-bit words hold the sign bits of one.
	words = Dimensions / 64
	// rescored is how many of the nearest by sign bits are compared exactly.
	// At 400 the ten nearest of 100,000 random-like vectors are among them
	// (docs/benchmarks.md).
	rescored = 400
	// maxRescored bounds the exact comparisons when a scope hides most of
	// what is near.
	maxRescored = 8000
)

// vectorIndex is the sign bits of a workspace's vectors, kept while it is open:
// a scan over them takes a hundredth of what reading the vectors does. The
// slices only grow, so a reader goes on with those it took.
type vectorIndex struct {
	mu     sync.Mutex
	loaded bool
	seqs   []int64
	domain []int64
	bits   []uint64
}

// snapshot returns the index, loading it the first time.
func (s *Store) vectorSnapshot(v *View) (seqs, domain []int64, packed []uint64, err error) {
	x := &s.vectors
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		rows, err := v.query("SELECT b.seq, f.domain_id, b.bits FROM embedding_bits b JOIN embeddings e ON e.seq = b.seq JOIN facts f ON f.seq = b.seq WHERE e.model = ? ORDER BY b.seq", s.model)
		_, err = collect(rows, err, func(r scanner) (struct{}, error) {
			var seq, domain int64
			var raw []byte
			if err := r.Scan(&seq, &domain, &raw); err != nil {
				return struct{}{}, err
			}
			if len(raw) == words*8 {
				x.add(seq, domain, raw)
			}
			return struct{}{}, nil
		})
		if err != nil {
			x.seqs, x.domain, x.bits = nil, nil, nil
			return nil, nil, nil, err
		}
		x.loaded = true
	}
	return x.seqs, x.domain, x.bits, nil
}

func (x *vectorIndex) add(seq, domain int64, raw []byte) {
	x.seqs = append(x.seqs, seq)
	x.domain = append(x.domain, domain)
	for i := range words {
		x.bits = append(x.bits, binary.LittleEndian.Uint64(raw[i*8:]))
	}
}

// signBits packs the signs of a vector.
func signBits(v []float32) []byte {
	out := make([]byte, words*8)
	for i, f := range v {
		if f > 0 {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func encodeVector(v []float32) []byte {
	out := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(f))
	}
	return out
}

func decodeVector(raw []byte) []float32 {
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

// announceQueue tells that an earlier run left facts waiting.
func (s *Store) announceQueue(ctx context.Context) error {
	if s.model == "" || s.readOnly {
		return nil
	}
	waiting, err := s.QueuedForEmbedding(ctx, 1)
	if err == nil && len(waiting) > 0 {
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
	type kept struct {
		seq, domain int64
		bits        []byte
	}
	var added []kept
	_, err = apply(ctx, s, "store-vectors", record.Caller{Workspace: s.workspace}, func(t *tx) (struct{}, error) {
		added, stored = nil, 0
		for _, e := range vectors {
			if err := t.exec("DELETE FROM embedding_queue WHERE seq = ?", e.Seq); err != nil {
				return struct{}{}, err
			}
			if !validVector(e.Vector) {
				continue
			}
			hash := sha256.Sum256([]byte(e.Content))
			n, err := t.affected(`INSERT INTO embeddings (seq, model, text_hash, vector) SELECT f.seq, ?, ?, ? FROM facts f WHERE f.seq = ? AND f.content = ?
				ON CONFLICT (seq) DO UPDATE SET model = excluded.model, text_hash = excluded.text_hash, vector = excluded.vector
				WHERE model <> excluded.model OR text_hash <> excluded.text_hash`, s.model, hash[:16], encodeVector(e.Vector), e.Seq, e.Content)
			if err != nil {
				return struct{}{}, err
			}
			if n == 0 {
				continue
			}
			k := kept{seq: e.Seq, bits: signBits(e.Vector)}
			if err := t.exec("INSERT INTO embedding_bits (seq, bits) VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET bits = excluded.bits", k.seq, k.bits); err != nil {
				return struct{}{}, err
			}
			if err := t.row("SELECT domain_id FROM facts WHERE seq = ?", k.seq).Scan(&k.domain); err != nil {
				return struct{}{}, err
			}
			added = append(added, k)
			stored++
		}
		return struct{}{}, nil
	})
	if err != nil {
		return 0, err
	}
	x := &s.vectors
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.loaded {
		for _, k := range added {
			x.add(k.seq, k.domain, k.bits)
		}
	}
	return stored, nil
}

// Near is a fact with its cosine to a query, −1 to 1.
type Near struct {
	FactRow
	Cosine float64
}

// Nearest returns at most limit facts in scope whose vectors are nearest to the
// query's, nearest first, then newest: the nearest by sign bits, compared
// exactly.
func (v *View) Nearest(query []float32, scope Scope, limit int) ([]Near, error) {
	if !validVector(query) || scope.Unknown || v.store.model == "" {
		return nil, nil
	}
	seqs, domain, packed, err := v.store.vectorSnapshot(v)
	if err != nil || len(seqs) == 0 {
		return nil, err
	}
	order := byDistance(query, seqs, domain, packed, scope)
	var out []Near
	for done := 0; done < min(len(order), maxRescored) && (len(out) < limit || done < rescored); {
		part := order[done:min(done+rescored, len(order))]
		done += len(part)
		near, err := v.rescore(query, part, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, near...)
	}
	slices.SortFunc(out, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(b.Seq, a.Seq))
	})
	return out[:min(len(out), limit)], nil
}

// byDistance returns the rows in scope that are nearest by sign bits, nearest
// first, then newest, at most maxRescored: a counting sort over the 385
// possible distances.
func byDistance(query []float32, seqs, domain []int64, packed []uint64, scope Scope) []int64 {
	var q [words]uint64
	raw := signBits(query)
	for i := range words {
		q[i] = binary.LittleEndian.Uint64(raw[i*8:])
	}
	distance := make([]uint16, len(seqs))
	var count [Dimensions + 1]int
	for i := range seqs {
		w := packed[i*words : i*words+words : i*words+words]
		d := bits.OnesCount64(w[0]^q[0]) + bits.OnesCount64(w[1]^q[1]) + bits.OnesCount64(w[2]^q[2]) +
			bits.OnesCount64(w[3]^q[3]) + bits.OnesCount64(w[4]^q[4]) + bits.OnesCount64(w[5]^q[5])
		if scope.Hidden(domain[i]) {
			d = Dimensions
		}
		distance[i] = uint16(d)
		count[d]++
	}
	// The furthest distance that is still wanted, and where each begins.
	cut, total := 0, 0
	var start [Dimensions + 1]int
	for d := range Dimensions {
		start[d] = total
		total += count[d]
		cut = d
		if total >= maxRescored {
			break
		}
	}
	order := make([]int64, total)
	for i := len(seqs) - 1; i >= 0; i-- {
		if d := int(distance[i]); d <= cut && d < Dimensions {
			order[start[d]] = seqs[i]
			start[d]++
		}
	}
	return order
}

// rescore compares the vectors of the rows exactly, those that are current.
func (v *View) rescore(query []float32, seqs []int64, scope Scope) ([]Near, error) {
	facts, err := v.FactsAt(seqs, scope)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	var out []Near
	rows, err := v.query("SELECT e.seq, e.vector FROM json_each(?) j JOIN embeddings e ON e.seq = j.value WHERE e.model = ?", string(list), v.store.model)
	_, err = collect(rows, err, func(r scanner) (struct{}, error) {
		var seq int64
		var raw []byte
		if err := r.Scan(&seq, &raw); err != nil {
			return struct{}{}, err
		}
		f, ok := facts[seq]
		if !ok || len(raw) != 4*Dimensions {
			return struct{}{}, nil
		}
		delete(facts, seq)
		if c := cosine(query, raw); !math.IsNaN(c) {
			out = append(out, Near{f, c})
		}
		return struct{}{}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare vectors: %w", err)
	}
	return out, nil
}

func cosine(q []float32, raw []byte) float64 {
	var dot, a, b float64
	for i, x := range q {
		y := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		dot += float64(x) * float64(y)
		a += float64(x) * float64(x)
		b += float64(y) * float64(y)
	}
	return dot / math.Sqrt(a*b)
}
