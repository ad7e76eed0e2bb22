package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func texts(terms []Term) []string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = t.Text
	}
	return out
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"...", ""},
		{`" ' * ^ ( ) : - + ~ { } [ ] , . / \ %`, ""},
		{"Deploys run", "deploys deploy run"},
		{"uteke-cloud-dev", "uteke-cloud-dev uteke utek cloud dev"},
		{"snake_case_name", "snake_case_name snake case name"},
		{"parseConfig", "parseconfig parse pars config"},
		{"HTTPServer", "httpserver http server"},
		{"IDs", "ids"},
		{"v1.2.3", "v1.2.3 1.2.3 v1 1 2 3"},
		{"C++, C# and C", "c++ c c# c and c"},
		{"--force -f", "--force force forc -f f"},
		{"/etc/nginx/nginx.conf", "/etc/nginx/nginx.conf etc nginx nginx.conf nginx conf"},
		{"HTTP-504", "http-504 http 504"},
		{"E_CONN_RESET", "e_conn_reset e conn reset"},
		{"a1b2c3d4", "a1b2c3d4"},
		{"9F3C2AB.", "9f3c2ab"},
		{"8080", "8080"},
		{"99.95%", "99.95% 99.95 99 95"},
		{"ubuntu 20.04", "ubuntu 20.04 20 04 4"},
		{"1,500 calls", "1500 calls call"},
		{"30s", "30s 30"},
		{"sara@acme.io", "sara@acme.io sara acme.io acme acm io"},
		{"https://docs.example.com/api/", "https://docs.example.com/api https docs.example.com docs doc example exampl com api"},
		{"(ADR-0005)", "adr-0005 adr 0005 5"},
		{"fastembed_bge-small", "fastembed_bge-small fastembed fastemb bge small"},
		{"e.g. U.S.", "eg us"},
		{"don't", "dont"},
		{"Sara's", "saras sara"},
		{"l’équipe", "lequipe equipe equip"},
		{"~/.config/x.toml", "~/.config/x.toml .config config x.toml x toml"},
		{"@scope/pkg #123 $HOME", "@scope/pkg scope pkg #123 123 $home home"},
		{"PostgreSQL16", "postgresql16 postgresql postgre postgr sql 16"},
		{"utf8mb4", "utf8mb4 utf 8 mb 4"},
		{"a,b,c", "a b c"},
		{"f(x)", "f x"},
		{"x^2", "x 2"},
		{"GB/s", "gb/s gb s"},
		{"腾讯云", "腾 腾讯 讯 讯云 云"},
		{"使用MySQL。", "使 使用 用 mysql my sql"},
		{"도쿄에", "도쿄에 도 도쿄 쿄 쿄에 에"},
		{"API는 서버", "api 는 서버 서 버"},
		{"サバ", "サ サバ バ"},
		{"тёмная", "темная темн"},
		{"می\u200cخواهم", "میخواهم خواهم"},
		{"کتاب\u200cها", "کتابها کتاب"},
		{"👍", "👍"},
	} {
		got := strings.Join(texts(Terms(c.in)), " ")
		want := strings.Join(strings.Fields(c.want), " ")
		if got != want {
			t.Errorf("Terms(%q)\n got %s\nwant %s", c.in, got, want)
		}
	}
}

func TestTerms_exact(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"uteke-cloud-dev", "snake_case", "camelCase", "v1.2.3", "C++", "C#", "--force", "/etc/hosts", "HTTP-504", "E_CONN_RESET", "ECONNRESET", "a1b2c3d4", "8080", "99.95%", "20.04", "v3", "it/is"} {
		got := QueryTerms(s)
		if len(got) == 0 || !got[0].Exact || got[0].Text != strings.ToLower(s) {
			t.Errorf("QueryTerms(%q) = %v, want it whole and exact first", s, got)
		}
	}
	for _, s := range []string{"deploy", "Sara", "腾讯", "don't"} {
		if got := Terms(s); len(got) == 0 || got[0].Exact {
			t.Errorf("Terms(%q) = %v, want a plain word", s, got)
		}
	}
}

