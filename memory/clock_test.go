package memory

import (
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestStore_clockBack: what is said later is newer, also when the clock went
// back in between. Only a caller who dates a statement makes it older.
func TestStore_clockBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		at   time.Duration
		want record.ProposalStatus
	}{
		{"said now", 0, record.StatusCreated},
		{"dated before the other", -2 * time.Hour, record.StatusSupersededBy},
		{"dated in the clock's future", 2 * time.Hour, record.StatusCreated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := mustOpen(t)
			first := mustPropose(t, s, req("deploy target", "The service deploys to prod"))
			clock.Advance(-time.Hour)
			r := req("deploy target", "The service deploys to staging")
			if c.at != 0 {
				r.OccurredAt = record.At(clock.Now().Add(c.at))
			}
			second := mustPropose(t, s, r)
			if second.Status != c.want {
				t.Errorf("the second statement is %s, want %s", second.Status, c.want)
			}
			winner := second.FactID
			if c.want == record.StatusSupersededBy {
				winner = first.FactID
			}
			if len(second.Conflicts) != 1 || second.Conflicts[0].Winner != winner {
				t.Errorf("the conflict is %+v, want %s to win", second.Conflicts, winner)
			}
		})
	}
}
