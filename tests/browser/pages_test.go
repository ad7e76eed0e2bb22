package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestPages starts Chromium once; each part has its own memory and tab.
func TestPages(t *testing.T) {
	chromium := startChromium(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *site, *tab)
	}{
		{"read, search and sort", readSearchSort},
		{"edit with a version conflict", editConflict},
		{"delete with confirmation", deletes},
		{"graph by mouse and keys", graphByMouseAndKeys},
		{"tabs by keyboard", tabsByKeyboard},
		{"dark mode", darkMode},
		{"right to left", rightToLeft},
		{"10,000 facts", tenThousand},
		{"script-like text is text", scriptAsText},
		{"live updates", liveUpdates},
		{"without scripts", withoutScripts},
		{"narrow", narrow},
		{"every page, in light and dark", looks},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, openSite(t), newTab(t, chromium)) })
	}
}

func readSearchSort(t *testing.T, s *site, b *tab) {
	s.seed()
	b.open(s.url)
	b.do(chromedp.Click(`a[href="/workspaces/harbour/settings/memory"]`))
	b.shows("Berth planner")
	b.do(chromedp.SetValue("input[name=q]", "crane telemetry"), chromedp.Submit("form.filters"))
	b.shows("Crane 7 drops telemetry")
	if strings.Contains(b.text(), "Harbour master") {
		t.Error("a search shows what does not match")
	}
	b.open(s.path(""))
	b.do(chromedp.Click(`//th/a[text()="Confidence"]`))
	b.until(`document.querySelector("th[aria-sort=descending]")?.innerText.startsWith("Confidence")`)
	const confidence = "parseInt(document.querySelector('tbody .figure').innerText)"
	most := eval[int](b, confidence)
	b.do(chromedp.Click(`//th/a[text()="Confidence"]`))
	b.until(`document.querySelector("th[aria-sort=ascending]")?.innerText.startsWith("Confidence")`)
	if least := eval[int](b, confidence); most != 100 || least != 42 {
		t.Errorf("sorted by confidence, the first has %d%% and turned around %d%%", most, least)
	}
}

func looks(t *testing.T, s *site, b *tab) {
	seeded := s.seed()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, p := range []struct{ name, path, pictured string }{
			{"facts", "", "light"}, {"fact", "/facts/" + seeded.berth, "dark"}, {"edit", "/facts/" + seeded.berth + "/edit", ""}, {"delete", "/facts/" + seeded.berth + "/delete", ""},
			{"policies", "/policies", "light"}, {"graph", "/graph", "dark"}, {"conflicts", "/conflicts?all=1", "light"}, {"beliefs", "/beliefs", ""}, {"nothing", "/facts/none", ""},
		} {
			if p.name == "nothing" {
				b.expect("404")
			}
			b.open(s.path(p.path))
			if p.name == "graph" {
				b.until("document.getElementById('graph').dataset.ready")
			}
			b.accessible()
			if p.pictured == scheme {
				b.picture(p.name)
			}
		}
	}
}

func editConflict(t *testing.T, s *site, b *tab) {
	id := s.hold(record.ProposeFact{Domain: "ops", Topic: "Crane limit", Content: "Crane 3 lifts at most 40 tonnes."})
	b.open(s.path(""))
	b.do(chromedp.Click(`a[data-drawer]`), chromedp.WaitVisible(`#drawer[open] #detail`))
	b.do(chromedp.Click(`//dialog//a[text()="Edit"]`), chromedp.WaitVisible(`#drawer textarea`))
	if v := eval[string](b, `document.querySelector("#drawer textarea").value`); v != "Crane 3 lifts at most 40 tonnes." {
		t.Errorf("the form holds %q", v)
	}
	// An agent's colleague is faster.
	faster := "Crane 3 lifts at most 45 tonnes."
	s.with(func(store *memory.Store) error {
		_, err := store.UpdateFact(t.Context(), record.UpdateFact{Caller: by("noor", "devops"), FactID: id, ExpectedVersion: s.version(id), Content: &faster})
		return err
	})
	b.expect("409")
	b.do(chromedp.SetValue("#drawer textarea", "Crane 3 lifts at most 50 tonnes."), chromedp.Click(`//dialog//button[text()="Save"]`))
	b.shows("Somebody changed it since you read it.")
	b.until(`document.activeElement.getAttribute("role") === "alert"`)
	if was := eval[string](b, `document.querySelector("#drawer del").innerText`); was != "45" {
		t.Errorf("the conflict shows %q as what would go", was)
	}
	if typed := eval[string](b, `document.querySelector("#drawer textarea").value`); typed != "Crane 3 lifts at most 50 tonnes." {
		t.Errorf("what was typed became %q", typed)
	}
	b.accessible()
	b.picture("version-conflict")
	b.do(chromedp.Click(`//dialog//button[text()="Save"]`))
	b.shows("Saved. What it said before is kept")
	b.press(kb.Escape)
	b.until(`!document.getElementById("drawer").open`)
	b.shows("50 tonnes")
	b.until(`document.activeElement.matches("a[data-drawer]")`)
}

