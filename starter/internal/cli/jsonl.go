package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// entry is what a reader makes of one line or turn of a file.
type entry struct {
	at origin
	// fact is set for a fact that belongs to a page of the import, also for
	// one that is left out because it has expired since: which facts make up a
	// page must not depend on when the file is read.
	fact *record.ProposeFact
	// omitted says why the entry is not taken.
	omitted string
	// bad says why it cannot be.
	bad *record.Error
	// whole is true for a stored fact as export writes it.
	whole bool
}

// origin is where in the file an entry stands: a line, or a turn's id.
type origin struct {
	line int
	item string
}

// Why entries are omitted.
const (
	omitSuperseded = "superseded"
	omitArchived   = "archived"
	omitExpired    = "expired"
	omitEmpty      = "empty"
)

// maxLine bounds one line: a fact of the longest content with every character
// escaped, and its sources, fit well.
const maxLine = 1 << 20

// factLine is one line of a jsonl file: the arguments of a fact, or a stored
// fact as export writes it.
type factLine struct {
	ID                   string   `json:"id"`
	Domain               string   `json:"domain"`
	Repo                 string   `json:"repo"`
	Topic                string   `json:"topic"`
	Content              string   `json:"content"`
	Veracity             string   `json:"veracity"`
	Confidence           *float64 `json:"confidence"`
	MemoryType           string   `json:"memory_type"`
	ValidUntil           string   `json:"valid_until"`
	SourceObservationIDs []string `json:"source_observation_ids"`
	OccurredAt           string   `json:"occurred_at"`
	CreatedAt            string   `json:"created_at"`
	Agent                string   `json:"agent"`
	AuthoredByAgent      string   `json:"authored_by_agent"`
	Role                 string   `json:"role"`
	AuthoredByRole       string   `json:"authored_by_role"`
	SupersededBy         string   `json:"superseded_by"`
	SupersededAt         string   `json:"superseded_at"`
	ArchivedAt           string   `json:"archived_at"`

	// Of stored facts, and not taken over.
	Workspace       string          `json:"workspace"`
	SupersededKind  string          `json:"superseded_kind"`
	RecallCount     json.RawMessage `json:"recall_count"`
	LastRecalledAt  json.RawMessage `json:"last_recalled_at"`
	MentionCount    json.RawMessage `json:"mention_count"`
	LastMentionedAt json.RawMessage `json:"last_mentioned_at"`
	Version         json.RawMessage `json:"version"`
	UpdatedAt       json.RawMessage `json:"updated_at"`
	ArchiveReason   string          `json:"archive_reason"`
}

// readJSONL reads facts line by line. now decides what has expired.
func readJSONL(r io.Reader, now record.Time) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		lines := bufio.NewReaderSize(r, 1<<16)
		var buffer []byte
		for n := 1; ; n++ {
			line, long, err := readLine(lines, buffer[:0])
			if err != nil && !errors.Is(err, io.EOF) {
				yield(entry{}, err)
				return
			}
			buffer = line
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte(byteOrderMark))
			}
			if line = bytes.TrimSpace(line); len(line) > 0 || long {
				e := entry{at: origin{line: n}}
				if long {
					e.bad = record.Errorf(record.PayloadTooLarge, "", "the line is over the limit of %d bytes", maxLine)
				} else {
					e.read(line, now)
				}
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// readLine appends the next line to buffer. Of a line over maxLine it keeps
// nothing. The error is io.EOF with the last line.
func readLine(r *bufio.Reader, buffer []byte) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(buffer)+len(part) > maxLine+2; long {
			buffer = buffer[:0]
		} else {
			buffer = append(buffer, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buffer, long, err
		}
	}
}

// read makes the entry of one line.
func (e *entry) read(line []byte, now record.Time) {
	if !validUTF8(line) {
		e.bad = record.Errorf(record.InvalidUTF8, "", "the line is not valid UTF-8")
		return
	}
	if line[0] != '{' {
		e.bad = usage("", "the line is not a JSON object")
		return
	}
	var l factLine
	if err := json.Unmarshal(line, &l); err != nil {
		e.bad = fieldOf(err)
		return
	}
	e.whole = l.ID != ""
	if !e.whole {
		// A misspelt name must not lose what was meant. Stored facts may come
		// from a later version, which knows more.
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		if err := strict.Decode(new(factLine)); err != nil {
			e.bad = fieldOf(err)
			return
		}
	}
	switch {
	case l.SupersededBy != "" || l.SupersededAt != "":
		e.omitted = omitSuperseded
		return
	case l.ArchivedAt != "":
		e.omitted = omitArchived
		return
	}
	fact, err := l.proposal()
	if err != nil {
		e.bad = fieldOf(err)
		return
	}
	e.fact = fact
	if !fact.ValidUntil.IsZero() && !fact.ValidUntil.After(now.Time) {
		e.omitted = omitExpired
	}
}

// proposal makes the request of a line. Only what would not travel, or is no
// request at all, is refused here; the rest the store does.
func (l factLine) proposal() (*record.ProposeFact, error) {
	p := &record.ProposeFact{
		Caller: record.Caller{Repo: l.Repo, Agent: or(l.Agent, l.AuthoredByAgent), Role: or(l.Role, l.AuthoredByRole)},
		Domain: l.Domain, Topic: l.Topic, Content: l.Content,
		Veracity: or(l.Veracity, string(record.Imported)), Confidence: l.Confidence,
		MemoryType: l.MemoryType, SourceObservationIDs: l.SourceObservationIDs,
	}
	if err := travels(p); err != nil {
		return nil, err
	}
	for _, t := range []struct {
		field, value string
		to           *record.Time
	}{
		{"valid_until", l.ValidUntil, &p.ValidUntil},
		{"created_at", l.CreatedAt, &p.OccurredAt},
		{"occurred_at", l.OccurredAt, &p.OccurredAt},
	} {
		if t.value == "" {
			continue
		}
		at, err := record.ParseTime(t.field, t.value)
		if err != nil {
			return nil, err
		}
		*t.to = at
	}
	return p, nil
}

// travels refuses a fact that could not be given to a page whatever else is on
// it.
func travels(p *record.ProposeFact) error {
	if len(p.SourceObservationIDs) > record.MaxSources {
		return usage("source_observation_ids", "at most %d sources", record.MaxSources)
	}
	err := firstError(
		record.CheckName("domain", p.Domain), record.CheckName("repo", p.Repo), record.CheckName("topic", p.Topic),
		record.CheckName("agent", p.Agent), record.CheckName("role", p.Role), record.CheckName("veracity", p.Veracity),
		record.CheckName("memory_type", p.MemoryType), record.CheckText("content", p.Content, record.MaxContentBytes),
	)
	for _, s := range p.SourceObservationIDs {
		err = firstError(err, record.CheckName("source_observation_ids", s))
	}
	return err
}
