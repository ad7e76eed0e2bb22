package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// lines makes a jsonl file of n facts.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"domain":"d","topic":"t%d","content":"fact %d"}`+"\n", i, i)
	}
	return b.String()
}

var away = record.Errorf(record.Unavailable, "", "no answer in time")

func TestImport_jsonl(t *testing.T) {
	t.Parallel()
	text := `{"domain":"d","topic":"t","content":"one"}
{broken
{"domain":"d","topic":"t","content":" "}

{"id":"f","domain":"repo:web/d","topic":"t","content":"two","veracity":"stated","confidence":1,"authored_by_agent":"ada"}
{"id":"g","superseded_at":"2026-01-01T00:00:00Z"}
{"id":"h","archived_at":"2026-01-01T00:00:00Z"}
{"domain":"d","topic":"t","content":"old","valid_until":"2026-01-01"}
`
	f := newFake()
	file := write(t, "facts.jsonl", text)
	args := []string{"import", "--format", "jsonl", "-w", "shop", "--agent", "bob", "--role", "pm", "--repo", "api", "--key", "unused", file}
	got := cmd(t, f, "", append(args, "--json")...)
	if got.exit != 0 || got.err != "" {
		t.Fatalf("got %+v", got)
	}
	r := decode[imported](t, got.out)
	if r.Workspace != "shop" || r.AlreadyImported || r.Items != 3 || r.Created != 2 || r.FailedCount != 2 || r.Omitted != 3 ||
		r.Omissions[omitSuperseded] != 1 || r.Omissions[omitArchived] != 1 || r.Omissions[omitExpired] != 1 || len(r.NotKept) == 0 || len(r.Source) != 64 {
		t.Errorf("report = %+v", r)
	}
	if len(r.Failed) != 2 || r.Failed[0].Line != 2 || r.Failed[0].Code != record.InvalidArgument || r.Failed[1].Line != 3 || r.Failed[1].Code != record.ContentEmpty {
		t.Errorf("failed = %+v", r.Failed)
	}
	items := f.only(t).items()
	bob, ada := record.Caller{Workspace: "shop", Agent: "bob", Role: "pm", Repo: "api"}, record.Caller{Workspace: "shop", Agent: "ada"}
	if items[0].Caller != bob || items[0].Content != "one" || items[0].Veracity != "imported" || items[2].Caller != ada || items[2].Veracity != "stated" || *items[2].Confidence != 1 {
		t.Errorf("items = %+v", items)
	}

	// The same file again.
	got = cmd(t, f, "", append(args, "--json")...)
	again := decode[imported](t, got.out)
	if !again.AlreadyImported || again.Created != 2 || len(f.only(t).pages) != 1 {
		t.Errorf("again = %+v", again)
	}
	again.AlreadyImported = false
	if fmt.Sprintf("%+v", again.counts) != fmt.Sprintf("%+v", r.counts) || !slices.Equal(again.Failed, r.Failed) {
		t.Errorf("the second report is %+v, the first %+v", again, r)
	}
	golden(t, "import", cmd(t, newFake(), "", args...).out+"--- again\n"+cmd(t, f, "", args...).out)

	// Into another workspace, or with other content, it is another import.
	cmd(t, f, "", "import", "--format", "jsonl", "-w", "other", file)
	cmd(t, f, text+lines(1), "import", "--format", "jsonl", "-w", "shop", "-")
	if len(f.imports) != 3 {
		t.Errorf("%d imports", len(f.imports))
	}
}

