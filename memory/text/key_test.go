package text

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"  Deploy \t\n Target ", "deploy target"},
		{"Résumé", "résumé"},
		{"Re\u0301sume\u0301", "résumé"},
		{"ＡＰＩ　Ｋｅｙｓ", "api keys"},
		{"پورت‌ها", "پورتها"},
		{"پورت ۸۰", "پورت 80"},
		{"يك", "یک"},
		{"لڑکے", "لڑکے"},
		{"İstanbul", "istanbul"},
		{"ISTANBUL", "istanbul"},
		{"zero\u200bwidth\ufeff", "zerowidth"},
		{"Ёж", "ёж"},
	} {
		if got := Key(c.in); got != c.want {
			t.Errorf("Key(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if Key("resume") == Key("résumé") {
		t.Error("an accent makes another topic")
	}
	if Key("لڑکی") == Key("لڑکے") {
		t.Error("yeh barree makes another topic")
	}
}

func TestContentKey(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{"port is 8080", "Port is 8080."},
		{"port is 8080", "  PORT  is ８０８０ 。"},
		{`The guide says "be brief"`, "The guide says “be brief”."},
		{"L’équipe code", "L'équipe code"},
		{"سرور پورٹ ۸۰۸۰ پر چلتا ہے۔", "سرور پورٹ 8080 پر چلتا ہے"},
		{"यह ठीक है।", "यह ठीक है"},
		{"café", "cafe\u0301"},
		{"5–7 days", "5-7 days"},
	} {
		if ContentKey(same[0]) != ContentKey(same[1]) {
			t.Errorf("%q and %q are one statement", same[0], same[1])
		}
	}
	for _, differ := range [][2]string{
		{"port is 8080", "port is 8081"},
		{"port is 8080", "port is 8080?"},
		{"use C", "use C++"},
		{"use C++", "use C#"},
		{"use C", "use C#"},
		{"v1.2", "v12"},
		{"timeout 30s", "timeout 30m"},
		{"cafe", "café"},
		{"a-b", "ab"},
		{"uptime 99.9%", "uptime 99.9"},
		{"...", "!!!"},
	} {
		if ContentKey(differ[0]) == ContentKey(differ[1]) {
			t.Errorf("%q and %q are two statements", differ[0], differ[1])
		}
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"---", ""},
		{"../..", ""},
		{"\u200b", ""},
		{"Architecture", "architecture"},
		{"  My  Repo/Name__x ", "my-repo-name-x"},
		{"معماری نرم‌افزار", "معماری-نرمافزار"},
		{"データベース設計", "データベース設計"},
		{"हिन्दी नाम", "हिन्दी-नाम"},
		{"Größe & Ziel", "grösse-ziel"},
		{"２０２６ plan", "2026-plan"},
		{"C++", "c"},
		{"👍 ok", "ok"},
		{"a\xffb", "a-b"},
		{"\u0301x", "x"},
	} {
		if got := Slug(c.in); got != c.want {
			t.Errorf("Slug(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", " \t\r\n", "\u200b", "\ufeff\u2060", "\u00a0\u3000\u2028", "\u3164", "\uffa0", "\u202e\u2066", "\ufe0f", "\u00ad", "\x00\x07", "\u2800", "\u034f\U000e0020"} {
		if !Blank(s) {
			t.Errorf("Blank(%q) = false", s)
		}
	}
	for _, s := range []string{"a", " . ", "é", "字", "👍", "\xff", "\ufffd", "\u200b0"} {
		if Blank(s) {
			t.Errorf("Blank(%q) = true", s)
		}
	}
}

func FuzzSlug(f *testing.F) {
	for _, s := range []string{"", "My Repo", "../x", "क्ष", "\u0301x", "a\xff", "İ", "가\u11a8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Slug(s)
		if again := Slug(got); again != got {
			t.Fatalf("Slug(%q) = %q, and again %q", s, got, again)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("Slug(%q) is not valid UTF-8", s)
		}
		prev := '-'
		for _, r := range got {
			if r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
				t.Fatalf("Slug(%q) = %q holds %U", s, got, r)
			}
			if r == '-' && prev == '-' {
				t.Fatalf("Slug(%q) = %q has a hyphen too many", s, got)
			}
			prev = r
		}
		if got != "" && prev == '-' {
			t.Fatalf("Slug(%q) = %q ends in a hyphen", s, got)
		}
	})
}
