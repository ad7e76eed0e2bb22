package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// conversation is one of LoCoMo's: sessions of turns, statements that somebody
// made of them, and questions with the turns that answer them.
type conversation struct {
	SampleID     string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Observation  map[string]json.RawMessage `json:"observation"`
	QA           []qa                       `json:"qa"`
}

type qa struct {
	Question string   `json:"question"`
	Evidence []string `json:"evidence"`
	Category int      `json:"category"`
}

type turn struct {
	Speaker string `json:"speaker"`
	DiaID   string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

func readConversations(path string) ([]conversation, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []conversation
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// session is one session's number and time.
type session struct {
	n  int
	at time.Time
}

// sessions returns the sessions that have turns, in order.
func (c conversation) sessions() ([]session, error) {
	var out []session
	for n := 1; n < 1000; n++ {
		if _, ok := c.Conversation[fmt.Sprintf("session_%d", n)]; !ok {
			continue
		}
		var text string
		if err := json.Unmarshal(c.Conversation[fmt.Sprintf("session_%d_date_time", n)], &text); err != nil {
			return nil, err
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", text)
		if err != nil {
			return nil, err
		}
		out = append(out, session{n, at})
	}
	return out, nil
}

// proposals turns a conversation into facts: its turns, or the statements made
// of them. The source of a fact is the turn it came from.
func (c conversation) proposals(kind string) (facts []record.ProposeFact, last time.Time, err error) {
	sessions, err := c.sessions()
	if err != nil {
		return nil, last, err
	}
	add := func(s session, speaker, content string, sources ...string) {
		at := s.at.Add(time.Duration(len(facts)) * time.Second)
		last = at
		facts = append(facts, record.ProposeFact{
			Caller: record.Caller{Workspace: "eval", Agent: strings.ToLower(speaker)},
			Domain: "conversation", Topic: fmt.Sprintf("session %d", s.n), Content: content,
			Veracity: string(record.Imported), OccurredAt: record.At(at), SourceObservationIDs: sources,
		})
	}
	for _, s := range sessions {
		if kind == "turns" {
			var turns []turn
			if err := json.Unmarshal(c.Conversation[fmt.Sprintf("session_%d", s.n)], &turns); err != nil {
				return nil, last, err
			}
			for _, t := range turns {
				content := t.Speaker + ": " + t.Text
				if t.Caption != "" {
					content += " [shares an image: " + t.Caption + "]"
				}
				add(s, t.Speaker, content, t.DiaID)
			}
			continue
		}
		var bySpeaker map[string][][]json.RawMessage
		if err := json.Unmarshal(c.Observation[fmt.Sprintf("session_%d_observation", s.n)], &bySpeaker); err != nil {
			return nil, last, err
		}
		for _, key := range []string{"speaker_a", "speaker_b"} {
			var speaker string
			if err := json.Unmarshal(c.Conversation[key], &speaker); err != nil {
				return nil, last, err
			}
			for _, o := range bySpeaker[speaker] {
				var statement string
				if len(o) != 2 || json.Unmarshal(o[0], &statement) != nil {
					return nil, last, fmt.Errorf("an observation of %s is not a statement with its sources", c.SampleID)
				}
				var one string
				var many []string
				if json.Unmarshal(o[1], &one) == nil {
					many = splitIDs(one)
				} else if err := json.Unmarshal(o[1], &many); err != nil {
					return nil, last, err
				}
				add(s, speaker, statement, many...)
			}
		}
	}
	return facts, last, nil
}

// splitIDs reads turn ids out of one evidence string.
func splitIDs(s string) []string {
	var out []string
	for _, id := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' }) {
		if session, turn, ok := strings.Cut(strings.TrimPrefix(id, "D"), ":"); ok {
			// Some ids carry a zero in front.
			n, err1 := strconv.Atoi(session)
			m, err2 := strconv.Atoi(turn)
			if err1 == nil && err2 == nil {
				out = append(out, fmt.Sprintf("D%d:%d", n, m))
			}
		}
	}
	return out
}
