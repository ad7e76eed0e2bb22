package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// A real contradiction is found, also in other words, and the old statement is
// reachable as history only (situation E3).
func TestStore_realContradictions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new string }{
		{"Sara works at Acme.", "Sara works at Globex."},
		{"The bastion listens on port 22.", "The bastion listens on port 49222."},
		{"Deploys on Friday are forbidden.", "Deploys on Friday are allowed."},
		{"مهلت پاسخ سرویس پرداخت ۳۰ ثانیه است.", "مهلت پاسخ سرویس پرداخت ۴۵ ثانیه است."},
	} {
		s, _ := mustOpen(t)
		old := mustPropose(t, s, req("t", c.old))
		got := mustPropose(t, s, req("t", c.new))
		if active := activeContents(t, s); !slices.Equal(active, []string{c.new}) {
			t.Errorf("active %q after %q", active, c.new)
			continue
		}
		if len(got.Conflicts) != 1 || got.Conflicts[0].Kind != record.ConflictContradiction || got.Conflicts[0].Reason == "" {
			t.Errorf("conflicts %+v, want one with a reason", got.Conflicts)
		}
		mustView(t, s, func(v *View) error {
			h, err := v.History(old.FactID)
			if len(h.Chain) != 2 {
				t.Errorf("the chain has %d facts", len(h.Chain))
			}
			return err
		})
	}
}

// A correction does not strengthen what it denies, nor does a quotation of it
// (situation E7).
func TestStore_correctionStrengthensNothing(t *testing.T) {
	t.Parallel()
	const claim = "The admin panel is a React app."
	for _, correction := range []string{"It is not true that the admin panel is a React app.", "I was wrong that the admin panel is a React app."} {
		s, _ := mustOpen(t)
		first := mustPropose(t, s, req("t", claim))
		mustPropose(t, s, req("t", `The old docs say "The admin panel is a React app."`))
		got := mustPropose(t, s, req("t", correction))
		if len(got.Conflicts) == 0 || got.Conflicts[0].Other != first.FactID {
			t.Errorf("%q is not linked to what it denies: %+v", correction, got)
		}
		mustView(t, s, func(v *View) error {
			f, err := getFact(v, "id", first.FactID)
			if err == nil && (f.Confidence > first.Confidence || f.MentionCount != 1 || f.Active(v.Now())) {
				t.Errorf("%q left the claim at %.2f, mentioned %d times, active %v", correction, f.Confidence, f.MentionCount, f.Active(v.Now()))
			}
			return err
		})
	}
}

// A meeting of a thousand decisions, its revisions out of order, its title
// changing, one item bad (behaviour.md 10).
func TestStore_Meeting_thousand(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	capture := func(revision int64, title string, decisions []record.Decision) (total record.MeetingReport) {
		t.Helper()
		const size = 100
		for first := 0; first == 0 || first < len(decisions); first += size {
			part := decisions[min(first, len(decisions)):min(first+size, len(decisions))]
			page := record.MeetingPage{First: first, Last: first+size >= len(decisions), CaptureMeeting: record.CaptureMeeting{
				Caller:    record.Caller{Workspace: "w", Agent: "a", Key: fmt.Sprintf("%d/%d", revision, first)},
				MeetingID: "board-7", Title: title, Revision: revision, HeldAt: record.At(s.Now().Add(-time.Hour)), Decisions: part,
			}}
			got, err := s.CaptureMeetingPage(t.Context(), page)
			if err != nil {
				t.Fatal(err)
			}
			total.Added, total.ReMentioned, total.Withdrawn = total.Added+got.Added, total.ReMentioned+got.ReMentioned, total.Withdrawn+got.Withdrawn
			total.Failed, total.Outdated, total.FactIDs = append(total.Failed, got.Failed...), got.Outdated, got.FactIDs
		}
		return total
	}
	all := make([]record.Decision, 1000)
	for i := range all {
		all[i] = record.Decision{Topic: fmt.Sprintf("quay %d", i%40), Text: fmt.Sprintf("Berth %d gets %d bollards.", i, 2+i%9)}
	}
	bad := slices.Clone(all)
	bad[417].Text = strings.Repeat("x", record.MaxContentBytes+1)
	r := capture(2, "Harbour board", bad)
	if r.Added != 999 || len(r.Failed) != 1 || r.Failed[0].Index != 417 || len(r.FactIDs) != 999 {
		t.Fatalf("added %d, failed %+v, %d facts", r.Added, r.Failed, len(r.FactIDs))
	}
	before := dump(t, s)
	if r := capture(1, "Board of the harbour", all[:10]); !r.Outdated || len(r.FactIDs) != 999 || dump(t, s) != before {
		t.Errorf("an outdated revision: %+v", r)
	}
	if r := capture(3, "Another title", all); r.Added != 1 || r.ReMentioned != 999 || r.Withdrawn != 0 || len(r.FactIDs) != 1000 {
		t.Errorf("revision 3: added %d, kept %d, withdrawn %d of %d", r.Added, r.ReMentioned, r.Withdrawn, len(r.FactIDs))
	}
	if r := capture(4, "Another title", nil); r.Withdrawn != 1000 || len(r.FactIDs) != 0 {
		t.Errorf("an empty revision: withdrawn %d, %d left", r.Withdrawn, len(r.FactIDs))
	}
}

