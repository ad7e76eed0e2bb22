package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
