package recall

import (
	"context"

	"github.com/polyphony-memory/polyphony/memory"
)

// Query is what a voice is asked.
type Query struct {
	Text    string
	Lexicon *Lexicon
	Intent  Intent
	// Vector is the query's embedding, nil when there is none.
	Vector []float32
	Scope  memory.Scope
	// Found is what the voices before this one found, best first. The ones
	// that re-rank or go on from others work on it.
	Found []Candidate
	// Limit is how many candidates the voice should give, 1 or more.
	Limit int
}

// Candidate is one fact that a voice found.
type Candidate struct {
	*memory.FactRow
	// Score is the voice's own, higher is better; it compares within one
	// answer of one voice only.
	Score float64
}

// Voice ranks the facts of a workspace by one kind of evidence. It gives each
// fact once, best first, in a total order, and applies the scope before any
// cut. A voice that has nothing to say gives none.
type Voice interface {
	// Name is the voice's key in answers.
	Name() string
	// Find returns at most q.Limit candidates; none is no error.
	Find(ctx context.Context, v *memory.View, q Query) ([]Candidate, error)
}