// The strongest evidence for a fact is kept and each source's own label stands
// in its history; a label that is none is refused, not guessed at (situation
// E17).
func TestStore_trustLabels(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	const claim = "The admin panel is a React app."
	first := mustPropose(t, s, statedBy("panel", claim, record.Stated))
	for _, v := range []record.Veracity{record.Tool, record.Imported} {
		again := statedBy("panel", claim, v)
		again.Agent = string(v)
		if got := mustPropose(t, s, again); got.FactID != first.FactID || got.Status != record.StatusReMentioned {
			t.Errorf("said by a source that is %s: %+v", v, got)
		}
	}
	for _, label := range []string{"STATED ", "Stated", "bogus"} {
		_, err := s.ProposeFact(t.Context(), statedBy("panel", claim, record.Veracity(label)))
		wantCode(t, err, record.InvalidArgument)
	}
	mustView(t, s, func(v *View) error {
		h, err := v.History(first.FactID)
		if err != nil {
			return err
		}
		var labels []string
		for _, e := range h.Events {
			labels = append(labels, string(e.Veracity))
		}
		if f := h.Chain[0]; f.Veracity != record.Stated || f.MentionCount != 3 || !slices.Equal(labels, []string{"stated", "tool", "imported"}) {
			t.Errorf("%s, mentioned %d times by sources that are %q", f.Veracity, f.MentionCount, labels)
		}
		return nil
	})
}

// A call about an id that is of another workspace, of another kind or no id at
// all is told so and changes nothing (situation E11).
func TestStore_wrongIDs(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	foreign, _ := mustOpen(t)
	theirs, _, _ := suspectedPair(t, foreign, req("tickets", tracked), req("tickets", moved))
	theirFact := mustPropose(t, foreign, req("port", "The bastion listens on port 22.")).FactID
	theirRule, err := foreign.ProposePolicy(t.Context(), record.ProposePolicy{Caller: caller, Domain: "infra", Rule: "Wear a vest."})
	if err != nil {
		t.Fatal(err)
	}
	mine := mustPropose(t, s, req("port", "The bastion listens on port 22.")).FactID
	row, _, _ := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	rule, err := s.ProposePolicy(t.Context(), record.ProposePolicy{Caller: caller, Domain: "infra", Rule: "Wear a vest."})
	if err != nil {
		t.Fatal(err)
	}
	words := "another text"
	before := dump(t, s)
	for _, id := range []string{"", " ", "nothing", "%", "' OR 1=1 --", strings.ToUpper(mine), mine[:len(mine)-1], mine + "\x00", theirFact, theirs, theirRule.PolicyID, row, rule.PolicyID} {
		for name, call := range map[string]func() error{
			"delete": func() error {
				_, err := s.DeleteFact(t.Context(), record.DeleteFact{Caller: caller, FactID: id})
				return err
			},
			"restore": func() error {
				_, err := s.RestoreFact(t.Context(), record.RestoreFact{Caller: caller, FactID: id})
				return err
			},
			"supersede": func() error {
				_, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: id, New: mine})
				return err
			},
			"supersede by": func() error {
				_, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: mine, New: id})
				return err
			},
			"update": func() error {
				_, err := s.UpdateFact(t.Context(), record.UpdateFact{Caller: caller, FactID: id, ExpectedVersion: 1, Content: &words})
				return err
			},
			"history": func() error {
				return s.View(t.Context(), func(v *View) error { _, err := v.History(id); return err })
			},
		} {
			if err := call(); record.ErrorCode(err) != record.NotFound {
				t.Errorf("%s of %q: %v, want %s", name, id, err, record.NotFound)
			}
		}
	}
	for _, id := range []string{"", "nothing", theirRule.PolicyID, theirs, mine, row} {
		for name, call := range map[string]func() error{
			"delete a policy": func() error {
				_, err := s.DeletePolicy(t.Context(), record.DeletePolicy{Caller: caller, PolicyID: id})
				return err
			},
			"supersede a policy": func() error {
				_, err := s.SupersedePolicy(t.Context(), record.SupersedePolicy{Caller: caller, PolicyID: id})
				return err
			},
			"update a policy": func() error {
				_, err := s.UpdatePolicy(t.Context(), record.UpdatePolicy{Caller: caller, PolicyID: id, ExpectedVersion: 1, Rule: &words})
				return err
			},
		} {
			if err := call(); record.ErrorCode(err) != record.NotFound {
				t.Errorf("%s of %q: %v, want %s", name, id, err, record.NotFound)
			}
		}
	}
	if dump(t, s) != before {
		t.Error("a refused call changed the file")
	}
}

