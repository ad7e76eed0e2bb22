package memory

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

// words is how many 64-bit words hold the sign bits of a vector.
const words = Dimensions / 64

// packed is the sign bits of one fact's vector.
type packed struct {
	seq, domain int64
	model       string
	bits        []byte
}

// vectorBits is the sign bits of a workspace's vectors, kept while it is open:
// a scan over them takes a hundredth of what reading the vectors does.
type vectorBits struct {
	mu     sync.Mutex
	loaded bool
	bitRows
}

// bitRows are rows of sign bits. Their slices only grow, so a reader goes on
// with those it took.
type bitRows struct {
	// epoch is the file's vector epoch that the rows are of.
	epoch  int64
	seqs   []int64
	domain []int64
	bits   []uint64
}

func (x *bitRows) add(p packed) {
	x.seqs = append(x.seqs, p.seq)
	x.domain = append(x.domain, p.domain)
	for i := range words {
		x.bits = append(x.bits, binary.LittleEndian.Uint64(p.bits[i*8:]))
	}
}

// addition is what one transaction added, and the epochs that it took the file
// from and to.
type addition struct {
	before, after int64
	rows          []packed
}

// extend adds what a transaction added. Rows of another epoch than the one it
// began with stay as they are, and the next search reads them anew.
func (x *vectorBits) extend(added addition) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded || x.epoch != added.before {
		return
	}
	for _, p := range added.rows {
		x.add(p)
	}
	x.epoch = added.after
}

// vectorEpoch is how often embedding_bits has changed, as its triggers count.
func vectorEpoch(q queryer) (epoch int64, err error) {
	return epoch, q.row("SELECT value FROM meta WHERE key = 'vector_epoch'").Scan(&epoch)
}

// vectorsInMemory returns the sign bits of the store's model, reading them the
// first time and after a change that did not come through this store.
func (v *View) vectorsInMemory() (bitRows, error) {
	epoch, err := vectorEpoch(v)
	if err != nil {
		return bitRows{}, err
	}
	x := &v.store.vectors
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.loaded && x.epoch >= epoch {
		return x.bitRows, nil
	}
	fresh := bitRows{epoch: epoch}
	rows, err := v.query("SELECT seq, domain_id, bits FROM embedding_bits WHERE model = ? ORDER BY seq", v.store.model)
	_, err = collect(rows, err, func(r scanner) (struct{}, error) {
		var p packed
		if err := r.Scan(&p.seq, &p.domain, &p.bits); err != nil {
			return struct{}{}, err
		}
		if len(p.bits) == words*8 {
			fresh.add(p)
		}
		return struct{}{}, nil
	})
	if err != nil {
		return bitRows{}, err
	}
	x.loaded, x.bitRows = true, fresh
	return fresh, nil
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

// byDistance returns the rows in scope that are nearest by sign bits, nearest
// first, then newest, at most maxRescored: a counting sort over the 385
// possible distances.
func byDistance(query []byte, x bitRows, scope Scope) []int64 {
	var q [words]uint64
	for i := range words {
		q[i] = binary.LittleEndian.Uint64(query[i*8:])
	}
	const hidden = Dimensions + 1
	distance := make([]uint16, len(x.seqs))
	var count [hidden + 1]int
	for i := range x.seqs {
		w := x.bits[i*words : i*words+words : i*words+words]
		d := bits.OnesCount64(w[0]^q[0]) + bits.OnesCount64(w[1]^q[1]) + bits.OnesCount64(w[2]^q[2]) +
			bits.OnesCount64(w[3]^q[3]) + bits.OnesCount64(w[4]^q[4]) + bits.OnesCount64(w[5]^q[5])
		if scope.Hidden(x.domain[i]) {
			d = hidden
		}
		distance[i] = uint16(d)
		count[d]++
	}
	// The furthest distance that is still wanted, and where each begins.
	cut, total := 0, 0
	var start [hidden]int
	for d := range hidden {
		start[d] = total
		total += count[d]
		cut = d
		if total >= maxRescored {
			break
		}
	}
	near := make([]int64, total)
	for i := len(x.seqs) - 1; i >= 0; i-- {
		if d := int(distance[i]); d <= cut {
			near[start[d]] = x.seqs[i]
			start[d]++
		}
	}
	// Vectors of earlier facts may have come later: start is where each
	// distance ends now.
	for d := range cut + 1 {
		slices.SortFunc(near[start[d]-count[d]:start[d]], func(a, b int64) int { return cmp.Compare(b, a) })
	}
	return near[:min(total, maxRescored)]
}
