package endtoend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// TestImport_long gives an import so many pages that its run continues as new
// under the caller's hands.
func TestImport_long(t *testing.T) {
	t.Parallel()
	const pages = 800
	p := start(t, t.TempDir())
	c := p.client()
	imp, state, err := c.BeginImport(timed(t), caller("long"), source("long"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for page := range pages {
		state, err = imp.Page(timed(t), workflows.ImportPage{Page: page, Items: []record.ProposeFact{{
			Domain: "cargo", Topic: fmt.Sprintf("ship %d", page), Content: fmt.Sprintf("Ship %d loads barley", page), Veracity: "imported",
		}}})
		if err != nil || state.NextPage != page+1 || state.Done {
			t.Fatalf("after page %d the import is at %+v, %v", page, state, err)
		}
	}
	report := must[record.ImportReport](t)(imp.Finish(timed(t)))
	d, err := p.temporal.DescribeWorkflowExecution(t.Context(), workflows.ID(record.KindImportFacts, "long", source("long")), "")
	if err != nil {
		t.Fatal(err)
	}
	info := d.GetWorkflowExecutionInfo()
	t.Logf("%d pages in %v, the last run has %d events", pages, time.Since(began).Round(time.Millisecond), info.GetHistoryLength())
	if info.GetFirstRunId() == info.GetExecution().GetRunId() {
		t.Error("the import never continued as new; give it more pages")
	}
	if report.Items != pages || report.Created != pages || len(report.Failed) != 0 {
		t.Errorf("the import reports %s, want %d created", asJSON(t, report), pages)
	}
	if got := one(t, p.folder("long"), "SELECT count(*) || ' ' || max(mention_count) FROM facts"); got != fmt.Sprintf("%d 1", pages) {
		t.Errorf("facts and mentions are %s, want %d 1", got, pages)
	}
}

// TestImport_order leaves a page out: what is missing must not be passed over
// in silence.
func TestImport_order(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	pages := importPages(4, 5)
	imp, _, err := p.client().BeginImport(timed(t), caller("order"), source("order"))
	if err != nil {
		t.Fatal(err)
	}
	first := must[workflows.ImportState](t)(imp.Page(timed(t), pages[0]))
	state, err := imp.Page(timed(t), pages[2])
	if err == nil && state.NextPage != 1 {
		t.Errorf("after pages 0 and 2 the import wants page %d and says nothing of page 1", state.NextPage)
	}
	again := must[workflows.ImportState](t)(imp.Page(timed(t), pages[0]))
	if again.Report.Items < first.Report.Items {
		t.Errorf("a page given twice takes the report from %d items to %d", first.Report.Items, again.Report.Items)
	}
}

// TestImport_pageLimit takes a page just under the limit of a request.
func TestImport_pageLimit(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	imp, _, err := p.client().BeginImport(timed(t), caller("full"), source("full"))
	if err != nil {
		t.Fatal(err)
	}
	page := workflows.ImportPage{}
	for n := range 28 {
		page.Items = append(page.Items, record.ProposeFact{Domain: "cargo", Topic: fmt.Sprintf("ship %d", n), Content: strings.Repeat(fmt.Sprintf("crate%d ", n), record.MaxContentBytes/8), Veracity: "imported"})
	}
	if size := len(asJSON(t, page)); size > record.MaxRequestBytes || size < record.MaxRequestBytes*8/10 {
		t.Fatalf("the page has %d bytes; the limit is %d", size, record.MaxRequestBytes)
	}
	began := time.Now()
	state := must[workflows.ImportState](t)(imp.Page(timed(t), page))
	t.Logf("a page of %d bytes in %v", len(asJSON(t, page)), time.Since(began).Round(time.Millisecond))
	if state.Report.Created != len(page.Items) {
		t.Errorf("the page reports %s", asJSON(t, state.Report))
	}
	must[record.ImportReport](t)(imp.Finish(timed(t)))
}
