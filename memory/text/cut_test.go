package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abcd", 1, "…"},
		{"abcd", 0, ""},
		{"abcd", -1, ""},
		{"日本語です", 5, "日本語です"},
		{"日本語です", 4, "日本語…"},
		{"xe\u0301y", 3, "x…"},
		{"xe\u0301yz", 4, "xe\u0301…"},
		{"", 5, ""},
	} {
		if got := Cut(c.in, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestCutAround(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("lorem ipsum dolor ", 20) + "the port of the gateway is 8080 now " + strings.Repeat("sit amet elit ", 20)
	got := CutAround(long, QueryTerms("gateway 8080"), 60)
	if !strings.Contains(got, "gateway is 8080") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
	if n := utf8.RuneCountInString(got); n > 60 || n < 45 {
		t.Errorf("%d runes: %q", n, got)
	}
	end := strings.Repeat("日本", 200) + "腾讯云"
	if got := CutAround(end, QueryTerms("腾讯云"), 20); !strings.HasSuffix(got, "腾讯云") || utf8.RuneCountInString(got) > 20 {
		t.Errorf("got %q", got)
	}
	start := "gateway " + strings.Repeat("x y z ", 100)
	if got := CutAround(start, QueryTerms("gateway"), 30); !strings.HasPrefix(got, "gateway") || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
	if got := CutAround("short", nil, 30); got != "short" {
		t.Errorf("got %q", got)
	}
	if got := CutAround(long, nil, 30); got != Cut(long, 30) {
		t.Errorf("got %q", got)
	}
	// Runes of every width straddle every limit.
	for n := range 40 {
		for _, s := range []string{strings.Repeat("a", n) + "日本語éя👍" + strings.Repeat("я", 30), strings.Repeat("👍", n) + "port 8080"} {
			for limit := range 40 {
				for _, got := range []string{Cut(s, limit), CutAround(s, QueryTerms("8080 日本"), limit)} {
					if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || utf8.RuneCountInString(got) > limit {
						t.Fatalf("%q to %d: %q", s, limit, got)
					}
				}
			}
		}
	}
}
