package conflict

import (
	"fmt"
	"strings"
)

// doubtful judges what no clear rule covers: opposed in tone, but with other
// differences besides.
func (c *comparison) doubtful(t tally) Verdict {
	a, b := c.old.tokens, c.new.tokens
	if t.subjectFlips > 0 || t.leading || len(t.words) > 1 || len(c.al.pairs) == 0 || c.al.pairs[0][0] > 0 {
		return none()
	}
	for _, h := range append(append([]hunk(nil), t.words...), t.values...) {
		if beneficiary(a[h.i0].prep) && a[h.i0].prep == b[h.j0].prep {
			return Verdict{Compatible, "other-scope", fmt.Sprintf("one statement is %s %s, the other %s %s", a[h.i0].prep, a[h.i0].surface, b[h.j0].prep, b[h.j0].surface)}
		}
		for i := h.i0; i < h.i1; i++ {
			if a[i].scope != scopeNone {
				return Verdict{Compatible, "other-scope", fmt.Sprintf("%q stands in one statement only", a[i].surface)}
			}
			if !a[i].pred && c.old.hasVerb {
				return Verdict{Compatible, "other-subject", fmt.Sprintf("%q stands in the subject of one statement only", a[i].surface)}
			}
		}
	}
	for _, f := range t.flips {
		for _, h := range t.words {
			if h.i1 == f[0] && h.i0 > 0 && a[h.i0].comma {
				return Verdict{Compatible, "other-subject", fmt.Sprintf("%q is said of another subject", a[f[0]].surface)}
			}
		}
	}
	covered := len(c.al.pairs)*5 >= len(a)*3
	switch {
	case covered && (len(t.flips) > 0 || len(t.opposites) == 1):
		return Verdict{Uncertain, "opposed", "the statements say much the same in opposite ways"}
	case covered && c.new.reversal != "" && c.old.reversal == "":
		return Verdict{Uncertain, "reversal", fmt.Sprintf("the newer statement speaks of the same and adds %q", c.new.reversal)}
	}
	return none()
}

// beneficiary reports words that say for whom a statement holds.
func beneficiary(prep string) bool {
	switch prep {
	case "for", "für", "fur", "pour", "para", "для", "için", "icin", "among":
		return true
	}
	return false
}

// phrase writes tokens for people.
func phrase(ts []token) string {
	var b strings.Builder
	for i, t := range ts {
		if i == 6 {
			b.WriteString("…")
			break
		}
		if i > 0 && t.kind != kindChar {
			b.WriteByte(' ')
		}
		if t.neg && !t.paired {
			b.WriteString("not ")
		}
		b.WriteString(t.surface)
	}
	return b.String()
}
