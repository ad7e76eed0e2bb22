package conflict

import "github.com/polyphony-memory/polyphony/memory/text"

// Parsed is the analysis of one statement, made once and compared with many.
type Parsed struct {
	key [16]byte
}

// Parse analyses a statement.
func Parse(s Statement) *Parsed { return &Parsed{key: text.ContentKey(s.Content)} }
