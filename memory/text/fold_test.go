package text

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"ascii", "Port Is 8080", "port is 8080"},
		{"ascii control", "a\x00b\x7fc\td", "a b c\td"},
		{"accents", "Café Đà Nẵng Ångström", "cafe da nang angstrom"},
		{"nfd", "Cafe\u0301", "cafe"},
		{"sharp s", "Straße STRASSE ẞ", "strasse strasse ss"},
		{"ligature", "ﬁle Æther œuvre", "file aether oeuvre"},
		{"polish", "Łódź", "lodz"},
		{"turkish", "İSTANBUL KULLANILIYOR kullanılıyor", "istanbul kullaniliyor kullaniliyor"},
		{"final sigma", "ΟΔΟΣ οδός", "οδοσ οδοσ"},
		{"yo and short i", "Тёмный ЙОД", "темный йод"},
		{"short i decomposed", "и\u0306", "й"},
		{"harakat and tatweel", "جلســة العَرَبِيّة", "جلسه العربیه"},
		{"yeh and kaf", "يك كتاب", "یک کتاب"},
		{"hamza forms", "أحمد إلى آب مؤمن مسائل", "احمد الی اب مومن مسایل"},
		{"heh forms", "ہم ھم ۀ", "هم هم ه"},
		{"digits", "٢٥ ۲۵ ２５ २५", "25 25 25 25"},
		{"arabic separators", "٩٩٫٥٪", "99.5%"},
		{"zero-width", "می\u200cخواهم a\u200db\ufeffc\u00adx", "میخواهم abcx"},
		{"full width", "ＡＰＩ（ｖ２）", "api(v2)"},
		{"half-width kana", "ｶﾞｽ", "ガス"},
		{"kana voicing", "か\u3099", "が"},
		{"hangul jamo", "\u1100\u1161\u11b7", "감"},
		{"devanagari keeps vowels", "फ़ाइलें", "फाइलें"},
		{"thai keeps vowels", "ที่นี่", "ที่นี่"},
		{"invalid", "a\xffb", "a\uFFFDb"},
		{"non-breaking space", "a\u00a0b", "a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Normalize(c.in); got != c.want {
				t.Errorf("Normalize(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// The short way and the long way must agree on every rune, or an accent
// elsewhere in the text would change how a word is indexed.
func TestSimpleRune_agrees(t *testing.T) {
	t.Parallel()
	for _, f := range []form{formSearch, formKey} {
		for r := rune(0); r <= utf8.MaxRune; r++ {
			out, ok := simpleRune(r, f)
			if !ok {
				continue
			}
			got := ""
			if out >= 0 {
				got = string(out)
			}
			want := foldOnce(foldOnce(string(r), f), f)
			if got != want {
				t.Errorf("form %d: simpleRune(%U) = %q, the long way gives %q", f, r, got, want)
			}
		}
	}
}

func TestFold_everyRuneIsStable(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= 0x323AF; r++ {
		s := "a" + string(r) + "\u0301"
		for _, fn := range []func(string) string{Normalize, Key, Slug} {
			once := fn(s)
			if twice := fn(once); twice != once {
				t.Fatalf("%U: %q becomes %q", r, once, twice)
			}
			if !norm.NFC.IsNormalString(once) {
				t.Fatalf("%U: %q is not NFC", r, once)
			}
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"", "Café", "جلســة", "می\u200cخواهم", "ｶﾞ", "\xff\xfe", "İ\u0307ı", "a\u0345\u0301", "\u1100\u200d\u1161", "ﷺ", "क\u094d\u093cष", "่ก"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, fn := range map[string]func(string) string{"Normalize": Normalize, "Key": Key} {
			once := fn(s)
			if !utf8.ValidString(once) {
				t.Fatalf("%s(%q) is not valid UTF-8", name, s)
			}
			if twice := fn(once); twice != once {
				t.Fatalf("%s(%q) = %q, and again %q", name, s, once, twice)
			}
			if utf8.ValidString(s) {
				if nfd := fn(norm.NFD.String(s)); nfd != fn(norm.NFC.String(s)) {
					t.Fatalf("%s differs between NFC and NFD of %q", name, s)
				}
			}
		}
		if ContentKey(s) != ContentKey(Key(s)) {
			t.Fatalf("ContentKey(%q) is not that of its Key", s)
		}
		Blank(s)
		Entities(s)
	})
}
