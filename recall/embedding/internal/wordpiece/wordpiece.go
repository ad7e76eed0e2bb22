// Package wordpiece splits text into BERT's word pieces, as a tokenizer.json
// describes them.
package wordpiece

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Tokenizer turns text into ids. It is safe for concurrent use.
type Tokenizer struct {
	whole   map[string]int32 // Pieces that begin a word.
	inner   map[string]int32 // Pieces that go on, without their prefix.
	special []specialToken   // Longest first.

	unknown, begin, end int32
	longestWord         int // In runes; a longer word is unknown.
	longestPiece        int // In bytes.

	clean, chinese, strip, lower bool
}

// specialToken is text that stands for one id wherever it occurs.
type specialToken struct {
	text string
	id   int32
}

// file is as much of tokenizer.json as matters here.
type file struct {
	Added []struct {
		ID         int32
		Content    string
		Special    bool
		Normalized bool
	} `json:"added_tokens"`
	Normalizer *struct {
		Type    string
		Clean   *bool `json:"clean_text"`
		Chinese *bool `json:"handle_chinese_chars"`
		Strip   *bool `json:"strip_accents"`
		Lower   *bool `json:"lowercase"`
	}
	PreTokenizer *struct{ Type string } `json:"pre_tokenizer"`
	Model        *struct {
		Type        string
		Unknown     string `json:"unk_token"`
		Prefix      string `json:"continuing_subword_prefix"`
		LongestWord int    `json:"max_input_chars_per_word"`
		Vocab       map[string]int32
	}
}

// New reads a tokenizer.json. Whatever it says of truncation and padding is
// left to the caller of Encode.
func New(content []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Model == nil || f.Model.Type != "" && f.Model.Type != "WordPiece" || len(f.Model.Vocab) == 0:
		return nil, errors.New("not a word piece vocabulary")
	case f.Normalizer == nil || f.Normalizer.Type != "BertNormalizer":
		return nil, errors.New("not BERT's normalizer")
	case f.PreTokenizer == nil || f.PreTokenizer.Type != "BertPreTokenizer":
		return nil, errors.New("not BERT's splitting into words")
	}
	orTrue := func(b *bool) bool { return b == nil || *b }
	t := &Tokenizer{
		whole: map[string]int32{}, inner: map[string]int32{},
		clean: orTrue(f.Normalizer.Clean), chinese: orTrue(f.Normalizer.Chinese), lower: orTrue(f.Normalizer.Lower),
		longestWord: f.Model.LongestWord,
	}
	t.strip = t.lower
	if f.Normalizer.Strip != nil {
		t.strip = *f.Normalizer.Strip
	}
	if t.longestWord <= 0 {
		t.longestWord = 100
	}
	prefix := f.Model.Prefix
	if prefix == "" {
		prefix = "##"
	}
	for piece, id := range f.Model.Vocab {
		if id < 0 {
			return nil, fmt.Errorf("piece with id %d", id)
		}
		t.whole[piece] = id
		t.longestPiece = max(t.longestPiece, len(piece))
		if rest, ok := strings.CutPrefix(piece, prefix); ok && rest != "" {
			t.inner[rest] = id
		}
	}
	for _, a := range f.Added {
		if a.Special && !a.Normalized && a.Content != "" {
			t.special = append(t.special, specialToken{a.Content, a.ID})
		}
	}
	slices.SortStableFunc(t.special, func(a, b specialToken) int { return len(b.text) - len(a.text) })

	var ok [3]bool
	t.begin, ok[0] = t.whole["[CLS]"]
	t.end, ok[1] = t.whole["[SEP]"]
	unknown := f.Model.Unknown
	if unknown == "" {
		unknown = "[UNK]"
	}
	t.unknown, ok[2] = t.whole[unknown]
	if ok != [3]bool{true, true, true} {
		return nil, errors.New("the vocabulary lacks its special tokens")
	}
	return t, nil
}

// Size returns one more than the highest id.
func (t *Tokenizer) Size() int {
	var highest int32
	for _, id := range t.whole {
		highest = max(highest, id)
	}
	for _, s := range t.special {
		highest = max(highest, s.id)
	}
	return int(highest) + 1
}

