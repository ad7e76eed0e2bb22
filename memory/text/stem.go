package text

import (
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"
)

// maxStemBytes bounds what is handed to a stemmer: no word of a language is
// longer, and identifiers have no inflections.
const maxStemBytes = 48

// stem returns the stem of a folded word, or the word itself when its script
// has no stemmer or the word is too short to be inflected.
func stem(word string, env *snowballstem.Env) string {
	if len(word) <= 3 || len(word) > maxStemBytes {
		return word
	}
	r, _ := utf8.DecodeRuneInString(word)
	switch {
	case r < utf8.RuneSelf:
		if !isASCII(word) {
			return word
		}
		env.SetCurrent(word)
		english.Stem(env)
		return env.Current()
	case isCyrillic(r):
		env.SetCurrent(word)
		russian.Stem(env)
		return fleeting(env.Current())
	case isArabicLetter(r):
		return stemArabicScript(word)
	case isDevanagari(r):
		return trimSuffix(word, devanagariEndings, 2)
	}
	return word
}

// fleeting drops the vowel that comes and goes before the last consonant of a
// Russian stem: ошибок like ошибка, список like списка.
func fleeting(stem string) string {
	if len(stem) < 10 { // five letters
		return stem
	}
	for _, e := range [...]struct{ long, short string }{{"ок", "к"}, {"ек", "к"}, {"ец", "ц"}} {
		if rest, ok := strings.CutSuffix(stem, e.long); ok {
			return rest + e.short
		}
	}
	return stem
}

// Endings are given in search form, longest first.
var (
	persianEndings = []string{"هایشان", "هایمان", "هایتان", "هایی", "هایم", "هایت", "هایش", "های", "ترین", "ها"}
	arabicEndings  = []string{"ات", "ون", "ین", "ان", "ها", "یه", "ه"}
	arabicPrefixes = []string{"وال", "بال", "کال", "فال", "ال", "لل"}

	devanagariEndings = []string{"ियों", "ाओं", "ाएं", "ुओं", "ों", "ें", "ां", "ीं", "ी", "े", "ा", "ो", "ि", "ु", "ू"}
)

// stemArabicScript takes off what Persian and Arabic glue to a word: the verb
// prefix, the article, plural and comparative endings. The languages are not
// told apart, so at most one thing is taken off each end.
func stemArabicScript(word string) string {
	if rest, ok := strings.CutPrefix(word, "نمی"); ok && utf8.RuneCountInString(rest) >= 3 {
		return rest
	}
	if rest, ok := strings.CutPrefix(word, "می"); ok && utf8.RuneCountInString(rest) >= 4 {
		return rest
	}
	if rest := trimSuffix(word, persianEndings, 2); rest != word {
		return rest
	}
	for _, p := range arabicPrefixes {
		if rest, ok := strings.CutPrefix(word, p); ok && utf8.RuneCountInString(rest) >= 3 {
			return trimSuffix(rest, arabicEndings, 3)
		}
	}
	return trimSuffix(word, arabicEndings, 3)
}

// trimSuffix takes off the first ending that leaves at least min runes.
func trimSuffix(word string, endings []string, min int) string {
	for _, e := range endings {
		if rest, ok := strings.CutSuffix(word, e); ok && utf8.RuneCountInString(rest) >= min {
			return rest
		}
	}
	return word
}

// Stem returns the stem of a folded word as the index holds it, or the word
// itself when it has none.
func Stem(word string) string { return stem(word, snowballstem.NewEnv("")) }
