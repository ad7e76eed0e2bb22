package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// form says how much of a spelling folding takes away.
type form uint8

const (
	// formSearch drops accents and folds letters that readers treat as one.
	formSearch form = iota
	// formKey keeps accents: two topics that differ in one are two topics.
	formKey
)

// maxFoldPasses bounds the search for a fixed point. Two passes are enough for
// any text met so far; the bound only keeps hostile input from looping.
const maxFoldPasses = 6

// Normalize returns the search form of s: NFKC, case folded, without combining
// marks, harakat, tatweel and invisible characters, with the forms of alef,
// yeh, kaf, heh and teh marbuta folded into one, and with digits of every
// script written 0-9. Marks that are letters in all but name are kept: vowel
// signs of Indic and South-East Asian scripts, kana voicing, and Cyrillic й, ў
// and ї. Normalize is idempotent.
func Normalize(s string) string { return fold(s, formSearch) }

func fold(s string, f form) string {
	if isASCII(s) {
		return foldASCII(s)
	}
	if out, ok := foldSimple(s, f); ok {
		return out
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	for range maxFoldPasses {
		out := foldOnce(s, f)
		if out == s {
			break
		}
		s = out
	}
	return s
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// foldASCIIByte lowers a letter and turns a control character into a space.
func foldASCIIByte(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c + ('a' - 'A')
	case (c < ' ' && !isASCIISpace(c)) || c == 0x7F:
		return ' '
	}
	return c
}

func isASCIISpace(c byte) bool { return c == ' ' || ('\t' <= c && c <= '\r') }

func foldASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if foldASCIIByte(s[i]) == s[i] {
			continue
		}
		b := make([]byte, len(s))
		copy(b, s[:i])
		for ; i < len(s); i++ {
			b[i] = foldASCIIByte(s[i])
		}
		return string(b)
	}
	return s
}

// foldSimple folds text all of whose runes fold on their own, whatever stands
// beside them. It reports false when s holds a rune that needs decomposition.
func foldSimple(s string, f form) (string, bool) {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		out, ok := simpleRune(r, f)
		if !ok {
			return "", false
		}
		if out >= 0 {
			b.WriteRune(out)
		}
	}
	return b.String(), true
}

// simpleRune folds one rune of the common blocks. A negative result means that
// the rune is dropped; ok is false when the rune needs the long way.
func simpleRune(r rune, f form) (out rune, ok bool) {
	switch {
	case r < utf8.RuneSelf:
		return rune(foldASCIIByte(byte(r))), true
	case r < 0x0180:
		if r >= 0x00C0 && f == formSearch {
			if base := latinBase[r-0x00C0]; base != '.' {
				return rune(base), true
			}
		}
		if r == '«' || r == '»' || r == '§' || r == '°' {
			return r, true
		}
		return 0, false
	case 0x0410 <= r && r <= 0x042F:
		return r + 0x20, true
	case 0x0430 <= r && r <= 0x044F:
		return r, true
	case r == 'ё' || r == 'Ё':
		if f == formSearch {
			return 'е', true
		}
		return 'ё', true
	case isArabicMark(r) || r == 0x0640:
		return -1, true
	case 0x0620 <= r && r <= 0x06D5:
		if v, isDigit := decimal(r); isDigit {
			return '0' + v, true
		}
		if 0x0675 <= r && r <= 0x0678 {
			return 0, false
		}
		return foldArabic(r, f), true
	case 0x06F0 <= r && r <= 0x06F9:
		return '0' + r - 0x06F0, true
	case r == 0x060C || r == 0x061B || r == 0x061F:
		return r, true
	case 0x0904 <= r && r <= 0x096F:
		return simpleDevanagari(r, f)
	case r == 0x200B || r == 0x200C || r == 0x200D || r == 0x200E || r == 0x200F || r == 0xFEFF:
		return -1, true
	case 0x2010 <= r && r <= 0x201F && r != 0x2011 && r != 0x2017:
		return r, true
	case 0x3001 <= r && r <= 0x3029:
		return r, true
	case r == 0x3000:
		return ' ', true
	case 0x3041 <= r && r <= 0x3096, 0x30A1 <= r && r <= 0x30FE:
		return r, true
	case 0x3400 <= r && r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xAC00 <= r && r <= 0xD7A3:
		return r, true
	case 0xFF01 <= r && r <= 0xFF5E:
		return rune(foldASCIIByte(byte(r - 0xFEE0))), true
	}
	return 0, false
}

