package text

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
)

// Term is one index term of a text.
type Term struct {
	// Text is the form that is stored and looked up.
	Text string
	// Exact marks what was typed as one piece and means nothing in parts: an
	// identifier, path, hash, flag, version, number or error code.
	Exact bool
	// Start and End are the bytes of the source text that the term came from,
	// End exclusive, both on rune boundaries.
	Start, End int
}

const (
	// maxTermRunes is the length past which a term is cut.
	maxTermRunes = 64
	// maxQueryTerms bounds a query, whatever was pasted into it.
	maxQueryTerms = 64
	// maxChanges bounds the changes between letters and digits at which a word
	// is split: past it the word is a hash or an id and its parts are noise.
	maxChanges = 3
)

// Terms returns the index terms of s in text order, repeats included:
// identifiers whole and in parts, words as they stand and as stems, single
// characters and pairs of scripts that put no spaces between words. The index
// and the query are both made of them.
func Terms(s string) []Term {
	src := newSource(s)
	t := tokenizer{src: &src, out: make([]Term, 0, len(s)/4+4)}
	t.run()
	return t.out
}

// IndexForm returns the terms of s joined by one space.
func IndexForm(s string) string {
	terms := Terms(s)
	n := 0
	for i := range terms {
		n += len(terms[i].Text) + 1
	}
	var b strings.Builder
	b.Grow(n)
	for i := range terms {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(terms[i].Text)
	}
	return b.String()
}

// QueryTerms returns the distinct terms that a query is looked up by, in order
// of first occurrence and at most 64: the terms of q without stop words, and
// without the single characters that its pairs already cover.
func QueryTerms(q string) []Term {
	src := newSource(q)
	seen := make(map[string]int, 16)
	var out []Term
	t := tokenizer{src: &src}
	t.sink = func(term Term, k kind) bool {
		if k == kindCovered || k == kindIndex || (!term.Exact && Stop(term.Text)) {
			return true
		}
		if at, ok := seen[term.Text]; ok {
			out[at].Exact = out[at].Exact || term.Exact
			return true
		}
		if len(out) == maxQueryTerms {
			return false
		}
		seen[term.Text] = len(out)
		out = append(out, term)
		return true
	}
	t.run()
	return out
}

// kind tells a sink what sort of term it is given.
type kind uint8

const (
	kindWord    kind = iota // a word as it stands, a number, an identifier
	kindStem                // the stem of the word before it
	kindPart                // a part of the identifier before it
	kindCovered             // a single character that a pair covers too
	kindPair                // two neighbouring characters
	kindIndex               // another form of the word, for the index alone
)

type tokenizer struct {
	src  *source
	out  []Term
	sink func(Term, kind) bool // takes the terms instead of out when set
	stop bool                  // the sink wants no more
	env  *snowballstem.Env

	// The languages of the text, by script.
	latin, arabic tongue

	// The word before, for Persian affixes that are written apart.
	prevA, prevB int
}

// emit gives out one term with the span of the folded bytes [a,b).
func (t *tokenizer) emit(text string, a, b int, exact bool, k kind) {
	if text == "" || t.stop {
		return
	}
	if len(text) > maxTermRunes {
		text = shorten(text)
	}
	start, end := t.src.span(a, b)
	term := Term{Text: text, Exact: exact, Start: start, End: end}
	if t.sink == nil {
		t.out = append(t.out, term)
		return
	}
	t.stop = !t.sink(term, k)
}

// shorten cuts a term that is too long to its beginning and a hash of it all.
func shorten(term string) string {
	if utf8.RuneCountInString(term) <= maxTermRunes {
		return term
	}
	sum := sha256.Sum256([]byte(term))
	keep := 0
	for i := range term {
		if keep == maxTermRunes-17 {
			return term[:i] + "_" + hex.EncodeToString(sum[:8])
		}
		keep++
	}
	return term
}

