package memory

import (
	"math"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// decayCurve is a Weibull survival curve: exp(−(age/eta)^k), age in hours.
type decayCurve struct{ k, eta float64 }

// curve returns the curve of a memory type (behaviour.md 2).
func curve(t record.MemoryType) decayCurve {
	switch t {
	case record.TypeProfile:
		return decayCurve{0.3, 8760}
	case record.TypeRelationship:
		return decayCurve{0.35, 8760}
	case record.TypePreference:
		return decayCurve{0.4, 4380}
	case record.TypeInstruction:
		return decayCurve{0.9, 480}
	case record.TypeGoal:
		return decayCurve{0.9, 720}
	case record.TypeLearning:
		return decayCurve{0.7, 1440}
	case record.TypeArtifact:
		return decayCurve{0.75, 2160}
	case record.TypeFact:
		return decayCurve{0.8, 720}
	case record.TypeContext:
		return decayCurve{0.85, 360}
	case record.TypeObservation:
		return decayCurve{0.9, 480}
	case record.TypeDecision:
		return decayCurve{1.0, 336}
	case record.TypeCommitment:
		return decayCurve{1.0, 240}
	case record.TypeError:
		return decayCurve{1.1, 336}
	case record.TypeEvent:
		return decayCurve{1.2, 168}
	case record.TypeRequest:
		return decayCurve{1.5, 72}
	default:
		return decayCurve{1.0, 168}
	}
}

// Decay returns how fresh a fact of type t is, 0 to 1, when it was confirmed
// at confirmed and is asked for at now; a future confirmation counts as now.
func Decay(t record.MemoryType, confirmed, now time.Time) float64 {
	age := math.Max(0, now.Sub(confirmed).Hours())
	c := curve(t)
	return math.Min(1, math.Max(0, math.Exp(-math.Pow(age/c.eta, c.k))))
}

// Confirmed returns when the fact was last confirmed: its latest mention, or
// its creation.
func Confirmed(f *record.Fact) time.Time {
	if f.LastMentionedAt.After(f.CreatedAt.Time) {
		return f.LastMentionedAt.Time
	}
	return f.CreatedAt.Time
}