func TestImport_pages(t *testing.T) {
	t.Parallel()
	f := newFake()
	got := cmd(t, f, lines(250), "import", "--format", "jsonl", "-")
	if i := f.only(t); got.exit != 0 || len(i.pages) != 3 || len(i.pages[2].Items) != 50 || i.items()[249].Content != "fact 249" || !i.state.Done {
		t.Errorf("%+v, %d pages", got, len(i.pages))
	}

	// Pages stay small, whatever the text costs when it is encoded.
	f = newFake()
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"domain":"d","topic":"t%d","content":"%s"}`+"\n", i, strings.Repeat("<", 60000))
	}
	got = cmd(t, f, b.String(), "import", "--format", "jsonl", "-")
	if i := f.only(t); got.exit != 0 || len(i.pages) != 20 || len(i.items()) != 40 {
		t.Errorf("%d pages, %d items", len(i.pages), len(i.items()))
	}

	// A page of expired facts keeps its place.
	f = newFake()
	old := strings.ReplaceAll(lines(100), `"content"`, `"valid_until":"2020-01-01","content"`)
	got = cmd(t, f, old+lines(1), "import", "--format", "jsonl", "-")
	if i := f.only(t); got.exit != 0 || len(i.pages) != 2 || i.pages[0].Items == nil || len(i.pages[0].Items) != 0 || i.pages[1].Page != 1 {
		t.Errorf("pages = %+v", i.pages)
	}
}

func TestImport_nothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	if got := cmd(t, f, "\n\n", "import", "--format", "jsonl", "-"); got.exit != 0 || got.out != "Nothing to import: the file holds no facts.\n" {
		t.Errorf("got %+v", got)
	}
	if got := cmd(t, f, "[]", "import", "--format", "locomo", "-"); got.exit != 0 || got.out != "Nothing to import: the file holds no conversations.\n" {
		t.Errorf("got %+v", got)
	}
	got := cmd(t, f, "a,b\n1,2\n", "import", "--format", "jsonl", "-")
	if got.exit != record.ExitUsage || !strings.Contains(got.err, "no line of the file can be read as a fact; line 1: ") {
		t.Errorf("got %+v", got)
	}
	if f.dials != 0 {
		t.Error("it was dialled")
	}
}

// TestImport_resumed stops an import in its middle and starts it again.
func TestImport_resumed(t *testing.T) {
	t.Parallel()
	f := newFake()
	file := write(t, "facts.jsonl", "{bad\n"+strings.Replace(lines(450), "fact 42\"", " \"", 1)+`{"domain":"d","topic":"t","content":""}`)
	ctx, stop := context.WithCancel(t.Context())
	f.failPage = func(page int) error {
		if page == 2 {
			stop()
			return record.Errorf(record.Unavailable, "", "the call was cancelled")
		}
		return nil
	}
	got := cmdEnv(t, ctx, f, nil, "", "import", "--format", "jsonl", file)
	if got.exit != record.ExitUnavailable || got.out != "" || !strings.Contains(got.err, "interrupted after at least 200 facts went into workspace default") || !strings.Contains(got.err, "Try: the same command again") {
		t.Fatalf("got %+v", got)
	}

	f.failPage = nil
	got = cmd(t, f, "", "import", "--format", "jsonl", file, "--json", "--agent", "somebody-else")
	r := decode[imported](t, got.out)
	if got.exit != 0 || r.AlreadyImported || r.Items != 451 || r.Created != 449 || r.FailedCount != 3 {
		t.Errorf("report = %+v", r)
	}
	if got.err != "Going on after 200 facts that an earlier run imported into default.\n" {
		t.Errorf("stderr = %q", got.err)
	}
	var at []int
	for _, f := range r.Failed {
		at = append(at, f.Line)
	}
	if !slices.Equal(at, []int{1, 44, 452}) {
		t.Errorf("failed lines = %v", at)
	}
	var pages []int
	for _, p := range f.only(t).pages {
		pages = append(pages, p.Page)
	}
	if !slices.Equal(pages, []int{0, 1, 2, 3, 4}) {
		t.Errorf("pages = %v", pages)
	}
}

// TestImport_resumedAfterExpiry holds that facts which expire between two runs
// of an import move no fact to another page.
func TestImport_resumedAfterExpiry(t *testing.T) {
	t.Parallel()
	text := strings.Replace(lines(250), `"topic":"t7"`, `"topic":"t7","valid_until":"2026-03-01T12:00:30Z"`, 1)
	text = strings.Replace(text, "fact 42\"", " \"", 1)
	f := newFake()
	f.failPage = func(page int) error {
		if page == 1 {
			return record.Errorf(record.StoreCorrupt, "", "the file is damaged")
		}
		return nil
	}
	if got := cmd(t, f, text, "import", "--format", "jsonl", "-"); got.exit != record.ExitUnavailable {
		t.Fatalf("got %+v", got)
	}
	f.failPage = nil
	a := testApp(f)
	var out strings.Builder
	a.stdin, a.stdout = strings.NewReader(text), &out
	a.clock.now = laterThanNoon
	if exit := a.run(t.Context(), []string{"import", "--format", "jsonl", "-", "--json"}); exit != 0 {
		t.Fatal(exit)
	}
	items := f.only(t).items()
	if len(items) != 250 || items[100].Content != "fact 100" || items[249].Content != "fact 249" {
		t.Errorf("%d items", len(items))
	}
	// The first run counted the fact that is gone now: where the refused one
	// stands is not known any more.
	if r := decode[imported](t, out.String()); r.Items != 250 || r.FailedCount != 1 || r.Failed[0].Line != 0 || r.Omitted != 1 {
		t.Errorf("report = %+v", r)
	}
}

// TestImport_closedEarly holds that an import which ended before its last page
// is not taken for a whole one.
func TestImport_closedEarly(t *testing.T) {
	t.Parallel()
	f := newFake()
	cmd(t, f, lines(150), "import", "--format", "jsonl", "-")
	f.only(t).state.Report.Items = 100
	got := cmd(t, f, lines(150), "import", "--format", "jsonl", "-")
	if got.exit != record.ExitUnavailable || !strings.Contains(got.err, "closed after 100 of 150 facts") {
		t.Errorf("got %+v", got)
	}
}

func TestImport_patience(t *testing.T) {
	t.Parallel()
	const waits = "The worker does not answer; waiting up to 2m for it.\n"
	t.Run("the worker comes back elsewhere", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		failures := 0
		f.failPage = func(page int) error {
			if page == 1 && failures < 1 {
				failures++
				return away
			}
			return nil
		}
		f.dialErr = func(dial int) error {
			if dial > 1 && dial < 4 {
				return away
			}
			return nil
		}
		got := cmd(t, f, lines(300), "import", "--format", "jsonl", "-")
		if got.exit != 0 || got.err != waits+"The worker is back.\n" || f.dials != 4 || len(f.only(t).items()) != 300 {
			t.Errorf("got %+v, %d dials, %d items", got, f.dials, len(f.only(t).items()))
		}
	})
	t.Run("it does not come back", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		f.failPage = func(int) error { return away }
		got := cmd(t, f, lines(1), "import", "--format", "jsonl", "-", "--patience", "3s")
		if got.exit != record.ExitUnavailable || !strings.HasPrefix(got.err, "The worker does not answer; waiting up to 3s for it.\n") || !strings.Contains(got.err, "Try: the same command again; it goes on from there") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the page was taken, its answer lost", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		lost := false
		f.failPage = func(page int) error {
			if page == 1 && !lost {
				lost = true
				i := f.only(t)
				i.state.NextPage, i.state.Report.Items, i.state.Report.Created = 2, 200, 200
				return away
			}
			return nil
		}
		got := cmd(t, f, lines(300), "import", "--format", "jsonl", "-", "--json")
		if r := decode[imported](t, got.out); r.Items != 300 || len(f.only(t).pages) != 2 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("refusals are not waited for", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		f.failPage = func(int) error { return record.Errorf(record.StoreNewer, "", "written by a later version") }
		got := cmd(t, f, lines(1), "import", "--format", "jsonl", "-")
		if got.exit != record.ExitUnavailable || !strings.HasPrefix(got.err, "StoreNewer: ") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("nor is a worker that was never there", func(t *testing.T) {
		t.Parallel()
		f := newFake()
		f.dialErr = func(int) error { return away }
		got := cmd(t, f, lines(1), "import", "--format", "jsonl", "-")
		if got.exit != record.ExitUnavailable || f.dials != 1 || strings.Contains(got.err, "waiting") {
			t.Errorf("got %+v", got)
		}
	})
}

func TestImport_locomo(t *testing.T) {
	t.Parallel()
	file := write(t, "talk.json", talk[:len(talk)-1]+`, {"sample_id":"b","conversation":{"session_1_date_time":"1:00 am on 1 may, 2023","session_1":[{"speaker":"Bo","dia_id":"D1:1","text":"Hi"}]}}]`)
	f := newFake()
	got := cmd(t, f, "", "import", "--format", "locomo", file, "--json")
	all := decode[importedAll](t, got.out)
	if got.exit != 0 || got.err != "" || all.Items != 5 || all.Created != 5 || all.Omitted != 1 || all.Omissions[omitEmpty] != 1 || len(all.Workspaces) != 2 {
		t.Fatalf("got %+v", got)
	}
	if w := all.Workspaces[0]; w.Workspace != "talk-7" || w.Items != 4 || w.Omitted != 1 || all.Workspaces[1].Workspace != "b" {
		t.Errorf("workspaces = %+v", all.Workspaces)
	}
	for id, i := range f.imports {
		for _, item := range i.items() {
			if !strings.HasPrefix(id, item.Workspace+"/") || item.Agent != "mina" && item.Agent != "otto" && item.Agent != "bo" {
				t.Errorf("%s holds %+v", id, item)
			}
		}
	}
	golden(t, "import-locomo", cmd(t, newFake(), "", "import", "--format", "locomo", file).out+"--- again\n"+cmd(t, f, "", "import", "--format", "locomo", file).out)
	if len(f.imports) != 2 {
		t.Errorf("%d imports", len(f.imports))
	}
	cmd(t, f, "", "import", "--format", "locomo", file, "-w", "lab")
	if len(f.imports) != 4 {
		t.Errorf("%d imports", len(f.imports))
	}

	// Nothing is written of a file that is not good to its end.
	f = newFake()
	for _, more := range []string{talk[1:], `{"sample_id":"b"}]`} {
		got = cmd(t, f, talk[:len(talk)-1]+","+more, "import", "--format", "locomo", "-")
		if got.exit != record.ExitUsage || f.dials != 0 {
			t.Errorf("got %+v, %d dials", got, f.dials)
		}
	}
}

// TestImport_exported holds that import reads what export writes.
func TestImport_exported(t *testing.T) {
	t.Parallel()
	facts := []record.Fact{
		{ID: "f-1", Domain: "repo:web/d", Topic: "t", Content: "line\nbreak <b>\u2028 سلام", Confidence: 0.5, MemoryType: "goal", Veracity: "stated", SourceObservationIDs: []string{"o"},
			ValidUntil: at(t, "2030-01-01"), MentionCount: 2, AuthoredByAgent: "ada", AuthoredByRole: "qa", CreatedAt: at(t, "2025-01-01T01:02:03.000004Z")},
		{ID: "f-2", Domain: "d", Topic: "t", Content: "gone", SupersededAt: at(t, "2026-01-01"), CreatedAt: at(t, "2025-01-01")},
	}
	f := newFake()
	for _, fact := range facts {
		f.pages[record.ReadFacts] = append(f.pages[record.ReadFacts], fact)
	}
	out := cmd(t, f, "", "export", "--all").out
	got := cmd(t, f, out, "import", "--format", "jsonl", "-", "--json")
	if r := decode[imported](t, got.out); r.Items != 1 || r.Omitted != 1 || r.FailedCount != 0 {
		t.Fatalf("report = %+v", r)
	}
	item, want := f.only(t).items()[0], facts[0]
	if item.Domain != want.Domain || item.Topic != want.Topic || item.Content != want.Content || *item.Confidence != want.Confidence || item.MemoryType != string(want.MemoryType) ||
		item.Veracity != string(want.Veracity) || !slices.Equal(item.SourceObservationIDs, want.SourceObservationIDs) || item.ValidUntil != want.ValidUntil ||
		item.OccurredAt != want.CreatedAt || item.Agent != "ada" || item.Role != "qa" {
		t.Errorf("item = %+v", item)
	}
}

// TestImport_leavesNoFile holds that what was read from standard input is not
// left behind.
func TestImport_leavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, text := range []string{lines(1), "bad"} {
		cmd(t, newFake(), text, "import", "--format", "jsonl", "-")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
