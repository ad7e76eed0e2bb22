package browser

import (
	"embed"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

//go:embed pages
var pageFiles embed.FS

// loadTemplates reads every page together with the layout and the parts that
// pages share.
func loadTemplates(a *assets) (map[string]*template.Template, error) {
	shared, err := template.New("").Funcs(template.FuncMap{
		"asset": func(name string) (string, error) {
			p, found := a.paths[name]
			if !found {
				return "", fmt.Errorf("there is no asset %s", name)
			}
			return p, nil
		},
		"day": day, "moment": moment, "stamp": stamp, "percent": percent, "level": level, "words": words, "excerpt": excerpt, "count": count, "column": columnOf, "inc": func(n int) int { return n + 1 },
	}).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, err
	}
	names, err := pageFiles.ReadDir("pages")
	if err != nil {
		return nil, err
	}
	out := map[string]*template.Template{}
	for _, n := range names {
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(pageFiles, "pages/"+n.Name())
		}
		if err != nil {
			return nil, err
		}
		out[n.Name()] = t
	}
	return out, nil
}

// Times are shown in UTC: pages stay the same bytes while nothing changed, and
// two people who talk about one see the same.
func day(t record.Time) string    { return t.UTC().Format("2 Jan 2006") }
func moment(t record.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") }
func stamp(t record.Time) string  { return t.UTC().Format("2006-01-02T15:04:05Z") }

func percent(share float64) string { return strconv.Itoa(int(share*100+0.5)) + "%" }

// level is how a confidence is coloured: with the weight of what agents infer
// by default in the middle.
func level(share float64) string {
	switch {
	case share >= 0.8:
		return "high"
	case share < 0.5:
		return "low"
	}
	return "middle"
}

// words shows a name of the vocabulary, like related_to, as words.
func words(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") }

// excerptRunes bounds what a list shows of a long text.
const excerptRunes = 420

func excerpt(s string) string {
	if r := []rune(s); len(r) > excerptRunes {
		return strings.TrimSpace(string(r[:excerptRunes])) + "…"
	}
	return s
}

// count shows a number with the noun it counts, in the plural where it needs
// one: count 2 "fact" is "2 facts".
func count(n any, noun string) string {
	text := fmt.Sprint(n)
	if text != "1" {
		switch {
		case strings.HasSuffix(noun, "y"):
			noun = strings.TrimSuffix(noun, "y") + "ies"
		case strings.HasSuffix(noun, "ch"):
			noun += "es"
		default:
			noun += "s"
		}
	}
	return grouped(text) + " " + noun
}

// grouped puts commas between the thousands of a number without a sign.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