func deletes(t *testing.T, s *site, b *tab) {
	s.hold(record.ProposeFact{Domain: "ops", Topic: "Gate code", Content: "The gate code hint is swordfish."})
	s.hold(record.ProposeFact{Domain: "ops", Topic: "Crane limit", Content: "Crane 3 lifts at most 40 tonnes."})
	b.open(s.path("?sort=topic"))
	b.do(chromedp.Click(`//a[text()="Gate code"]`), chromedp.WaitVisible(`//dialog//a[text()="Delete"]`))
	b.do(chromedp.Click(`//dialog//a[text()="Delete"]`))
	b.shows("Delete this fact?")
	b.do(chromedp.Click(`//dialog//a[text()="Keep it"]`), chromedp.WaitVisible(`//dialog//a[text()="Delete"]`))
	b.do(chromedp.Click(`//dialog//a[text()="Delete"]`), chromedp.WaitVisible(`//dialog//button[text()="Delete for good"]`), chromedp.Click(`//dialog//button[text()="Delete for good"]`))
	b.shows("Deleted. Its words are gone")
	b.open(s.path("?all=1"))
	if strings.Contains(b.text(), "swordfish") || !strings.Contains(b.text(), "40 tonnes") {
		t.Errorf("after the deletion the page says %s", b.text())
	}
	b.open(s.path("?q=swordfish"))
	b.shows("No fact matches")
}

func graphByMouseAndKeys(t *testing.T, s *site, b *tab) {
	s.seed()
	b.open(s.path("/graph"))
	b.until(`document.getElementById("graph").dataset.ready`)
	// Drag a node: it follows the mouse.
	at := eval[map[string]float64](b, `(() => { const n = polyphony.graph.nodes("[kind='domain']")[0], r = document.getElementById("graph").getBoundingClientRect(), p = n.renderedPosition(); polyphony.dragged = n; return {x: r.x + p.x, y: r.y + p.y, was: n.position().x}; })()`)
	b.do(chromedp.DragAndDropXY(at["x"], at["y"], at["x"]+60, at["y"]+20, 8))
	if now := eval[float64](b, "polyphony.dragged.position().x"); now <= at["was"] {
		t.Errorf("a dragged node went from %v to %v", at["was"], now)
	}
	// Keys: choose, walk, zoom, open.
	b.do(chromedp.Focus("#graph"))
	before := eval[float64](b, "polyphony.graph.zoom()")
	b.press("+")
	if after := eval[float64](b, "polyphony.graph.zoom()"); after <= before {
		t.Errorf("plus zooms from %v to %v", before, after)
	}
	b.press("0")
	b.press(kb.ArrowRight)
	b.until(`document.getElementById("picked").innerText.startsWith("Domain: ")`)
	seen := map[string]bool{}
	for _, key := range []string{kb.ArrowDown, kb.ArrowRight, kb.ArrowUp, kb.ArrowLeft} {
		b.press(key)
		seen[eval[string](b, `document.getElementById("picked").innerText`)] = true
	}
	if len(seen) < 2 {
		t.Errorf("arrow keys stay at %v", seen)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`polyphony.graph.nodes("[kind='fact']")[0].emit("tap"); 0`))
	b.until(`document.getElementById("picked").innerText.startsWith("Fact: ")`)
	b.press(kb.Enter)
	b.do(chromedp.WaitVisible("#drawer[open] #detail"))
}

