package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of single values. Larger input is refused with the limit named.
const (
	// MaxContentBytes bounds a fact, a notes page, a session item, an episode.
	MaxContentBytes = 65536
	// MaxRuleBytes bounds a policy's rule.
	MaxRuleBytes = 16384
	// MaxNameBytes bounds domains, topics, repositories, agents, sessions and
	// meeting ids.
	MaxNameBytes = 512
	// MaxKeyBytes bounds an idempotency key, which becomes part of a workflow
	// id, which some of the engine's stores cap at 255 bytes.
	MaxKeyBytes = 128
	// MaxTaskBytes bounds the task text of a dispatch and a search query.
	MaxTaskBytes = 65536
	// MaxSources bounds the observations that one fact cites.
	MaxSources = 256
	// MaxDecisions bounds the decisions of one meeting.
	MaxDecisions = 1000
	// MaxRequestBytes bounds one encoded request, so that it stays under the
	// engine's payload limit of 2 MiB.
	MaxRequestBytes = 1900000
	// MaxAnswerBytes bounds one encoded answer for the same reason.
	MaxAnswerBytes = 1500000
	// MaxContextStatements bounds the statements checked for staleness.
	MaxContextStatements = 256
)

// Veracity says how a piece of knowledge was come by.
type Veracity string

// The veracities, strongest first.
const (
	Stated   Veracity = "stated"
	Inferred Veracity = "inferred"
	Imported Veracity = "imported"
	Tool     Veracity = "tool"
	Unknown  Veracity = "unknown"
)

var veracities = []Veracity{Stated, Inferred, Imported, Tool, Unknown}

// Veracities returns every veracity, strongest first.
func Veracities() []Veracity { return slices.Clone(veracities) }

// Weight returns the share, 0 to 1, that a source of this veracity adds to
// confidence (behaviour.md 2).
func (v Veracity) Weight() float64 {
	switch v {
	case Stated:
		return 1.0
	case Inferred:
		return 0.7
	case Imported:
		return 0.6
	default:
		return 0.5
	}
}

// rank orders veracities, lower is stronger; equal weights keep list order.
func (v Veracity) rank() int { return slices.Index(veracities, v) }

// StrongerOf returns the stronger of two veracities.
func StrongerOf(a, b Veracity) Veracity {
	if b.rank() >= 0 && (a.rank() < 0 || b.rank() < a.rank()) {
		return b
	}
	return a
}

// ParseVeracity reads a veracity; "" is Inferred, the default of agents.
func ParseVeracity(s string) (Veracity, error) {
	if s == "" {
		return Inferred, nil
	}
	if v := Veracity(s); v.rank() >= 0 {
		return v, nil
	}
	return "", Errorf(InvalidArgument, "veracity", "unknown veracity %q; allowed: %s", short(s), join(veracities))
}

// MemoryType decides how fast a fact fades.
type MemoryType string

// The memory types.
const (
	TypeProfile      MemoryType = "profile"
	TypeRelationship MemoryType = "relationship"
	TypePreference   MemoryType = "preference"
	TypeInstruction  MemoryType = "instruction"
	TypeGoal         MemoryType = "goal"
	TypeLearning     MemoryType = "learning"
	TypeArtifact     MemoryType = "artifact"
	TypeFact         MemoryType = "fact"
	TypeContext      MemoryType = "context"
	TypeObservation  MemoryType = "observation"
	TypeDecision     MemoryType = "decision"
	TypeCommitment   MemoryType = "commitment"
	TypeError        MemoryType = "error"
	TypeEvent        MemoryType = "event"
	TypeRequest      MemoryType = "request"
	TypeUnknown      MemoryType = "unknown"
)

var memoryTypes = []MemoryType{
	TypeProfile, TypeRelationship, TypePreference, TypeInstruction, TypeGoal, TypeLearning, TypeArtifact, TypeFact,
	TypeContext, TypeObservation, TypeDecision, TypeCommitment, TypeError, TypeEvent, TypeRequest, TypeUnknown,
}

// MemoryTypes returns every memory type.
func MemoryTypes() []MemoryType { return slices.Clone(memoryTypes) }

// ParseMemoryType reads a memory type; "" stays "", which asks the store to
// classify the statement.
func ParseMemoryType(s string) (MemoryType, error) {
	if s == "" || slices.Contains(memoryTypes, MemoryType(s)) {
		return MemoryType(s), nil
	}
	return "", Errorf(InvalidArgument, "memory_type", "unknown memory type %q; allowed: %s", short(s), join(memoryTypes))
}

// Role is what an agent works as; grants are given to roles.
type Role string

