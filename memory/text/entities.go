package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxEntities bounds what one text can name.
const maxEntities = 128

// Entities returns the names in s: identifiers, acronyms, names with inner
// capitals and proper nouns, each as its Key, distinct, in order. A capital
// that only starts a sentence makes no name, nor does one in a text that
// capitalises as a rule (German nouns, titles), nor a weekday or month. In a
// script without capitals, words of the Latin alphabet are names.
func Entities(s string) []string {
	words := splitWords(s)
	caps, title := capitalHabits(words)
	noCase := mostlyNoCase(s)

	seen := make(map[string]struct{}, 8)
	var out []string
	add := func(name string) {
		k := Key(name)
		if k == "" || len(out) == maxEntities || Stop(Normalize(k)) || isCalendarWord(k) {
			return
		}
		if _, ok := seen[k]; !ok {
			seen[k] = struct{}{}
			out = append(out, k)
		}
	}

	inner := make(map[string]struct{}) // proper nouns seen inside a sentence
	for _, w := range words {
		if w.proper && !w.initial {
			inner[w.text] = struct{}{}
		}
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.identifier:
			add(w.text)
		case w.acronym && !caps:
			add(w.text)
		case noCase && w.latin && utf8.RuneCountInString(w.text) > 1:
			add(w.text)
		case w.proper && !title && !caps:
			j := i + 1
			for j < len(words) && words[j].proper && !words[j].initial && words[j].adjacent && !isCalendarWord(Key(words[j].text)) {
				j++
			}
			_, elsewhere := inner[w.text]
			first := i
			if w.initial && !elsewhere && !w.possessive && (j == i+1 || Stop(Normalize(w.text))) {
				first++ // only the sentence made it a capital
			}
			if Stop(Normalize(w.text)) || isCalendarWord(Key(w.text)) {
				first = i + 1
			}
			if j-first > 1 {
				add(s[words[first].start:words[j-1].end])
			}
			for k := first; k < j; k++ {
				add(words[k].text)
			}
			i = j - 1
		}
	}
	return out
}

// entityWord is a word as Entities sees it.
type entityWord struct {
	text       string
	start, end int
	proper     bool // begins with a capital, and goes on in small letters
	acronym    bool // two or more capitals, digits allowed
	identifier bool
	latin      bool
	initial    bool // first word of a sentence, a line or a quotation
	adjacent   bool // nothing but one space before it
	possessive bool
}

// splitWords cuts s into words and identifiers with what their spelling tells.
func splitWords(s string) []entityWord {
	var words []entityWord
	initial := true
	prevEnd := -1
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isNameRune(r) || classOf(r) >= classHan {
			switch r {
			case '.', '!', '?', '\n', '。', '！', '？', '۔', '؟', '।', '"', '“', '«', '‘', '(', '•', '*':
				initial = true
			case ':':
				initial = true
			}
			i += n
			continue
		}
		j := i
		for j < len(s) {
			r, n := utf8.DecodeRuneInString(s[j:])
			if !isNameRune(r) || classOf(r) >= classHan {
				break
			}
			j += n
		}
		w := describe(s, i, j)
		if w.text != "" {
			w.initial = initial
			w.adjacent = prevEnd >= 0 && w.start == prevEnd+1 && s[prevEnd] == ' '
			prevEnd = j
			if strings.HasSuffix(s[i:j], ".") || strings.HasSuffix(s[i:j], ":") {
				initial = true
				prevEnd = -1
			} else {
				initial = false
			}
			words = append(words, w)
		}
		i = j
	}
	return words
}

func isNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		c := asciiClass[byte(foldASCIIByte(byte(r)))]
		return c == classLetter || c == classDigit || c == classJoin || c == classQuote
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.IsDigit(r) || r == '’')
}