func tabsByKeyboard(t *testing.T, s *site, b *tab) {
	s.seed()
	b.open(s.path(""))
	b.press(kb.Tab)
	if skip := eval[string](b, "document.activeElement.innerText"); skip != "Skip to the content" {
		t.Errorf("the first stop is %q", skip)
	}
	b.press(kb.Tab)
	b.press(kb.Tab)
	b.press(kb.ArrowRight)
	if tab := eval[string](b, "document.activeElement.innerText"); tab != "Policies" {
		t.Errorf("an arrow leads to %q", tab)
	}
	b.press(kb.End)
	if tab := eval[string](b, "document.activeElement.innerText"); tab != "Beliefs" {
		t.Errorf("End leads to %q", tab)
	}
	b.press(kb.Home)
	b.press(kb.ArrowRight)
	b.press(kb.Enter)
	b.shows("Never deploy to a quay controller")
	if tab := eval[string](b, `document.querySelector(".tabs [aria-current]").innerText`); tab != "Policies" {
		t.Errorf("the current tab is %q", tab)
	}
}

func darkMode(t *testing.T, s *site, b *tab) {
	s.seed()
	const light = `(() => { const c = getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).slice(0, 3).map(Number); return c[0] + c[1] + c[2]; })()`
	b.scheme("light")
	b.open(s.path(""))
	if sum := eval[int](b, light); sum < 600 {
		t.Errorf("the light page's ground is %d", sum)
	}
	b.scheme("dark")
	if sum := eval[int](b, light); sum > 200 {
		t.Errorf("the dark page's ground is %d", sum)
	}
}

func rightToLeft(t *testing.T, s *site, b *tab) {
	s.hold(record.ProposeFact{Domain: "people", Topic: "تماس با بندر", Content: "مسئول اسکله ۷ کاوه رستمی است (Kaveh)."})
	s.hold(record.ProposeFact{Domain: "people", Topic: "Harbour master", Content: "The harbour master prefers a call."})
	b.open(s.path("?sort=created&dir=asc"))
	got := eval[[]string](b, `Array.from(document.querySelectorAll(".statement > p:first-of-type"), p => { const r = document.createRange(); r.selectNodeContents(p); const t = r.getBoundingClientRect(), box = p.getBoundingClientRect(); return getComputedStyle(p).direction + (Math.abs(t.right - box.right) < 2 ? " at the right" : " at the left"); })`)
	if len(got) != 2 || got[0] != "rtl at the right" || got[1] != "ltr at the left" {
		t.Errorf("the statements are laid out %v", got)
	}
	b.do(chromedp.SetValue("input[name=q]", "كاوه"), chromedp.Submit("form.filters"))
	b.shows("کاوه رستمی")
}

