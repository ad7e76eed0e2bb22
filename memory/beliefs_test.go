package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// alike plants n facts of one statement, each in a topic of its own; by names
// the agent of each.
func alike(tb testing.TB, s *Store, n int, by func(i int) int, words func(i int) string) {
	tb.Helper()
	items := make([]record.ProposeFact, n)
	for i := range items {
		items[i] = record.ProposeFact{
			Caller: record.Caller{Agent: fmt.Sprintf("agent-%d", by(i))}, Domain: "infra", Topic: fmt.Sprintf("topic %d", i), Content: words(i), Veracity: "stated",
		}
	}
	importAll(tb, s, items)
}

// wordings say the same in one of several ways.
var wordings = []string{
	"The zebra gateway in production listens on port 8080",
	"the zebra gateway in prod listens on port 8080.",
	"In production, the zebra gateway listens on port 8080",
}

// A cluster far larger than what one fact sees of it is one belief, found in
// one run and left alone by the next, whoever states it in whatever order.
func TestHarmonize_manyAlike(t *testing.T) {
	t.Parallel()
	n := 600
	for name, by := range map[string]func(i int) int{
		"in turn":         func(i int) int { return i % 10 },
		"one after other": func(i int) int { return i / 60 },
		"last of another": func(i int) int { return i / (n - 1) },
	} {
		for words, of := range map[string]func(i int) string{
			"same words":  func(int) string { return wordings[0] },
			"other words": func(i int) string { return wordings[i%3] },
		} {
			t.Run(name+"/"+words, func(t *testing.T) {
				t.Parallel()
				s, _ := mustOpen(t)
				alike(t, s, n, by, of)
				r := harmonizePages(t, s, "one")
				all := beliefs(t, s)
				if len(all) != 1 || len(all[0].FactIDs) != n || r.BeliefsCreated != 1 {
					sizes := []int{}
					for _, b := range all {
						sizes = append(sizes, len(b.FactIDs))
					}
					t.Errorf("%d beliefs of %v facts: %+v", len(all), sizes, r)
				}
				before := dump(t, s)
				if again := harmonizePages(t, s, "two"); again.BeliefsCreated+again.BeliefsUpdated+again.BeliefsRemoved+again.ConflictsOpened > 0 || dump(t, s) != before {
					t.Errorf("the second run did %+v", again)
				}
			})
		}
	}
}

// However many copies there are, one consolidation merges them all.
func TestConsolidate_manyAlike(t *testing.T) {
	t.Parallel()
	for words, of := range map[string]func(i int) string{
		"same words":  func(int) string { return wordings[0] },
		"other words": func(i int) string { return wordings[i%3] },
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s, _ := mustOpen(t)
			alike(t, s, 600, func(i int) int { return i % 10 }, of)
			if r, _ := consolidatePages(t, s, "one", 200); r.Merged != 599 {
				t.Errorf("%d merged, %d left", r.Merged, len(activeContents(t, s)))
			}
			before := dump(t, s)
			if r, _ := consolidatePages(t, s, "two", 200); r.Merged != 0 || dump(t, s) != before {
				t.Errorf("the second run merged %d", r.Merged)
			}
		})
	}
}

// A belief follows the edit of a fact that it rests on.
func TestUpdateFact_belief(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agents []string
		edited int
		text   string
		// statement and members are what is left of the belief, at once and
		// after a harmonization.
		statement string
		members   int
	}{
		"the quoted one says something else":             {[]string{"a", "b", "c"}, 0, "Nobody knows where the walrus sleeps", wordings[1], 2},
		"the quoted one says it in other words":          {[]string{"a", "b", "c"}, 0, "The zebra gateway in production listens on port 8080!", "The zebra gateway in production listens on port 8080!", 3},
		"another says something else":                    {[]string{"a", "b", "c"}, 2, "The zebra gateway in production listens on port 9090", wordings[0], 2},
		"another says it in other words":                 {[]string{"a", "b", "c"}, 2, "The zebra gateway in production listens on port 8080!", wordings[0], 3},
		"one agent is left":                              {[]string{"a", "b"}, 0, "Nobody knows where the walrus sleeps", "", 0},
		"one agent is left, the quoted words in two":     {[]string{"a", "b", "b"}, 0, "Nobody knows where the walrus sleeps", "", 0},
		"the other of two says the opposite of both":     {[]string{"a", "b"}, 1, "The zebra gateway in production does not listen on port 8080", "", 0},
		"the other of two agents, of which one has more": {[]string{"a", "a", "b"}, 2, "Nobody knows where the walrus sleeps", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := mustOpen(t)
			ids := make([]string, len(c.agents))
			for i, agent := range c.agents {
				r := req(fmt.Sprintf("topic %d", i), wordings[i])
				r.Agent = agent
				ids[i] = mustPropose(t, s, r).FactID
			}
			harmonize(t, s)
			before := beliefs(t, s)
			if len(before) != 1 || len(before[0].FactIDs) != len(ids) || before[0].Statement != wordings[0] {
				t.Fatalf("beliefs = %+v", before)
			}
			if _, err := s.UpdateFact(t.Context(), record.UpdateFact{Caller: caller, FactID: ids[c.edited], ExpectedVersion: 1, Content: &c.text}); err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"at once", "after a harmonization", "after another"} {
				after := beliefs(t, s)
				switch {
				case c.members == 0 && len(after) > 0:
					t.Errorf("%s: %+v", when, after)
				case c.members > 0 && (len(after) != 1 || after[0].ID != before[0].ID || after[0].Statement != c.statement || len(after[0].FactIDs) != c.members):
					t.Errorf("%s: %+v", when, after)
				}
				if dead := deadReferences(t, s); len(dead) > 0 {
					t.Errorf("%s: %q", when, dead)
				}
				file := dump(t, s)
				if r := harmonize(t, s); when == "after a harmonization" && (r.BeliefsCreated+r.BeliefsUpdated+r.BeliefsRemoved > 0 || dump(t, s) != file) {
					t.Errorf("the second run did %+v", r)
				}
			}
		})
	}
}

