package memory

import (
	"context"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// suspectedPair leaves an open row of kind suspected between an older statement
// and a newer one.
func suspectedPair(t *testing.T, s *Store, old, new record.ProposeFact) (id string, a, b record.ProposeFactResult) {
	t.Helper()
	a = mustPropose(t, s, old)
	b = mustPropose(t, s, new)
	if len(b.Conflicts) != 1 || b.Conflicts[0].Kind != record.ConflictSuspected {
		t.Fatalf("%+v, want one suspected pair", b)
	}
	return b.Conflicts[0].ID, a, b
}

func statedBy(topic, content string, v record.Veracity) record.ProposeFact {
	r := req(topic, content)
	r.Veracity = string(v)
	return r
}

func judged(t *testing.T, s *Store, id, relation, words string) record.Conflict {
	t.Helper()
	res, err := s.RecordJudgement(context.Background(), record.RecordJudgement{
		Caller: record.Caller{Workspace: "w"}, Judgement: record.Judgement{ConflictID: id, Judge: "small", Relation: relation, Words: words},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res.Conflict
}

const (
	tracked = "Tickets are tracked in Redmine."
	moved   = "We moved our tickets from Redmine to Linear."
)

func TestStore_RecordJudgement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, relation string
		old, new       record.Veracity
		open           bool
		resolution     string
		active         []string
	}{
		{"contradiction, the newer as strong", "contradiction", record.Stated, record.Stated, false, "superseded", []string{moved}},
		{"contradiction, the older stronger", "contradiction", record.Stated, record.Tool, false, "superseded", []string{tracked}},
		{"compatible", "compatible", record.Stated, record.Stated, false, "both", []string{tracked, moved}},
		{"duplicate", "duplicate", record.Stated, record.Stated, true, "", []string{tracked, moved}},
		{"refinement", "refinement", record.Stated, record.Stated, true, "", []string{tracked, moved}},
		{"no usable answer", "", record.Stated, record.Stated, true, "", []string{tracked, moved}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := mustOpen(t)
			id, _, _ := suspectedPair(t, s, statedBy("tickets", tracked, c.old), statedBy("tickets", moved, c.new))
			row := judged(t, s, id, c.relation, "words of the judge")
			if row.Open != c.open || row.Resolution != c.resolution || row.Judge != "small" || row.Judgement != c.relation || row.JudgeWords != "words of the judge" || row.JudgedAt.IsZero() {
				t.Errorf("row %+v", row)
			}
			if got := activeContents(t, s); !sameSet(got, c.active) {
				t.Errorf("active %q, want %q", got, c.active)
			}
			list, err := s.Suspicions(context.Background(), record.ListSuspicions{Limit: 10})
			if err != nil || len(list.ConflictIDs) > 0 {
				t.Errorf("%v %v wait for a judge again", list.ConflictIDs, err)
			}
			// A second judgement changes nothing.
			if again := judged(t, s, id, "contradiction", "other words"); again != row {
				t.Errorf("judged twice: %+v, was %+v", again, row)
			}
		})
	}
}

func sameSet(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// What a judge did is told in the history and can be undone.
func TestStore_RecordJudgement_restored(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	id, a, b := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	judged(t, s, id, "contradiction", "one tracker at a time")
	mustView(t, s, func(v *View) error {
		h, err := v.History(a.FactID)
		if err != nil {
			return err
		}
		told := false
		for _, e := range h.Events {
			told = told || e.Kind == "superseded" && e.Other == b.FactID && strings.Contains(e.Reason, "one tracker at a time")
		}
		if !told {
			t.Errorf("the history does not tell of the judge: %+v", h.Events)
		}
		return nil
	})
	if _, err := s.RestoreFact(context.Background(), record.RestoreFact{Caller: record.Caller{Workspace: "w"}, FactID: a.FactID}); err != nil {
		t.Fatal(err)
	}
	if got := activeContents(t, s); !sameSet(got, []string{tracked, moved}) {
		t.Errorf("active %q", got)
	}
	list, err := s.Suspicions(context.Background(), record.ListSuspicions{Limit: 10})
	if err != nil || len(list.ConflictIDs) > 0 {
		t.Errorf("the restored pair goes to the judge again: %v %v", list.ConflictIDs, err)
	}
}

func TestStore_RecordJudgement_tooLate(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	id, a, b := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	if _, err := s.ResolveConflict(context.Background(), record.ResolveConflict{Caller: record.Caller{Workspace: "w"}, ConflictID: id, Winner: a.FactID}); err != nil {
		t.Fatal(err)
	}
	row := judged(t, s, id, "contradiction", "")
	if row.Winner != a.FactID || row.Loser != b.FactID || !row.JudgedAt.IsZero() {
		t.Errorf("the judge overruled a person: %+v", row)
	}
	if _, err := s.Suspicion(context.Background(), id); record.ErrorCode(err) != record.SupersedeInvalid {
		t.Errorf("%v, want SupersedeInvalid", err)
	}
}

func TestStore_RecordJudgement_refused(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	id, _, _ := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	for _, c := range []struct {
		id, relation string
		want         record.Code
	}{{"nowhere", "compatible", record.NotFound}, {id, "delete", record.InvalidArgument}} {
		_, err := s.RecordJudgement(context.Background(), record.RecordJudgement{Caller: record.Caller{Workspace: "w"}, Judgement: record.Judgement{ConflictID: c.id, Relation: c.relation}})
		if record.ErrorCode(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := s.Suspicion(context.Background(), "nowhere"); record.ErrorCode(err) != record.NotFound {
		t.Errorf("%v, want NotFound", err)
	}
}

// Below the floor nobody is asked, however the pair came to be suspected
// (situation E13).
func TestStore_Suspicion_floor(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	id, _, _ := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	pair, err := s.Suspicion(context.Background(), id)
	if err != nil || !pair.Alike || pair.Old.Content != tracked || pair.New.Content != moved {
		t.Fatalf("%+v %v", pair, err)
	}
	a := mustPropose(t, s, req("fruit", "Apples ripen in autumn."))
	b := mustPropose(t, s, req("fruit", "The lobby has a piano."))
	var unlike string
	_, err = apply(context.Background(), s, "test", record.Caller{Workspace: "w"}, func(t *tx) (struct{}, error) {
		row, err := t.conflictRow(record.ConflictSuspected, a.FactID, b.FactID, "", "", "test", "planted")
		unlike = row.ID
		return struct{}{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if pair, err = s.Suspicion(context.Background(), unlike); err != nil || pair.Alike {
		t.Errorf("%+v %v, want a pair that is not alike", pair, err)
	}
}

func TestStore_OnSuspected(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	s, err := Open(context.Background(), t.TempDir(), "w", Options{Now: newTestClock().Now, OnSuspected: func(w string) { told <- w }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	mustPropose(t, s, req("tickets", tracked))
	dry := req("tickets", moved)
	dry.DryRun = true
	mustPropose(t, s, dry)
	if len(told) > 0 {
		t.Fatal("told of a pair that was not written")
	}
	mustPropose(t, s, req("tickets", moved))
	if len(told) != 1 || <-told != "w" {
		t.Fatal("not told of the suspected pair, or not once")
	}
}
