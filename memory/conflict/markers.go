package conflict

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// marker is what a phrase of a statement shows.
type marker uint8

const (
	markPast marker = iota
	markAdditive
	markReport
	markModal
	markReversal
	markLimitless
	markOnly
	markMember
	markCondition
	markStance // the first of the stances, in their order
)

// marks are the phrases found in a statement, "" for none.
type marks [int(markStance) + len(stances)]string

// markers holds the phrases of all kinds by their first word, so that a
// statement is walked once.
type markers struct {
	byWord map[string][]markerPhrase
	// spaceless are phrases of scripts that put no spaces between words.
	spaceless []markerPhrase
}

type markerPhrase struct {
	text string
	kind marker
}

var phrases = buildMarkers()

func buildMarkers() markers {
	m := markers{byWord: make(map[string][]markerPhrase)}
	add := func(kind marker, list []string) {
		for _, p := range list {
			if p[0] >= 0xE3 {
				m.spaceless = append(m.spaceless, markerPhrase{p, kind})
				continue
			}
			w := p[:wordEnd(p, 0)]
			m.byWord[w] = append(m.byWord[w], markerPhrase{p, kind})
		}
	}
	add(markPast, pastMarkers)
	add(markAdditive, additiveMarkers)
	add(markReport, reportMarkers)
	add(markModal, modalMarkers)
	add(markReversal, reversalMarkers)
	add(markLimitless, limitlessMarkers)
	add(markOnly, exclusivity)
	add(markMember, memberMarkers)
	add(markCondition, conditionMarkers)
	for i, s := range stances {
		add(markStance+marker(i), s.phrases)
	}
	return m
}

// scan finds the marks in the key form of a statement. What somebody says, or
// what once was, counts in the first part of a statement only: after a
// semicolon it is an aside.
func (m *markers) scan(folded string) marks {
	var found marks
	main := len(folded)
	if i := strings.IndexByte(folded, ';'); i >= 0 {
		main = i
	}
	note := func(p markerPhrase, at int) {
		if found[p.kind] == "" && (at < main || p.kind != markPast && p.kind != markReport) {
			found[p.kind] = p.text
		}
	}
	for i := 0; i < len(folded); {
		end := wordEnd(folded, i)
		if end == i {
			_, n := utf8.DecodeRuneInString(folded[i:])
			i += n
			continue
		}
		for _, p := range m.byWord[folded[i:end]] {
			if strings.HasPrefix(folded[i:], p.text) && edge(folded, i+len(p.text)) {
				note(p, i)
			}
		}
		i = end
	}
	if hanOrKana(folded) || strings.ContainsFunc(folded, isHangul) {
		for _, p := range m.spaceless {
			if i := strings.Index(folded, p.text); i >= 0 {
				note(p, i)
			}
		}
	}
	return found
}

func isHangul(r rune) bool { return r >= 0xAC00 && r <= 0xD7A3 }

// wordEnd returns where the word at i ends; i itself when none begins there.
func wordEnd(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !wordRune(r) {
			break
		}
		i += n
	}
	return i
}

func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == '\u200c'
}

// edge reports that no word goes on at byte i.
func edge(s string, i int) bool {
	if i >= len(s) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return !wordRune(r)
}