// What was stored in one spelling is found in the other.
func TestTerms_meet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stored, query string }{
		{"тёмная тема", "тёмную тему"},
		{"тёмная тема", "ТЁМНАЯ"},
		{"тёмная тема", "темная"},
		{"用户服务器部署在腾讯云国内节点", "腾讯云"},
		{"用户服务器部署在腾讯云国内节点", "部署"},
		{"用户服务器部署在腾讯云国内节点", "云"},
		{"サンドボックス修正テスト", "サンドボックス"},
		{"서버는 도쿄에 있다", "도쿄"},
		{"서버는 도쿄에 있다", "서버"},
		{"เซิร์ฟเวอร์อยู่ที่กรุงเทพ", "กรุงเทพ"},
		{"café", "cafe\u0301"},
		{"cafe\u0301", "café"},
		{"Đà Nẵng", norm.NFD.String("Đà Nẵng")},
		{norm.NFD.String("감"), "감"},
		{"see ADR-0005", "0005"},
		{"see ADR-0005", "ADR 5"},
		{"می\u200cخواهم", "میخواهم"},
		{"می\u200cخواهم", "می خواهم"},
		{"میخواهم", "می خواهم"},
		{"می خواهم", "میخواهم"},
		{"میخواهم", "می\u200cخواهم"},
		{"كتاب‌ها", "کتاب ها"},
		{"کتابها", "کتاب"},
		{"المكتبة", "مکتبه"},
		{"पोर्ट फ़ाइलें", "फाइल"},
		{"ＡＰＩ ８０８０", "api 8080"},
		{"Straße", "STRASSE"},
		{"oceanbase-blue-116", "oceanbase 116"},
		{"L'équipe paiement", "equipe"},
		{"deployments", "deployment"},
		{"the parseConfigs call", "config"},
		{"PostgreSQL16", "postgresql"},
		{"İSTANBUL", "istanbul"},
	} {
		stored := texts(Terms(c.stored))
		hit := false
		for _, q := range QueryTerms(c.query) {
			hit = hit || slices.Contains(stored, q.Text)
		}
		if !hit {
			t.Errorf("%q %v does not find %q %v", c.query, texts(QueryTerms(c.query)), c.stored, stored)
		}
	}
}

func TestQueryTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"who are you", ""},
		{"it", ""},
		{"IT", ""},
		{"the US region", "us region"},
		{"GET requests", "get requests request"},
		{"你是谁", ""},
		{"これは何ですか", "これは は何 何で すか"},
		{"please do not reply to them again", "reply repli"},
		{"deploy deploy Deploy", "deploy"},
		{"腾讯云", "腾讯 讯云"},
		{"云", "云"},
		{"2026", "2026"},
		{"v3", "v3 3"},
		{"what does NEAR mean", "near mean"},
		{"کجا است", ""},
		{"где это", ""},
	} {
		got := strings.Join(texts(QueryTerms(c.in)), " ")
		if c.in == "これは何ですか" {
			if !strings.Contains(got, "は何") {
				t.Errorf("QueryTerms(%q) = %s", c.in, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("QueryTerms(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if n := len(QueryTerms(strings.Repeat("alpha1 beta2 gamma3 ", 10) + manyWords(500))); n != maxQueryTerms {
		t.Errorf("a long query has %d terms, want %d", n, maxQueryTerms)
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("w")
		b.WriteByte(byte('a' + i%26))
		b.WriteByte(byte('a' + i/26))
		b.WriteByte(' ')
	}
	return b.String()
}

func TestTerms_offsets(t *testing.T) {
	t.Parallel()
	s := "Ｐort CAFE\u0301 میخواهم HTTP-504"
	for _, c := range []struct{ term, want string }{
		{"port", "Ｐort"}, {"cafe", "CAFE\u0301"}, {"http-504", "HTTP-504"}, {"504", "504"},
	} {
		for _, term := range Terms(s) {
			if term.Text == c.term {
				if got := s[term.Start:term.End]; got != c.want {
					t.Errorf("%s spans %q, want %q", c.term, got, c.want)
				}
			}
		}
	}
}

func TestTerms_long(t *testing.T) {
	t.Parallel()
	a := Terms(strings.Repeat("x", 300))
	b := Terms(strings.Repeat("x", 301))
	if n := utf8.RuneCountInString(a[0].Text); n > maxTermRunes {
		t.Errorf("term of %d runes", n)
	}
	if a[0].Text == b[0].Text {
		t.Error("two long terms became one")
	}
}

func checkTerms(t *testing.T, s string) {
	t.Helper()
	for _, term := range Terms(s) {
		if term.Text == "" || utf8.RuneCountInString(term.Text) > maxTermRunes || !utf8.ValidString(term.Text) {
			t.Fatalf("Terms(%q) holds %q", s, term.Text)
		}
		for i := 0; i < len(term.Text); i++ {
			c := term.Text[i]
			switch {
			case c >= utf8.RuneSelf, 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte(TokenChars, c) >= 0:
			default:
				t.Fatalf("Terms(%q): %q holds %q", s, term.Text, c)
			}
		}
		if term.Start < 0 || term.End > len(s) || term.Start >= term.End {
			t.Fatalf("Terms(%q): span [%d,%d) of %q", s, term.Start, term.End, term.Text)
		}
		if !utf8.RuneStart(s[term.Start]) && utf8.ValidString(s) || term.End < len(s) && utf8.ValidString(s) && !utf8.RuneStart(s[term.End]) {
			t.Fatalf("Terms(%q): %q is not on rune boundaries", s, term.Text)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"", "HTTPServer v1.2.3 --force C++", "腾讯云 도쿄 กรุงเทพ", "می\u200cخواهم", "a\u0301\u200c'b", "1,500.00%", "½ ㎞ ﷺ", "\xff\xfe", "''''", "....//", "x'\u0301y", "İI1İ", "l'é'", "A\u0345B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkTerms(t, s)
		q := QueryTerms(s)
		if len(q) > maxQueryTerms {
			t.Fatalf("%d query terms", len(q))
		}
		for _, n := range []int{0, 1, 2, 7, 20, 200} {
			for _, got := range []string{Cut(s, n), CutAround(s, q, n)} {
				if utf8.RuneCountInString(got) > n {
					t.Fatalf("cut of %q to %d is %q", s, n, got)
				}
				if utf8.ValidString(s) && !utf8.ValidString(got) {
					t.Fatalf("cut of %q to %d is %q", s, n, got)
				}
			}
		}
	})
}

func BenchmarkTerms(b *testing.B) {
	for name, s := range map[string]string{
		"english": "When the gateway calls an upstream service the read timeout is 30 s, after which the client gets a 504.",
		"russian": "Лимит для гостей — 10 запросов в минуту, лишние отклоняются с кодом 429, а ошибки пишутся в журнал.",
		"persian": "پایگاه داده اصلی ما پستگرس است، روی پورت ۵۴۳۲ کار می‌کند و هر شب یک نسخه از آن کپی می‌شود.",
		"chinese": "用户服务器部署在腾讯云国内节点，数据库使用PostgreSQL 16，每天凌晨三点备份到对象存储。",
		"french":  "Le service de paiement tourne en trois exemplaires répartis sur deux zones, sans panne visible.",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Terms(s)
			}
		})
	}
}

func BenchmarkKey(b *testing.B) {
	for name, s := range map[string]string{
		"english": "When the gateway calls an upstream service the read timeout is 30 s, after which the client gets a 504.",
		"persian": "پایگاه داده اصلی ما پستگرس است، روی پورت ۵۴۳۲ کار می‌کند.",
		"french":  "Le service de paiement tourne en trois exemplaires répartis sur deux zones.",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Key(s)
			}
		})
	}
}