// describe trims a run and tells what it looks like.
func describe(s string, a, b int) entityWord {
	const around = `.:-_/\+~$&@%#'`
	raw := strings.TrimRight(s[a:b], `.:-_/\~$&@%'`)
	raw = strings.TrimSuffix(strings.TrimSuffix(raw, "’"), "'")
	trimmed := strings.TrimLeft(raw, around)
	a += len(s[a:b]) - len(strings.TrimLeft(s[a:b], around))
	w := entityWord{}
	for _, suffix := range []string{"'s", "’s", "'S", "’S"} {
		if t, ok := strings.CutSuffix(trimmed, suffix); ok {
			trimmed, w.possessive = t, true
			break
		}
	}
	for _, q := range []string{"'", "’"} { // l'Allemagne, d'Acme
		if i := strings.Index(trimmed, q); i > 0 && i <= 2 && len(trimmed) > i+len(q)+1 {
			trimmed = trimmed[i+len(q):]
			a += i + len(q)
		}
	}
	if trimmed == "" {
		return w
	}
	w.text, w.start, w.end = trimmed, a, a+len(trimmed)
	upper, lower, digits, letters, joins, hyphens := 0, 0, 0, 0, 0, 0
	innerUpper := false
	w.latin = true
	for i, r := range trimmed {
		switch {
		case unicode.IsUpper(r):
			upper++
			letters++
			innerUpper = innerUpper || (i > 0 && lower > 0)
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
			if unicode.IsLower(r) {
				lower++
			}
		case r == '-':
			hyphens++
		case r < utf8.RuneSelf && asciiClass[r] == classJoin:
			joins++
		}
		if r >= 0x0250 {
			w.latin = false
		}
	}
	first, _ := utf8.DecodeRuneInString(trimmed)
	switch {
	case letters == 0:
		return w // a number names nothing
	case dottedLetters(strings.ToLower(trimmed)) && lower > 0:
		return w // e.g, i.e
	case joins > 0 && (letters > 1 || digits > 0 || trimmed == "C++" || trimmed == "C#"):
		w.identifier = !isWordPair(trimmed)
	case hyphens > 0 && (digits > 0 || innerUpper || (upper > 1 && lower == 0)):
		w.identifier = true
	case hyphens > 1 && upper == 0 && !anyStopPart(trimmed):
		w.identifier = true
	case innerUpper && hyphens == 0:
		w.identifier = true
	case upper >= 2 && lower == 0, upper >= 2 && lower == 1 && strings.HasSuffix(trimmed, "s"):
		w.acronym = true
		w.text = strings.TrimSuffix(trimmed, "s")
		w.end = w.start + len(w.text)
	case digits > 0 && upper >= 1 && unicode.IsLetter(first):
		w.acronym = true // S3, R2
	case digits > 1 && letters > 1 && len(trimmed) >= 7:
		w.identifier = true // hashes
	case unicode.IsUpper(first) && lower > 0:
		w.proper = true
	}
	return w
}

// isWordPair reports lower-case words with a slash between: and/or.
func isWordPair(s string) bool {
	if strings.Count(s, "/") != 1 || strings.ContainsAny(s, `_.:\@#+~$&%-`) {
		return false
	}
	return strings.IndexByte(s, '/') > 0 && s == strings.ToLower(s)
}

func anyStopPart(s string) bool {
	for p := range strings.SplitSeq(s, "-") {
		if Stop(p) {
			return true
		}
	}
	return false
}

// capitalHabits reports whether the text is written in capitals, and whether
// it capitalises nouns or titles as a rule, so that a capital names nothing.
func capitalHabits(words []entityWord) (allCaps, title bool) {
	inner, proper, acronyms, small, german := 0, 0, 0, 0, 0
	for _, w := range words {
		if _, ok := germanMarks[w.text]; ok {
			german++
		}
		switch {
		case w.identifier:
			continue
		case w.acronym:
			acronyms++
		case !w.initial && w.proper:
			proper++
		case !w.initial:
			small++
		}
		if !w.initial {
			inner++
		}
	}
	allCaps = acronyms >= 3 && acronyms > 2*(small+proper)
	title = (german >= 1 && proper >= 1 && german+proper >= 3) || (inner >= 6 && proper*10 >= inner*7)
	return allCaps, title
}

var germanMarks = map[string]struct{}{
	"der": {}, "das": {}, "dem": {}, "den": {}, "und": {}, "ist": {}, "nicht": {}, "wird": {}, "werden": {}, "ein": {}, "eine": {},
	"einen": {}, "mit": {}, "von": {}, "für": {}, "auf": {}, "wir": {}, "Der": {}, "Das": {}, "Wir": {}, "Ein": {}, "Eine": {},
}

// mostlyNoCase reports that most letters of s are of a script without capitals.
func mostlyNoCase(s string) bool {
	cased, other := 0, 0
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			if c := asciiClass[foldASCIIByte(byte(r))]; c == classLetter {
				cased++
			}
		case unicode.IsLetter(r):
			if unicode.IsUpper(r) || unicode.IsLower(r) {
				cased++
			} else {
				other++
			}
		}
	}
	// A character of Han or kana is worth about two letters.
	return other > 0 && other*2 >= cased
}

func isCalendarWord(key string) bool {
	_, ok := calendarWords[key]
	return ok
}

var calendarWords = func() map[string]struct{} {
	m := make(map[string]struct{})
	for _, w := range strings.Fields(`monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays
thursdays fridays saturdays sundays january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun q1 q2 q3 q4 am pm utc gmt
montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember
i we you they he she it`) {
		m[w] = struct{}{}
	}
	return m
}()
