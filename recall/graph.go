package recall

import (
	"cmp"
	"context"
	"slices"

	"github.com/polyphony-memory/polyphony/memory"
)

const (
	// graphSeeds is how many of the strongest finds the graph goes out from.
	graphSeeds = 8
	// hopDecay is what is left of an edge's strength after a hop.
	hopDecay = 0.5
	// maxReached bounds the facts that one hop goes on from.
	maxReached = 64
)

// Graph finds what is linked to the strongest finds of the other voices, two
// hops away at most. A fact's strength is its seed's, times the weights of the
// edges on its best path, halved at each hop.
type Graph struct{}

// Name returns "graph".
func (Graph) Name() string { return "graph" }

// Find walks two hops out from q.Found.
func (Graph) Find(_ context.Context, v *memory.View, q Query) ([]Candidate, error) {
	seeds := q.Found[:min(len(q.Found), graphSeeds)]
	if len(seeds) == 0 {
		return nil, nil
	}
	strength := map[int64]float64{}
	best := seeds[0].Score
	var front []int64
	for _, s := range seeds {
		strength[s.Seq] = s.Score / best
		front = append(front, s.Seq)
	}
	for range 2 {
		links, err := v.Links(front)
		if err != nil {
			return nil, err
		}
		reached := map[int64]bool{}
		for _, l := range links {
			if through := strength[l.From] * l.Weight * hopDecay; through > strength[l.To] {
				strength[l.To] = through
				reached[l.To] = true
			}
		}
		front = front[:0]
		for seq := range reached {
			front = append(front, seq)
		}
		slices.SortFunc(front, func(a, b int64) int {
			return cmp.Or(cmp.Compare(strength[b], strength[a]), cmp.Compare(b, a))
		})
		front = front[:min(len(front), maxReached)]
	}
	seqs := make([]int64, 0, len(strength))
	for seq := range strength {
		seqs = append(seqs, seq)
	}
	slices.SortFunc(seqs, func(a, b int64) int {
		return cmp.Or(cmp.Compare(strength[b], strength[a]), cmp.Compare(b, a))
	})
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
