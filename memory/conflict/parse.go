package conflict

import (
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// maxRunes is how much of a statement is analysed.
	maxRunes = 4000
	// maxTokens bounds the alignment of two statements.
	maxTokens = 256
)

// kind is what a token is.
type kind uint8

const (
	kindWord kind = iota
	kindNumber
	kindName // an identifier, path, hash, version, address
	kindChar // a character of a script without spaces between words
)

// token is a word of a statement that carries content.
type token struct {
	surface  string // as the index holds it
	stem     string
	id       uint64 // equal for words that say the same
	concept  uint64 // equal for words of one concept, 0 for none
	kind     kind
	amount   quantity // of a number
	scope    scope
	neg      bool   // negated
	excepted bool   // follows "without"
	double   bool   // negated twice, which speakers do not always mean
	accents  string // the spelling with its accents, "" when it has none
	paired   bool   // read as the negation of its complement
	pred     bool   // stands at or after the first verb
	verb     bool   // is a verb that the rules know
	comma    bool   // punctuation stands before it
	contrast bool   // "but" stands before it: not this but that
	quoted   bool   // stands in quotation marks
	prep     string // the function word before it
	be       bool   // a form of to be, in the singular, stands before it
	capital  bool   // begins with a capital inside a sentence
}

// Parsed is the analysis of one statement, made once and compared with many.
type Parsed struct {
	key    [16]byte
	topic  string
	domain string
	repo   string

	tokens []token
	strong []token // those that carry content, see strong
	folded string  // the key form
	marks  marks
	denied *Parsed
	capped bool // not all of the statement was analysed

	hasVerb bool // a verb that the rules know stands before the last word
	past    bool // its verbs are in the past only
	present bool
	must    bool // obligation
	may     bool // permission or possibility

	ended    string // marker words that were found, "" for none
	additive string
	report   string
	modal    string
	reversal string
	question bool

	limitless  string
	stance     stance
	stanceWord string
}

// Parse analyses a statement.
func Parse(s Statement) *Parsed {
	p := &Parsed{
		key:    text.ContentKey(s.Content),
		topic:  text.Key(s.Topic),
		domain: text.Key(s.Domain),
	}
	if rest, ok := strings.CutPrefix(p.domain, "repo:"); ok {
		p.repo, _, _ = strings.Cut(rest, "/")
	}
	p.analyse(s.Content)
	if rest, ok := denied(p.folded); ok {
		p.denied = &Parsed{topic: p.topic, domain: p.domain, repo: p.repo, capped: p.capped, key: text.ContentKey(rest)}
		p.denied.analyse(rest)
	}
	return p
}

func (p *Parsed) analyse(content string) {
	content = oneForm(spellOut(strings.ToValidUTF8(content, "\uFFFD")))
	if len(content) > maxRunes {
		n := 0
		for i := range content {
			if n == maxRunes {
				content = content[:i]
				p.capped = true
				break
			}
			n++
		}
	}
	p.folded = text.Key(content)
	p.marks = phrases.scan(p.folded)
	p.ended, p.additive, p.report = p.marks[markPast], p.marks[markAdditive], p.marks[markReport]
	p.modal, p.reversal, p.limitless = p.marks[markModal], p.marks[markReversal], p.marks[markLimitless]
	p.stance, p.stanceWord = p.marks.stance()
	if p.ended == "" {
		p.ended, _ = opens(p.folded, pastOpeners)
	}
	if strings.HasPrefix(p.folded, `"`) || strings.HasPrefix(p.folded, "“") || strings.HasPrefix(p.folded, "«") || strings.HasPrefix(p.folded, "> ") || strings.HasPrefix(p.folded, "「") {
		if p.report == "" {
			p.report = "quotation marks"
		}
	}
	p.question = strings.HasSuffix(p.folded, "?") || strings.HasSuffix(p.folded, "؟")

	b := builder{p: p, content: content, words: split(content)}
	b.run()
	if p.stanceWord == "may" && !p.may {
		p.stance, p.stanceWord = stanceNone, "" // the month
	}
	if len(p.tokens) > maxTokens {
		p.tokens = p.tokens[:maxTokens]
		p.capped = true
	}
	p.strong = strong(p.tokens)
}

// word is a word of the text, function words included.
type word struct {
	surface    string
	stem       string
	start, end int
	exact      bool
}