// Encode returns the ids of text between the begin and the end token, limit in
// all: what is longer is cut. It reads no more of text than it needs.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	e := encoding{t: t, limit: limit - 1, ids: append(make([]int32, 0, 32), t.begin)}
	for text != "" && !e.full() {
		next, found := len(text), specialToken{}
		for _, s := range t.special {
			if i := strings.Index(text[:min(len(text), next+len(s.text))], s.text); i >= 0 && i < next {
				next, found = i, s
			}
		}
		e.plain(text[:next])
		if found.text != "" && !e.full() {
			e.ids = append(e.ids, found.id)
		}
		text = text[next+len(found.text):]
	}
	return append(e.ids, t.end)
}

// encoding is one text on its way.
type encoding struct {
	t     *Tokenizer
	limit int
	ids   []int32
	word  []byte // What has been read of the current word, normalised.
	buf   []byte
}

func (e *encoding) full() bool { return len(e.ids) >= e.limit }

// plain encodes text that holds no special token.
func (e *encoding) plain(text string) {
	for i := 0; i < len(text) && !e.full(); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if e.t.clean {
			if r == 0 || r == utf8.RuneError || isControl(r) {
				continue
			}
			if isSpace(r) {
				r = ' '
			}
		}
		switch {
		case r < utf8.RuneSelf:
			e.rune(r)
		case e.t.chinese && isChinese(r):
			e.flush()
			e.decomposed(r)
			e.flush()
		default:
			e.decomposed(r)
		}
	}
	e.flush()
}

// decomposed hands on the canonical decomposition of r without its accents.
func (e *encoding) decomposed(r rune) {
	if !e.t.strip {
		e.rune(r)
		return
	}
	e.buf = norm.NFD.AppendString(e.buf[:0], string(r))
	for b := e.buf; len(b) > 0; {
		d, size := utf8.DecodeRune(b)
		b = b[size:]
		if !unicode.Is(unicode.Mn, d) {
			e.rune(d)
		}
	}
}

// rune takes one normalised rune: it ends a word, is one, or goes into one.
func (e *encoding) rune(r rune) {
	if e.t.lower {
		r = unicode.ToLower(r)
	}
	switch {
	case isSpace(r):
		e.flush()
	case isPunctuation(r):
		e.flush()
		e.word = utf8.AppendRune(e.word, r)
		e.flush()
	default:
		e.word = utf8.AppendRune(e.word, r)
	}
}

// flush splits the current word into the longest pieces, left to right.
func (e *encoding) flush() {
	word := e.word
	e.word = e.word[:0]
	if len(word) == 0 || e.full() {
		return
	}
	if utf8.RuneCount(word) > e.t.longestWord {
		e.ids = append(e.ids, e.t.unknown)
		return
	}
	mark, pieces := len(e.ids), e.t.whole
	for len(word) > 0 {
		n := min(len(word), e.t.longestPiece)
		for ; n > 0; n-- {
			if n < len(word) && !utf8.RuneStart(word[n]) {
				continue
			}
			if id, ok := pieces[string(word[:n])]; ok {
				e.ids = append(e.ids, id)
				break
			}
		}
		if n == 0 {
			e.ids = append(e.ids[:mark], e.t.unknown)
			return
		}
		word, pieces = word[n:], e.t.inner
	}
	e.ids = e.ids[:min(len(e.ids), e.limit)]
}

// isSpace is Unicode's White_Space.
func isSpace(r rune) bool { return unicode.IsSpace(r) }

// isControl is what cleaning takes out.
func isControl(r rune) bool {
	switch r {
	case '\t', '\n', '\r':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.Is(unicode.P, r)
}

// isChinese reports ideographs, which are words of their own; kana and hangul
// are not.
func isChinese(r rune) bool {
	switch {
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF, r >= 0x20000 && r <= 0x2A6DF,
		r >= 0x2A700 && r <= 0x2B73F, r >= 0x2B740 && r <= 0x2B81F, r >= 0x2B920 && r <= 0x2CEAF,
		r >= 0xF900 && r <= 0xFAFF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}
