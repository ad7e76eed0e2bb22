package text

import (
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Cut returns the first maxRunes code points of s. When s is longer the last
// of them is an ellipsis, and the cut falls before a character rather than
// between it and its marks.
func Cut(s string, maxRunes int) string {
	if maxRunes <= 0 {
		return ""
	}
	if len(s) <= maxRunes {
		return s
	}
	at, n := len(s), 0 // where the text would be cut
	for i := range s {
		if n == maxRunes-1 {
			at = i
		}
		n++
		if n > maxRunes {
			return s[:whole(s, at)] + ellipsis
		}
	}
	return s
}

// whole moves a cut back to the start of the character it falls into, unless
// that would leave nothing.
func whole(s string, at int) int {
	for i, steps := at, 0; i > 0 && steps < 16; steps++ {
		r, _ := utf8.DecodeRuneInString(s[i:])
		p, n := utf8.DecodeLastRuneInString(s[:i])
		if i < len(s) && !clings(r) && p != 0x200D {
			return i
		}
		if i == len(s) {
			return i
		}
		i -= n
	}
	return at
}

// wholeForward moves a start forward past marks that belong to the character
// before it.
func wholeForward(s string, at int) int {
	for i, steps := at, 0; i < len(s) && steps < 16; steps++ {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !clings(r) {
			return i
		}
		i += n
	}
	return at
}

// clings reports a rune that is drawn with the one before it.
func clings(r rune) bool {
	if r < 0x0300 {
		return false
	}
	return unicode.Is(unicode.M, r) || r == 0x200C || r == 0x200D || (0x1160 <= r && r <= 0x11FF) ||
		(0x1F3FB <= r && r <= 0x1F3FF) || (0xE0020 <= r && r <= 0xE007F)
}

// CutAround returns a window of at most maxRunes code points of s around the
// place where most of terms stand close together, the earliest of equals. The
// sides that were cut carry an ellipsis, which counts. Without a match it is
// the beginning of s.
func CutAround(s string, terms []Term, maxRunes int) string {
	if maxRunes <= 0 {
		return ""
	}
	if len(s) <= maxRunes || utf8.RuneCountInString(s) <= maxRunes {
		return s
	}
	hits := findHits(s, terms)
	if len(hits) == 0 || maxRunes < 8 {
		return Cut(s, maxRunes)
	}
	from, to := densest(hits, maxRunes-2)
	total := utf8.RuneCountInString(s)

	// Spread what room is left evenly, then take back what the ends refuse.
	first, last := hits[from].rune0, hits[to].rune1
	if last-first > maxRunes-2 {
		last = first + maxRunes - 2
	}
	room := maxRunes - 2 - (last - first)
	begin := first - room/2
	if begin <= 1 {
		begin = 0
	}
	size := maxRunes - 1 // one ellipsis at least, since s does not fit
	if begin > 0 {
		size = maxRunes - 2
	}
	if begin+size+1 >= total { // the window reaches the end: no ellipsis there
		size = maxRunes - 1
		begin = total - size
	}
	a := byteOf(s, 0, begin)
	if begin > 0 {
		a = wordStart(s, a, hits[from].term.Start)
	}
	b := byteOf(s, a, size)
	out := ""
	if a > 0 {
		out = ellipsis
	}
	if b >= len(s) {
		return out + s[a:]
	}
	if e := whole(s, b); e > a {
		b = e
	}
	return out + s[a:b] + ellipsis
}

// hit is an occurrence of a searched term.
type hit struct {
	term         Term
	id           int // which of the searched terms
	rune0, rune1 int // its place in runes
}

func findHits(s string, terms []Term) []hit {
	ids := make(map[string]int, len(terms))
	for _, t := range terms {
		if _, ok := ids[t.Text]; !ok {
			ids[t.Text] = len(ids)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var hits []hit
	for _, t := range Terms(s) {
		if id, ok := ids[t.Text]; ok {
			hits = append(hits, hit{term: t, id: id})
		}
	}
	// Terms come in order of their start, so one pass gives the rune places;
	// an identifier's parts lie inside it, so places are looked up by length.
	at, runes := 0, 0
	for i := range hits {
		t := hits[i].term
		if t.Start < at {
			at, runes = 0, 0
		}
		runes += utf8.RuneCountInString(s[at:t.Start])
		at = t.Start
		hits[i].rune0 = runes
		hits[i].rune1 = runes + utf8.RuneCountInString(s[t.Start:t.End])
	}
	return hits
}

// densest returns the first and last hit of the window of size runes that
// holds most different terms; an exact one counts twice.
func densest(hits []hit, size int) (from, to int) {
	count := make(map[int]int, 8)
	weight := func(h hit) int {
		if h.term.Exact {
			return 3
		}
		return 2
	}
	best, score, lo := -1, 0, 0
	for hi := range hits {
		if count[hits[hi].id]++; count[hits[hi].id] == 1 {
			score += weight(hits[hi])
		}
		for lo < hi && hits[hi].rune1-hits[lo].rune0 > size {
			if count[hits[lo].id]--; count[hits[lo].id] == 0 {
				score -= weight(hits[lo])
			}
			lo++
		}
		if score > best {
			best, from, to = score, lo, hi
		}
	}
	return from, to
}

// byteOf returns the byte offset n runes after the byte at from.
func byteOf(s string, from, n int) int {
	for i := range s[from:] {
		if n == 0 {
			return from + i
		}
		n--
	}
	return len(s)
}

// wordStart moves the start of a window forward to the start of a word when
// one begins soon and before limit.
func wordStart(s string, at, limit int) int {
	if p, _ := utf8.DecodeLastRuneInString(s[:at]); unicode.IsSpace(p) {
		return wholeForward(s, at)
	}
	steps := 0
	for i, r := range s[at:] {
		if at+i >= limit || steps > 12 {
			break
		}
		if unicode.IsSpace(r) {
			return at + i + utf8.RuneLen(r)
		}
		steps++
	}
	return wholeForward(s, at)
}