// split groups the index terms of a text into its words.
func split(content string) []word {
	terms := text.Terms(content)
	words := make([]word, 0, len(terms)/2+1)
	last := -1
	apostrophe := false
	for _, t := range terms {
		if t.Start >= last {
			words = append(words, word{surface: t.Text, start: t.Start, end: t.End, exact: t.Exact})
			last = t.End
			raw := content[t.Start:t.End]
			apostrophe = !t.Exact && (strings.Contains(raw, "'") || strings.Contains(raw, "’"))
			continue
		}
		w := &words[len(words)-1]
		switch {
		case t.Start == w.start && t.End == w.end && !t.Exact && w.stem == "":
			w.stem = t.Text
		case apostrophe && w.surface != t.Text && (t.Start == w.start || t.End == w.end):
			// Sara's, l'équipe: the noun is the word.
			if _, neg := negators[w.surface]; !neg {
				w.surface, w.stem = t.Text, text.Stem(t.Text)
			}
			apostrophe = false
		}
	}
	return words
}

// builder turns words into tokens.
type builder struct {
	p       *Parsed
	content string
	words   []word

	negate   bool // a negation waits for its word
	except   bool // that negation is "without"
	double   bool
	accents  string
	be       bool  // a form of to be was seen since the last token
	bound    bound // a bound waits for its number
	prep     string
	contrast bool // "but" was seen since the last token
	comma    bool // punctuation was seen since the last token
	verb     bool // a verb was seen
	aux      bool // an auxiliary was seen
	prevEnd  int
	quote    bool
}

func (b *builder) surface(i int) string {
	if i < 0 || i >= len(b.words) {
		return ""
	}
	return b.words[i].surface
}

func (b *builder) run() {
	p := b.p
	p.tokens = make([]token, 0, len(b.words))
	starts := make([]int, 0, len(b.words))
	for i := 0; i < len(b.words); {
		before := len(p.tokens)
		at := b.words[i].start
		n := b.step(i)
		if len(p.tokens) > before {
			starts = append(starts, at)
		}
		i += n
	}
	if b.negate && len(p.tokens) > 0 {
		p.tokens[len(p.tokens)-1].neg = !p.tokens[len(p.tokens)-1].neg
	}
	for _, at := range kanaNegations(b.content) {
		for k := len(starts) - 1; k >= 0; k-- {
			if starts[k] < at {
				p.tokens[k].neg = !p.tokens[k].neg
				break
			}
		}
	}
	// A verb at the end, as in Persian or Turkish, says nothing about where the
	// subject ends.
	for i := range p.tokens {
		if p.tokens[i].pred {
			p.hasVerb = true
			break
		}
	}
}

