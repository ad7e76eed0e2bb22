package recall

import (
	"context"

	"github.com/polyphony-memory/polyphony/memory"
)

// Model turns text into vectors of 384 numbers and unit length.
// recall/embedding has the one that is used; tests have their own.
type Model interface {
	// ID names the model and its weights: vectors of others are not compared.
	ID() string
	// Embed returns one vector for each text, nil for one that has none.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery returns the vector of a question.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// cosineFloor is the likeness below which two texts have nothing to do with
// each other: unrelated pairs of sentences stay under it (docs/recall.md).
const cosineFloor = 0.25

// Semantic finds facts whose vectors are near the query's.
type Semantic struct{}

// Name returns "semantic".
func (Semantic) Name() string { return "semantic" }

// Find returns the nearest facts; without a vector there are none.
func (Semantic) Find(_ context.Context, v *memory.View, q Query) ([]Candidate, error) {
	near, err := v.Nearest(q.Vector, q.Scope, q.Limit)
	if err != nil {
		return nil, err
	}
	var found []Candidate
	for _, n := range near {
		if n.Cosine >= cosineFloor {
			found = append(found, Candidate{n.FactRow, n.Cosine})
		}
	}
	return found, nil
}