// One of several facts with the words of a belief is deleted: the others keep
// it, under its id.
func TestDeleteFact_belief(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	var ids []string
	for i, agent := range []string{"a", "b", "c"} {
		r := req(fmt.Sprintf("topic %d", i), wordings[i])
		r.Agent = agent
		ids = append(ids, mustPropose(t, s, r).FactID)
	}
	harmonize(t, s)
	id := beliefs(t, s)[0].ID
	for i, want := range []string{wordings[1], ""} {
		if _, err := s.DeleteFact(t.Context(), record.DeleteFact{Caller: caller, FactID: ids[i]}); err != nil {
			t.Fatal(err)
		}
		all := beliefs(t, s)
		if want == "" && len(all) != 0 || want != "" && (len(all) != 1 || all[0].ID != id || all[0].Statement != want || fmt.Sprint(all[0].Agents) != "[b c]") {
			t.Errorf("after %d deletions: %+v", i+1, all)
		}
		if strings.Contains(dump(t, s), wordings[i]) {
			t.Error("the words of what was deleted are in the file")
		}
	}
}

// What only damage can have written is passed over and said, once, and stops
// nothing else (situation F7).
func TestMaintenance_unsoundRows(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	by := func(agent, topic, content string) string {
		r := req(topic, content)
		r.Agent = agent
		return mustPropose(t, s, r).FactID
	}
	var unsound []string
	for i, damage := range []string{
		"confidence = 7", "confidence = -1", "confidence = 9e999", "confidence = -9e999", `sources = '["a'`, "sources = ''", "sources = '{}'",
		"content = CAST(x'7a65627261ff20676174657761792038303830' AS TEXT)",
	} {
		id := by(fmt.Sprintf("damaged-%d", i), fmt.Sprintf("topic %d", i), wordings[i%3])
		unsound = append(unsound, id)
		for _, query := range []string{"PRAGMA ignore_check_constraints = 1", "UPDATE facts SET " + damage + " WHERE id = '" + id + "'", "PRAGMA ignore_check_constraints = 0"} {
			if _, err := s.writer.conn.raw.ExecContext(t.Context(), query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
	}
	by("a", "first", "The walrus cache is emptied at 3 in the morning")
	by("b", "second", "the walrus cache is emptied at 3 in the morning")
	check := func(what string, skipped []string) {
		t.Helper()
		for _, id := range unsound {
			if n := len(slices.DeleteFunc(slices.Clone(skipped), func(s string) bool { return !strings.Contains(s, id) })); n != 1 {
				t.Errorf("%s: %s is named %d times in %q", what, id, n, skipped)
			}
		}
		if len(skipped) != len(unsound) {
			t.Errorf("%s skipped %q", what, skipped)
		}
	}
	if r := harmonize(t, s); r.BeliefsCreated != 1 {
		t.Errorf("%+v", r)
	} else {
		check("harmonization", r.Skipped)
	}
	by("a", "third", "The lemur queue holds 40 messages")
	by("a", "fourth", "the lemur queue holds 40 messages")
	if r := consolidate(t, s, ""); r.Merged != 1 {
		t.Errorf("%+v", r)
	} else {
		check("consolidation", r.Skipped)
	}
}
