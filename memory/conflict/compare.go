package conflict

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Compare tells how the newer statement relates to the older one.
//
// The rules go from the certain to the doubtful: equal texts; denials; what
// sets two statements apart (a past that ended, a report, a plan); then the two
// are aligned word by word, and what is left over on either side decides.
func Compare(old, new *Parsed) Verdict {
	if old.repo != new.repo && old.domain != new.domain {
		return Verdict{Compatible, "other-repository", "the statements belong to different repositories"}
	}
	sameTopic := old.topic == new.topic && old.domain == new.domain
	if old.key == new.key {
		if !sameTopic && len(new.tokens) < ownSubject {
			return Verdict{Compatible, "other-topic", "the words are the same but the topics differ, and the statement leans on its topic"}
		}
		return Verdict{Duplicate, "same-text", "both statements have the same words"}
	}
	if len(old.tokens) == 0 || len(new.tokens) == 0 {
		return none()
	}
	if !sameTopic && (len(old.tokens) < ownSubject || len(new.tokens) < ownSubject) {
		return Verdict{Compatible, "other-topic", "the topics differ, and a statement this short leans on its topic"}
	}
	if v, ok := denial(old, new); ok {
		return v
	}
	if v, ok := apart(old, new); ok {
		return v
	}
	v := none()
	if shared := common(old.tokens, new.tokens); shared > 0 && shared*3 >= len(old.tokens) {
		c := comparison{old: old, new: new, shared: shared, al: align(old.tokens, new.tokens)}
		v = c.judge()
	}
	if v.Relation == Compatible || v.Relation == Uncertain {
		if s, ok := sameInAnyOrder(old, new); ok {
			v = s
		} else if s, ok := member(old, new); ok && sameTopic {
			v = s
		}
	}
	if _, open := unsettled[v.Rule]; open && v.Relation == Compatible && sameTopic {
		if s, ok := suspect(old, new); ok {
			v = s
		}
	}
	if old.capped || new.capped {
		switch v.Relation {
		case Duplicate, Refinement, Contradiction:
			return Verdict{Uncertain, "too-long", "the statements are too long to be compared to the end; as far as they were read: " + v.Reason}
		}
	}
	return v
}

// unsettled are the rules that call statements compatible for want of evidence
// and not by evidence: a sign of opposition outweighs them.
var unsettled = set("different-matters other-subject less-specific other-scope narrower-subject")

// ownSubject is how many content words a statement needs to be understood
// without its topic.
const ownSubject = 3

func none() Verdict {
	return Verdict{Compatible, "different-matters", "the statements share too little to bear on each other"}
}

// denial handles "it is not true that F" against F.
func denial(old, new *Parsed) (Verdict, bool) {
	d, f := new.denied, old
	if d == nil {
		d, f = old.denied, new
	}
	if d == nil || (old.denied != nil && new.denied != nil) {
		return Verdict{}, false
	}
	if f.key == d.key {
		return Verdict{Contradiction, "denial", "one statement says that the other is not true"}, true
	}
	if len(d.tokens) == 0 || len(f.tokens) == 0 {
		return Verdict{}, false
	}
	al := align(f.tokens, d.tokens)
	if len(al.pairs) == len(f.tokens) && len(f.tokens) > 1 && !f.capped {
		return Verdict{Contradiction, "denial", fmt.Sprintf("one statement says that %s is not true", phrase(f.tokens))}, true
	}
	return Verdict{}, false
}

// apart finds what keeps two statements from touching whatever else they say.
func apart(old, new *Parsed) (Verdict, bool) {
	switch {
	case old.ended != new.ended:
		return Verdict{Compatible, "succession", fmt.Sprintf("%q says that one statement is about the past", old.ended+new.ended)}, true
	case old.report != new.report:
		return Verdict{Compatible, "report", fmt.Sprintf("one statement reports what somebody said (%s) and asserts nothing", old.report+new.report)}, true
	case old.modal != new.modal:
		return Verdict{Compatible, "modality", fmt.Sprintf("%q makes one statement a plan or a guess", old.modal+new.modal)}, true
	case old.question != new.question:
		return Verdict{Compatible, "question", "one of the two is a question"}, true
	case new.reversal == "" && (old.past && !old.present && new.present && !new.past || new.past && !new.present && old.present && !old.past):
		return Verdict{Compatible, "tense", "one statement speaks of the past, the other of the present"}, true
	}
	return Verdict{}, false
}

// comparison is two statements side by side.
type comparison struct {
	old, new *Parsed
	shared   int
	al       alignment
}

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

func (c *comparison) judge() Verdict {
	if len(c.old.tokens) == len(c.new.tokens) && c.shared == len(c.old.tokens) && len(c.al.hunks) > 0 {
		return c.reordered()
	}
	t := c.sort()
	if v, ok := c.reorderedValue(); ok {
		return v
	}
	switch {
	case len(c.al.hunks) == 0:
		return c.sameWords(t)
	case len(t.words) == 0 && len(t.values) == 0 && len(t.opposites) == 0 && t.deletions == 0:
		return c.extended(t)
	case len(t.words) == 0 && len(t.values) > 0 && len(t.opposites) == 0:
		return c.otherValue(t)
	case len(t.words) == 0 && len(t.opposites) == 1 && len(t.values) == 0 && t.deletions == 0:
		return c.opposite(t)
	case len(t.words) == 1 && len(t.values) == 0 && len(t.opposites) == 0 && t.deletions == 0 && len(t.flips) == 0:
		return c.otherWord(t)
	case len(t.words) == 0 && t.deletions > 0 && t.insertions == 0 && len(t.flips) == 0 && len(t.opposites) == 0:
		return Verdict{Compatible, "less-specific", "the newer statement says less than the older one"}
	}
	if v, ok := c.widerDenial(t); ok {
		return v
	}
	return c.doubtful(t)
}

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
