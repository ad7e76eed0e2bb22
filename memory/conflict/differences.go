package conflict

// tally sorts the differences of two aligned statements.
type tally struct {
	insertions, deletions int
	leading               bool // something new stands before the first word of the old
	beforeVerb            bool // something new narrows the subject
	tight                 bool // something new is not set off by punctuation, and may limit
	broken                bool // something new separates what belonged together
	words                 []hunk
	values                []hunk
	opposites             []hunk
	flips                 [][2]int // aligned words of which one is negated
	subjectFlips          int      // flips that are opposite words in the subject
}

// sort sorts the differences.
func (c *comparison) sort() tally {
	var t tally
	a, b := c.old.tokens, c.new.tokens
	for _, p := range c.al.pairs {
		x, y := a[p[0]], b[p[1]]
		switch {
		case x.neg == y.neg:
		case x.paired != y.paired && (c.inSubject(p[0], p[1]) || attributive(a, p[0]) || attributive(b, p[1])):
			t.subjectFlips++
		default:
			t.flips = append(t.flips, p)
		}
	}
	for _, h := range c.al.hunks {
		switch {
		case h.insertion():
			t.insertions++
			if h.i0 == 0 && !numbersOnly(b[h.j0:h.j1]) {
				t.leading = true
			}
			if c.new.hasVerb && !b[h.j0].pred && !b[h.j0].comma && (h.i0 == 0 || !a[h.i0-1].pred) && !t.leading && h.i0 > 0 {
				t.beforeVerb = true
			}
			if !b[h.j0].comma && !b[h.j0].contrast {
				t.tight = true
			}
			if h.i0 > 0 && h.i1 < len(a) && b[h.j1].comma && !a[h.i1].comma && !b[h.j0].comma {
				t.broken = true
			}
		case h.deletion():
			t.deletions++
		case c.valueHunk(h):
			t.values = append(t.values, h)
			if n := h.j0 + h.i1 - h.i0; n < h.j1 && !b[n].comma {
				t.tight = true
			}
		case c.oppositeHunk(h):
			t.opposites = append(t.opposites, h)
		default:
			t.words = append(t.words, h)
		}
	}
	return t
}

// inSubject reports that a pair of aligned words stands in the subject. Where
// no verb is known, a word that much follows is taken to.
func (c *comparison) inSubject(i, j int) bool {
	if c.old.hasVerb || c.new.hasVerb {
		return !c.old.tokens[i].pred && !c.new.tokens[j].pred
	}
	return follow(c.old.tokens, i) > 1
}

// follow counts the words after the one at i up to the next punctuation.
func follow(ts []token, i int) int {
	n := 0
	for k := i + 1; k < len(ts) && !ts[k].comma; k++ {
		n++
	}
	return n
}

// attributive reports a word that belongs to the noun after it (the public
// API) instead of saying something about the subject (the API is public).
func attributive(ts []token, i int) bool {
	if ts[i].verb || i+1 >= len(ts) {
		return false
	}
	next := ts[i+1]
	return next.prep == "" && !next.comma && next.kind == kindWord && ts[i].kind == kindWord && ts[i].surface[0] < 0x80
}

func numbersOnly(ts []token) bool {
	for _, t := range ts {
		if t.kind != kindNumber {
			return false
		}
	}
	return true
}

// valueHunk reports that a number or a name stands for another of its kind.
// The new side may go on after it.
func (c *comparison) valueHunk(h hunk) bool {
	n := h.i1 - h.i0
	if n > 2 || h.j1-h.j0 < n {
		return false
	}
	for k := range n {
		x, y := c.old.tokens[h.i0+k], c.new.tokens[h.j0+k]
		switch {
		case x.kind == kindNumber && y.kind == kindNumber:
		case x.kind == kindName && y.kind == kindName && sameShape(x.surface, y.surface):
		default:
			return false
		}
	}
	if extra := h.j1 - h.j0 - n; extra > 0 && h.i1 < len(c.old.tokens) {
		return extra <= 1 && c.new.tokens[h.j0+n].kind != kindWord
	}
	return true
}

// oppositeHunk reports one word in the place of its antonym.
func (c *comparison) oppositeHunk(h hunk) bool {
	if h.i1-h.i0 != 1 {
		return false
	}
	x := c.old.tokens[h.i0]
	for j := h.j0; j < h.j1 && j < h.j0+2; j++ {
		if y := c.new.tokens[j]; opposed(x.stem, y.stem) && x.neg == y.neg {
			return h.j1-h.j0 == 1 || h.i1 == len(c.old.tokens)
		}
	}
	return false
}
