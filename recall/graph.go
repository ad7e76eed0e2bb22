package recall

import (
	"cmp"
	"context"
	"slices"

	"github.com/polyphony-memory/polyphony/memory"
)

const (
	// graphSeeds is how many of the strongest finds the graph goes out from.
	graphSeeds = 32
	// hopDecay is what is left of an edge's strength after a hop.
	hopDecay = 0.7
	// maxReached bounds the facts that one hop goes on from.
	maxReached = 32
)

// Graph finds what is linked to the strongest finds of the other voices, two
// hops away at most. A fact's strength is its seed's, times the weights of the
// edges on its best path, less at each hop. It says nothing of a seed that no
// other leads to: that one has the voices that found it.
type Graph struct{}

// Name returns "graph".
func (Graph) Name() string { return "graph" }

// Find walks two hops out from q.Found.
func (Graph) Find(_ context.Context, v *memory.View, q Query) ([]Candidate, error) {
	front := map[int64]float64{}
	for _, s := range q.Found[:min(len(q.Found), graphSeeds)] {
		front[s.Seq] = s.Score / q.Found[0].Score
	}
	strength := map[int64]float64{}
	for range 2 {
		links, err := v.Links(strongest(front, maxReached))
		if err != nil {
			return nil, err
		}
		next := map[int64]float64{}
		for _, l := range links {
			next[l.To] = max(next[l.To], front[l.From]*l.Weight*hopDecay)
		}
		for seq, s := range next {
			strength[seq] = max(strength[seq], s)
		}
		front = next
	}
	seqs := strongest(strength, len(strength))
	rows, err := v.FirstAt(seqs, q.Scope, q.Limit)
	if err != nil {
		return nil, err
	}
	var found []Candidate
	for _, f := range rows {
		found = append(found, Candidate{f, strength[f.Seq]})
	}
	return found, nil
}

// strongest returns the rows of a front, strongest first, then newest.
func strongest(strength map[int64]float64, limit int) []int64 {
	seqs := make([]int64, 0, len(strength))
	for seq := range strength {
		seqs = append(seqs, seq)
	}
	slices.SortFunc(seqs, func(a, b int64) int {
		return cmp.Or(cmp.Compare(strength[b], strength[a]), cmp.Compare(b, a))
	})
	return seqs[:min(len(seqs), limit)]
}
