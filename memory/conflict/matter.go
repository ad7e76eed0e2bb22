package conflict

import (
	"fmt"
	"unicode/utf8"
)

// matter is how much two statements speak of the same thing, whatever the
// order of their words.
type matter struct {
	old, new *Parsed
	a, b     []token // what carries content, the weak verbs left out
	pairs    [][2]int
	inA, inB []bool
}

// compareMatter pairs the words of two statements without regard to order.
func compareMatter(old, new *Parsed) matter {
	m := matter{old: old, new: new, a: old.strong, b: new.strong}
	in := make([]bool, len(m.a)+len(m.b))
	m.inA, m.inB = in[:len(m.a)], in[len(m.a):]
	ways := []func(x, y *token) bool{sameWord, alike}
	if lasts(m.a) && lasts(m.b) {
		ways = append(ways, sameTerm)
	}
	for _, same := range ways {
		for i := range m.a {
			for j := range m.b {
				if !m.inA[i] && !m.inB[j] && same(&m.a[i], &m.b[j]) {
					m.pairs = append(m.pairs, [2]int{i, j})
					m.inA[i], m.inB[j] = true, true
				}
			}
		}
	}
	return m
}

func sameWord(x, y *token) bool { return x.id == y.id }

// alike reports words of one family: approve and approval, a noun and its
// cases. It is enough to suspect something, never to merge.
func alike(x, y *token) bool {
	if x.kind != kindWord || y.kind != kindWord || x.stem[0] != y.stem[0] && x.concept == 0 {
		return false
	}
	if x.concept != 0 && x.concept == y.concept {
		return true
	}
	a, b := x.stem, y.stem
	if x.paired || y.paired {
		return false
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	shared, longest := utf8.RuneCountInString(a[:n]), max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
	return shared >= 4 && shared*5 >= longest*3
}

// lasts reports that a statement names a length of time.
func lasts(ts []token) bool {
	for i := range ts {
		if d := ts[i].amount.dim; ts[i].kind == kindNumber && (d == dimTime || d == dimMonths) {
			return true
		}
	}
	return false
}

// sameTerm reports a word for keeping and one for deleting: with a length of
// time both say how long something is kept.
func sameTerm(x, y *token) bool {
	_, kx := keeping[x.concept]
	_, ky := keeping[y.concept]
	_, dx := deleting[x.concept]
	_, dy := deleting[y.concept]
	return kx && dy || dx && ky
}

// strong leaves out the verbs that say little (have, use, make).
func strong(ts []token) []token {
	out := make([]token, 0, len(ts))
	for i, t := range ts {
		if _, weak := weakVerbs[t.stem]; weak && !t.neg && t.kind == kindWord {
			continue
		}
		if _, day := dayWords[t.stem]; day && (i > 0 && ts[i-1].scope == scopeWeekday || i+1 < len(ts) && ts[i+1].scope == scopeWeekday) {
			continue
		}
		out = append(out, t)
	}
	return out
}

// coverage is how much of the shorter statement, as far as its first clause,
// the two have in common: 0 to 1.
func (m *matter) coverage() float64 {
	covered := func(ts []token, in []bool) float64 {
		n := clause(ts)
		if n == 0 {
			return 0
		}
		c := 0
		for i := range n {
			if in[i] {
				c++
			}
		}
		return float64(c) / float64(n)
	}
	return max(covered(m.a, m.inA), covered(m.b, m.inB))
}

// clause returns where the first clause ends.
func clause(ts []token) int {
	for i := 3; i < len(ts); i++ {
		if ts[i].comma {
			return i
		}
	}
	return len(ts)
}

// otherThing finds what shows that the statements speak of two things: other
// places, times or people of one kind, or another word before the same noun.
func (m *matter) otherThing() (string, bool) {
	for _, s := range []scope{scopeEnvironment, scopeOrdinal} {
		if x, y := m.loose(s); x != "" && y != "" {
			return fmt.Sprintf("%q and %q", x, y), true
		}
	}
	if x, y := m.loose(scopeCalendar); x != "" && y != "" && m.new.reversal == "" {
		return fmt.Sprintf("%q and %q", x, y), true
	}
	if !m.inA[0] && !m.inB[0] && m.a[0].kind != kindNumber && m.b[0].kind != kindNumber {
		return fmt.Sprintf("%q and %q as the first words", m.a[0].surface, m.b[0].surface), true
	}
	for _, p := range m.pairs {
		x, y, ok := m.modifiers(p)
		if ok {
			return fmt.Sprintf("%q and %q before %q", x.surface, y.surface, m.b[p[1]].surface), true
		}
	}
	for i := range m.a {
		if m.inA[i] || !m.a[i].limits() {
			continue
		}
		for j := range m.b {
			if !m.inB[j] && m.b[j].limits() && (m.a[i].prep == m.b[j].prep || beneficiary(m.a[i].prep) && beneficiary(m.b[j].prep)) {
				return fmt.Sprintf("%s %q and %s %q", m.a[i].prep, m.a[i].surface, m.b[j].prep, m.b[j].surface), true
			}
		}
	}
	return "", false
}

// limits reports a word that says for whom or of what a statement holds: for
// guests, or in the subject from the browser.
func (t *token) limits() bool {
	return beneficiary(t.prep) || t.prep != "" && !t.pred && !copula(t.prep) && t.kind != kindNumber
}

// loose returns words of one scope that each statement has for itself.
func (m *matter) loose(s scope) (x, y string) {
	for i := range m.a {
		if m.a[i].scope == s && !m.inA[i] {
			x = m.a[i].surface
		}
	}
	for j := range m.b {
		if m.b[j].scope == s && !m.inB[j] {
			y = m.b[j].surface
		}
	}
	return x, y
}

// modifiers returns the words before a common noun when they differ: raw
// events and daily events.
func (m *matter) modifiers(p [2]int) (x, y *token, differ bool) {
	if p[0] == 0 || p[1] == 0 || m.a[p[0]].verb || m.b[p[1]].verb {
		return nil, nil, false
	}
	x, y = &m.a[p[0]-1], &m.b[p[1]-1]
	bound := func(ts []token, i int, in []bool) bool {
		t := ts[i]
		return t.prep == "" && !t.comma && !in[i-1] && ts[i-1].kind == kindWord && !ts[i-1].verb && !ts[i-1].neg
	}
	if !bound(m.a, p[0], m.inA) || !bound(m.b, p[1], m.inB) || opposed(x.stem, y.stem) {
		return nil, nil, false
	}
	return x, y, true
}
