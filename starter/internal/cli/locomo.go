package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// conversation is one element of a LoCoMo file. Its sessions are the members
// session_<n>, each dated by session_<n>_date_time.
type conversation struct {
	SampleID     string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
}

// turn is one thing that a speaker said.
type turn struct {
	Speaker string `json:"speaker"`
	DiaID   string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// sessionTime is how LoCoMo writes when a session was; it is read in lower
// case.
const sessionTime = "3:04 pm on 2 January, 2006"

// eachConversation reads a LoCoMo file, one conversation in memory at a time.
func eachConversation(r io.Reader, each func(conversation) error) error {
	buffered := bufio.NewReader(r)
	if head, err := buffered.Peek(len(byteOrderMark)); err == nil && string(head) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark))
	}
	dec := json.NewDecoder(buffered)
	start, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return usage("file", "the file is empty")
	}
	if err == nil && start != json.Delim('[') {
		return usage("file", "a LoCoMo file is a list of conversations")
	}
	for i := 0; err == nil && dec.More(); i++ {
		var raw json.RawMessage
		if err = dec.Decode(&raw); err != nil {
			break
		}
		if !validUTF8(raw) {
			return record.Errorf(record.InvalidUTF8, "file", "conversation %d is not valid UTF-8", i)
		}
		var c conversation
		if err := json.Unmarshal(raw, &c); err != nil {
			return usage("file", "conversation %d: %s", i, fieldOf(err).Message)
		}
		if c.Conversation == nil {
			return usage("file", "element %d of the list is not a conversation", i)
		}
		if err := each(c); err != nil {
			return err
		}
	}
	if err == nil {
		_, err = dec.Token()
	}
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return usage("file", "the file goes on after its list")
		}
		return nil
	}
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return usage("file", "the file is not valid JSON: %v", err)
	}
	return err
}

// workspaceOf returns the workspace that a conversation becomes.
func workspaceOf(prefix, sample string) (string, error) {
	name := sample
	if prefix != "" {
		name = prefix + "-" + sample
	}
	var b strings.Builder
	last := rune('-')
	for _, r := range strings.ToLower(name) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '.' {
			r = '-'
		}
		// One mark stands for a run of them, and none leads.
		if mark := r == '-' || r == '.'; mark && (last == '-' || last == '.') || b.Len() == 0 && r == '_' {
			continue
		}
		b.WriteRune(r)
		last = r
	}
	id := strings.TrimRight(b.String(), "-.")
	if err := record.CheckWorkspace(id); err != nil {
		return "", usage("sample_id", "no workspace can be named after sample %q", shorten(sample, 40))
	}
	return id, nil
}

// entries returns the conversation's turns, in order.
func (c conversation) entries() ([]entry, error) {
	var sessions []int
	for key, raw := range c.Conversation {
		number, ok := strings.CutPrefix(key, "session_")
		n, err := strconv.Atoi(number)
		if ok && err == nil && len(raw) > 0 && raw[0] == '[' {
			sessions = append(sessions, n)
		}
	}
	slices.Sort(sessions)
	var all []entry
	for _, n := range sessions {
		name := fmt.Sprintf("session_%d", n)
		var turns []turn
		if err := json.Unmarshal(c.Conversation[name], &turns); err != nil {
			return nil, usage(name, "conversation %s: %s", c.SampleID, fieldOf(err).Message)
		}
		var began time.Time
		if raw, ok := c.Conversation[name+"_date_time"]; ok {
			var text string
			err := json.Unmarshal(raw, &text)
			if err == nil && strings.TrimSpace(text) != "" {
				began, err = time.ParseInLocation(sessionTime, strings.ToLower(strings.Join(strings.Fields(text), " ")), time.UTC)
			}
			if err != nil {
				return nil, usage(name+"_date_time", "conversation %s: %q is not a time like 1:56 pm on 8 May, 2023", c.SampleID, shorten(text, 40))
			}
		}
		for i, t := range turns {
			e := t.entry(fmt.Sprintf("session %d", n))
			if e.fact != nil && !began.IsZero() {
				e.fact.OccurredAt = record.At(began.Add(time.Duration(i) * time.Second))
			}
			all = append(all, e)
		}
	}
	return all, nil
}

func (t turn) entry(topic string) entry {
	e := entry{at: origin{item: t.DiaID}}
	text, caption := strings.TrimSpace(t.Text), strings.TrimSpace(t.Caption)
	if text == "" && caption == "" {
		e.omitted = omitEmpty
		return e
	}
	content := strings.TrimSpace(t.Speaker) + ":"
	if text != "" {
		content += " " + text
	}
	if caption != "" {
		content += " [shares an image: " + caption + "]"
	}
	fact := &record.ProposeFact{
		Caller: record.Caller{Agent: strings.ToLower(strings.TrimSpace(t.Speaker))},
		Domain: "conversation", Topic: topic, Content: content, Veracity: string(record.Imported),
	}
	if t.DiaID != "" {
		fact.SourceObservationIDs = []string{t.DiaID}
	}
	if err := travels(fact); err != nil {
		e.bad = fieldOf(err)
		return e
	}
	e.fact = fact
	return e
}
