package conflict

import (
	"fmt"
)

// Coverage of the shorter statement from which the signs of opposition count.
// The pairs of testdata set them: lower ones flag statements that only share a
// theme.
const (
	enoughShared = 0.5
	fewShared    = 0.34
)

// suspect looks for signs that two statements which no rule brought together
// cannot both hold. It can only ask for a review, never retire.
func suspect(old, new *Parsed) (Verdict, bool) {
	m := compareMatter(old, new)
	if len(m.pairs) == 0 {
		return Verdict{}, false
	}
	if _, other := m.otherThing(); other {
		return Verdict{}, false
	}
	cov := m.coverage()
	for _, sign := range signs {
		if cov < sign.least {
			continue
		}
		if why, ok := sign.seen(&m); ok {
			return Verdict{Uncertain, sign.rule, why}, true
		}
	}
	return Verdict{}, false
}

// signs of opposition, the more telling ones first.
var signs = []struct {
	rule  string
	least float64 // the coverage it asks for
	seen  func(m *matter) (string, bool)
}{
	{"stance", enoughShared, (*matter).stanceTurned},
	{"polarity", enoughShared, (*matter).negated},
	{"antonym", enoughShared, (*matter).antonyms},
	{"other-value", enoughShared, (*matter).otherAmount},
	{"limit", fewShared, (*matter).limitLifted},
	{"reversal", fewShared, (*matter).reversed},
}

func (m *matter) stanceTurned() (string, bool) {
	if !m.old.stance.against(m.new.stance) {
		return "", false
	}
	if m.cutOff() {
		return "", false
	}
	return fmt.Sprintf("one statement %s (%q), the other %s (%q), and they speak of the same", m.old.stance, m.old.stanceWord, m.new.stance, m.new.stanceWord), true
}

// cutOff reports that each statement ends in words of its own: what one allows
// and the other forbids are then two things.
func (m *matter) cutOff() bool {
	i, j := clause(m.a)-1, clause(m.b)-1
	if i < 0 || j < 0 {
		return true
	}
	if own(&m.a[i], m.inA[i]) && own(&m.b[j], m.inB[j]) {
		return true
	}
	return ownWords(m.a[:i+1], m.inA) > 1 && ownWords(m.b[:j+1], m.inB) > 1
}

// own reports a word that only its own statement has, stance and numbers left
// out.
func own(t *token, in bool) bool {
	_, word := stanceWords[t.surface]
	return !in && !word && t.kind != kindNumber && !t.paired
}

func ownWords(ts []token, in []bool) int {
	n := 0
	for i := range ts {
		if own(&ts[i], in[i]) && !ts[i].verb {
			n++
		}
	}
	return n
}

func (m *matter) negated() (string, bool) {
	n, at := 0, -1
	for k, p := range m.pairs {
		if m.a[p[0]].neg != m.b[p[1]].neg {
			n++
			at = k
		}
	}
	if n%2 == 0 || m.old.stance == m.new.stance && m.old.stance != stanceNone || m.cutOff() {
		return "", false
	}
	return fmt.Sprintf("%q is affirmed in one statement and negated in the other", m.b[m.pairs[at][1]].surface), true
}

func (m *matter) antonyms() (string, bool) {
	for i := range m.a {
		for j := range m.b {
			if m.inA[i] || m.inB[j] || m.a[i].neg != m.b[j].neg || !opposed(m.a[i].stem, m.b[j].stem) {
				continue
			}
			return fmt.Sprintf("%q and %q exclude each other", m.a[i].surface, m.b[j].surface), !m.cutOff() || i == len(m.a)-1
		}
	}
	return "", false
}

// otherAmount finds the one quantity of a kind that each statement gives, when
// they differ.
func (m *matter) otherAmount() (string, bool) {
	for i := range m.a {
		x := &m.a[i]
		if x.kind != kindNumber || m.inA[i] || x.scope != scopeNone {
			continue
		}
		found := -1
		for j := range m.b {
			y := &m.b[j]
			if y.kind != kindNumber || y.scope != scopeNone || y.amount.dim != x.amount.dim || y.amount.unit != x.amount.unit {
				continue
			}
			if m.inB[j] || found >= 0 {
				return "", false
			}
			found = j
		}
		if found < 0 {
			continue
		}
		y := &m.b[found]
		if x.amount.admits(y.amount) || y.amount.admits(x.amount) || x.amount.dim == dimNone && !m.counts(i, found) || m.measures(i, found) {
			continue
		}
		return fmt.Sprintf("%s stands against %s", x.surface, y.surface), true
	}
	return "", false
}

// measures reports that the numbers belong to different things: each statement
// has words of its own before its number, or right after it.
func (m *matter) measures(i, j int) bool {
	if ownWords(m.a[:i], m.inA) > 0 && ownWords(m.b[:j], m.inB) > 0 {
		return true
	}
	after := func(ts []token, in []bool, k int) bool {
		return k+1 < len(ts) && !ts[k+1].comma && own(&ts[k+1], in[k+1]) && ts[k+1].kind != kindNumber
	}
	return after(m.a, m.inA, i) && after(m.b, m.inB, j)
}

// counts reports that two bare numbers count or number the same thing: a
// common word stands beside both.
func (m *matter) counts(i, j int) bool {
	for _, p := range m.pairs {
		x, y := p[0]-i, p[1]-j
		if (x == 1 || x == -1) && (y == 1 || y == -1) && (!enumerates(m.a[p[0]]) || m.a[i].amount.bound != boundExact) {
			return true
		}
	}
	return false
}

// limitLifted finds a limit on one side and its absence on the other.
func (m *matter) limitLifted() (string, bool) {
	for _, s := range [][2]*Parsed{{m.old, m.new}, {m.new, m.old}} {
		free, bound := s[0], s[1]
		if free.limitless == "" || bound.limitless != "" {
			continue
		}
		for _, t := range bound.tokens {
			if t.kind == kindNumber && t.scope == scopeNone {
				return fmt.Sprintf("%q stands against %s", free.limitless, t.surface), true
			}
		}
	}
	return "", false
}

func (m *matter) reversed() (string, bool) {
	if m.new.reversal == "" || m.old.reversal != "" {
		return "", false
	}
	return fmt.Sprintf("the newer statement speaks of the same and says %q", m.new.reversal), true
}