// What a judge or a person names must be of the pair and of the workspace; a
// real fact from elsewhere is refused like one that is none (situation F9).
func TestStore_foreignIDsInVerdicts(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	foreign, _ := mustOpen(t)
	theirs, a, _ := suspectedPair(t, foreign, req("tickets", tracked), req("tickets", moved))
	row, _, _ := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	outside := mustPropose(t, s, req("port", "The bastion listens on port 22.")).FactID
	before := dump(t, s)
	for _, winner := range []string{"", "nothing", "neither", outside, a.FactID, row} {
		_, err := s.ResolveConflict(t.Context(), record.ResolveConflict{Caller: caller, ConflictID: row, Winner: winner})
		if record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("the winner %q: %v", winner, err)
		}
	}
	for _, id := range []string{"", "nothing", theirs, outside, a.FactID} {
		_, err := s.RecordJudgement(t.Context(), record.RecordJudgement{Caller: caller, Judgement: record.Judgement{ConflictID: id, Judge: "small", Relation: "contradiction"}})
		if record.ErrorCode(err) != record.NotFound {
			t.Errorf("a verdict on %q: %v", id, err)
		}
		_, err = s.ResolveConflict(t.Context(), record.ResolveConflict{Caller: caller, ConflictID: id, Winner: "both"})
		if record.ErrorCode(err) != record.NotFound {
			t.Errorf("a decision on %q: %v", id, err)
		}
	}
	for _, relation := range []string{"delete", "Contradiction", outside} {
		_, err := s.RecordJudgement(t.Context(), record.RecordJudgement{Caller: caller, Judgement: record.Judgement{ConflictID: row, Judge: "small", Relation: relation}})
		if record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("the relation %q: %v", relation, err)
		}
	}
	if dump(t, s) != before {
		t.Error("a refused verdict changed the file")
	}
}

// deadReferences returns what names a fact that is gone.
func deadReferences(tb testing.TB, s *Store) (dead []string) {
	tb.Helper()
	mustView(tb, s, func(v *View) error {
		rows, err := v.query(`SELECT 'belief ' || b.id || ' cites ' || m.fact_id FROM beliefs b LEFT JOIN belief_facts m ON m.belief_id = b.id
			  LEFT JOIN facts f ON f.id = m.fact_id AND ` + current + ` WHERE f.id IS NULL
			UNION ALL SELECT 'belief ' || b.id || ' quotes nobody: ' || b.statement FROM beliefs b WHERE NOT EXISTS
			  (SELECT 1 FROM belief_facts m JOIN facts f ON f.id = m.fact_id WHERE m.belief_id = b.id AND f.content = b.statement)
			UNION ALL SELECT 'open row ' || c.id FROM conflicts c WHERE c.open = 1 AND
			  (SELECT count(*) FROM facts f WHERE f.id IN (c.fact_a, c.fact_b) AND ` + current + `) < 2`)
		dead, err = collect(rows, err, scanOne[string])
		return err
	})
	return dead
}

