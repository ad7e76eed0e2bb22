package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is a text folded for tokenizing, with the way back to the original.
type source struct {
	orig string
	text string // folded

	// Per byte of text: the span of the original it came from. Both are nil
	// when the original is ASCII, where a byte came from the byte beside it.
	start, end []int32
	flags      []flag
}

// flag marks a byte of the folded text.
type flag uint8

const (
	flagUpper  flag = 1 << iota // was a capital
	flagJoined                  // a zero-width non-joiner stood before it
)

func newSource(s string) source {
	if isASCII(s) {
		return source{orig: s, text: foldASCII(s)}
	}
	src := source{
		orig:  s,
		start: make([]int32, 0, len(s)+8),
		end:   make([]int32, 0, len(s)+8),
		flags: make([]flag, 0, len(s)+8),
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	var joined flag
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		next := i + n
		if r == 0x200C {
			joined = flagJoined
			i = next
			continue
		}
		f := joined
		joined = 0
		if unicode.IsUpper(r) {
			f |= flagUpper
		}
		from := b.Len()
		after, an := utf8.DecodeRuneInString(s[next:])
		out, ok := simpleRune(r, formSearch)
		switch {
		case ok && (an == 0 || !extends(after)):
			if out >= 0 {
				b.WriteRune(plain(out))
			}
		default:
			for an > 0 && extends(after) {
				next += an
				after, an = utf8.DecodeRuneInString(s[next:])
			}
			for _, p := range fold(s[i:next], formSearch) {
				b.WriteRune(plain(p))
			}
		}
		for k := from; k < b.Len(); k++ {
			src.start = append(src.start, int32(i))
			src.end = append(src.end, int32(next))
			src.flags = append(src.flags, f)
			f &^= flagJoined
		}
		i = next
	}
	src.text = b.String()
	return src
}

// extends reports whether r may compose with the rune before it.
func extends(r rune) bool {
	switch {
	case r < 0x0300:
		return false
	case isArabicMark(r):
		return false // dropped wherever it stands
	case 0x1160 <= r && r <= 0x11FF, r == 0xFF9E, r == 0xFF9F:
		return true
	}
	return unicode.Is(unicode.M, r) && !isInvisible(r)
}

// plain gives the ASCII form of hyphens and apostrophes that stand inside
// words and identifiers.
func plain(r rune) rune {
	switch r {
	case 0x2010, 0x2011, 0x2212, 0xFE63:
		return '-'
	case 0x2019, 0x02BC, 0x2018, 0x02B9, 0x201B:
		return '\''
	}
	return r
}

// span returns the bytes of the original that the folded bytes [a,b) came from.
func (s *source) span(a, b int) (start, end int) {
	if s.start == nil {
		return a, b
	}
	return int(s.start[a]), int(s.end[b-1])
}

// upper reports whether the folded byte at i was a capital.
func (s *source) upper(i int) bool {
	if s.flags == nil {
		c := s.orig[i]
		return 'A' <= c && c <= 'Z'
	}
	return s.flags[i]&flagUpper != 0
}

// joined reports whether a zero-width non-joiner stood before the byte at i.
func (s *source) joined(i int) bool {
	return s.flags != nil && s.flags[i]&flagJoined != 0
}
