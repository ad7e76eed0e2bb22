package recall

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestSearch_writesNothing searches an open workspace and finds its file and
// its log as they were.
func TestSearch_writesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	m := &bagModel{}
	embedded(t, data, m, func(_ *memory.Workspaces, s *memory.Store) {
		mustFill(t, s, "the heron nests by the river", "otters dive for clams", "the invoice is late")
		await(t, s, 3, 0)
		hashes := func() string {
			var out strings.Builder
			for _, name := range []string{memory.FileName, memory.FileName + "-wal"} {
				b, err := os.ReadFile(filepath.Join(data, "workspaces", "w", name))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "%s %x\n", name, sha256.Sum256(b))
			}
			return out.String()
		}
		before := hashes()
		for range 50 {
			for _, mode := range []string{"keyword", "semantic", "hybrid"} {
				res, err := NewEngine(m).Search(t.Context(), s, record.Search{Caller: caller, Query: "where does the heron nest", Mode: mode})
				if err != nil || len(res.Facts) == 0 {
					t.Fatalf("%s: %q, %v", mode, contents(res.Facts), err)
				}
			}
		}
		if after := hashes(); after != before {
			t.Errorf("searching wrote:\n%s\n%s", before, after)
		}
	})
}

// TestSearch_useChangesNoOrder asks the same a thousand times, and lets the
// counts be written; being recalled lifts nothing over a better match.
func TestSearch_useChangesNoOrder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "w")
	open := func() *memory.Store {
		s, err := memory.Open(context.Background(), dir, "w", memory.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	mustAge(t, s, aged{3, "The plover service listens on port 7001"}, aged{3, "A plover is a bird"}, aged{3, "Bird tables are cleaned on Mondays"}, aged{3, "The plover service was once called sandpiper"})
	const question = "which port does the plover service listen on"
	first := contents(hybrid(t, s, question, 10))
	for range 1000 {
		hybrid(t, s, question, 10)
		hybrid(t, s, "bird tables", 2)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer func() { _ = s.Close() }()
	again := hybrid(t, s, question, 10)
	if got := contents(again); fmt.Sprint(got) != fmt.Sprint(first) || got[0] != "The plover service listens on port 7001" {
		t.Errorf("after a thousand times: %q, before: %q", got, first)
	}
	if again[0].RecallCount < 1000 {
		t.Errorf("%d recalls were counted", again[0].RecallCount)
	}
}

const envZone = "POLYPHONY_TEST_ZONE"

// TestInZone is what TestSearch_timeZones runs under each zone.
func TestInZone(t *testing.T) {
	if os.Getenv(envZone) == "" {
		t.Skip("runs in a process of TestSearch_timeZones")
	}
	s := mustStore(t)
	// One instant in five notations, then others around changes of summer time.
	times := []string{"2027-02-20T00:00:00Z", "2027-02-20T00:00:00+00:00", "2027-02-19T22:00:00-02:00", "2027-02-20 00:00:00", "2027-02-20",
		"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-03-29T01:00:00Z", "2026-11-01T09:00:00Z", "2027-02-28T23:59:59.999999Z"}
	for i, at := range times {
		when, err := record.ParseTime("at", at)
		if err != nil {
			t.Fatal(err)
		}
		until, err := record.ParseTime("until", fmt.Sprintf("2027-03-01 0%d:00", i))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: "d", Topic: fmt.Sprintf("topic %d", i), Content: fmt.Sprintf("The avocet job %c ran well", 'a'+i), OccurredAt: when, ValidUntil: map[bool]record.Time{true: until}[i%2 == 1]})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hybrid(t, s, "avocet job", 20) {
		fmt.Printf("ANSWER %s %v %s %s\n", h.Content, h.Score, h.CreatedAt, h.ValidUntil)
	}
}

func TestSearch_timeZones(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, zone := range []string{"UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Chatham"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestInZone$")
		cmd.Env = append(os.Environ(), envZone+"=1", "TZ="+zone)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", zone, err, out)
		}
		for line := range strings.SplitSeq(string(out), "\n") {
			if strings.HasPrefix(line, "ANSWER") {
				answers[zone] += line + "\n"
			}
		}
	}
	// Of those with an end, the one at nine has not come: validity ended for
	// four of five.
	if n := strings.Count(answers["UTC"], "\n"); n != 5 {
		t.Errorf("%d answers:\n%s", n, answers["UTC"])
	}
	for zone, got := range answers {
		if got != answers["UTC"] {
			t.Errorf("in %s:\n%s\nwant\n%s", zone, got, answers["UTC"])
		}
	}
}
