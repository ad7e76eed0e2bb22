package memory

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestStore_keepsNoSecrets tries to store a credential in every way there is.
func TestStore_keepsNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t_12345"
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "w")
	s, err := Open(t.Context(), dir, "w", Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	caller := record.Caller{Workspace: "w", Agent: "a"}
	const held = "密码：" + secret
	for name, store := range map[string]func() error{
		"fact": func() error { _, err := s.ProposeFact(t.Context(), req("t", held)); return err },
		"policy": func() error {
			_, err := s.ProposePolicy(t.Context(), record.ProposePolicy{Caller: caller, Domain: "d", Rule: held})
			return err
		},
		"notes": func() error {
			_, err := s.UpdateNotes(t.Context(), record.UpdateNotes{Caller: caller, Text: held})
			return err
		},
		"observation": func() error {
			_, err := s.RecordObservation(t.Context(), record.RecordObservation{Caller: caller, Text: held})
			return err
		},
		"session item": func() error {
			_, err := s.Remember(t.Context(), record.Remember{Caller: caller, SessionID: "1", Content: held})
			return err
		},
	} {
		err := store()
		if record.ErrorCode(err) != record.InvalidArgument || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A page names the bad items by index and takes the others.
	report, err := s.ImportFactsPage(t.Context(), record.ImportFacts{Caller: caller, Items: []record.ProposeFact{req("t", " \t\u200b"), req("t", held), req("t", "Passwords are hashed with argon2id.")}})
	if err != nil || report.Created != 1 || len(report.Failed) != 2 ||
		report.Failed[0].Index != 0 || report.Failed[0].Code != record.ContentEmpty || report.Failed[1].Index != 1 || report.Failed[1].Code != record.InvalidArgument {
		t.Errorf("import: %+v, %v", report, err)
	}
	meeting, err := s.CaptureMeetingPage(t.Context(), record.MeetingPage{CaptureMeeting: record.CaptureMeeting{Caller: caller, MeetingID: "m", Title: "Weekly", Revision: 1,
		Decisions: []record.Decision{{Text: ""}, {Text: held}, {Text: "The vault keeps the passwords"}}}, First: 0, Last: true})
	if err != nil || len(meeting.Failed) != 2 || meeting.Failed[1].Index != 1 || strings.Contains(meeting.Failed[1].Message, secret) {
		t.Errorf("meeting: %+v, %v", meeting, err)
	}
	if got := activeContents(t, s); len(got) != 2 {
		t.Errorf("kept: %q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(file, []byte(secret)) || strings.Contains(log.String(), secret) {
		t.Error("the secret is in the file or in the log")
	}
}
