package cli

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func readAll(t *testing.T, r io.Reader) (all []entry) {
	t.Helper()
	for e, err := range readJSONL(r, record.At(noon)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestReadJSONL(t *testing.T) {
	t.Parallel()
	share := 0.25
	plain := func(content string) *record.ProposeFact {
		return &record.ProposeFact{Domain: "d", Topic: "t", Content: content, Veracity: "imported"}
	}
	line := func(content string) string { return fmt.Sprintf(`{"domain":"d","topic":"t","content":%q}`, content) }
	for name, tc := range map[string]struct {
		text string
		want []entry
	}{
		"empty":          {"", nil},
		"blank lines":    {"\n  \r\n\n", nil},
		"one":            {line("x"), []entry{{at: origin{line: 1}, fact: plain("x")}}},
		"blank between":  {line("x") + "\n\n" + line("y") + "\n", []entry{{at: origin{line: 1}, fact: plain("x")}, {at: origin{line: 3}, fact: plain("y")}}},
		"CRLF":           {line("x") + "\r\n" + line("y") + "\r\n", []entry{{at: origin{line: 1}, fact: plain("x")}, {at: origin{line: 2}, fact: plain("y")}}},
		"BOM":            {"\ufeff" + line("x"), []entry{{at: origin{line: 1}, fact: plain("x")}}},
		"Persian, emoji": {line("سرور می‌سازد 👩‍💻"), []entry{{at: origin{line: 1}, fact: plain("سرور می‌سازد 👩‍💻")}}},
		"every field": {`{"domain":"d","repo":"web","topic":"t","content":"x","veracity":"tool","confidence":0.25,"memory_type":"goal","valid_until":"2027-01-01","source_observation_ids":["a","b"],"occurred_at":"2025-05-06T07:08:09Z","agent":"ada","role":"qa"}`,
			[]entry{{at: origin{line: 1}, fact: &record.ProposeFact{Caller: record.Caller{Repo: "web", Agent: "ada", Role: "qa"}, Domain: "d", Topic: "t", Content: "x", Veracity: "tool",
				Confidence: &share, MemoryType: "goal", ValidUntil: at(t, "2027-01-01"), SourceObservationIDs: []string{"a", "b"}, OccurredAt: at(t, "2025-05-06T07:08:09Z")}}}},
		"nulls": {`{"domain":"d","topic":"t","content":"x","confidence":null,"valid_until":null,"source_observation_ids":null,"superseded_at":null,"agent":null}`, []entry{{at: origin{line: 1}, fact: plain("x")}}},
		"stored fact of a later version": {`{"id":"f-1","domain":"d","topic":"t","content":"x","veracity":"stated","confidence":0.25,"mention_count":3,"authored_by_agent":"ada","authored_by_role":"coder","created_at":"2025-01-02T00:00:00.000000Z","mood":"new"}`,
			[]entry{{at: origin{line: 1}, whole: true, fact: &record.ProposeFact{Caller: record.Caller{Agent: "ada", Role: "coder"}, Domain: "d", Topic: "t", Content: "x", Veracity: "stated", Confidence: &share, OccurredAt: at(t, "2025-01-02")}}}},
		"superseded": {`{"id":"f","content":"x","superseded_at":"2026-01-01T00:00:00Z"}` + "\n" + `{"id":"f","superseded_by":"g"}`,
			[]entry{{at: origin{line: 1}, whole: true, omitted: omitSuperseded}, {at: origin{line: 2}, whole: true, omitted: omitSuperseded}}},
		"archived": {`{"id":"f","content":"x","archived_at":"2026-01-01T00:00:00Z"}`, []entry{{at: origin{line: 1}, whole: true, omitted: omitArchived}}},
		"expired": {`{"domain":"d","topic":"t","content":"x","valid_until":"2026-03-01T12:00:00Z"}`, []entry{{at: origin{line: 1}, omitted: omitExpired,
			fact: &record.ProposeFact{Domain: "d", Topic: "t", Content: "x", Veracity: "imported", ValidUntil: at(t, "2026-03-01T12:00:00Z")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := readAll(t, strings.NewReader(tc.text)); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestReadJSONL_bad(t *testing.T) {
	t.Parallel()
	good := `{"domain":"d","topic":"t","content":"x"}`
	for name, tc := range map[string]struct {
		line  string
		code  record.Code
		field string
	}{
		"no JSON":         {`{"domain":`, record.InvalidArgument, ""},
		"no object":       {`["d"]`, record.InvalidArgument, ""},
		"null":            {`null`, record.InvalidArgument, ""},
		"two objects":     {good + good, record.InvalidArgument, ""},
		"misspelt":        {`{"domain":"d","topic":"t","contents":"x"}`, record.InvalidArgument, "contents"},
		"wrong kind":      {`{"domain":"d","topic":"t","content":7}`, record.InvalidArgument, "content"},
		"text for number": {`{"domain":"d","topic":"t","content":"x","confidence":"high"}`, record.InvalidArgument, "confidence"},
		"NaN":             {`{"domain":"d","topic":"t","content":"x","confidence":NaN}`, record.InvalidArgument, ""},
		"time":            {`{"domain":"d","topic":"t","content":"x","valid_until":"soon"}`, record.InvalidArgument, "valid_until"},
		"created":         {`{"id":"f","domain":"d","topic":"t","content":"x","created_at":"1900-01-01"}`, record.InvalidArgument, "created_at"},
		"not UTF-8":       {"{\"domain\":\"d\",\"topic\":\"t\",\"content\":\"\xff\"}", record.InvalidUTF8, ""},
		"NUL":             {`{"domain":"d","topic":"t","content":"a\u0000b"}`, record.InvalidUTF8, "content"},
		"content":         {`{"domain":"d","topic":"t","content":"` + strings.Repeat("x", record.MaxContentBytes+1) + `"}`, record.ContentTooLarge, "content"},
		"topic":           {`{"domain":"d","topic":"` + strings.Repeat("x", record.MaxNameBytes+1) + `","content":"x"}`, record.InvalidArgument, "topic"},
		"sources":         {`{"domain":"d","topic":"t","content":"x","source_observation_ids":[` + strings.Repeat(`"o",`, record.MaxSources) + `"o"]}`, record.InvalidArgument, "source_observation_ids"},
		"huge":            {strings.Repeat(" ", 3*maxLine) + good, record.PayloadTooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readAll(t, strings.NewReader(good+"\n"+tc.line+"\r\n"+good))
			if len(got) != 3 || got[0].fact == nil || got[2].fact == nil || got[2].at.line != 3 {
				t.Fatalf("got %+v", got)
			}
			if bad := got[1].bad; got[1].at.line != 2 || got[1].fact != nil || bad == nil || bad.Code != tc.code || bad.Field != tc.field || bad.Message == "" {
				t.Errorf("got %+v, %+v", got[1], bad)
			}
			// At the end of a file without a line end.
			got = readAll(t, strings.NewReader(tc.line))
			if len(got) != 1 || got[0].bad == nil || got[0].bad.Code != tc.code {
				t.Errorf("alone: %+v", got)
			}
		})
	}
}

// TestReadJSONL_longest holds that the longest line that is allowed is read,
// however the reader's buffer cuts it.
func TestReadJSONL_longest(t *testing.T) {
	t.Parallel()
	good := `{"domain":"d","topic":"t","content":"x"}`
	for _, extra := range []int{0, 1} {
		line := good + strings.Repeat(" ", maxLine-len(good)+3*extra)
		got := readAll(t, strings.NewReader(line+"\r\n"+good))
		if len(got) != 2 || (got[0].bad == nil) != (extra == 0) || got[1].fact == nil {
			t.Errorf("%d over: %d entries, %+v", extra, len(got), got[0].bad)
		}
	}
}

type failingReader struct{ io.Reader }

func (f failingReader) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestReadJSONL_readError(t *testing.T) {
	t.Parallel()
	var last error
	for _, err := range readJSONL(failingReader{strings.NewReader("{}\n{}")}, record.At(noon)) {
		last = err
	}
	if !errors.Is(last, io.ErrUnexpectedEOF) {
		t.Errorf("err = %v", last)
	}
}

const talk = `[{"sample_id": "Talk 7", "conversation": {
  "speaker_a": "Mina", "speaker_b": "Otto",
  "session_10": [{"speaker": "Otto", "dia_id": "D10:1", "text": "Good night."}],
  "session_10_date_time": "12:05 AM on 1 January, 2024",
  "session_2": [
    {"speaker": "Mina", "dia_id": "D2:1", "text": "  سلام 🙂 ", "img_url": ["x"], "query": "q"},
    {"speaker": "Otto", "dia_id": "D2:2", "text": " ", "blip_caption": ""},
    {"speaker": "Otto", "dia_id": "D2:3", "text": "", "blip_caption": "a green door"},
    {"speaker": "Mina", "dia_id": "D2:4", "text": "Nice", "blip_caption": "a lake"}
  ],
  "session_2_date_time": " 1:56 pm on  8 May, 2023",
  "session_3": [],
  "session_3_date_time": "2:00 pm on 9 May, 2023",
  "session_30_date_time": "2:00 pm on 9 May, 2025",
  "session_x": "not one"
}, "qa": [{"question": "?"}], "observation": {}}]`

func TestConversation(t *testing.T) {
	t.Parallel()
	var got []entry
	var sample string
	err := eachConversation(strings.NewReader("\ufeff"+talk), func(c conversation) (err error) {
		sample = c.SampleID
		got, err = c.entries()
		return err
	})
	if err != nil || sample != "Talk 7" {
		t.Fatal(sample, err)
	}
	fact := func(topic, speaker, dia, content, when string) entry {
		return entry{at: origin{item: dia}, fact: &record.ProposeFact{Caller: record.Caller{Agent: strings.ToLower(speaker)}, Domain: "conversation", Topic: topic,
			Content: speaker + ": " + content, Veracity: "imported", SourceObservationIDs: []string{dia}, OccurredAt: at(t, when)}}
	}
	want := []entry{
		fact("session 2", "Mina", "D2:1", "سلام 🙂", "2023-05-08T13:56:00Z"),
		{at: origin{item: "D2:2"}, omitted: omitEmpty},
		fact("session 2", "Otto", "D2:3", "[shares an image: a green door]", "2023-05-08T13:56:02Z"),
		fact("session 2", "Mina", "D2:4", "Nice [shares an image: a lake]", "2023-05-08T13:56:03Z"),
		fact("session 10", "Otto", "D10:1", "Good night.", "2024-01-01T00:05:00Z"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestEachConversation_bad(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":     "",
		"no list":   `{"sample_id": "x"}`,
		"cut":       talk[:len(talk)-20],
		"unclosed":  talk[:len(talk)-1],
		"more":      talk + "[]",
		"no object": `["x"]`,
		"no talk":   `[{"sample_id": "x"}]`,
		"date":      strings.Replace(talk, "8 May, 2023", "May 8th", 1),
		"turns":     strings.Replace(talk, `"text": "Nice"`, `"text": 5`, 1),
		"not UTF-8": strings.Replace(talk, "Nice", "N\xffce", 1),
		"no JSON":   "sample",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := eachConversation(strings.NewReader(text), func(c conversation) error {
				_, err := c.entries()
				return err
			})
			if record.ErrorCode(err).ExitCode() != record.ExitUsage {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestWorkspaceOf(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]string{
		{"", "conv-26", "conv-26"}, {"lab", "conv-26", "lab-conv-26"}, {"", "Talk 7", "talk-7"}, {"", "_a..b__c--d.", "a.b__c-d"},
		{"", "دیالوگ 5", "5"}, {"", strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{"", "", ""}, {"", "دیالوگ", ""}, {"", "con", ""}, {"p", strings.Repeat("x", 63), ""},
	} {
		got, err := workspaceOf(tc[0], tc[1])
		if got != tc[2] || (err == nil) != (tc[2] != "") {
			t.Errorf("workspaceOf(%q, %q) = %q, %v, want %q", tc[0], tc[1], got, err, tc[2])
		}
		if err == nil && record.CheckWorkspace(got) != nil {
			t.Errorf("%q is no workspace", got)
		}
	}
}

func FuzzReadJSONL(f *testing.F) {
	f.Add([]byte(`{"domain":"d","topic":"t","content":"x"}` + "\n{\"id\":\"f\"}\r\n\n[]"))
	f.Add([]byte("\ufeff{\"valid_until\":\"2020-01-01\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		last := 0
		for e, err := range readJSONL(strings.NewReader(string(text)), record.At(noon)) {
			if err != nil {
				t.Fatal(err)
			}
			if e.at.line <= last || e.fact == nil && e.bad == nil && e.omitted == "" {
				t.Fatalf("entry %+v after line %d", e, last)
			}
			last = e.at.line
		}
	})
}
