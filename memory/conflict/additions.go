package conflict

import "fmt"

// widerDenial finds a newer statement that denies in general what the older
// one says with more detail: who does not renew does not renew each March.
func (c *comparison) widerDenial(t tally) (Verdict, bool) {
	if len(t.flips) != 1 || t.subjectFlips > 0 || len(t.words)+len(t.values)+len(t.opposites) > 0 || t.deletions == 0 || t.leading || t.beforeVerb || t.tight || t.broken {
		return Verdict{}, false
	}
	f := t.flips[0]
	x, y := &c.old.tokens[f[0]], &c.new.tokens[f[1]]
	if !y.neg || x.neg || y.double {
		return Verdict{}, false
	}
	for _, h := range c.al.hunks {
		if h.deletion() && h.i0 <= f[0] {
			return Verdict{}, false
		}
		for _, t := range c.old.tokens[h.i0:h.i1] {
			if t.scope == scopeEnvironment || t.neg || beneficiary(t.prep) {
				return Verdict{}, false
			}
		}
	}
	return Verdict{Contradiction, "polarity", fmt.Sprintf("%q is affirmed in the older statement and negated in general in the newer one", x.surface)}, true
}

// sameForce reports that both oblige, both permit, or neither.
func (c *comparison) sameForce() bool { return c.old.must == c.new.must && c.old.may == c.new.may }

// sameWords judges statements whose content words are the same in order.
func (c *comparison) sameWords(t tally) Verdict {
	if t.subjectFlips > 0 {
		return Verdict{Compatible, "other-subject", "opposite words that belong to a noun make two things of it"}
	}
	switch n := len(t.flips); {
	case n%2 == 1:
		return Verdict{Contradiction, "polarity", fmt.Sprintf("%q is affirmed in one statement and negated in the other", c.old.tokens[t.flips[0][0]].surface)}
	case n > 0:
		return Verdict{Uncertain, "polarity", "negations stand in different places"}
	}
	if !c.sameForce() {
		if (c.old.must && c.new.may) || (c.old.may && c.new.must) {
			return Verdict{Uncertain, "force", "one statement obliges where the other permits"}
		}
		return Verdict{Compatible, "force", "the statements differ in what they oblige or permit"}
	}
	for _, p := range c.al.pairs {
		x, y := c.old.tokens[p[0]], c.new.tokens[p[1]]
		if x.surface == y.surface && x.accents != y.accents {
			return Verdict{Uncertain, "accents", fmt.Sprintf("%q is spelt with other accents", x.surface)}
		}
		if x.double != y.double {
			return Verdict{Uncertain, "double-negation", fmt.Sprintf("%q is negated twice in one statement", x.surface)}
		}
		if x.prep != y.prep && (directional(x.prep) && directional(y.prep) || x.prep == "by" || y.prep == "by") {
			return Verdict{Uncertain, "direction", fmt.Sprintf("%q became %q before %q", x.prep, y.prep, x.surface)}
		}
	}
	return Verdict{Duplicate, "same-words", "the statements have the same content words"}
}

func directional(prep string) bool {
	switch prep {
	case "to", "from", "by", "into", "via", "without", "von", "zu", "nach", "из", "в":
		return true
	}
	return false
}

// extended judges a newer statement that keeps every word of the older one
// and adds some.
func (c *comparison) extended(t tally) Verdict {
	added := c.added()
	switch {
	case t.subjectFlips > 0:
		return Verdict{Compatible, "other-subject", "opposite words that belong to a noun make two things of it"}
	case len(c.old.tokens) < 2:
		return none()
	case c.new.reversal != "" && c.old.reversal == "" && len(t.flips) == 0:
		return Verdict{Uncertain, "reversal", fmt.Sprintf("the newer statement repeats the older one and adds %q", c.new.reversal)}
	case t.leading:
		return Verdict{Compatible, "other-subject", fmt.Sprintf("%q before the first word makes it another subject", added)}
	case t.beforeVerb:
		return Verdict{Compatible, "narrower-subject", fmt.Sprintf("%q narrows the subject", added)}
	case t.broken:
		return Verdict{Compatible, "different-matters", fmt.Sprintf("%q stands where the older statement had another word", added)}
	case len(t.flips)%2 == 1:
		what := fmt.Sprintf("%q is affirmed in one statement and negated in the other", c.old.tokens[t.flips[0][0]].surface)
		if t.tight {
			return Verdict{Uncertain, "polarity", what + fmt.Sprintf(", but %q may limit it", added)}
		}
		return Verdict{Contradiction, "polarity", what}
	case len(t.flips) > 0:
		return Verdict{Uncertain, "polarity", "negations stand in different places"}
	case c.new.additive != c.old.additive:
		return Verdict{Compatible, "addition", fmt.Sprintf("%q says that the newer statement comes on top", c.new.additive)}
	case c.old.must != c.new.must && (c.old.may || c.new.may):
		return Verdict{Uncertain, "force", "one statement obliges where the other permits"}
	}
	return Verdict{Refinement, "adds-detail", fmt.Sprintf("the newer statement keeps what the older one says and adds %q", added)}
}

// added quotes the first words that only the newer statement has.
func (c *comparison) added() string {
	for _, h := range c.al.hunks {
		if h.j1 > h.j0 {
			return phrase(c.new.tokens[h.j0:h.j1])
		}
	}
	return ""
}
