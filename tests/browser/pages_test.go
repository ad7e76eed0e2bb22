package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPages starts Chromium once; each part has its own memory and tab.
func TestPages(t *testing.T) {
	chromium := startChromium(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *site, *tab)
	}{
		{"read, search and sort", readSearchSort},
		{"looks", looks},
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
		for _, p := range []struct{ name, path string }{
			{"facts", ""}, {"fact", "/facts/" + seeded.berth}, {"edit", "/facts/" + seeded.berth + "/edit"}, {"delete", "/facts/" + seeded.berth + "/delete"},
			{"policies", "/policies"}, {"graph", "/graph"}, {"conflicts", "/conflicts?all=1"}, {"beliefs", "/beliefs"}, {"nothing", "/facts/none"},
		} {
			if p.name == "nothing" {
				b.expect("404")
			}
			b.open(s.path(p.path))
			if p.name == "graph" {
				b.until("document.getElementById('graph').dataset.ready")
			}
			b.accessible()
			b.picture(p.name + "-" + scheme)
		}
	}
}
