package text

import "testing"

func TestName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{" -- ", ""},
		{"\u200c", ""},
		{"  Front End/UI ", "Front-End-UI"},
		{"نرم\u200cافزار", "نرم\u200cافزار"},
		{"نرم\u200c", "نرم"},
		{"a\u200bb", "ab"},
		{"Größe", "Größe"},
		{"हिन्दी", "हिन्दी"},
		{"a\xffb", "a-b"},
	} {
		got := Name(c.in)
		if got != c.want {
			t.Errorf("Name(%q) = %q, want %q", c.in, got, c.want)
		}
		if Name(got) != got {
			t.Errorf("Name(%q) is not stable", got)
		}
		if Key(got) != Slug(c.in) {
			t.Errorf("Key(Name(%q)) = %q, Slug is %q", c.in, Key(got), Slug(c.in))
		}
	}
}
