package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// table reads a page of the table of facts.
func table(t *testing.T, s *Store, in record.ReadMemory) record.FactTable {
	t.Helper()
	role, err := record.ParseRole("role", in.Role)
	if err != nil {
		t.Fatal(err)
	}
	var out record.FactTable
	err = s.View(context.Background(), func(v *View) error {
		scope, err := v.Scope(in.Domain, in.Repo, role)
		if err == nil {
			out, err = v.FactTable(scope, in)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func topics(table record.FactTable) string {
	var all []string
	for _, f := range table.Facts {
		all = append(all, f.Topic)
	}
	return strings.Join(all, " ")
}

func TestFactTable(t *testing.T) {
	s, clock := mustOpen(t)
	share := func(v float64) *float64 { return &v }
	for i, r := range []record.ProposeFact{
		{Domain: "b", Topic: "pear", Content: "pears are in crate 4", Confidence: share(0.3), Veracity: "tool"},
		{Domain: "a", Topic: "apple", Content: "apples are in crate 1", Confidence: share(0.9), Veracity: "stated", MemoryType: "preference"},
		{Domain: "b", Topic: "fig", Content: "figs are in crate 7", Confidence: share(0.5)},
		{Domain: "secret", Topic: "lime", Content: strings.Repeat("ل", 3000), Confidence: share(0.6)},
	} {
		r.Caller = record.Caller{Workspace: "w", Agent: "a"}
		clock.Advance(time.Hour)
		mustPropose(t, s, r)
		if i == 0 {
			again := r
			again.Agent = "b"
			mustPropose(t, s, again)
		}
	}
	if _, err := s.SetGrant(context.Background(), record.SetGrant{Caller: record.Caller{Workspace: "w"}, ForRole: "qa", Domain: "secret", Level: "none"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		in    record.ReadMemory
		want  string
		total int64
	}{
		{"as usual", record.ReadMemory{}, "pear apple fig lime", 4},
		{"newest first", record.ReadMemory{Table: record.FactTableQuery{Descending: true}}, "lime fig apple pear", 4},
		{"by topic", record.ReadMemory{Table: record.FactTableQuery{Order: record.ByTopic}}, "apple fig lime pear", 4},
		{"by domain, then age", record.ReadMemory{Table: record.FactTableQuery{Order: record.ByDomain}}, "apple pear fig lime", 4},
		{"by confidence", record.ReadMemory{Table: record.FactTableQuery{Order: record.ByConfidence, Descending: true}}, "apple lime fig pear", 4},
		{"by mentions, then age", record.ReadMemory{Table: record.FactTableQuery{Order: record.ByMentions, Descending: true}}, "pear lime fig apple", 4},
		{"second page", record.ReadMemory{Limit: 3, Table: record.FactTableQuery{Offset: 3}}, "lime", 4},
		{"past the end", record.ReadMemory{Table: record.FactTableQuery{Offset: 9}}, "", 4},
		{"of a type", record.ReadMemory{Table: record.FactTableQuery{MemoryType: "preference"}}, "apple", 1},
		{"of a veracity", record.ReadMemory{Table: record.FactTableQuery{Veracity: "tool"}}, "pear", 1},
		{"of a domain", record.ReadMemory{Domain: "B"}, "pear fig", 2},
		{"of no domain", record.ReadMemory{Domain: "nowhere"}, "", 0},
		{"for a role that may not see one", record.ReadMemory{Caller: record.Caller{Role: "qa"}}, "pear apple fig", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := table(t, s, c.in)
			if topics(got) != c.want || got.Total != c.total {
				t.Errorf("got %q of %d, want %q of %d", topics(got), got.Total, c.want, c.total)
			}
		})
	}
	if long := table(t, s, record.ReadMemory{Domain: "secret"}).Facts[0].Content; len([]rune(long)) != tableRunes+1 || !strings.HasSuffix(long, "…") {
		t.Errorf("a long statement is shown with %d characters", len([]rune(long)))
	}
}

func TestFactTableShowsWhatIsPast(t *testing.T) {
	s, clock := mustOpen(t)
	first := mustPropose(t, s, req("port", "the port is 8080"))
	second := mustPropose(t, s, req("host", "the host is alpha"))
	soon := req("token", "the token is good until noon")
	soon.ValidUntil = record.At(clock.Now().Add(time.Minute))
	mustPropose(t, s, soon)
	if _, err := s.SupersedeFact(context.Background(), record.SupersedeFact{Caller: record.Caller{Workspace: "w", Agent: "a"}, Old: first.FactID, New: second.FactID}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	if got := topics(table(t, s, record.ReadMemory{Table: record.FactTableQuery{Order: record.ByCreated}})); got != "host" {
		t.Errorf("current facts are %q", got)
	}
	if got := topics(table(t, s, record.ReadMemory{All: true, Table: record.FactTableQuery{Order: record.ByCreated}})); got != "port host token" {
		t.Errorf("all facts are %q", got)
	}
}

func TestFactTableRefuses(t *testing.T) {
	s, _ := mustOpen(t)
	for i, in := range []record.ReadMemory{
		{Table: record.FactTableQuery{Order: "content; DROP TABLE facts"}}, {Table: record.FactTableQuery{Offset: -1}}, {Limit: maxTableRows + 1},
		{Table: record.FactTableQuery{MemoryType: "rumour"}}, {Table: record.FactTableQuery{Veracity: "sworn"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			in.Workspace, in.What = "w", record.ReadTable
			if _, err := s.Read(context.Background(), in); record.ErrorCode(err) != record.InvalidArgument {
				t.Errorf("got %v", err)
			}
		})
	}
}
