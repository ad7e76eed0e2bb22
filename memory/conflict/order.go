package conflict

import "fmt"

// reordered judges statements of the same words in another order.
func (c *comparison) reordered() Verdict {
	negs := 0
	for i := range c.old.tokens {
		if c.old.tokens[i].neg {
			negs++
		}
		if c.new.tokens[i].neg {
			negs--
		}
	}
	if w, swapped := swappedRoles(c.old.tokens, c.new.tokens); swapped {
		if negs == 0 && !directional(w) {
			return Verdict{Contradiction, "swapped", fmt.Sprintf("the words around %q have changed places", w)}
		}
		return Verdict{Uncertain, "swapped", fmt.Sprintf("the words around %q have changed places, which may describe something else", w)}
	}
	if rotation(c.old.tokens, c.new.tokens) {
		switch {
		case negs != 0:
			return Verdict{Contradiction, "polarity", "the same words, once affirmed and once negated"}
		case sameNegations(c.old.tokens, c.new.tokens) && c.sameForce():
			return Verdict{Duplicate, "same-words", "the same words with the clauses in another order"}
		}
	}
	return Verdict{Uncertain, "reordered", "the same words in another order, which may say something else"}
}

// reorderedValue judges statements of the same words and one number each, in
// another order: "the gateway timeout is 30 s", "timeout on the gateway: 45 s".
func (c *comparison) reorderedValue() (Verdict, bool) {
	a, b := c.old.tokens, c.new.tokens
	if len(a) != len(b) || len(a) < 3 || c.shared != len(a)-1 || len(c.al.pairs) == c.shared {
		return Verdict{}, false
	}
	x, y := loneNumber(a), loneNumber(b)
	if x < 0 || y < 0 || a[x].id == b[y].id || a[x].amount.dim != b[y].amount.dim || a[x].amount.unit != b[y].amount.unit {
		return Verdict{}, false
	}
	for i := range a {
		if a[i].neg || a[i].scope == scopeCalendar || (i < len(b) && b[i].neg) {
			return Verdict{}, false
		}
	}
	if x == 0 || y == 0 || (a[x].prep == "" && a[x-1].kind == kindWord && enumerates(a[x-1])) || (a[x].amount.dim == dimNone && x < len(a)-1) {
		return Verdict{}, false
	}
	if _, swapped := swappedRoles(a, b); swapped {
		return Verdict{}, false
	}
	return Verdict{Contradiction, "other-value", fmt.Sprintf("the same words in another order, and %s became %s", a[x].surface, b[y].surface)}, true
}

// loneNumber returns the place of the only number, -1 when there is not just
// one.
func loneNumber(ts []token) int {
	at := -1
	for i := range ts {
		if ts[i].kind == kindNumber {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

func enumerates(t token) bool {
	_, ok := enumerators[t.stem]
	return ok
}

// swappedRoles finds a word that puts one thing before another (before, over,
// to) followed by different words in the two statements.
func swappedRoles(a, b []token) (string, bool) {
	for i := range a {
		w, follower := roleAt(a, i)
		if w == "" {
			continue
		}
		for j := range b {
			if v, other := roleAt(b, j); v == w && other != follower {
				return w, true
			}
		}
	}
	return "", false
}

// roleAt returns the role word at i and what it governs.
func roleAt(ts []token, i int) (string, uint64) {
	switch ts[i].surface {
	case "before", "after", "over", "under", "above", "below", "vor", "nach", "avant", "apres", "antes", "despues":
		if i+1 < len(ts) {
			return ts[i].surface, ts[i+1].id
		}
	}
	switch ts[i].prep {
	case "to", "from", "than", "into", "von", "zu", "zum", "zur", "из":
		return ts[i].prep, ts[i].id
	}
	return "", 0
}

// sameNegations reports that the same words are negated on both sides.
func sameNegations(a, b []token) bool {
	for i := range a {
		if !a[i].neg {
			continue
		}
		found := false
		for j := range b {
			found = found || (b[j].neg && b[j].id == a[i].id)
		}
		if !found {
			return false
		}
	}
	return true
}
