package recall

import (
	"slices"

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
	terms := numbered(hits[:n])
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

// numbered returns, for each hit, the terms that its content is compared by, as
// ascending numbers that mean the same term in all of them. A text without any
// is like nothing else, not like every other one without.
func numbered(hits []*fused) [][]int {
	numbers := map[string]int{}
	out := make([][]int, len(hits))
	for i, h := range hits {
		terms := text.QueryTerms(h.Content)
		out[i] = make([]int, len(terms))
		for j, t := range terms {
			n, known := numbers[t.Text]
			if !known {
				n = len(numbers)
				numbers[t.Text] = n
			}
			out[i][j] = n
		}
		slices.Sort(out[i])
	}
	return out
}

// jaccard returns the share, 0 to 1, of the numbers that two ascending lists
// have in common.
func jaccard(a, b []int) float64 {
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	if common == 0 {
		return 0
	}
	return float64(common) / float64(len(a)+len(b)-common)
}
