package conflict

import "fmt"

// Cosines from which the vectors of two statements count. They were set on the
// tuned pairs of testdata and hold for all-MiniLM-L6-v2; docs/conflicts.md has
// the figures.
const (
	// NearFloor is the cosine below which vectors change no verdict.
	NearFloor = 0.6
	// sameNear is how near two statements of one content lie.
	sameNear = 0.8
	// twinNear is how near two statements lie of which one is likely a newer
	// state of the other.
	twinNear = 0.82
)

// Unsettled reports a verdict that rests on the lack of evidence, so that the
// vectors of the two statements may add to it.
func Unsettled(v Verdict) bool {
	_, open := unsettled[v.Rule]
	return v.Relation == Compatible && open || v.Relation == Uncertain && v.Rule == "reordered"
}

// Near reconsiders an unsettled verdict with how near the two statements are in
// the embedding model: the cosine of their vectors, -1 to 1. Nearness alone
// decides nothing: opposites lie near each other too. It merges only what
// agrees in numbers, names, stance and polarity, and otherwise asks for a
// review.
func Near(v Verdict, old, new *Parsed, cosine float64) Verdict {
	if !Unsettled(v) || cosine < NearFloor || old.capped || new.capped || old.topic != new.topic || old.domain != new.domain {
		return v
	}
	m := compareMatter(old, new)
	if len(m.pairs) == 0 {
		return v
	}
	if _, other := m.otherThing(); other {
		return v
	}
	if cosine >= sameNear && m.agrees() && m.evenLength() && !m.oneChanged() {
		return Verdict{Duplicate, "same-meaning", fmt.Sprintf("other words for the same: the model puts the statements at %.2f, and they agree in numbers, names and polarity", cosine)}
	}
	if cosine >= twinNear && m.opens() {
		return Verdict{Uncertain, "near", fmt.Sprintf("the model puts the statements at %.2f, and they differ in numbers, names or polarity", cosine)}
	}
	return v
}

// agrees reports that the statements have the same numbers and names, and the
// same stance and polarity.
func (m *matter) agrees() bool {
	if m.old.stance != m.new.stance || (m.old.marks[markCondition] == "") != (m.new.marks[markCondition] == "") || m.old.reversal != m.new.reversal || m.old.limitless != m.new.limitless ||
		(m.old.marks[markOnly] == "") != (m.new.marks[markOnly] == "") {
		return false
	}
	x, y := negations(m.a), negations(m.b)
	carried := m.old.stance != stanceNone && min(x, y) == 0 && max(x, y) <= 1
	if x != y && !carried {
		return false
	}
	for i := range m.a {
		if !m.inA[i] && hard(&m.a[i]) {
			return false
		}
	}
	for j := range m.b {
		if !m.inB[j] && hard(&m.b[j]) {
			return false
		}
	}
	for _, p := range m.pairs {
		if m.a[p[0]].neg != m.b[p[1]].neg && !carried {
			return false
		}
	}
	for i := range m.a {
		for j := range m.b {
			if opposed(m.a[i].stem, m.b[j].stem) && !m.inA[i] && !m.inB[j] {
				return false
			}
		}
	}
	_, swapped := swappedRoles(m.a, m.b)
	return !swapped && m.both() >= enoughShared
}

// oneChanged reports statements of the same build in which one place, or
// little more, holds other words: somebody reviews this, somebody reviews that.
func (m *matter) oneChanged() bool {
	al := align(m.a, m.b)
	return len(al.hunks) <= 1 || len(al.hunks) == 2 && 3*len(al.pairs) >= 2*max(len(m.a), len(m.b))
}

// hard reports a word that paraphrases keep: a number, a name, a scope.
func hard(t *token) bool {
	return t.kind == kindNumber || t.kind == kindName || t.capital || t.scope != scopeNone || t.excepted
}

// both is the lesser of the shares of their words that the two statements find
// in each other.
func (m *matter) both() float64 {
	share := func(in []bool) float64 {
		n := 0
		for _, ok := range in {
			if ok {
				n++
			}
		}
		return float64(n) / float64(len(in))
	}
	return min(share(m.inA), share(m.inB))
}

// evenLength reports that neither statement says much more than the other.
func (m *matter) evenLength() bool {
	a, b := len(m.a), len(m.b)
	return 3*a >= 2*b && 3*b >= 2*a
}

// opens reports a difference in what paraphrases keep.
func (m *matter) opens() bool {
	return m.both() >= enoughShared && !m.cutOff()
}

// LikenessFloor is the likeness below which a pair is not worth asking a judge
// about.
const LikenessFloor = fewShared

// Likeness is how much of the shorter statement the other one has too, whatever
// the order: 0 to 1.
func Likeness(old, new *Parsed) float64 {
	m := compareMatter(old, new)
	if len(m.pairs) == 0 {
		return 0
	}
	return m.coverage()
}
