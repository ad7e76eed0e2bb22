package recall

import (
	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// mmrLambda weighs relevance against novelty (Carbonell and Goldstein,
	// 1998).
	mmrLambda = 0.7
	// unlike is the share of common terms up to which two texts are about
	// different things.
	unlike = 0.4
	// mmrWindow is how many of the best hits are diversified.
	mmrWindow = 60
)

// diversify reorders hits by maximal marginal relevance over their normalised
// scores: each next one is the best of λ × score − (1 − λ) × its likeness to
// what stands already. The first stays first, and no hit is lost.
func diversify(hits []*fused, lambda float64) []*fused {
	n := min(len(hits), mmrWindow)
	if n < 3 || lambda >= 1 {
		return hits
	}
	terms := make([]map[string]bool, n)
	for i := range n {
		terms[i] = termSet(hits[i].Content)
	}
	// likeness[i] is the greatest likeness of hit i to those taken.
	likeness := make([]float64, n)
	taken := make([]bool, n)
	order := make([]int, 0, n)
	take := func(i int) {
		taken[i] = true
		order = append(order, i)
		for j := range n {
			if !taken[j] {
				likeness[j] = max(likeness[j], (jaccard(terms[i], terms[j])-unlike)/(1-unlike))
			}
		}
	}
	take(0)
	for len(order) < n {
		best := -1
		var value float64
		for i := range n {
			if taken[i] {
				continue
			}
			if v := lambda*hits[i].score - (1-lambda)*likeness[i]; best < 0 || v > value {
				best, value = i, v
			}
		}
		take(best)
	}
	out := make([]*fused, 0, len(hits))
	for _, i := range order {
		out = append(out, hits[i])
	}
	return append(out, hits[n:]...)
}

// termSet returns the terms that a content is compared by. A text without any
// is like nothing else, not like every other one without.
func termSet(content string) map[string]bool {
	set := map[string]bool{}
	for _, t := range text.QueryTerms(content) {
		set[t.Text] = true
	}
	return set
}

func jaccard(a, b map[string]bool) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	common := 0
	for t := range a {
		if b[t] {
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(len(a)+len(b)-common)
}
