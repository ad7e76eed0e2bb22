package endtoend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// source is the hash that a made-up import goes by.
func source(name string) string { return fmt.Sprintf("%064x", []byte(name)) }

// importPages makes pages of facts, among them repeats, several facts to a
// topic and some that are refused.
func importPages(pages, items int) []workflows.ImportPage {
	goods := []string{"barley", "copper", "dates", "felt", "glass", "honey", "indigo", "linen", "olives", "pepper", "salt", "timber"}
	out := make([]workflows.ImportPage, pages)
	n := 0
	for p := range out {
		out[p] = workflows.ImportPage{Page: p, Items: make([]record.ProposeFact, items)}
		for i := range out[p].Items {
			f := record.ProposeFact{
				Caller: record.Caller{Agent: "clerk"}, Domain: "cargo", Topic: fmt.Sprintf("ship %d", n/3), Veracity: "imported",
				Content: fmt.Sprintf("Ship %d loaded %s in harbour %d", n/3, goods[n%len(goods)], n),
			}
			switch {
			case n%17 == 16:
				f.Content = fmt.Sprintf("Ship %d loaded %s in harbour %d", (n-16)/3, goods[(n-16)%len(goods)], n-16)
				f.Topic = fmt.Sprintf("ship %d", (n-16)/3)
			case n%41 == 40:
				f.Content = "   "
			}
			out[p].Items[i] = f
			n++
		}
	}
	return out
}

// importAll imports pages without interruption.
func importAll(t testing.TB, c *workflows.Client, workspace string, pages []workflows.ImportPage) record.ImportReport {
	t.Helper()
	imp, state, err := c.BeginImport(timed(t), caller(workspace), source(workspace))
	if err != nil {
		t.Fatal(err)
	}
	for !state.Done && state.NextPage < len(pages) {
		state = must[workflows.ImportState](t)(imp.Page(timed(t), pages[state.NextPage]))
	}
	return must[record.ImportReport](t)(imp.Finish(timed(t)))
}