// step reads the word at i and returns how many words it used.
func (b *builder) step(i int) int {
	w := b.words[i]
	if b.gap(w.start) {
		b.comma = true
		if b.negate {
			b.negateLast()
		}
	}
	b.prevEnd = w.end
	if n, bd, ok := b.boundPhrase(i); ok {
		b.bound = bd
		return n
	}
	if q, n, ok := b.period(i); ok {
		b.add(token{surface: b.phrase(i, n), stem: q.canonical(), kind: kindNumber, amount: q}, q.canonical())
		b.prevEnd = b.words[i+n-1].end
		return n
	}
	s := w.surface
	r, size := utf8.DecodeRuneInString(s)

	if r >= 0x2E80 && size == len(s) { // a character
		if isKana(r) && r < 0x30A0 {
			return 1 // hiragana: endings and particles
		}
		if b.hanNegates(i) {
			b.negate = !b.negate
			return 1
		}
		if _, ok := significant[s]; !ok && text.Stop(s) {
			return 1
		}
		b.add(token{surface: s, stem: s, kind: kindChar}, s)
		return 1
	}
	switch n := negationOf(s, b.surface(i-1), b.surface(i+1)); n {
	case negNext:
		_, b.except = excepting[s]
		b.double = b.double || b.negate
		b.negate = !b.negate
		return 1
	case negPrev:
		b.negateLast()
		if _, except := excepting[s]; except && len(b.p.tokens) > 0 {
			b.p.tokens[len(b.p.tokens)-1].excepted = true
		}
		return 1
	case negSelf:
		s = positiveForm(s)
		w.surface, w.stem = s, text.Stem(s)
		b.negate = !b.negate
	}
	switch {
	case s == "longer" && b.surface(i-1) == "no", s == "mehr" && b.surface(i-1) == "nicht", s == "больше" && b.surface(i+1) == "не":
		return 1
	case s == "plus" && (strings.Contains(b.p.folded, " ne ") || strings.Contains(b.p.folded, "n'") || strings.Contains(b.p.folded, "n’")):
		b.negateLast()
		return 1
	case s == "out" && (b.surface(i-1) == "opt" || b.surface(i-1) == "opted"):
		b.negateLast()
		return 1
	}
	if q, n, ok := b.number(i); ok {
		q.bound = b.bound
		b.bound = boundExact
		if bd, more := b.boundAfter(i + n); more > 0 {
			q.bound, n = bd, n+more
		}
		t := token{surface: b.words[i].surface, stem: q.canonical(), kind: kindNumber, amount: q}
		if y := q.value; n == 1 && q.dim == dimNone && y >= 1900 && y < 2100 && len(s) == 4 {
			t.scope = scopeCalendar
		}
		b.add(t, q.canonical())
		b.prevEnd = b.words[i+n-1].end
		return n
	}
	month := b.month(i, s)
	if !month {
		b.verbs(s)
	}
	if !month && b.light(i, s) {
		if _, but := contrasting[s]; but {
			b.contrast = true
		} else if _, ok := articles[s]; !ok {
			b.prep = s
		}
		b.be = b.be || isBe(s)
		return 1
	}
	t := token{surface: s, stem: w.stem}
	if t.stem == "" {
		t.stem = s
	}
	if w.exact && strings.ContainsAny(s, "0123456789_/.:@#\\-+$~") {
		t.kind = kindName
		if isWordCompound(s) {
			t.kind = kindWord
		}
	}
	if j := josa(s); j != s {
		t.stem = j
	}
	if c, _ := utf8.DecodeRuneInString(b.content[w.start:]); unicode.IsUpper(c) && foreignEnding(s, t.stem) {
		t.stem = s // a name that only looks inflected
	}
	canonical := t.stem
	if _, rest, ok := strings.Cut(s, "://"); ok && rest != "" {
		canonical = strings.TrimSuffix(rest, "/")
	}
	if c, ok := synonyms[canonical]; ok {
		canonical = c
	} else if c, ok := synonyms[s]; ok {
		canonical = c
	}
	if pos, ok := positiveOf(t.stem); ok && t.kind == kindWord {
		canonical = pos
		t.paired = true
		b.negate = !b.negate
	} else if pos, ok := positives[t.stem]; ok && t.kind == kindWord {
		canonical = pos
	}
	if c, _ := utf8.DecodeRuneInString(b.content[w.start:]); unicode.IsUpper(c) && i > 0 && !b.gapBefore(i) {
		t.capital = true
	}
	t.scope = scopeOf(s, t.stem)
	if month {
		t.scope = scopeCalendar
	}
	if raw := b.content[w.start:w.end]; r < utf8.RuneSelf && len(raw) > len(s) {
		b.accents = text.Key(raw)
	}
	if _, ok := verbStems[t.stem]; ok && !strings.HasSuffix(s, "ing") && !strings.HasSuffix(s, "ment") {
		t.verb = true
		b.verb = true
	}
	b.add(t, canonical)
	return 1
}

