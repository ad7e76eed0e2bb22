package conflict

import (
	"fmt"
	"slices"
	"strings"
)

// opposite judges statements that differ in one word and its antonym.
func (c *comparison) opposite(t tally) Verdict {
	h := t.opposites[0]
	x, y := c.old.tokens[h.i0], c.new.tokens[h.j0]
	what := fmt.Sprintf("%q and %q exclude each other", x.surface, y.surface)
	switch {
	case t.subjectFlips > 0 || t.leading || t.beforeVerb || h.i0 == 0 && len(c.old.tokens) > 1 && c.old.hasVerb && !x.verb:
		return Verdict{Compatible, "other-subject", what + " but stand in the subject"}
	case !x.pred && c.old.hasVerb && !x.verb:
		return Verdict{Compatible, "other-subject", what + " but stand in the subject"}
	case len(t.flips) > 0:
		return Verdict{Uncertain, "antonym", what + ", and a negation was added or dropped"}
	case attributive(c.old.tokens, h.i0):
		return Verdict{Uncertain, "antonym", what + " but belong to a noun, and both may exist"}
	case t.tight:
		return Verdict{Uncertain, "antonym", what + fmt.Sprintf(", but %q may limit it", c.extra())}
	}
	return Verdict{Contradiction, "antonym", what}
}

// otherWord judges statements that differ in one place, words for words.
func (c *comparison) otherWord(t tally) Verdict {
	h := t.words[0]
	a, b := c.old.tokens, c.new.tokens
	x, y := a[h.i0], b[h.j0]
	gone, come := phrase(a[h.i0:h.i1]), phrase(b[h.j0:h.j1])
	what := fmt.Sprintf("%q became %q", gone, come)
	last := h.i1 == len(a)
	if t.subjectFlips > 0 || t.leading || t.beforeVerb {
		return Verdict{Compatible, "other-subject", what + " and the subject differs"}
	}
	if h.i0 == 0 {
		if next := h.i1; next < len(a) && h.j1 < len(b) {
			if _, ok := exclusiveRoles[a[next].stem]; ok && t.insertions == 0 && len(a)-h.i1 >= 2 && x.kind == kindWord && y.kind == kindWord {
				if h.i1-h.i0 == 1 && h.j1-h.j0 == 1 && x.scope == scopeNone && y.scope == scopeNone && strings.HasSuffix(a[next].surface, "s") && strings.HasSuffix(b[h.j1].surface, "s") {
					return Verdict{Contradiction, "other-holder", what + fmt.Sprintf(" as the one who %s", a[next].surface)}
				}
				return Verdict{Uncertain, "other-holder", what + " as the one who can be only one"}
			}
		}
		return Verdict{Compatible, "other-subject", what + " as the subject"}
	}
	if c.new.additive != c.old.additive {
		return Verdict{Compatible, "addition", fmt.Sprintf("%q says that the newer statement comes on top", c.new.additive)}
	}
	if x.quoted && y.quoted {
		return Verdict{Contradiction, "other-quotation", what + " in quotation marks"}
	}
	if c.new.reversal != "" && c.old.reversal == "" && len(c.al.pairs)*2 >= len(a) {
		return Verdict{Uncertain, "reversal", fmt.Sprintf("%s, with %q", what, c.new.reversal)}
	}
	if !last && x.pred && y.pred && h.i1-h.i0 == 1 && h.j1-h.j0 == 1 && t.insertions == 0 && x.prep == y.prep && x.neg == y.neg &&
		len(a)-h.i1 <= 3 && !pluralVerb(a[h.i0-1].stem) && a[h.i0-1].verb {
		return Verdict{Uncertain, "other-object", what + ", and it is not clear whether both can hold"}
	}
	if !last || h.i1-h.i0 > 3 || h.j1-h.j0 > 6 || len(c.al.pairs) < 1 {
		return Verdict{Compatible, "different-matters", what + ", which may both hold"}
	}
	for i, j := h.i0+1, h.j0+1; i < h.i1 && j < h.j1; i, j = i+1, j+1 {
		if a[i].prep != "" && b[j].prep != "" {
			return Verdict{Compatible, "different-matters", what + ", which are two matters"}
		}
	}
	verb := a[h.i0-1]
	if x.scope != scopeNone && x.scope != scopeWeekday && y.scope == x.scope && x.prep != "" && !directional(x.prep) && !copula(x.prep) {
		return Verdict{Compatible, "other-scope", what + ": the statements hold in different places or times"}
	}
	_, exclusiveVerb := exclusive[verb.stem+"/"+x.prep]
	if exclusiveVerb && x.prep == y.prep {
		return Verdict{Contradiction, "one-at-a-time", fmt.Sprintf("%s after %q, which takes one at a time", what, strings.TrimSpace(verb.surface+" "+x.prep))}
	}
	if x.scope != scopeNone && y.scope == x.scope {
		if x.scope == scopeWeekday {
			return Verdict{Uncertain, "other-day", what + ", and both days may be meant"}
		}
		return Verdict{Compatible, "other-scope", what + ": the statements hold in different places or times"}
	}
	single := h.i1-h.i0 == 1 && h.j1-h.j0 == 1 && x.neg == y.neg
	if slot, ok := c.slot(h.i0); ok && x.be == y.be && single && !adjective(x) && !adjective(y) {
		return Verdict{Contradiction, "one-value", fmt.Sprintf("%s as the %s", what, slot)}
	}
	if single && x.be && y.be && x.prep == y.prep && (x.prep == "in" || x.prep == "at") && x.capital && y.capital && x.scope == scopeNone && y.scope == scopeNone {
		return Verdict{Contradiction, "one-place", what + " as the place"}
	}
	if h.i1-h.i0 == 1 && x.neg == y.neg && c.exclusiveNew(h) && x.prep == y.prep && verb.verb {
		return Verdict{Contradiction, "only", what + ", which leaves nothing else"}
	}
	few := single || (x.kind == kindChar && y.kind == kindChar && h.i1-h.i0 == h.j1-h.j0)
	if few && x.prep == y.prep && x.neg == y.neg && len(c.al.pairs) >= 2 && !pluralVerb(verb.stem) {
		return Verdict{Uncertain, "other-object", what + ", and it is not clear whether both can hold"}
	}
	return Verdict{Compatible, "different-matters", what + ", which may both hold"}
}

