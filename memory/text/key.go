package text

import (
	"crypto/sha256"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Key returns the form in which topics, domains and policy keys are compared:
// NFKC, case folded, each run of white space one space, trimmed, without
// invisible characters, Arabic-script variants and digits folded. Accents are
// kept, except that a Turkish dotted or dotless i is an i, because its capital
// cannot be told from the other's. Key is idempotent.
func Key(s string) string {
	return oneSpace(fold(s, formKey))
}

// oneSpace trims s and makes each run of white space one space.
func oneSpace(s string) string {
	clean := true
	prev := true
	for i := 0; i < len(s) && clean; i++ {
		c := s[i]
		sp := isASCIISpace(c)
		if c >= utf8.RuneSelf || (sp && (prev || c != ' ')) {
			clean = false
		}
		prev = sp
	}
	if clean && !prev {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// ContentKey identifies a statement: the first 16 bytes of the SHA-256 of its
// Key with quotation marks, apostrophes and dashes in one form and without the
// sentence's closing punctuation. Statements that differ in anything that can
// carry meaning (a digit, a sign, a question mark) have different keys.
func ContentKey(s string) [16]byte {
	sum := sha256.Sum256([]byte(identity(s)))
	var k [16]byte
	copy(k[:], sum[:])
	return k
}

func identity(s string) string {
	k := Key(s)
	if !isASCII(k) {
		k = strings.Map(unifyPunctuation, k)
	}
	if t := strings.TrimRightFunc(k, isClosing); t != "" {
		k = t
	}
	return k
}

// unifyPunctuation gives the plain form of quotation marks, apostrophes and
// dashes.
func unifyPunctuation(r rune) rune {
	switch r {
	case '“', '”', '„', '‟', '«', '»', '「', '」', '『', '』', '″', '〝', '〞', '〟':
		return '"'
	case '‘', '’', '‚', '‛', 'ʼ', 'ʻ', 'ʹ', '′', '‹', '›', '՚', 'ꞌ':
		return '\''
	case '‐', '‑', '‒', '–', '—', '―', '−', '﹣':
		return '-'
	}
	return r
}

// isClosing reports punctuation that ends a statement, and the space before it.
// A question mark is not among it: a question states nothing.
func isClosing(r rune) bool {
	switch r {
	case ' ', '.', '!', ',', ';', ':', '…', '。', '、', '۔', '،', '؛', '।', '॥', '·', '։', '።', '။', '។', '᙮', '᠃', '᠉':
		return true
	}
	return false
}

// Slug returns the form of a domain or repository name that is used in keys
// and addresses: letters with their marks and digits of any script, case
// folded, every other run one hyphen, none at the ends. It is empty when the
// name holds no letter and no digit. Slug is idempotent.
func Slug(name string) string {
	k := Key(name)
	var b strings.Builder
	b.Grow(len(k))
	gap, word := false, false
	for _, r := range k {
		switch {
		case r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)):
		case word && unicode.Is(unicode.M, r):
		default:
			gap, word = true, false
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap, word = false, true
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

// Blank reports whether s shows nothing: it is empty or holds only white
// space, control and other invisible characters.
func Blank(s string) bool {
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			return false
		case r < utf8.RuneSelf:
			if r > ' ' && r != 0x7F {
				return false
			}
		case isInvisible(r), unicode.IsSpace(r), unicode.Is(unicode.C, r) && !unicode.Is(unicode.Co, r), r == 0x2800:
		default:
			return false
		}
	}
	return true
}
