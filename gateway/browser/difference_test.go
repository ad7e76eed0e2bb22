package browser

import (
	"strings"
	"testing"
)

func TestDifference(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"a word", "the port is 8080", "the port is 9090", "the port is -8080-+9090+"},
		{"nothing", "same", "same", "same"},
		{"from nothing", "", "new", "+new+"},
		{"no spaces", "部署到生产", "部署到测试", "部署到-生产-+测试+"},
		{"right to left", "پورت ۸۰ است", "پورت ۹۰ است", "پورت -۸۰-+۹۰+ است"},
		{"too long to compare", strings.Repeat("a ", 700), "b", "-" + strings.Repeat("a ", 700) + "-+b+"},
		{"not text", "a\xffb", "a\xffc", "a\xff-b-+c+"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, before, after strings.Builder
			for _, s := range difference(c.before, c.after) {
				switch s.Kind {
				case "removed":
					got.WriteString("-" + s.Text + "-")
					before.WriteString(s.Text)
				case "added":
					got.WriteString("+" + s.Text + "+")
					after.WriteString(s.Text)
				default:
					got.WriteString(s.Text)
					before.WriteString(s.Text)
					after.WriteString(s.Text)
				}
			}
			if got.String() != c.want {
				t.Errorf("got %q, want %q", got.String(), c.want)
			}
			if before.String() != c.before || after.String() != c.after {
				t.Errorf("the sides are %q and %q", before.String(), after.String())
			}
		})
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 fact": count(1, "fact"), "0 facts": count(0, "fact"), "2 matches": count(2, "match"), "3 policies": count(3, "policy"),
		"1,000 facts": count(1000, "fact"), "1,234,567 facts": count(int64(1234567), "fact"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
