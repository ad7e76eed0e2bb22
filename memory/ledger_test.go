package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestStore_PruneLedgerPage forgets old rows of closed runs, page by page, and
// nothing else.
func TestStore_PruneLedgerPage(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	long := "h." + strings.Repeat("a", 32)
	write := func(key string) {
		r := req(key, "about "+key)
		r.Key = key
		mustPropose(t, s, r)
	}
	for n := range 25 {
		write(fmt.Sprintf("propose-fact/w/%02d#write", n))
	}
	write("import/w/source#page-1")
	write("import/w/source2#page-1")
	write(long)
	clock.Advance(record.MinLedgerAge + time.Hour)
	write("propose-fact/w/new#write")
	page := func(cursor string, limit int, runs ...string) record.PruneLedgerResult {
		t.Helper()
		out, err := s.PruneLedgerPage(t.Context(), record.PruneLedgerPage{Caller: record.Caller{Workspace: "w"}, Before: record.At(clock.Now().Add(-record.MinLedgerAge)), Cursor: cursor, Limit: limit}, KeysOf(runs))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var sum record.PruneLedgerReport
	pages := 0
	for cursor := ""; ; pages++ {
		out := page(cursor, 10, "import/w/source")
		sum.Add(out.Report)
		if cursor = out.Next; cursor == "" {
			break
		}
	}
	// The open run's row, and the one that is only a hash and may be its too.
	if want := (record.PruneLedgerReport{Considered: 28, Pruned: 26, Kept: 2}); sum != want || pages != 2 {
		t.Errorf("%+v in %d pages, want %+v", sum, pages, want)
	}
	if out := page("", 100); out.Report.Pruned != 2 || out.Report.Kept != 0 {
		t.Errorf("without open runs: %+v", out)
	}
	mustView(t, s, func(v *View) error {
		h, err := v.Health(false)
		if h.Operations != 1 || h.FactsTotal != 29 {
			t.Errorf("%d operations and %d facts are left", h.Operations, h.FactsTotal)
		}
		return err
	})
	for name, in := range map[string]record.PruneLedgerPage{
		"too young": {Before: record.At(clock.Now().Add(-time.Hour)), Limit: 10}, "no limit": {Limit: 0}, "huge limit": {Limit: maxPrunePage + 1},
	} {
		in.Workspace = "w"
		if _, err := s.PruneLedgerPage(t.Context(), in, KeysOf(nil)); record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What was not pruned still answers; what was is a new call.
	again := req("propose-fact/w/new#write", "about propose-fact/w/new#write")
	again.Key = "propose-fact/w/new#write"
	if out := mustPropose(t, s, again); out.Status != record.StatusCreated {
		t.Errorf("the kept key answers %s", out.Status)
	}
	again = req("propose-fact/w/00#write", "about propose-fact/w/00#write")
	again.Key = "propose-fact/w/00#write"
	if out := mustPropose(t, s, again); out.Status != record.StatusReMentioned {
		t.Errorf("the pruned key answers %s", out.Status)
	}
}
