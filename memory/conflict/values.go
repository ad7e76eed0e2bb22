package conflict

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// sameShape reports names of one form: two paths, two versions, two hashes,
// two spellings of one identifier.
func sameShape(a, b string) bool {
	if squash(a) == squash(b) || hashPrefix(a, b) || hashPrefix(b, a) {
		return true
	}
	for _, c := range []string{"://", "/", "@", "."} {
		if x, y := strings.Contains(a, c), strings.Contains(b, c); x != y {
			return false
		} else if x {
			return true
		}
	}
	return hasDigit(a) == hasDigit(b) && len(a) == len(b)
}

// hashPrefix reports that a is the short form of the hash b.
func hashPrefix(a, b string) bool {
	return isHash(a) && isHash(b) && strings.HasPrefix(b, a)
}

// isHash reports at least seven hexadecimal digits.
func isHash(s string) bool {
	return len(s) >= 7 && hasDigit(s) && strings.Trim(s, "0123456789abcdef") == ""
}

// isVersion reports 3.2, v1.2.3 and the like.
func isVersion(s string) bool {
	s = strings.TrimPrefix(s, "v")
	return s != "" && isDigit(s[0]) && strings.Trim(s, "0123456789.") == ""
}

func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, s)
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// otherValue judges statements that differ in numbers or names and in nothing
// else that the older one says.
func (c *comparison) otherValue(t tally) Verdict {
	h := t.values[0]
	x, y := c.old.tokens[h.i0], c.new.tokens[h.j0]
	what := fmt.Sprintf("%s became %s", x.surface, y.surface)
	switch {
	case t.subjectFlips > 0 || t.leading:
		return Verdict{Compatible, "other-subject", what + " but the subject differs"}
	case t.beforeVerb:
		return Verdict{Compatible, "narrower-subject", what + " but of another or narrower subject"}
	case x.scope == scopeCalendar && y.scope == scopeCalendar:
		return Verdict{Compatible, "other-period", what + ": the statements hold for different times"}
	case x.scope == scopeOrdinal || y.scope == scopeOrdinal:
		return Verdict{Compatible, "other-subject", what + ": an ordinal names another thing"}
	}
	if len(c.al.pairs) == 0 {
		return none()
	}
	for _, v := range t.values {
		a, b := c.old.tokens[v.i0], c.new.tokens[v.j0]
		if a.kind == kindNumber && b.kind == kindNumber && a.amount.dim != b.amount.dim {
			if a.amount.dim == dimNone || b.amount.dim == dimNone {
				return Verdict{Uncertain, "other-unit", what + ", one of them without a unit"}
			}
			return Verdict{Compatible, "other-measure", what + ", which measure different things"}
		}
		if c.old.hasVerb && !a.pred && (len(t.values) > 1 || len(t.flips) > 0) {
			return Verdict{Compatible, "other-subject", what + " in the subject, and more differs"}
		}
		if why := c.openValue(v); why != "" {
			return Verdict{Uncertain, "other-value", fmt.Sprintf("%s became %s %s", c.old.tokens[v.i0].surface, c.new.tokens[v.j0].surface, why)}
		}
	}
	refined := t.deletions == 0 && len(t.flips) == 0 && !t.broken
	for _, v := range t.values {
		a, b := c.old.tokens[v.i0], c.new.tokens[v.j0]
		if a.kind == kindName {
			refined = refined && (hashPrefix(a.surface, b.surface) || (isVersion(a.surface) && strings.HasPrefix(b.surface, a.surface+".")))
		} else {
			refined = refined && a.amount.admits(b.amount)
		}
	}
	if refined {
		if c.new.reversal != c.old.reversal {
			return Verdict{Uncertain, "reversal", fmt.Sprintf("%s, with %q", what, c.new.reversal)}
		}
		return Verdict{Refinement, "closer-value", what + ", which the older statement allows"}
	}
	switch {
	case len(t.flips) > 0:
		return Verdict{Uncertain, "value-and-polarity", what + ", and a negation was added or dropped"}
	case t.deletions > 0:
		return Verdict{Uncertain, "other-value", what + ", and other words are gone"}
	case t.tight || t.broken:
		return Verdict{Uncertain, "other-value", what + fmt.Sprintf(", but %q may limit it", c.extra())}
	}
	return Verdict{Contradiction, "other-value", what + " and nothing else tells the statements apart"}
}

// openValue says why another number or name need not exclude the first.
func (c *comparison) openValue(h hunk) string {
	ts := c.old.tokens
	x, y := ts[h.i0], c.new.tokens[h.j0]
	limit := 1
	if !subjectFirst(ts) {
		limit = 3 // the verb comes last
	}
	switch {
	case c.old.hasVerb && !x.pred, !c.old.hasVerb && follow(ts, h.i1-1) > limit:
		return "in the subject, which may name another thing"
	case h.i0 == 0:
		return "as the first word, which may name another thing"
	}
	if x.amount.dim == dimPeriod && h.i1 < len(ts) && ts[h.i1].prep == "" && !ts[h.i1].comma {
		return "before a noun, and there may be both"
	}
	before := ts[h.i0-1]
	if next := h.i1; (next < len(ts) && ts[next].scope == scopeCalendar || before.scope == scopeCalendar) && x.kind == kindNumber && (!c.old.hasVerb || c.old.past) {
		return "in a date, and there may have been two occasions"
	}
	if enumerates(before) && x.prep == "" && x.kind == kindNumber {
		return fmt.Sprintf("as the number of a %s, which may name another one", before.surface)
	}
	if x.kind == kindName && !isHash(x.surface) && !isVersion(x.surface) && numberedName(x.surface, y.surface) {
		return "which may name another thing"
	}
	if c.old.marks[markOnly] == "" && (x.kind == kindName || (x.amount.dim == dimNone && x.prep == "" && !before.verb && before.kind == kindWord)) {
		for k := h.i0 - 1; k >= 0; k-- {
			if ts[k].verb {
				if pluralVerb(ts[k].stem) {
					return fmt.Sprintf("after %q, which takes more than one", ts[k].surface)
				}
				break
			}
		}
	}
	return ""
}

// numberedName reports names that differ in their digits only: ADR-0005 and
// ADR-0006.
func numberedName(a, b string) bool {
	const digits = "0123456789"
	x, y := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	return x == y && x != a && !strings.ContainsAny(a, "/:@")
}

// subjectFirst reports a script whose languages mostly put the verb between
// subject and object.
func subjectFirst(ts []token) bool {
	r, _ := utf8.DecodeRuneInString(ts[0].surface)
	return r < 0x0530
}

// extra quotes what the newer statement has beyond the other value.
func (c *comparison) extra() string {
	for _, h := range c.al.hunks {
		if n := h.j0 + h.i1 - h.i0; n < h.j1 {
			return phrase(c.new.tokens[n:h.j1])
		}
	}
	return ""
}