// at returns the class of the rune at byte i and its length; a break of length
// zero at the end.
func (t *tokenizer) at(i int) (class, int) {
	s := t.src.text
	if i >= len(s) {
		return classBreak, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classOf(r), n
}

func (t *tokenizer) run() {
	s := t.src.text
	t.prevA, t.prevB = -1, -1
	t.latin, t.arabic = listen(t.src)
	for i := 0; i < len(s) && !t.stop; {
		c, n := t.at(i)
		switch c {
		case classLetter, classDigit, classJoin:
			end, commas := t.chunkEnd(i)
			t.chunk(i, end, commas)
			i = end
		case classHan, classSEA, classHangul:
			end := i + n
			for {
				d, m := t.at(end)
				if d != c || m == 0 {
					break
				}
				end += m
			}
			t.pairs(i, end, c)
			i = end
		case classSymbol:
			t.emit(s[i:i+n], i, i+n, false, kindWord)
			i += n
		default:
			i += n
		}
	}
}

// chunkEnd returns the end of the run of letters, digits and joining
// punctuation that starts at i, and whether it holds thousands commas.
func (t *tokenizer) chunkEnd(i int) (end int, commas bool) {
	prev := classBreak
	for {
		c, n := t.at(i)
		switch c {
		case classLetter, classDigit, classJoin:
		case classQuote:
			if next, m := t.at(i + n); m == 0 || prev != classLetter || next != classLetter {
				return i, commas
			}
		case classComma:
			if prev != classDigit || !t.threeDigits(i+n) {
				return i, commas
			}
			commas = true
		default:
			return i, commas
		}
		prev = c
		i += n
	}
}

func (t *tokenizer) threeDigits(i int) bool {
	for k := range 3 {
		if c, _ := t.at(i + k); c != classDigit {
			return false
		}
	}
	c, _ := t.at(i + 3)
	return c != classDigit
}

// shape is what a chunk is made of.
type shape struct {
	letters, digits, joins, quotes bool
	nonASCII                       bool
	camel                          bool // a capital after a small letter
	caps                           bool // every letter is a capital
}

func (t *tokenizer) shapeOf(a, b int) shape {
	sh := shape{caps: true}
	lower := false
	capitals := 0 // capitals in a row before the small letters
	for i := a; i < b; {
		c, n := t.at(i)
		switch c {
		case classLetter:
			sh.letters = true
			up := t.src.upper(i)
			switch {
			case up && lower:
				sh.camel = true
				capitals = 1
			case up:
				capitals++
			case lower && capitals > 1:
				sh.camel = true // HTTPServer, but not IDs
			case lower:
				capitals = 0
			}
			lower = !up
			sh.caps = sh.caps && up
			sh.nonASCII = sh.nonASCII || n > 1
		case classDigit:
			sh.digits = true
			lower, capitals = true, 0
		case classQuote:
			sh.quotes = true
		default:
			sh.joins = true
			lower, capitals = false, 0
		}
		i += n
	}
	return sh
}

// chunk emits the terms of one run of letters, digits and punctuation.
func (t *tokenizer) chunk(a, b int, commas bool) {
	a, b = t.trim(a, b)
	if a >= b {
		return
	}
	sh := t.shapeOf(a, b)
	s := t.src.text[a:b]
	switch {
	case !sh.letters && !sh.digits:
		return
	case commas:
		t.emit(strings.ReplaceAll(s, ",", ""), a, b, true, kindWord)
	case sh.quotes && !sh.joins && !sh.digits:
		t.quoted(a, b)
	case sh.letters && !sh.digits && !sh.joins && !sh.camel:
		t.word(a, b, kindWord, sh.caps && b-a > 1 && t.acronym(s))
	case sh.digits && !sh.letters && !sh.joins:
		t.emit(s, a, b, true, kindWord)
	case sh.letters && !sh.digits && dottedLetters(s):
		t.emit(strings.ReplaceAll(s, ".", ""), a, b, false, kindWord)
	default:
		t.identifier(a, b, sh)
	}
}

// acronym reports whether a word in capitals is one piece: an error code, or a
// short name that is also a function word (US, IT, GET) in a text that is not
// written in capitals throughout.
func (t *tokenizer) acronym(s string) bool {
	if !Stop(s) {
		return len(s) >= 4
	}
	return len(s) <= 3 && s != "ok" && t.hasSmall()
}

// hasSmall reports a small letter of ASCII in the original.
func (t *tokenizer) hasSmall() bool {
	for i := 0; i < len(t.src.orig); i++ {
		if c := t.src.orig[i]; 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}

// trim takes off the punctuation around a chunk that belongs to the sentence
// and keeps what belongs to the name: --force, /etc, ./run, .env, @scope, #12,
// $HOME, C++, C#, 99%.
func (t *tokenizer) trim(a, b int) (int, int) {
	s := t.src.text
	isWord := func(i int) bool {
		if i < a || i >= b {
			return false
		}
		c := s[i]
		return c >= utf8.RuneSelf || asciiClass[c] == classLetter || asciiClass[c] == classDigit
	}
	isDigit := func(i int) bool {
		return i >= a && i < b && asciiClass[s[i]&0x7F] == classDigit && s[i] < utf8.RuneSelf
	}

	for b > a && !isWord(b-1) {
		c := s[b-1]
		if c == '%' && isDigit(b-2) {
			break
		}
		if c == '#' && isWord(b-2) && !isDigit(b-2) {
			break
		}
		if c == '+' {
			k := b - 1
			for k > a && s[k-1] == '+' {
				k--
			}
			if b-k <= 2 && isWord(k-1) && !isDigit(k-1) {
				break
			}
			b = k
			continue
		}
		b--
	}
	for a < b && !isWord(a) {
		run := a + 1
		for run < b && s[run] == s[a] {
			run++
		}
		n := run - a
		keep := false
		switch s[a] {
		case '-':
			keep = n <= 2 && isWord(run)
		case '/':
			keep = n == 1
		case '.':
			keep = (n == 1 && isWord(run)) || (n <= 2 && run < b && s[run] == '/')
		case '~':
			keep = n == 1 && run < b && s[run] == '/'
		case '@', '#', '$':
			keep = n == 1 && isWord(run)
		}
		if keep {
			break
		}
		a = run
	}
	return a, b
}

// dottedLetters reports single letters with dots between: e.g, u.s.a.
func dottedLetters(s string) bool {
	want := true // a letter is due
	for _, r := range s {
		if want == (r == '.') {
			return false
		}
		want = !want
	}
	return !want
}

// word emits a word and its stem.
func (t *tokenizer) word(a, b int, k kind, exact bool) {
	s := t.src.text[a:b]
	t.emit(s, a, b, exact, k)
	r, _ := utf8.DecodeRuneInString(s)
	arabic := isArabicLetter(r)
	st := s
	stop := Stop(s)
	if !stop {
		if t.env == nil {
			t.env = snowballstem.NewEnv("")
		}
		st = stem(s, t.env)
	}
	if arabic && t.joinedParts(a, b, st) {
		st = s
	}
	if st != s {
		t.emit(st, a, b, false, kindStem)
	}
	if !stop && (arabic || t.latin != tongueNone) {
		t.inflected(a, b, st)
	}
	if arabic {
		t.affixes(a, b)
	}
	t.prevA, t.prevB = a, b
}

// joinedParts emits the parts of a word that zero-width non-joiners hold
// together, and reports whether the stem is one of them.
func (t *tokenizer) joinedParts(a, b int, stem string) (found bool) {
	from := a
	for i := a; i <= b; i++ {
		if i < b && (i == a || !t.src.joined(i)) {
			continue
		}
		if i == b && from == a {
			break
		}
		if part := t.src.text[from:i]; utf8.RuneCountInString(part) > 1 && !Stop(part) {
			t.emit(part, from, i, false, kindPart)
			found = found || part == stem
		}
		from = i
	}
	return found
}

// affixes emits the joined spelling of a word and the one before it when one
// of them is a Persian affix that some write apart: می خواهم, کتاب ها.
func (t *tokenizer) affixes(a, b int) {
	if t.prevA < 0 || a != t.prevB+1 || t.src.text[t.prevB] != ' ' {
		return
	}
	prev, cur := t.src.text[t.prevA:t.prevB], t.src.text[a:b]
	if r, _ := utf8.DecodeRuneInString(prev); !isArabicLetter(r) {
		return
	}
	if _, ok := persianPrefixes[prev]; !ok {
		if _, ok := persianSuffixes[cur]; !ok {
			return
		}
	}
	t.emit(prev+cur, t.prevA, b, false, kindPart)
	if t.arabic == tonguePersian {
		if st := stemPersian(prev + cur); st != cur && st != prev {
			t.emit(st, t.prevA, b, false, kindStem)
		}
	}
}

var persianPrefixes = map[string]struct{}{"می": {}, "نمی": {}, "همی": {}}

var persianSuffixes = map[string]struct{}{
	"ها": {}, "های": {}, "هایی": {}, "هایم": {}, "هایت": {}, "هایش": {}, "هایمان": {}, "هایتان": {}, "هایشان": {},
	"تر": {}, "ترین": {}, "ام": {}, "ات": {}, "اش": {}, "ای": {}, "اند": {}, "ایم": {}, "اید": {},
}

// quoted emits a word with apostrophes: joined (dont), and without a
// possessive (sara) or an elided article (équipe).
func (t *tokenizer) quoted(a, b int) {
	s := t.src.text[a:b]
	t.emit(strings.ReplaceAll(s, "'", ""), a, b, false, kindWord)
	i := strings.IndexByte(s, '\'')
	j := strings.LastIndexByte(s, '\'')
	switch tail := s[j+1:]; tail {
	case "t", "d", "m", "ll", "re", "ve":
		return
	case "s":
		t.word(a, a+i, kindPart, false)
		return
	}
	if i >= 3 && strings.Count(s, "'") == 1 {
		t.word(a, a+i, kindPart, false) // İstanbul'da
	}
	if len(s)-j-1 >= 2 {
		t.word(a+j+1, b, kindPart, false) // l'équipe
	}
}

// identifier emits a chunk whole and in parts.
func (t *tokenizer) identifier(a, b int, sh shape) {
	whole := t.src.text[a:b]
	whole = strings.ReplaceAll(whole, "'", "")
	t.emit(whole, a, b, true, kindWord)
	t.prevA, t.prevB = a, b
	if !sh.joins && !sh.quotes {
		t.atom(a, b, whole)
		return
	}
	s := t.src.text
	if s[b-1] == '%' && !sh.letters {
		t.emit(s[a:b-1], a, b-1, true, kindPart)
	}
	if b-a > 3 && s[a] == 'v' && asciiClass[s[a+1]&0x7F] == classDigit && strings.IndexByte(whole, '.') > 0 {
		t.emit(s[a+1:b], a+1, b, false, kindPart)
	}
	// Segments of a path, an address or a name with a scope; then their parts.
	for i := a; i < b; {
		j := i
		inner := false
		for j < b && !isPathPunctuation(s[j]) {
			inner = inner || isNamePunctuation(s[j])
			j++
		}
		if inner && (i > a || j < b) {
			if x, y := t.trim(i, j); x < y && (x > a || y < b) {
				seg := t.src.text[x:y]
				if hasNamePunctuation(seg) {
					t.emit(strings.ReplaceAll(seg, "'", ""), x, y, false, kindPart)
				}
			}
		}
		for k := i; k < j; {
			if isNamePunctuation(s[k]) {
				k++
				continue
			}
			m := k
			for m < j && !isNamePunctuation(s[m]) {
				m++
			}
			t.atom(k, m, whole)
			k = m
		}
		i = j + 1
	}
}

func isPathPunctuation(c byte) bool {
	return c == '/' || c == '\\' || c == ':' || c == '@' || c == '&'
}

func isNamePunctuation(c byte) bool {
	switch c {
	case '_', '-', '.', '+', '#', '%', '~', '$', '\'':
		return true
	}
	return false
}

func hasNamePunctuation(s string) bool {
	for i := 0; i < len(s); i++ {
		if isNamePunctuation(s[i]) {
			return true
		}
	}
	return false
}

// atom emits a run of letters and digits inside an identifier: itself, unless
// it is the whole, and the words and numbers it is made of.
func (t *tokenizer) atom(a, b int, whole string) {
	s := t.src.text[a:b]
	if s == "" {
		return
	}
	cuts := t.cuts(a, b)
	if len(cuts) == 0 {
		t.piece(a, b, s != whole)
		return
	}
	if s != whole {
		t.emit(s, a, b, false, kindPart)
	}
	if t.looksHash(a, b) {
		return
	}
	cuts = append(cuts, b)
	from := a
	for i, c := range cuts {
		// The humps of a run of letters come after the run: PostgreSQL16.
		if !t.isDigit(from) && (from == a || t.isDigit(from-1)) {
			end := c
			for _, d := range cuts[i:] {
				if end = d; t.isDigit(d) {
					break
				}
			}
			if end > c && end-from < b-a {
				t.emit(t.src.text[from:end], from, end, false, kindPart)
			}
		}
		if t.isDigit(from) || c-from > 1 {
			t.piece(from, c, true)
		}
		from = c
	}
}

// piece emits a word or a number inside an identifier; whole says whether it
// was not emitted before.
func (t *tokenizer) piece(a, b int, whole bool) {
	s := t.src.text[a:b]
	switch {
	case t.isDigit(a):
		if whole {
			t.emit(s, a, b, false, kindPart)
		}
		if n := strings.TrimLeft(s, "0"); n != s {
			t.emit(n, a, b, false, kindPart)
		}
	case whole:
		t.word(a, b, kindPart, false)
	}
}

func (t *tokenizer) isDigit(i int) bool {
	s := t.src.text
	return i < len(s) && '0' <= s[i] && s[i] <= '9'
}

// cuts returns where a run of letters and digits changes between the two or
// goes from one hump to the next: utf|8|mb|4, parse|Config, HTTP|Server.
func (t *tokenizer) cuts(a, b int) []int {
	var cuts []int
	prev := classBreak
	prevUpper, prevStart := false, a
	for i := a; i < b; {
		c, n := t.at(i)
		up := c == classLetter && t.src.upper(i)
		switch {
		case i == a:
		case c != prev, up && !prevUpper:
			cuts = append(cuts, i)
		case c == classLetter && !up && prevUpper && prevStart > a:
			// The last capital of several starts the next word.
			p, _ := t.before(prevStart)
			d, _ := t.at(i + n)
			if t.src.upper(p) && i+n < b && d == classLetter && !t.src.upper(i+n) {
				cuts = append(cuts, prevStart)
			}
		}
		prev, prevUpper, prevStart = c, up, i
		i += n
	}
	return cuts
}

// before returns the start of the rune that ends at i.
func (t *tokenizer) before(i int) (int, bool) {
	if i == 0 {
		return 0, false
	}
	_, n := utf8.DecodeLastRuneInString(t.src.text[:i])
	return i - n, true
}

// looksHash reports a run of hexadecimal digits, or a long run that changes
// between letters and digits too often to be words.
func (t *tokenizer) looksHash(a, b int) bool {
	s := t.src.text[a:b]
	letters, digits, changes := 0, 0, 0
	hexadecimal := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		isDigit := '0' <= c && c <= '9'
		if isDigit {
			digits++
		} else {
			letters++
			hexadecimal = hexadecimal && 'a' <= c && c <= 'f'
		}
		if i > 0 && isDigit != ('0' <= s[i-1] && s[i-1] <= '9') {
			changes++
		}
	}
	return letters > 0 && digits > 0 && (changes > maxChanges || (hexadecimal && len(s) >= 7))
}

// pairs emits a run of a script without spaces between words: single
// characters and pairs; Hangul as a whole besides.
func (t *tokenizer) pairs(a, b int, c class) {
	s := t.src.text
	single := kindCovered
	if t.unit(a, b, c) == b {
		single = kindWord
	} else if c == classHangul {
		t.emit(s[a:b], a, b, false, kindWord)
		// A shorter noun is one of the pairs.
		if noun := trimSuffix(s[a:b], koreanParticles, 3); len(noun) < b-a {
			t.emit(noun, a, a+len(noun), false, kindStem)
		}
	}
	for i := a; i < b && !t.stop; {
		j := t.unit(i, b, c)
		k := single
		if c == classHan && t.alone(i, j, a, b) {
			k = kindWord
		}
		t.emit(s[i:j], i, j, false, k)
		if j < b {
			k := t.unit(j, b, c)
			if c != classHangul || k < b || i > a {
				t.emit(s[i:k], i, k, false, kindPair)
			}
		}
		i = j
	}
	t.prevA, t.prevB = -1, -1
}

// alone reports a Chinese character with kana on at least one side and no
// other Chinese character beside it: a root whose endings change (働く, 働いて),
// so that its pairs do not stand for it.
func (t *tokenizer) alone(i, j, a, b int) bool {
	s := t.src.text
	if r, _ := utf8.DecodeRuneInString(s[i:]); isKana(r) {
		return false
	}
	before, after := i == a, j == b
	if before && after {
		return false
	}
	if !before {
		r, _ := utf8.DecodeLastRuneInString(s[a:i])
		before = isKana(r)
	}
	if !after {
		r, _ := utf8.DecodeRuneInString(s[j:b])
		after = isKana(r)
	}
	return before && after
}

// unit returns the end of the character at i: a rune, with the marks above and
// below it in the scripts that have them.
func (t *tokenizer) unit(i, b int, c class) int {
	s := t.src.text[:b]
	_, n := utf8.DecodeRuneInString(s[i:])
	j := i + n
	if c != classSEA {
		return j
	}
	for j < b {
		r, n := utf8.DecodeRuneInString(s[j:])
		if !isSEAMark(r) {
			break
		}
		j += n
	}
	return j
}
