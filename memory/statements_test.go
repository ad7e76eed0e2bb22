package memory

import (
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// What the record says on one statement is cut between facts and says how many
// are left; the first is always there (situation K9).
func TestFitNow(t *testing.T) {
	t.Parallel()
	now := func(sizes ...int) record.CheckedStatement {
		var s record.CheckedStatement
		for _, n := range sizes {
			s.Now = append(s.Now, record.RecordedNow{Content: strings.Repeat("x", n)})
		}
		return s
	}
	for _, c := range []struct {
		given      record.CheckedStatement
		kept, left int
	}{
		{now(), 0, 0}, {now(10, 20), 2, 0}, {now(maxNowBytes, 1, 1), 1, 2}, {now(maxNowBytes+1, 1), 1, 1}, {now(maxNowBytes-1, 1, 1), 2, 1},
	} {
		fitNow(&c.given)
		if len(c.given.Now) != c.kept || c.given.Left != c.left {
			t.Errorf("%d are kept and %d left, want %d and %d", len(c.given.Now), c.given.Left, c.kept, c.left)
		}
	}
}