func tenThousand(t *testing.T, s *site, b *tab) {
	const all, page = 10_000, 500
	for n := 0; n < all/page; n++ {
		req := record.ImportFacts{Caller: by("", ""), Source: strings.Repeat("a", 64), Page: n}
		for i := range page {
			k := n*page + i
			req.Items = append(req.Items, record.ProposeFact{Caller: by("import", ""), Domain: fmt.Sprintf("area-%d", k%7), Topic: fmt.Sprintf("bay %05d", k), Content: fmt.Sprintf("bay %05d holds container %d", k, 700000+k)})
		}
		s.with(func(store *memory.Store) error {
			_, err := store.ImportFactsPage(t.Context(), req)
			return err
		})
	}
	b.open(s.path("?sort=topic&dir=asc"))
	b.shows("1–50 of 10,000 facts")
	if rows := eval[int](b, "document.querySelectorAll('tbody tr').length"); rows != 50 {
		t.Errorf("a page has %d rows", rows)
	}
	b.do(chromedp.Click(`a[rel=next]`))
	b.shows("51–100 of 10,000 facts")
	b.open(s.path("?sort=topic&dir=asc&page=200"))
	b.shows("bay 09999")
	b.open(s.path("?q=container+705432"))
	b.shows("bay 05432")
	b.open(s.path("/graph"))
	b.until(`document.getElementById("graph").dataset.ready`)
	b.shows("older facts left out")
	began := time.Now()
	res, err := http.Get(s.path("?sort=confidence&page=100"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	t.Logf("a page in the middle of 10,000 facts, sorted: %v", time.Since(began))
}

func scriptAsText(t *testing.T, s *site, b *tab) {
	const nasty = `<script>window.hurt = 1</script><img src=x onerror="window.hurt = 2"><a href="javascript:window.hurt=3">x</a>`
	id := s.hold(record.ProposeFact{Caller: record.Caller{Workspace: workspace, Agent: nasty}, Domain: "ops", Topic: nasty, Content: nasty})
	for _, path := range []string{"", "?q=script+window", "/facts/" + id, "/facts/" + id + "/edit", "/facts/" + id + "/delete"} {
		b.open(s.path(path))
		if !strings.Contains(b.text()+eval[string](b, "document.querySelector('textarea')?.value ?? ''"), "<script>window.hurt") {
			t.Errorf("%s does not show the text", path)
		}
	}
	b.open(s.path("/graph"))
	b.until(`document.getElementById("graph").dataset.ready`)
	b.do(chromedp.Evaluate[chromedp.Void](`polyphony.graph.nodes("[kind='fact']")[0].emit("tap"); 0`))
	b.shows("Fact: <script>window.hurt")
	b.open(s.path(""))
	b.do(chromedp.Click("a[data-drawer]"), chromedp.WaitVisible("#drawer[open] #detail"))
	if hurt := eval[bool](b, "'hurt' in window"); hurt {
		t.Error("stored text ran")
	}
}

func liveUpdates(t *testing.T, s *site, b *tab) {
	s.hold(record.ProposeFact{Domain: "ops", Topic: "Crane limit", Content: "Crane 3 lifts at most 40 tonnes."})
	b.open(s.path(""))
	b.shows("40 tonnes")
	s.hold(record.ProposeFact{Domain: "ops", Topic: "Quay length", Content: "Quay 2 is 310 metres long."})
	b.shows("310 metres")
	if said := eval[string](b, "document.getElementById('said').textContent"); said == "" {
		t.Error("the change is not announced")
	}
}

func withoutScripts(t *testing.T, s *site, b *tab) {
	seeded := s.seed()
	b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.do(chromedp.Navigate(s.path("")), chromedp.WaitReady("table.rows"))
	b.do(chromedp.Click(`//a[text()="Berth planner"]`), chromedp.WaitReady("article#detail"))
	if at := give(b, chromedp.Location()); !strings.HasSuffix(at, "/facts/"+seeded.berth) {
		t.Errorf("a link leads to %s", at)
	}
	if text := give(b, chromedp.Text("article#detail")); !strings.Contains(text, "PostgreSQL 17") {
		t.Errorf("the page says %s", text)
	}
	// A plain form of ours passes the guard.
	b.do(chromedp.Click(`//a[text()="Edit"]`), chromedp.WaitReady("textarea"), chromedp.Click(`//button[text()="Save"]`), chromedp.WaitReady(".notice"))
	if text := give(b, chromedp.Text("article#detail")); !strings.Contains(text, "Saved.") {
		t.Errorf("saving answers %s", text)
	}
	b.do(chromedp.Navigate(s.path("/graph")), chromedp.WaitReady(".tree"))
	if text := give(b, chromedp.Text(".tree")); !strings.Contains(text, "architecture") {
		t.Errorf("the graph as a list says %s", text)
	}
}

func narrow(t *testing.T, s *site, b *tab) {
	s.seed()
	b.do(chromedp.EmulateViewport(390, 844))
	for _, path := range []string{"", "/policies", "/conflicts?all=1", "/graph"} {
		b.open(s.path(path))
		if over := eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
			t.Errorf("%s is %d pixels too wide for a telephone", path, over)
		}
		b.accessible()
	}
	b.open(s.path(""))
	b.picture("narrow")
}
