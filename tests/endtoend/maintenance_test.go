package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// remember seeds a workspace with session items, without the worker.
func remember(t testing.TB, folder, workspace string, items int) {
	t.Helper()
	s, err := memory.Open(t.Context(), folder, workspace, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, 64)
	for n := range items {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			_, err := s.Remember(t.Context(), record.Remember{
				Caller: caller(workspace), SessionID: "monday", Domain: "yard", Topic: fmt.Sprintf("shelf %d", n), Content: fmt.Sprintf("Shelf %d holds %d ropes", n, n%9+1),
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestConsolidate joins two calls to one run, and finds nothing to do the next
// time.
func TestConsolidate(t *testing.T) {
	t.Parallel()
	const items = 1500
	data := t.TempDir()
	folder := workspaceFolder(data, "yard")
	remember(t, folder, "yard", items)
	p := start(t, data)
	id := workflows.MaintenanceID(record.KindConsolidate, "yard")
	in := record.Consolidate{Caller: caller("yard")}

	type answer struct {
		report record.ConsolidationReport
		err    error
	}
	answers := make(chan answer, 3)
	consolidate := func() {
		report, err := p.client().ConsolidateMemory(timed(t), in, nil)
		answers <- answer{report, err}
	}
	running := func() (run string, is bool) {
		d, err := p.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		if err != nil {
			return "", false
		}
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}
	began := time.Now()
	go consolidate()
	var run string
	eventually(t, time.Minute, "the consolidation is under way", func() bool {
		r, is := running()
		run = r
		return is && one(t, folder, "SELECT count(*) > 0 FROM operations WHERE kind = 'consolidate'") == "1"
	})
	go consolidate()
	go consolidate()
	first := <-answers
	t.Logf("%d items promoted in %v", first.report.Promoted, time.Since(began).Round(time.Millisecond))
	for range 2 {
		if other := <-answers; other.err != nil || first.err != nil || asJSON(t, other.report) != asJSON(t, first.report) {
			t.Errorf("one call answers %+v, another %+v", first, other)
		}
	}
	if last, is := running(); last != run || is {
		t.Errorf("the runs are %s and %s; want one, and that closed", run, last)
	}
	if first.report.Promoted != items {
		t.Errorf("%d promoted, want %d: %+v", first.report.Promoted, items, first.report)
	}
	rounds := rows(t, folder, "SELECT DISTINCT substr(key, 1, instr(substr(key, 1 + instr(key, '#')), '/') + instr(key, '#')) FROM operations WHERE kind = 'consolidate'")
	if len(rounds) != 1 || !strings.Contains(rounds[0], run) {
		t.Errorf("the ledger holds the rounds %q, want one of run %s", rounds, run)
	}

	before := dump(t, folder, "operations", "meta")
	report := must[record.ConsolidationReport](t)(p.client().ConsolidateMemory(timed(t), in, nil))
	if n := report.Promoted + report.ReMentioned + report.Merged + report.Archived + report.Expired + report.Conflicts; n != 0 {
		t.Errorf("the second run changed something: %+v", report)
	}
	sameDump(t, "after the second consolidation", before, dump(t, folder, "operations", "meta"))
	if last, _ := running(); last == run {
		t.Error("the second consolidation is the first one's run")
	}

	// Harmonizing what nobody disputes changes nothing either.
	must[record.HarmonizationReport](t)(p.client().HarmonizeMemory(timed(t), record.Harmonize{Caller: caller("yard")}, nil))
	before = dump(t, folder, "operations", "meta")
	must[record.HarmonizationReport](t)(p.client().HarmonizeMemory(timed(t), record.Harmonize{Caller: caller("yard")}, nil))
	sameDump(t, "after the second harmonization", before, dump(t, folder, "operations", "meta"))
}

// TestConsolidate_killed kills the worker in the middle of a consolidation.
func TestConsolidate_killed(t *testing.T) {
	t.Parallel()
	const items = 2000
	data := t.TempDir()
	folder := workspaceFolder(data, "yard")
	remember(t, folder, "yard", items)
	p := start(t, data)
	in := record.Consolidate{Caller: caller("yard")}
	ctx, cancel := context.WithCancel(timed(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.client().ConsolidateMemory(ctx, in, nil)
	}()
	eventually(t, time.Minute, "some pages are done", func() bool {
		return len(rows(t, folder, "SELECT 1 FROM operations WHERE kind = 'consolidate'")) >= 3
	})
	p.kill()
	cancel()
	<-done
	promoted := one(t, folder, "SELECT count(*) FROM facts")
	began := time.Now()
	p = start(t, data)
	report := must[record.ConsolidationReport](t)(p.client().ConsolidateMemory(timed(t), in, nil))
	t.Logf("killed with %s of %d items promoted, complete %v after the restart", promoted, items, time.Since(began).Round(time.Millisecond))
	if report.Promoted != items || report.ReMentioned != 0 {
		t.Errorf("the joined run reports %+v, want %d promoted", report, items)
	}
	p.kill()
	wantSound(t, folder, "yard")
	if got := one(t, folder, "SELECT count(*) || ' ' || count(DISTINCT content) || ' ' || max(mention_count) FROM facts"); got != "2000 2000 1" {
		t.Errorf("facts, distinct ones and mentions are %s, want 2000 2000 1", got)
	}
	if kept := rows(t, folder, "SELECT DISTINCT state FROM session_items"); !slices.Equal(kept, []string{"promoted"}) {
		t.Errorf("the items are %q, want all promoted", kept)
	}
}

// TestConsolidate_cancelled cancels a consolidation at several of its pages.
// The caller is told, nothing stays claimed, and the next run completes what
// was left.
func TestConsolidate_cancelled(t *testing.T) {
	t.Parallel()
	const items = 1500
	data := t.TempDir()
	folder := workspaceFolder(data, "yard")
	remember(t, folder, "yard", items)
	p := start(t, data)
	id := workflows.MaintenanceID(record.KindConsolidate, "yard")
	in := record.Consolidate{Caller: caller("yard")}
	pages := func() int { return len(rows(t, folder, "SELECT 1 FROM operations WHERE kind = 'consolidate'")) }
	cancelled := 0
	for range 3 {
		before := pages()
		answer := make(chan error, 1)
		go func() {
			_, err := p.client().ConsolidateMemory(timed(t), in, nil)
			answer <- err
		}()
		eventually(t, time.Minute, "a page more is done", func() bool { return pages() > before })
		// It may have ended meanwhile; then there is nothing to cancel.
		_ = p.temporal.CancelWorkflow(t.Context(), id, "")
		if err := <-answer; err != nil {
			wantCode(t, err, record.Unavailable)
			cancelled++
		}
	}
	if cancelled == 0 {
		t.Error("no run was cancelled")
	}
	report := must[record.ConsolidationReport](t)(p.client().ConsolidateMemory(timed(t), in, nil))
	t.Logf("cancelled %d times; the next run promotes the %d items left of %d", cancelled, report.Promoted, items)
	if report.ReMentioned != 0 || len(report.Skipped) != 0 {
		t.Errorf("the next run reports %+v", report)
	}
	p.kill()
	wantSound(t, folder, "yard")
	if got := one(t, folder, "SELECT count(*) || ' ' || count(DISTINCT content) || ' ' || max(mention_count) FROM facts"); got != "1500 1500 1" {
		t.Errorf("facts, distinct ones and mentions are %s, want 1500 1500 1", got)
	}
	if kept := rows(t, folder, "SELECT DISTINCT state FROM session_items"); !slices.Equal(kept, []string{"promoted"}) {
		t.Errorf("the items are %q, want all promoted", kept)
	}
}