// latinBase gives the search form of U+00C0 to U+017F; a dot marks a rune that
// becomes more than one letter or is none.
const latinBase = "aaaaaa.ceeeeiiii" + // À
	".nooooo.ouuuuy.." + // Ð
	"aaaaaa.ceeeeiiii" + // à
	".nooooo.ouuuuy.y" + // ð
	"aaaaaaccccccccdd" + // Ā
	"ddeeeeeeeeeegggg" + // Đ
	"gggghhhhiiiiiiii" + // Ġ
	"ii..jjkk.llllll." + // İ
	".llnnnnnn...oooo" + // ŀ
	"oo..rrrrrrssssss" + // Ő
	"ssttttttuuuuuuuu" + // Š
	"uuuuwwyyyzzzzzzs" // Ű

func simpleDevanagari(r rune, f form) (rune, bool) {
	switch {
	case r == 0x0929 || r == 0x0931 || r == 0x0934 || (0x0951 <= r && r <= 0x0954) || (0x0958 <= r && r <= 0x095F):
		return 0, false
	case r == 0x093C:
		return -1, f == formSearch
	case r == 0x094D:
		return r, f == formSearch
	case 0x0966 <= r && r <= 0x096F:
		return '0' + r - 0x0966, true
	}
	return r, true
}

// foldOnce decomposes, folds rune by rune and composes again.
func foldOnce(s string, f form) string {
	d := norm.NFKD.String(s)
	var b strings.Builder
	b.Grow(len(d))
	var last rune // the last rune written
	put := func(r rune) {
		b.WriteRune(r)
		last = r
	}
	for _, r := range d {
		switch {
		case r < utf8.RuneSelf:
			put(rune(foldASCIIByte(byte(r))))
		case isInvisible(r) || r == 0x0640:
		case unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Zs, r):
			put(' ')
		case r == 0x2028 || r == 0x2029:
			put('\n')
		case unicode.Is(unicode.Nd, r):
			v, _ := decimal(r)
			put('0' + v)
		case unicode.Is(unicode.M, r):
			if keepMark(last, r, f) {
				put(foldCase(foldMark(r, f)))
			}
		case r == 'ß' || r == 'ẞ':
			put('s')
			put('s')
		case f == formSearch && latinPair(r) != "":
			for _, p := range latinPair(r) {
				put(p)
			}
		case 0x0620 <= r && r <= 0x06D5:
			put(foldArabic(r, f))
		default:
			r = foldCase(r)
			if f == formSearch {
				r = foldLatin(r)
			}
			put(r)
		}
	}
	return norm.NFC.String(b.String())
}

