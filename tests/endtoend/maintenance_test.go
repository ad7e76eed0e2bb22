package endtoend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
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
	seed(t, folder, workspace, memory.Options{}, items, func(s *memory.Store, n int) error {
		_, err := s.Remember(t.Context(), record.Remember{
			Caller: caller(workspace), SessionID: "monday", Domain: "yard", Topic: fmt.Sprintf("shelf %d", n), Content: fmt.Sprintf("Shelf %d holds %d ropes", n, n%9+1),
		})
		return err
	})
}

// seed writes n things into a workspace, many at once, without the worker.
func seed(t testing.TB, folder, workspace string, opts memory.Options, n int, write func(*memory.Store, int) error) {
	t.Helper()
	s, err := memory.Open(t.Context(), folder, workspace, opts)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, 64)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := write(s, i); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// neglect seeds a workspace in which every phase of a consolidation has
// something to do: items to promote and items whose time is over, statements
// that stand in two topics, facts whose validity ended and facts that faded.
func neglect(t testing.TB, folder, workspace string, items int) {
	t.Helper()
	then := time.Now().Add(-90 * 24 * time.Hour)
	weak := 0.2
	seed(t, folder, workspace, memory.Options{Now: func() time.Time { return then }}, items, func(s *memory.Store, n int) error {
		item := record.Remember{Caller: caller(workspace), SessionID: "monday", Domain: "yard", Topic: fmt.Sprintf("shelf %d", n), Content: fmt.Sprintf("Shelf %d holds %d ropes", n, n%9+1)}
		fact := record.ProposeFact{Caller: caller(workspace), Domain: "yard", Topic: item.Topic, Content: item.Content}
		var err error
		switch n % 10 {
		default:
			_, err = s.Remember(t.Context(), item)
		case 1: // says in another topic what its neighbour says
			item.Topic, item.Content = "seen "+item.Topic, fmt.Sprintf("shelf %d holds %d ropes.", n-1, (n-1)%9+1)
			_, err = s.Remember(t.Context(), item)
		case 3:
			item.TTLSeconds = 60
			_, err = s.Remember(t.Context(), item)
		case 5:
			fact.ValidUntil = record.At(then.Add(time.Hour))
			_, err = s.ProposeFact(t.Context(), fact)
		case 7:
			fact.MemoryType, fact.Confidence = "event", &weak
			_, err = s.ProposeFact(t.Context(), fact)
		}
		return err
	})
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

// TestConsolidate_killed kills the worker at three pages of a consolidation
// drawn from a seed. What it leaves and what it reports is what a run of the
// same file that nobody disturbed leaves and reports, ids and times apart.
func TestConsolidate_killed(t *testing.T) {
	t.Parallel()
	const items, drawn = 3000, 7
	in := record.Consolidate{Caller: caller("yard")}
	left, data := t.TempDir(), t.TempDir()
	neglect(t, workspaceFolder(left, "yard"), "yard", items)
	if err := os.CopyFS(data, os.DirFS(left)); err != nil {
		t.Fatal(err)
	}
	pages := func(data string) int {
		return len(rows(t, workspaceFolder(data, "yard"), "SELECT 1 FROM operations WHERE kind = 'consolidate'"))
	}
	state := func(data string) []string {
		return append(substance(t, workspaceFolder(data, "yard"), "yard"), rows(t, workspaceFolder(data, "yard"), "SELECT 'item ' || content || ': ' || state FROM session_items ORDER BY content, state")...)
	}

	p := start(t, left)
	whole := must[record.ConsolidationReport](t)(p.client().ConsolidateMemory(timed(t), in, nil))
	p.kill()
	if whole.Promoted == 0 || whole.Merged == 0 || whole.Archived == 0 || whole.Expired == 0 {
		t.Fatalf("a phase has nothing to do: %+v", whole)
	}

	// The last pages are left out, so that a run is still going when it is hit.
	at := rand.New(rand.NewPCG(drawn, 1)).Perm(pages(left) - 4)[:3]
	slices.Sort(at)
	p = start(t, data)
	for _, page := range at {
		ctx, cancel := context.WithCancel(timed(t))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = p.client().ConsolidateMemory(ctx, in, nil)
		}()
		want := max(page, pages(data)) + 1
		eventually(t, time.Minute, fmt.Sprintf("%d pages are done", want), func() bool { return pages(data) >= want })
		p.kill()
		cancel()
		<-done
		if one(t, workspaceFolder(data, "yard"), "SELECT count(*) FROM meta WHERE key = 'last_consolidated'") != "0" {
			t.Fatalf("the run was over before the worker was killed at page %d", want)
		}
		t.Logf("killed with %d of %d pages done", pages(data), pages(left))
		p = start(t, data)
	}
	began := time.Now()
	report := must[record.ConsolidationReport](t)(p.client().ConsolidateMemory(timed(t), in, nil))
	t.Logf("complete %v after the last restart", time.Since(began).Round(time.Millisecond))
	p.kill()
	if got, want := asJSON(t, report), asJSON(t, whole); got != want {
		t.Errorf("the killed run reports\n%s, the whole one\n%s", got, want)
	}
	sameDump(t, "the killed consolidation against the whole one", state(left), state(data))
	if got, want := pages(data), pages(left); got != want {
		t.Errorf("%d pages in the ledger, want %d", got, want)
	}
	wantSound(t, workspaceFolder(data, "yard"), "yard")
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