// The roles.
var roles = []Role{"ceo", "coder", "reviewer", "qa", "designer", "security", "devops", "pm", "general"}

// RoleGeneral is the role of a caller that names none.
const RoleGeneral Role = "general"

// Roles returns every role.
func Roles() []Role { return slices.Clone(roles) }

// ParseRole reads a role; "" is general.
func ParseRole(field, s string) (Role, error) {
	if s == "" {
		return RoleGeneral, nil
	}
	if slices.Contains(roles, Role(s)) {
		return Role(s), nil
	}
	return "", Errorf(InvalidArgument, field, "unknown role %q; allowed: %s", short(s), join(roles))
}

// Level is what a grant allows.
type Level string

// The grant levels, weakest first.
const (
	None  Level = "none"
	Read  Level = "read"
	Write Level = "write"
)

var levels = []Level{None, Read, Write}

// Covers reports whether l allows what need asks.
func (l Level) Covers(need Level) bool { return slices.Index(levels, l) >= slices.Index(levels, need) }

// ParseLevel reads a grant level; there is no default.
func ParseLevel(s string) (Level, error) {
	if slices.Contains(levels, Level(s)) {
		return Level(s), nil
	}
	return "", Errorf(InvalidArgument, "level", "unknown level %q; allowed: %s", short(s), join(levels))
}

// Mode is how search_memory looks.
type Mode string

// The search modes.
const (
	Keyword  Mode = "keyword"
	Semantic Mode = "semantic"
	Hybrid   Mode = "hybrid"
)

// ParseMode reads a search mode; "" is hybrid.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return Hybrid, nil
	case Keyword, Semantic, Hybrid:
		return m, nil
	}
	return "", Errorf(InvalidArgument, "mode", "unknown mode %q; allowed: keyword, semantic, hybrid", short(s))
}

// ProposalStatus is what became of a proposed fact.
type ProposalStatus string

// The proposal outcomes of behaviour.md 3.
const (
	StatusCreated      ProposalStatus = "created"
	StatusReMentioned  ProposalStatus = "re-mentioned"
	StatusRefined      ProposalStatus = "refined"
	StatusSupersededBy ProposalStatus = "superseded_by_conflict"
)

// ConflictKind is why two facts stand in one conflict row.
type ConflictKind string

// The conflict kinds. ConflictManual is a supersession that a caller asked
// for; ConflictMerged one that consolidation made of a duplicate.
const (
	ConflictRefinement    ConflictKind = "refinement"
	ConflictContradiction ConflictKind = "contradiction"
	ConflictSuspected     ConflictKind = "suspected"
	ConflictCrossAgent    ConflictKind = "cross_agent"
	ConflictManual        ConflictKind = "manual"
	ConflictMerged        ConflictKind = "merged"
)

// Time is an instant in UTC with microsecond resolution. In JSON it is
// RFC 3339; the zero time is null.
type Time struct{ time.Time }

// At makes a Time of t, cut to microseconds.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// FromMicros makes a Time of UTC microseconds; 0 is the zero time.
func FromMicros(us int64) Time {
	if us == 0 {
		return Time{}
	}
	return Time{time.UnixMicro(us).UTC()}
}

// Micros returns UTC microseconds; the zero time is 0.
func (t Time) Micros() int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// MarshalJSON writes RFC 3339 with microseconds, or "" for none: a null would
// turn a pointer that asks for no time into one that asks for nothing.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return json.Marshal(t.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// UnmarshalJSON reads what ParseTime reads, null or "".
func (t *Time) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return Errorf(InvalidArgument, "", "a time must be a string: %v", err)
	}
	if s == nil || *s == "" {
		*t = Time{}
		return nil
	}
	p, err := ParseTime("", *s)
	if err != nil {
		return err
	}
	*t = p
	return nil
}

var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

// ParseTime reads an instant: RFC 3339, the same with a space, or a date. One
// without a zone is UTC, whatever the machine's zone. Years 1970 to 9999.
func ParseTime(field, s string) (Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range timeLayouts {
		t, err := time.ParseInLocation(layout, s, time.UTC)
		if err != nil {
			continue
		}
		if t = t.UTC(); t.Year() < 1970 || t.Year() > 9999 {
			return Time{}, Errorf(InvalidArgument, field, "time %q is outside the years 1970 to 9999", short(s))
		}
		return At(t), nil
	}
	return Time{}, Errorf(InvalidArgument, field, "%q is not a time; give RFC 3339 like 2027-01-31T09:00:00Z or a date", short(s))
}

// short cuts a value for an error message.
func short(s string) string {
	r := []rune(s)
	if len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

func join[T ~string](all []T) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = fmt.Sprint(v)
	}
	return strings.Join(names, ", ")
}
