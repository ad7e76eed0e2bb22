package recall

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/polyphony-memory/polyphony/memory"
)

// freshSteps is how finely freshness is told apart: facts within a twentieth
// of each other are equally fresh, so that in old memory age says nothing.
const freshSteps = 20

// Temporal ranks by how recently a fact was confirmed. It re-ranks what others
// found, and brings facts of its own only when the query asks about time:
// being new is no relevance.
type Temporal struct{}

// Name returns "temporal".
func (Temporal) Name() string { return "temporal" }

// Find ranks by the last confirmation, newest first.
func (Temporal) Find(_ context.Context, v *memory.View, q Query) ([]Candidate, error) {
	found := slices.Clone(q.Found)
	if q.Intent == IntentTemporal && q.Lexicon.Empty() {
		// "What is new?" names nothing else to look for.
		recent, err := v.Recent(q.Scope, q.Limit)
		if err != nil {
			return nil, err
		}
		for _, f := range recent {
			found = append(found, Candidate{FactRow: f})
		}
	}
	now := v.Now().Time
	for i := range found {
		f := &found[i].Fact
		found[i].Score = math.Round(freshSteps * memory.Decay(f.MemoryType, memory.Confirmed(f), now))
	}
	slices.SortFunc(found, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq))
	})
	return found[:min(len(found), q.Limit)], nil
}