// adjective reports words that describe a thing rather than name its value, as
// far as the ending tells; a thing may be described in many ways.
func adjective(t token) bool {
	if t.capital || t.kind != kindWord {
		return false
	}
	for _, e := range []string{"ed", "able", "ible", "ive", "ful", "less", "ous", "ing", "al", "ic", "ant", "ent", "y"} {
		if len(t.surface) > len(e)+1 && strings.HasSuffix(t.surface, e) {
			return true
		}
	}
	return t.paired
}

// exclusiveNew reports that the new side of a hunk is one word and "only".
func (c *comparison) exclusiveNew(h hunk) bool {
	if h.j1-h.j0 != 2 {
		return false
	}
	return slices.Contains(exclusivity, c.new.tokens[h.j1-1].surface)
}

// slot returns the property whose value stands at i: "the port is", "the owner
// of billing is", "port:".
func (c *comparison) slot(i int) (string, bool) {
	ts := c.old.tokens
	x, before := ts[i], ts[i-1]
	plain := x.prep == "" && !before.verb
	if !plain && !isBe(x.prep) {
		return "", false
	}
	if _, ok := slotNouns[before.stem]; ok && !strings.HasSuffix(before.surface, "s") {
		return before.surface, true
	}
	if _, ok := slotNouns[ts[0].stem]; ok && i > 1 && x.be && ts[1].prep == "of" {
		return ts[0].surface, true
	}
	return "", false
}

func copula(w string) bool {
	_, ok := auxiliaries[w]
	return ok
}

// pluralVerb reports verbs whose objects add up.
func pluralVerb(stem string) bool {
	_, ok := pluralVerbs[stem]
	return ok
}

var pluralVerbs = stems(`support supports accept accepts include includes like likes prefer prefers read reads review reviews has have know knows
contain contains handle handles work works speak speaks need needs require requires`)
