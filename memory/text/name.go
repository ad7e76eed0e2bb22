package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Name returns the form of a domain's name that is shown: letters with their
// marks and digits of any script as given (in NFKC), every other run one
// hyphen, none at the ends; "" when nothing is left. Slug(Name(s)) is Slug(s).
func Name(s string) string {
	var b strings.Builder
	gap, word := false, false
	for _, r := range norm.NFKC.String(strings.ToValidUTF8(s, "")) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r), word && unicode.Is(unicode.M, r):
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap, word = false, true
			b.WriteRune(r)
		case Blank(string(r)) && !unicode.IsSpace(r):
			// Invisible characters neither part nor join words.
		default:
			gap, word = true, false
		}
	}
	return b.String()
}
