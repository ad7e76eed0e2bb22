package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Phrase is a subject in the form in which texts are looked through for it.
type Phrase struct{ folded string }

// NewPhrase prepares s; a phrase that shows nothing is mentioned nowhere.
func NewPhrase(s string) Phrase { return Phrase{oneSpace(Normalize(s))} }

// Words returns the single words of the phrase, which every text that mentions
// it holds.
func (p Phrase) Words() []string {
	return strings.FieldsFunc(p.folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) })
}

// In reports whether s holds the phrase as whole words, in any spelling that
// Normalize folds. No word is inflected or guessed: "port 80" is not in "port
// 8080", nor "1.2" in "1.2.3". In scripts that put no spaces between words, any
// place in the text counts.
func (p Phrase) In(s string) bool {
	if p.folded == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(p.folded)
	last, _ := utf8.DecodeLastRuneInString(p.folded)
	s = oneSpace(Normalize(s))
	for at := 0; ; {
		i := strings.Index(s[at:], p.folded)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(p.folded)
		if !joined(lastTwo(s[:start]), first) && !joined(firstTwo(s[end:]), last) {
			return true
		}
		_, width := utf8.DecodeRuneInString(s[start:])
		at = start + width
	}
}

// joined reports whether a word goes on beyond its edge rune, given the two
// runes that come next there, nearest first.
func joined(next [2]rune, edge rune) bool {
	if spaced(next[0]) && spaced(edge) {
		return true
	}
	return (next[0] == '.' || next[0] == ',') && unicode.IsDigit(next[1]) && unicode.IsDigit(edge)
}

// spaced reports a letter or digit of a script that puts spaces between words.
func spaced(r rune) bool {
	c := classOf(r)
	return c == classLetter || c == classDigit
}

func firstTwo(s string) (two [2]rune) {
	for i := range two {
		r, width := utf8.DecodeRuneInString(s)
		if width == 0 {
			break
		}
		two[i], s = r, s[width:]
	}
	return two
}

func lastTwo(s string) (two [2]rune) {
	for i := range two {
		r, width := utf8.DecodeLastRuneInString(s)
		if width == 0 {
			break
		}
		two[i], s = r, s[:len(s)-width]
	}
	return two
}