// add appends a token with what waited for it.
func (b *builder) add(t token, canonical string) {
	t.id = hashOf(canonical)
	if c, ok := concepts[t.surface]; ok {
		t.concept = hashOf(c)
	} else if c, ok := concepts[t.stem]; ok {
		t.concept = hashOf(c)
	}
	t.neg, t.double, t.excepted = b.negate, b.double, b.negate && b.except
	b.except = false
	t.accents = b.accents
	t.be = b.be
	t.pred = b.verb
	t.prep = b.prep
	t.quoted = b.quote
	t.contrast, b.contrast = b.contrast, false
	t.comma = b.comma
	b.negate, b.double, b.comma, b.be, b.accents = false, false, false, false, ""
	b.prep = ""
	b.p.tokens = append(b.p.tokens, t)
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func (b *builder) negateLast() {
	b.negate = false
	if n := len(b.p.tokens); n > 0 {
		b.p.tokens[n-1].neg = !b.p.tokens[n-1].neg
		return
	}
	b.negate = true
}

// gap reports punctuation between the last word and the one that starts at
// start, and follows quotation marks.
func (b *builder) gap(start int) bool {
	if start <= b.prevEnd {
		return false
	}
	found := false
	for _, r := range b.content[b.prevEnd:start] {
		switch r {
		case ',', ';', ':', '(', ')', '—', '–', '.', '!', '?', '、', '，', '。', '；', '：', '،', '؛', '۔', '।', '\n':
			found = true
		case '"':
			b.quote = !b.quote
		case '“', '«', '「', '„':
			b.quote = true
		case '”', '»', '」':
			b.quote = false
		}
	}
	return found && len(b.p.tokens) > 0
}

// hanNegates reports a negating character of Chinese or Japanese.
func (b *builder) hanNegates(i int) bool {
	var rs [3]rune
	for k := range 3 {
		rs[k] = ' '
		if j := i + k - 1; j >= 0 && j < len(b.words) {
			rs[k], _ = utf8.DecodeRuneInString(b.words[j].surface)
		}
	}
	return hanNegation(rs[:], 1)
}

// verbs notes what the verb at hand says about time and obligation.
func (b *builder) verbs(s string) {
	v, ok := auxiliaries[s]
	if !ok {
		return
	}
	if !b.aux {
		b.nouns()
	}
	b.verb, b.aux = true, true
	switch v {
	case auxPast:
		b.p.past = true
	case auxPresent:
		b.p.present = true
	case auxMust:
		b.p.must = true
	case auxMay:
		b.p.may = true
	}
}

// month tells the month of May from the auxiliary.
func (b *builder) month(i int, s string) bool {
	if s != "may" {
		return false
	}
	if _, ok := parseQuantity(b.surface(i - 1)); ok {
		return true
	}
	return i > 0 && b.content[b.words[i].start] == 'M' && !b.gapBefore(i)
}

// gapBefore reports a sentence's end before word i.
func (b *builder) gapBefore(i int) bool {
	return strings.ContainsAny(b.content[b.words[i-1].end:b.words[i].start], ".!?\n:")
}

// nouns takes back what looked like a verb before the first auxiliary of the
// clause: in "the release notes are kept" releasing and noting are nouns.
func (b *builder) nouns() {
	ts := b.p.tokens
	for k := len(ts) - 1; k >= 0 && !b.comma; k-- {
		ts[k].verb, ts[k].pred = false, false
		if ts[k].comma {
			break
		}
	}
}

// light reports a function word that says nothing by itself.
func (b *builder) light(i int, s string) bool {
	if s == "a" && i > 0 && b.content[b.words[i].start] == 'A' {
		return false // service A
	}
	if s == "own" && i > 0 {
		if _, my := possessives[b.surface(i-1)]; !my {
			return false // they own it
		}
	}
	if _, ok := significant[s]; ok {
		return s == "after" && b.isNumber(i+1) // expires after 5 minutes: the amount says it
	}
	if _, ok := lightWords[s]; ok {
		return true
	}
	if _, name := shortNames[s]; name && b.words[i].exact {
		return false
	}
	return text.Stop(s)
}

// foreignEnding reports that the stem leaves out an ending that English and
// German words do not take. What begins with a capital may be a name, and two
// names are not one because the longer ends like an inflection of another
// language.
func foreignEnding(surface, stem string) bool {
	ending, ok := strings.CutPrefix(surface, stem)
	if !ok || ending == "" || surface[0] >= utf8.RuneSelf {
		return false
	}
	_, known := plainEndings[ending]
	return !known
}

var plainEndings = set("s es e ed d ing er ers est ly y al ment ments ation ations ion ions ies n en em ern r")

// isWordCompound reports plain words joined by hyphens.
func isWordCompound(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < utf8.RuneSelf && c != '-' && !('a' <= c && c <= 'z') {
			return false
		}
	}
	return true
}

func isKana(r rune) bool { return 0x3040 <= r && r <= 0x30FF }

// josa takes the particle off a Korean word.
func josa(s string) string {
	r, _ := utf8.DecodeRuneInString(s)
	if r < 0xAC00 || r > 0xD7A3 || utf8.RuneCountInString(s) < 3 {
		if r < 0xAC00 || r > 0xD7A3 || utf8.RuneCountInString(s) < 2 {
			return s
		}
	}
	for _, p := range []string{"에서는", "으로", "에서", "에게", "까지", "부터", "입니다", "이다", "은", "는", "이", "가", "을", "를", "의", "에", "와", "과", "도", "로"} {
		if rest, ok := strings.CutSuffix(s, p); ok && rest != "" {
			return rest
		}
	}
	return s
}