// substance is what a workspace holds, without ids and times.
func substance(t testing.TB, folder, workspace string) []string {
	t.Helper()
	s := opened(t, folder, workspace)
	defer func() { _ = s.Close() }()
	facts := must[[]record.Fact](t)(allFacts(s))
	content := make(map[string]string, len(facts))
	for _, f := range facts {
		content[f.ID] = f.Content
	}
	var out []string
	err := s.View(t.Context(), func(v *memory.View) error {
		for _, f := range facts {
			out = append(out, fmt.Sprintf("fact %s/%s: %q %v %s %s, %d mentions, by %s, %s by %q", f.Domain, f.Topic, f.Content, f.Confidence, f.MemoryType, f.Veracity, f.MentionCount, f.AuthoredByAgent, f.SupersededKind, content[f.SupersededBy]))
			h, err := v.History(f.ID)
			if err != nil {
				return err
			}
			for _, e := range h.Events {
				out = append(out, fmt.Sprintf("event of %q: %s %q %v", f.Content, e.Kind, content[e.Other], e.Confidence))
			}
			edges, err := v.Edges(f.ID, memory.Scope{})
			if err != nil {
				return err
			}
			for _, e := range edges {
				out = append(out, fmt.Sprintf("edge of %q: %s from %q to %q, %.9f", f.Content, e.Kind, content[e.Source], content[e.Target], e.Weight))
			}
		}
		conflicts, err := v.Conflicts(false, memory.Scope{}, "", 1_000_000)
		for _, c := range conflicts {
			pair := []string{c.ContentA, c.ContentB}
			slices.Sort(pair)
			out = append(out, fmt.Sprintf("conflict %s of %q, open %v, %q won", c.Kind, pair, c.Open, content[c.Winner]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// pagesTaken counts the ledger's pages of a workflow.
func pagesTaken(t testing.TB, folder, workflowID string) int {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, memory.FileName)); err != nil {
		return 0
	}
	if one(t, folder, "SELECT count(*) FROM sqlite_schema WHERE name = 'operations'") == "0" {
		return 0
	}
	n, err := strconv.Atoi(one(t, folder, "SELECT count(*) FROM operations WHERE key LIKE ? || '#page-%'", workflowID))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestImport_killed kills the worker several times while a page of an import
// is under way: before the page reached the file, in the middle, and right
// after its commit, before anybody was told.
func TestImport_killed(t *testing.T) {
	t.Parallel()
	const seed = 20
	pages := importPages(16, 60)
	p := start(t, t.TempDir())
	whole := importAll(t, p.client(), "whole", pages)

	random := rand.New(rand.NewPCG(seed, 1))
	kills := random.Perm(len(pages))[:4]
	const workspace = "broken"
	folder, id := p.folder(workspace), workflows.ID(record.KindImportFacts, workspace, source(workspace))
	begin := func() (*workflows.Import, workflows.ImportState) {
		t.Helper()
		imp, state, err := p.client().BeginImport(timed(t), caller(workspace), source(workspace))
		if err != nil {
			t.Fatal(err)
		}
		return imp, state
	}
	imp, state := begin()
	acknowledged := 0
	for state.NextPage < len(pages) {
		page := state.NextPage
		at := slices.Index(kills, page)
		if at < 0 {
			state = must[workflows.ImportState](t)(imp.Page(timed(t), pages[page]))
			acknowledged = page + 1
			continue
		}
		kills[at] = -1
		ctx, cancel := context.WithCancel(timed(t))
		answer := make(chan error, 1)
		go func() {
			_, err := imp.Page(ctx, pages[page])
			answer <- err
		}()
		var when string
		if at%2 == 0 {
			when = "right after its commit"
			eventually(t, time.Minute, "the page reaches the file", func() bool { return pagesTaken(t, folder, id) > page })
		} else {
			after := time.Duration(random.IntN(30)) * time.Millisecond
			when = fmt.Sprintf("%v after it was sent", after)
			select {
			case err := <-answer:
				answer <- err
			case <-time.After(after):
			}
		}
		p.kill()
		cancel()
		if err := <-answer; err == nil {
			acknowledged = page + 1
		}
		inFile := pagesTaken(t, folder, id)
		if inFile < acknowledged {
			t.Errorf("killed at page %d: %d pages in the file, %d acknowledged", page, inFile, acknowledged)
		}
		began := time.Now()
		p = start(t, p.data)
		imp, state = begin()
		t.Logf("killed at page %d, %s: %d pages acknowledged, %d in the file; goes on at page %d, %v after the restart", page, when, acknowledged, inFile, state.NextPage, time.Since(began).Round(time.Millisecond))
		if state.Done || state.NextPage < acknowledged {
			t.Fatalf("after the restart the import is at %+v, with %d pages acknowledged", state, acknowledged)
		}
	}
	broken := must[record.ImportReport](t)(imp.Finish(timed(t)))
	whole.RequestHash, broken.RequestHash = "", ""
	if got, want := asJSON(t, broken), asJSON(t, whole); got != want {
		t.Errorf("the killed import reports\n%s, the whole one\n%s", got, want)
	}
	if sum := whole.Created + whole.Refined + whole.ReMentioned + whole.Superseded + len(whole.Failed); sum != whole.Items || whole.Items != 16*60 || whole.ReMentioned == 0 || len(whole.Failed) == 0 {
		t.Errorf("the whole import reports %s", asJSON(t, whole))
	}
	again, done, err := p.client().BeginImport(timed(t), caller(workspace), source(workspace))
	if err != nil || !done.Done {
		t.Errorf("the same import again is at %+v, %v; want done", done, err)
	} else if report := must[record.ImportReport](t)(again.Finish(timed(t))); report.Items != whole.Items {
		t.Errorf("finishing it again reports %d items, want %d", report.Items, whole.Items)
	}
	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	sameDump(t, "the killed import against the whole one", substance(t, p.folder("whole"), "whole"), substance(t, folder, workspace))
	if n := pagesTaken(t, folder, id); n != len(pages) {
		t.Errorf("%d pages in the ledger, want %d", n, len(pages))
	}
	h := wantSound(t, folder, workspace)
	t.Logf("%d facts of %d items, the same as without a kill", h.FactsTotal, whole.Items)
}

// meeting has decisions of their own topics.
func meeting(workspace, id string, decisions int) record.CaptureMeeting {
	m := record.CaptureMeeting{Caller: caller(workspace), MeetingID: id, Title: "The harbour board", Revision: 1}
	for n := range decisions {
		m.Decisions = append(m.Decisions, record.Decision{Topic: fmt.Sprintf("quay %d", n), Text: fmt.Sprintf("Quay %d gets %d new bollards", n, n%7+1), DecidedBy: "the board"})
	}
	return m
}

// TestMeeting_killed kills the worker twice in the middle of a capture of a
// thousand decisions.
func TestMeeting_killed(t *testing.T) {
	t.Parallel()
	const decisions, seed = 1000, 5
	p := start(t, t.TempDir())
	m := meeting("board", "board-7", decisions)
	folder, id := p.folder("board"), workflows.MeetingID("board", "board-7", 1)
	random := rand.New(rand.NewPCG(seed, 1))
	floor := 0
	for range 2 {
		ctx, cancel := context.WithCancel(timed(t))
		answer := make(chan error, 1)
		go func() {
			_, err := p.client().CaptureMeetingDecisions(ctx, m)
			answer <- err
		}()
		want := floor + 1 + random.IntN(3)
		eventually(t, time.Minute, "some pages of the meeting reach the file", func() bool { return pagesTaken(t, folder, id) >= want })
		p.kill()
		cancel()
		<-answer
		floor = pagesTaken(t, folder, id)
		t.Logf("killed with %d of 10 pages in the file", floor)
		p = start(t, p.data)
	}
	if floor >= 10 {
		t.Log("the capture was faster than the kill")
	}
	began := time.Now()
	report := must[record.MeetingReport](t)(p.client().CaptureMeetingDecisions(timed(t), m))
	t.Logf("complete %v after the restart", time.Since(began).Round(time.Millisecond))
	if report.Added != decisions || report.ReMentioned != 0 || report.Withdrawn != 0 || len(report.Failed) != 0 || len(report.FactIDs) != decisions {
		t.Errorf("%d added, %d re-mentioned, %d withdrawn, %d failed, %d stand; want %d added and standing",
			report.Added, report.ReMentioned, report.Withdrawn, len(report.Failed), len(report.FactIDs), decisions)
	}
	before := dump(t, folder)
	again := must[record.MeetingReport](t)(p.client().CaptureMeetingDecisions(timed(t), m))
	if asJSON(t, again) != asJSON(t, report) {
		t.Error("the repeated call answers otherwise than the first")
	}
	sameDump(t, "after the call was repeated", before, dump(t, folder))
	p.kill()
	h := wantSound(t, folder, "board")
	if h.FactsTotal != decisions || h.FactsActive != decisions || h.Operations != decisions/100 {
		t.Errorf("%d facts, %d active, %d operations; want %d, %d, %d", h.FactsTotal, h.FactsActive, h.Operations, decisions, decisions, decisions/100)
	}
	if got := one(t, folder, "SELECT count(DISTINCT content) || ' ' || max(mention_count) || ' ' || (SELECT count(*) FROM meeting_decisions) FROM facts"); got != "1000 1 1000" {
		t.Errorf("distinct facts, mentions and decisions are %s, want 1000 1 1000", got)
	}
}

// TestTerminate stops the worker politely while work runs.
func TestTerminate(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	m := meeting("stopped", "board-8", 1000)
	folder, id := p.folder("stopped"), workflows.MeetingID("stopped", "board-8", 1)
	ctx, cancel := context.WithCancel(timed(t))
	answer := make(chan error, 1)
	client := p.client()
	go func() {
		_, err := client.CaptureMeetingDecisions(ctx, m)
		answer <- err
	}()
	type proposal struct {
		in  record.ProposeFact
		out record.ProposeFactResult
		err error
	}
	proposals := make([]proposal, 40)
	finished := make(chan int, len(proposals))
	for i := range proposals {
		proposals[i].in = record.ProposeFact{
			Caller: keyed(caller("stopped"), fmt.Sprintf("key-%d", i)), Domain: "infra", Topic: fmt.Sprintf("crane %d", i), Content: fmt.Sprintf("Crane %d lifts %d tons", i, i+1),
		}
		go func() {
			proposals[i].out, proposals[i].err = client.ProposeFact(ctx, proposals[i].in)
			finished <- i
		}()
	}
	eventually(t, time.Minute, "a page of the meeting reaches the file", func() bool { return pagesTaken(t, folder, id) >= 1 })
	code, took := p.terminate()
	cancel()
	<-answer
	acknowledged := 0
	for range proposals {
		if i := <-finished; proposals[i].err == nil {
			acknowledged++
		}
	}
	t.Logf("stopped in %v with %d of 10 pages taken and %d of %d proposals answered", took.Round(time.Millisecond), pagesTaken(t, folder, id), acknowledged, len(proposals))
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if took > 45*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if _, err := os.Stat(filepath.Join(p.data, "worker.json")); !os.IsNotExist(err) {
		t.Errorf("worker.json is still there: %v", err)
	}
	if left := rows(t, folder, "SELECT * FROM pragma_quick_check"); !slices.Equal(left, []string{"ok"}) {
		t.Errorf("the file is %q", left)
	}

	p = start(t, p.data)
	began := time.Now()
	report := must[record.MeetingReport](t)(p.client().CaptureMeetingDecisions(timed(t), m))
	t.Logf("complete %v after the restart", time.Since(began).Round(time.Millisecond))
	if report.Added != 1000 || len(report.FactIDs) != 1000 {
		t.Errorf("after the restart %d decisions were added and %d stand, want 1000", report.Added, len(report.FactIDs))
	}
	for i, was := range proposals {
		out := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), was.in))
		if out.Status != record.StatusCreated || was.err == nil && out.FactID != was.out.FactID {
			t.Errorf("proposal %d is %s %s after the restart, and was %s before", i, out.Status, out.FactID, was.out.FactID)
		}
	}
	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if h := wantSound(t, folder, "stopped"); h.FactsTotal != 1040 {
		t.Errorf("%d facts, want 1040", h.FactsTotal)
	}
}

// TestShards starts a workflow whose shard no worker serves; the worker that
// takes the shard later completes it.
func TestShards(t *testing.T) {
	t.Parallel()
	byShard := map[int]string{}
	for i := 0; len(byShard) < 2; i++ {
		name := fmt.Sprintf("shard-%d", i)
		byShard[workflows.Shard(name, 2)] = name
	}
	p := start(t, t.TempDir(), "--shards", "2", "--own", "0")
	served := record.ProposeFact{Caller: keyed(caller(byShard[0]), "k"), Domain: "infra", Topic: "light", Content: "The lighthouse is lit"}
	must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), served))

	waiting := served
	waiting.Workspace = byShard[1]
	ctx, cancel := context.WithCancel(timed(t))
	answer := make(chan error, 1)
	client := p.client()
	go func() {
		_, err := client.ProposeFact(ctx, waiting)
		answer <- err
	}()
	id := workflows.ID(record.KindProposeFact, waiting.Workspace, waiting.Key)
	eventually(t, time.Minute, "the workflow is started", func() bool {
		_, err := p.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		return err == nil
	})
	cancel()
	wantCode(t, <-answer, record.Unavailable)
	if _, err := os.Stat(p.folder(waiting.Workspace)); !os.IsNotExist(err) {
		t.Errorf("the workspace of a shard that nobody serves is there: %v", err)
	}
	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	p = start(t, p.data, "--shards", "2")
	// Nobody asks again: the run itself goes on.
	var out record.ProposeFactResult
	if err := p.temporal.GetWorkflow(timed(t), id, "").Get(timed(t), &out); err != nil {
		t.Fatal(err)
	}
	again := must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), waiting))
	if again.FactID != out.FactID || out.Status != record.StatusCreated {
		t.Errorf("the run made %s (%s), the repeated call says %s", out.FactID, out.Status, again.FactID)
	}
	if got := one(t, p.folder(waiting.Workspace), "SELECT count(*) FROM facts"); got != "1" {
		t.Errorf("%s facts, want 1", got)
	}
}

// TestRefusedStarts are starts that must not succeed.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--nonsense"},
		{"--log-level", "loud"},
		{"--log-format", "xml"},
		{"--shards", "9999"},
		{"--shards", "-1"},
		{"--shards", "2", "--own", "2"},
		{"--own", "all"},
		{"--port", "seven"},
		{"--port", "70000"},
		{"--ui-port", "70000"},
		{"serve"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			bad := spawn(t, data, args...)
			if code := bad.wait(time.Minute); code != record.ExitUsage {
				t.Errorf("the worker ends with %d, want %d: %s", code, record.ExitUsage, tail(bad.stderr.String(), 3))
			}
			if bad.stderr.String() == "" || bad.stdout.String() != "" {
				t.Errorf("stdout %q, stderr %q; want a message on stderr only", bad.stdout, bad.stderr)
			}
		})
	}
}
