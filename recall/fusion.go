package recall

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
)

const (
	// contrast is how steeply relevance falls with the fused score: half the
	// best fused score is e^(-contrast/2) of the best relevance. It is what
	// keeps freshness, which spans a factor of fifty, a judge between facts of
	// like relevance and no more.
	contrast = 60.0
	// mentionBonus and recallBonus bound what use adds: less than one rank.
	mentionBonus, recallBonus = 0.01, 0.005
	// beliefBonus is what it adds, times the belief's confidence, that several
	// agents hold a fact.
	beliefBonus = 0.01
)

// reach is how far down a voice's ranks count.
type reach struct {
	// k is reciprocal rank fusion's constant (Cormack, Clarke and Büttcher,
	// 2009). Their 60 is for lists of a thousand; with it the first rank of one
	// voice counts less than the hundredth of two. The surer a voice is of its
	// first ranks, the smaller (docs/recall.md).
	k float64
	// far is how many ranks a find without any strength stands back.
	far float64
}

// reachOf returns a voice's reach. Freshness has no strength to measure by, and
// decides between finds that the others cannot tell apart.
func reachOf(voice string) reach {
	switch voice {
	case Lexical{}.Name():
		return reach{k: 2, far: 20}
	case Semantic{}.Name():
		return reach{k: 12, far: 60}
	case Graph{}.Name():
		return reach{k: 6, far: 10}
	}
	return reach{k: 60}
}

// fused is one fact with what every voice said of it.
type fused struct {
	*memory.FactRow
	ranks map[string]int
	// rrf is the weighted reciprocal rank sum, score what the answer is
	// ordered by.
	rrf, score float64
	// belief is the confidence of the belief that the fact is a source of, 0
	// for none.
	belief float64
}

// fuse joins the voices' rankings. Each fact counts once per voice, at its best
// rank; facts that a voice cannot tell apart share one.
func fuse(w weights, voices []ranking) []*fused {
	byID := map[int64]*fused{}
	var all []*fused
	for _, v := range voices {
		reach, rank := reachOf(v.name), 0
		for i, c := range v.found {
			if i == 0 || c.Score != v.found[i-1].Score {
				rank = i + 1
			}
			f := byID[c.Seq]
			if f == nil {
				f = &fused{FactRow: c.FactRow, ranks: map[string]int{}}
				byID[c.Seq] = f
				all = append(all, f)
			}
			if _, twice := f.ranks[v.name]; twice {
				continue
			}
			f.ranks[v.name] = rank
			f.rrf += w.of(v.name) / (reach.k + float64(rank) + reach.far*v.weakness(i))
		}
	}
	return all
}

// ranking is what one voice answered.
type ranking struct {
	name  string
	found []Candidate
}

// weakness is how much weaker a find is than the voice's best, 0 to 1: ranks
// alone would put a vague second right behind an exact first.
func (r ranking) weakness(i int) float64 {
	if r.found[0].Score <= 0 {
		return 0
	}
	return 1 - r.found[i].Score/r.found[0].Score
}

// score orders the facts by relevance, freshness and confidence, and brings
// the scores to 0 to 1, 1 for the best.
func score(all []*fused, now time.Time, ageless bool) {
	best := 0.0
	for _, f := range all {
		best = math.Max(best, f.rrf)
	}
	for _, f := range all {
		relevance := math.Exp(contrast * (f.rrf/best - 1))
		decay := 1.0
		if !ageless {
			decay = memory.Decay(f.MemoryType, memory.Confirmed(&f.Fact), now)
		}
		f.score = relevance * (0.02 + 0.98*decay) * (0.8 + 0.2*f.Confidence) * (1 + use(f))
	}
	normalise(all)
	// Shown and diversified is the exponent, linear in the fused ranks.
	for _, f := range all {
		f.score = math.Max(0, 1+math.Log(math.Max(f.score, math.SmallestNonzeroFloat64))/contrast)
	}
}

// normalise puts the facts in the order of their scores and brings those to 0
// to 1, 1 for the best.
func normalise(all []*fused) {
	slices.SortFunc(all, func(a, b *fused) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.rrf, a.rrf), cmp.Compare(b.Seq, a.Seq))
	})
	if len(all) == 0 || all[0].score <= 0 {
		return
	}
	top := all[0].score
	for _, f := range all {
		f.score /= top
	}
}

// use is the small bonus of facts that are mentioned and recalled often, and of
// those that several agents hold.
func use(f *fused) float64 {
	saturate := func(n int64) float64 { return 1 - 1/float64(1+max(0, n)) }
	return mentionBonus*saturate(f.MentionCount-1) + recallBonus*saturate(f.RecallCount) + beliefBonus*f.belief
}