// foldCase folds the case of one rune. The detour over upper case brings
// together letters with two lower-case forms (σ and ς); it also makes the
// dotless ı an i, which is what case-insensitive Turkish needs, since I is the
// capital of one and the neighbour of the other.
func foldCase(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// foldLatin maps letters with a stroke, which do not decompose, to their base.
func foldLatin(r rune) rune {
	switch r {
	case 'đ', 'ð':
		return 'd'
	case 'ø':
		return 'o'
	case 'ł':
		return 'l'
	case 'ħ':
		return 'h'
	case 'ŧ':
		return 't'
	}
	return r
}

// latinPair spells out the letters that stand for two.
func latinPair(r rune) string {
	switch r {
	case 'æ', 'Æ':
		return "ae"
	case 'œ', 'Œ':
		return "oe"
	case 'þ', 'Þ':
		return "th"
	}
	return ""
}

// foldArabic maps the variants of an Arabic-script letter to one of them. Yeh
// barree and noon ghunna end a word with another meaning in Urdu, so keys keep
// them.
func foldArabic(r rune, f form) rune {
	switch r {
	case 0x0622, 0x0623, 0x0625, 0x0671, 0x0672, 0x0673:
		return 0x0627 // alef
	case 0x0624:
		return 0x0648 // waw
	case 0x0626, 0x0649, 0x064A, 0x06CD, 0x06D0, 0x06CE:
		return 0x06CC // yeh
	case 0x06BA:
		if f == formSearch {
			return 0x0646 // noon without its dot
		}
		return r
	case 0x06D2, 0x06D3:
		if f == formSearch {
			return 0x06CC
		}
		return 0x06D2
	case 0x0643, 0x06AA, 0x06AB, 0x06AC:
		return 0x06A9 // kaf
	case 0x0629, 0x06BE, 0x06C0, 0x06C1, 0x06C2, 0x06C3, 0x06D5, 0x06FF:
		return 0x0647 // heh
	case 0x066A:
		return '%'
	case 0x066B:
		return '.' // decimal separator
	case 0x066C:
		return ',' // thousands separator
	}
	return r
}

func isArabicMark(r rune) bool {
	return (0x0610 <= r && r <= 0x061A) || (0x064B <= r && r <= 0x065F) || r == 0x0670 ||
		(0x06D6 <= r && r <= 0x06DC) || (0x06DF <= r && r <= 0x06E4) || r == 0x06E7 || r == 0x06E8 ||
		(0x06EA <= r && r <= 0x06ED) || (0x08D3 <= r && r <= 0x08FF && r != 0x08E2)
}

// keepMark reports whether the mark r after the rune last survives folding.
func keepMark(last, r rune, f form) bool {
	if isArabicMark(r) {
		return false
	}
	if f == formKey {
		// The dot that case folding leaves on a Turkish capital i.
		return r != 0x0307 || last != 'i'
	}
	switch {
	case r == 0x0306:
		return last == 'и' || last == 'у'
	case r == 0x0308:
		return last == 'і'
	case 0x0780 <= r && r <= 0x07BF: // Thaana vowels
		return true
	case r < 0x0900:
		return false
	case r == 0x093C, r == 0x09BC, r == 0x0A3C, r == 0x0ABC, r == 0x0B3C, r == 0x0C3C, r == 0x0CBC: // nukta
		return false
	case 0x1AB0 <= r && r <= 0x1AFF, 0x1DC0 <= r && r <= 0x1DFF, 0x20D0 <= r && r <= 0x20FF,
		0x302A <= r && r <= 0x302F, 0xFE20 <= r && r <= 0xFE2F:
		return false
	}
	return true
}

// foldMark folds the nasal signs of Devanagari that writers use for each other.
func foldMark(r rune, f form) rune {
	if f == formSearch && r == 0x0901 {
		return 0x0902
	}
	return r
}

// decimal returns the value of a decimal digit of any script. Unicode keeps
// the ten digits of a script together, so that the place in the range is the
// value.
func decimal(r rune) (rune, bool) {
	switch {
	case '0' <= r && r <= '9':
		return r - '0', true
	case r < 0x0660:
		return 0, false
	case 0x0660 <= r && r <= 0x0669:
		return r - 0x0660, true
	case 0x06F0 <= r && r <= 0x06F9:
		return r - 0x06F0, true
	case r <= 0xFFFF:
		for _, g := range unicode.Nd.R16 {
			if r <= rune(g.Hi) {
				if r < rune(g.Lo) {
					return 0, false
				}
				return (r - rune(g.Lo)) % 10, true
			}
		}
	default:
		for _, g := range unicode.Nd.R32 {
			if r <= rune(g.Hi) {
				if r < rune(g.Lo) {
					return 0, false
				}
				return (r - rune(g.Lo)) % 10, true
			}
		}
	}
	return 0, false
}

// isInvisible reports characters that take no ink and no room: joiners,
// direction marks, variation selectors, fillers, soft hyphens, tags.
func isInvisible(r rune) bool {
	if r < 0x00AD {
		return false
	}
	switch {
	case r == 0x00AD, r == 0x034F, r == 0x061C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5,
		0x180B <= r && r <= 0x180F, 0x200B <= r && r <= 0x200F, 0x202A <= r && r <= 0x202E,
		0x2060 <= r && r <= 0x206F, r == 0x3164, 0xFE00 <= r && r <= 0xFE0F, r == 0xFEFF, r == 0xFFA0,
		0xFFF0 <= r && r <= 0xFFFB, 0x1BCA0 <= r && r <= 0x1BCA3, 0x1D173 <= r && r <= 0x1D17A,
		0xE0000 <= r && r <= 0xE0FFF:
		return true
	}
	return false
}