// A fact that goes while a run looks at it is in nothing that the run makes:
// no belief cites or quotes it, no open row names it, nothing is merged into
// it (situation F3).
func TestMaintenance_sourceGoesMeanwhile(t *testing.T) {
	t.Parallel()
	const held, opposed, other = "The zebra gateway listens on port 8080", "The zebra gateway listens on port 9090", "the zebra gateway listens on port 8080."
	for name, gone := range map[string]func(s *Store, id string) error{
		"deleted": func(s *Store, id string) error {
			_, err := s.DeleteFact(t.Context(), record.DeleteFact{Caller: caller, FactID: id})
			return err
		},
		"edited": func(s *Store, id string) error {
			says := "Nobody knows where the walrus sleeps"
			_, err := s.UpdateFact(t.Context(), record.UpdateFact{Caller: caller, FactID: id, ExpectedVersion: 1, Content: &says})
			return err
		},
		"superseded": func(s *Store, id string) error {
			next := mustPropose(t, s, req("successors", "Nobody knows where the walrus sleeps")).FactID
			_, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: id, New: next})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, when := range []string{"while a page is looked at", "between two phases"} {
				s, _ := mustOpen(t)
				by := func(agent, topic, content string) string {
					r := req(topic, content)
					r.Agent = agent
					return mustPropose(t, s, r).FactID
				}
				source := by("a", "one", held)
				by("b", "two", other)
				by("c", "three", opposed)
				page := record.MaintenancePage{Caller: caller, Limit: 100, Phase: record.PhaseBeliefs}
				found, err := s.lookAround(t.Context(), page, 0, conflict.Duplicate, conflict.Contradiction)
				if err != nil || len(found.pairs) < 3 {
					t.Fatalf("%d pairs, %v", len(found.pairs), err)
				}
				if when == "between two phases" {
					harmonize(t, s)
					if n := len(beliefs(t, s)); n != 1 {
						t.Fatalf("%d beliefs before the source goes", n)
					}
				}
				if err := gone(s, source); err != nil {
					t.Fatal(err)
				}
				var report record.HarmonizationReport
				var merged record.ConsolidationReport
				_, err = apply(t.Context(), s, "test", caller, func(t *tx) (struct{}, error) {
					if err := t.harmonize(page, found, &report); err != nil {
						return struct{}{}, err
					}
					return struct{}{}, t.mergePairs(page, slices.DeleteFunc(slices.Clone(found.pairs), func(p pair) bool { return p.verdict.Relation != conflict.Duplicate }), &merged)
				})
				if err != nil {
					t.Fatal(err)
				}
				if report.BeliefsCreated+merged.Merged > 0 {
					t.Errorf("%s: made of what is gone: %+v, %d merged", when, report, merged.Merged)
				}
				harmonize(t, s)
				if dead := deadReferences(t, s); len(dead) > 0 {
					t.Errorf("%s: %q", when, dead)
				}
				if n := len(beliefs(t, s)); n != 0 {
					t.Errorf("%s: %d beliefs of one agent", when, n)
				}
			}
		})
	}
}

func beliefs(tb testing.TB, s *Store) (all []record.Belief) {
	tb.Helper()
	mustView(tb, s, func(v *View) (err error) {
		all, err = v.Beliefs(Scope{})
		return err
	})
	return all
}

// A judge that thinks while a side of its pair is deleted settles nothing
// (situation F3).
func TestStore_RecordJudgement_sideDeleted(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	row, a, b := suspectedPair(t, s, req("tickets", tracked), req("tickets", moved))
	if _, err := s.Suspicion(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteFact(t.Context(), record.DeleteFact{Caller: caller, FactID: b.FactID}); err != nil {
		t.Fatal(err)
	}
	_, err := s.RecordJudgement(t.Context(), record.RecordJudgement{Caller: caller, Judgement: record.Judgement{ConflictID: row, Judge: "small", Relation: "contradiction", Words: moved}})
	wantCode(t, err, record.NotFound)
	mustView(t, s, func(v *View) error {
		f, err := v.Fact(a.FactID)
		if !f.Active(v.Now()) {
			t.Errorf("the side that was left is retired: %+v", f)
		}
		return err
	})
	if dead := deadReferences(t, s); len(dead) > 0 {
		t.Errorf("%q", dead)
	}
}
