package text

import (
	"unicode"
	"unicode/utf8"
)

// class is what a rune of folded text is to the tokenizer.
type class uint8

const (
	classBreak  class = iota // white space, brackets, quotes, other punctuation
	classLetter              // letters of scripts that put spaces between words
	classDigit
	classJoin   // punctuation that may stand inside an identifier: TokenChars
	classQuote  // an apostrophe, which stays inside a word and not in its term
	classComma  // a comma, which stays inside 1,500
	classHan    // Han and kana: no spaces between words
	classHangul // spaces between phrases, particles glued on
	classSEA    // Thai, Lao, Khmer, Burmese: no spaces, marks above and below
	classSymbol // emoji and dingbats: a term each
)

// TokenChars is the ASCII punctuation that may occur inside a term. The full
// text index must treat it, ASCII letters and digits, and every rune outside
// ASCII as parts of a token.
const TokenChars = `_-./\+#@:%~$&`

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		return asciiClass[r]
	}
	switch {
	case r < 0x0E00:
		// The common alphabets: everything that is a letter or a mark.
		if 0x0430 <= r && r <= 0x044F || 0x0620 <= r && r <= 0x064A || 0x0671 <= r && r <= 0x06D3 {
			return classLetter
		}
	case r <= 0x0EFF, 0x1000 <= r && r <= 0x109F, 0x1780 <= r && r <= 0x17FF, 0xAA60 <= r && r <= 0xAA7F:
		if unicode.IsLetter(r) || unicode.Is(unicode.M, r) {
			return classSEA
		}
		return classBreak
	case 0x2600 <= r && r <= 0x27BF, 0x2B05 <= r && r <= 0x2B55, 0x1F000 <= r && r <= 0x1FAFF:
		return classSymbol
	case 0x3005 <= r && r <= 0x3007, 0x3041 <= r && r <= 0x309A, 0x309D <= r && r <= 0x309F,
		0x30A1 <= r && r <= 0x30FA, 0x30FC <= r && r <= 0x312F, 0x31F0 <= r && r <= 0x31FF,
		0x3400 <= r && r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xF900 <= r && r <= 0xFAFF,
		0x20000 <= r && r <= 0x3FFFF:
		return classHan
	case 0xAC00 <= r && r <= 0xD7A3, 0x1100 <= r && r <= 0x11FF, 0x3131 <= r && r <= 0x318E:
		return classHangul
	}
	if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.Is(unicode.N, r)) {
		return classLetter
	}
	return classBreak
}

var asciiClass = [utf8.RuneSelf]class{
	'0': classDigit, '1': classDigit, '2': classDigit, '3': classDigit, '4': classDigit,
	'5': classDigit, '6': classDigit, '7': classDigit, '8': classDigit, '9': classDigit,
	'a': classLetter, 'b': classLetter, 'c': classLetter, 'd': classLetter, 'e': classLetter, 'f': classLetter,
	'g': classLetter, 'h': classLetter, 'i': classLetter, 'j': classLetter, 'k': classLetter, 'l': classLetter,
	'm': classLetter, 'n': classLetter, 'o': classLetter, 'p': classLetter, 'q': classLetter, 'r': classLetter,
	's': classLetter, 't': classLetter, 'u': classLetter, 'v': classLetter, 'w': classLetter, 'x': classLetter,
	'y': classLetter, 'z': classLetter,
	'_': classJoin, '-': classJoin, '.': classJoin, '/': classJoin, '\\': classJoin, '+': classJoin, '#': classJoin,
	'@': classJoin, ':': classJoin, '%': classJoin, '~': classJoin, '$': classJoin, '&': classJoin,
	'\'': classQuote, ',': classComma,
}

func isArabicLetter(r rune) bool {
	return 0x0600 <= r && r <= 0x06FF || 0x0750 <= r && r <= 0x077F || 0x08A0 <= r && r <= 0x08FF
}

func isKana(r rune) bool {
	return 0x3041 <= r && r <= 0x3096 || 0x30A1 <= r && r <= 0x30FA || r == 0x30FC || 0x31F0 <= r && r <= 0x31FF
}

func isCyrillic(r rune) bool   { return 0x0400 <= r && r <= 0x052F }
func isDevanagari(r rune) bool { return 0x0900 <= r && r <= 0x097F }

func isSEAMark(r rune) bool {
	switch {
	case r == 0x0E31, 0x0E34 <= r && r <= 0x0E3A, 0x0E47 <= r && r <= 0x0E4E,
		r == 0x0EB1, 0x0EB4 <= r && r <= 0x0EBC, 0x0EC8 <= r && r <= 0x0ECE:
		return true
	}
	return r >= 0x1000 && unicode.Is(unicode.M, r)
}
