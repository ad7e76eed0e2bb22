package browser

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// span is a run of text that stayed, was taken out, or was put in.
type span struct {
	// Kind is same, removed or added.
	Kind, Text string
}

// maxCompared bounds the words of a side that are compared one by one; longer
// texts are shown whole, before and after.
const maxCompared = 600

// difference tells by words how one text became another.
func difference(before, after string) []span {
	a, b := splitWords(before), splitWords(after)
	if len(a) > maxCompared || len(b) > maxCompared {
		return []span{{"removed", before}, {"added", after}}
	}
	// length[i][j] is how many words a[i:] and b[j:] have in common, in order.
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []span
	add := func(kind, text string) {
		if n := len(out); n > 0 && out[n-1].Kind == kind {
			out[n-1].Text += text
			return
		}
		out = append(out, span{kind, text})
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			add("same", a[i])
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || length[i+1][j] >= length[i][j+1]):
			add("removed", a[i])
			i++
		default:
			add("added", b[j])
			j++
		}
	}
	return out
}

// splitWords cuts a text into words, spaces and other signs; scripts without
// spaces are cut into characters. The parts together are the text.
func splitWords(s string) []string {
	var out []string
	kind := func(r rune) int {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			return 0
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\u200c' || r == '_' || r == '-' || r == '.':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	last := 0
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if k := kind(r); len(out) > 0 && k != 0 && k == last {
			out[len(out)-1] += s[:size]
		} else {
			out, last = append(out, s[:size]), k
		}
		s = s[size:]
	}
	return out
}

// forget returns nil for a text that did not change.
func forget(spans []span) []span {
	if !slices.ContainsFunc(spans, func(s span) bool { return s.Kind != "same" }) {
		return nil
	}
	return spans
}
