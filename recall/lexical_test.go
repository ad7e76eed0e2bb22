package recall

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

var caller = record.Caller{Workspace: "w", Agent: "a"}

func mustStore(tb testing.TB) *memory.Store {
	tb.Helper()
	now := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	s, err := memory.Open(context.Background(), filepath.Join(tb.TempDir(), "w"), "w", memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// mustFill stores each content under a topic of its own.
func mustFill(tb testing.TB, s *memory.Store, contents ...string) {
	tb.Helper()
	for i, c := range contents {
		_, err := s.ProposeFact(context.Background(), record.ProposeFact{Caller: caller, Domain: "notes", Topic: fmt.Sprintf("topic %d", i), Content: c})
		if err != nil {
			tb.Fatalf("propose %q: %v", c, err)
		}
	}
}

func search(tb testing.TB, s *memory.Store, query string) []string {
	tb.Helper()
	res, err := NewEngine(nil).Search(context.Background(), s, record.Search{Caller: caller, Query: query, Mode: "keyword"})
	if err != nil {
		tb.Fatalf("search %q: %v", query, err)
	}
	var out []string
	for i, h := range res.Facts {
		if h.Score < 0 || h.Score > 1 || h.Voices["lexical"] < 1 || i > 0 && h.Score > res.Facts[i-1].Score {
			tb.Errorf("search %q: hit %d has score %v, voices %v", query, i, h.Score, h.Voices)
		}
		out = append(out, h.Content)
	}
	return out
}

// wantFirst checks that the query finds the content first.
func wantFirst(tb testing.TB, s *memory.Store, query, content string) {
	tb.Helper()
	if got := search(tb, s, query); len(got) == 0 || got[0] != content {
		tb.Errorf("search %q = %q, want %q first", query, got, content)
	}
}

func TestSearch_queryIsNotSyntax(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	rows := []string{
		"status: done", `timeout "error`, "retry OR abort", "GB/s", "ubuntu 20.04", "don't panic", "a,b,c", "f(x)", "x^2", "*glob*", "{json}", "NEAR(a b)",
		"AND OR NOT NEAR are reserved words",
	}
	mustFill(t, s, rows...)
	for _, r := range rows {
		wantFirst(t, s, r, r)
	}
	for _, c := range `"'*^():-+~{}[],./\%` {
		if got := search(t, s, string(c)); len(got) != 0 {
			t.Errorf("search %q = %q, want nothing", string(c), got)
		}
	}
	for _, q := range []string{"NOT", "what does NEAR mean", "OR", "retry OR", `"`, `topic:`, "content:x", "-x", "a AND"} {
		search(t, s, q)
	}
	if got := search(t, s, "what does NEAR mean"); !slices.Contains(got, rows[12]) && len(got) != 0 {
		t.Errorf("NEAR as a word = %q", got)
	}
}

func TestSearch_identifiers(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustFill(t, s,
		"The box uteke-cloud-dev hosts the preview", "ADR-0005 chooses the queue", "We embed with fastembed_bge-small", "The node oceanbase-blue-116 is drained",
		"Pass --force to overwrite", "The config is /etc/nginx/nginx.conf", "Commit a1b2c3d4e5f6 broke the build", "Error E_CONN_RESET means the peer left",
		"parseConfig reads the file", "The release is v1.2.3", "C++ builds take ten minutes", "Everything else is about cloud costs and blue paint")
	for query, want := range map[string]string{
		"uteke-cloud-dev": "The box uteke-cloud-dev hosts the preview", "uteke-cloud": "The box uteke-cloud-dev hosts the preview", "uteke": "The box uteke-cloud-dev hosts the preview",
		"ADR-0005": "ADR-0005 chooses the queue", "0005": "ADR-0005 chooses the queue", "adr": "ADR-0005 chooses the queue",
		"fastembed_bge-small": "We embed with fastembed_bge-small", "bge-small": "We embed with fastembed_bge-small",
		"oceanbase-blue-116": "The node oceanbase-blue-116 is drained", "oceanbase 116": "The node oceanbase-blue-116 is drained",
		"--force": "Pass --force to overwrite", "/etc/nginx/nginx.conf": "The config is /etc/nginx/nginx.conf", "nginx.conf": "The config is /etc/nginx/nginx.conf",
		"a1b2c3d4e5f6": "Commit a1b2c3d4e5f6 broke the build", "E_CONN_RESET": "Error E_CONN_RESET means the peer left",
		"parse config": "parseConfig reads the file", "parseConfig": "parseConfig reads the file", "v1.2.3": "The release is v1.2.3", "C++": "C++ builds take ten minutes",
	} {
		wantFirst(t, s, query, want)
	}
}

func TestSearch_scripts(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustFill(t, s,
		"用户服务器部署在腾讯云国内节点", "サンドボックス修正テスト", "서버는 도쿄에 있다", "Meeting room café is booked", "Đà Nẵng office opens in June", "У него тёмная тема",
		"سرور آزمایشی روی پورت ۸۰۸۰ است", "می‌خواهم گزارش را ببینم", "مدرسة المدينة مغلقة", "Go and AI tools", "ドキュメントはＡＢＣ１２３です")
	for query, want := range map[string]string{
		"腾讯云": "用户服务器部署在腾讯云国内节点", "部署": "用户服务器部署在腾讯云国内节点", "用户": "用户服务器部署在腾讯云国内节点", "云": "用户服务器部署在腾讯云国内节点",
		"サンドボックス": "サンドボックス修正テスト", "도쿄": "서버는 도쿄에 있다", "서버": "서버는 도쿄에 있다",
		"cafe\u0301": "Meeting room café is booked", "cafe": "Meeting room café is booked", "Đà Nẵng": "Đà Nẵng office opens in June",
		"тёмную тему": "У него тёмная тема", "ТЁМНАЯ": "У него тёмная тема", "темная": "У него тёмная тема",
		"پورت 8080": "سرور آزمایشی روی پورت ۸۰۸۰ است", "پورت ٨٠٨٠": "سرور آزمایشی روی پورت ۸۰۸۰ است", "پورت ۸۰۸۰": "سرور آزمایشی روی پورت ۸۰۸۰ است",
		"میخواهم": "می‌خواهم گزارش را ببینم", "می خواهم": "می‌خواهم گزارش را ببینم", "مدرسه": "مدرسة المدينة مغلقة", "مَدْرَسَة": "مدرسة المدينة مغلقة",
		"Go": "Go and AI tools", "AI": "Go and AI tools", "abc123": "ドキュメントはＡＢＣ１２３です",
	} {
		wantFirst(t, s, query, want)
	}
}

func TestSearch_nothing(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	var rows []string
	for i := range 200 {
		rows = append(rows, fmt.Sprintf("The service number %d stores its state again on disk %d", i, i*7))
	}
	rows = append(rows, "The launch is in 2026", "The answer is 42", "We run v3 of the schema")
	mustFill(t, s, rows...)
	for _, q := range []string{"", "   ", "who are you", "it", "the of and", "xylophone", "please do not reply to them", "quuxify --never-there"} {
		if got := search(t, s, q); len(got) != 0 {
			t.Errorf("search %q = %d facts, first %q; want nothing", q, len(got), got[0])
		}
	}
	for q, want := range map[string]string{"2026": "The launch is in 2026", "42": "The answer is 42", "v3": "We run v3 of the schema"} {
		got := search(t, s, q)
		if !slices.Contains(got, want) {
			t.Errorf("search %q = %q, want %q among them", q, got, want)
		}
	}
}

func TestSearch_limit(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustFill(t, s, "one apple here", "two apple there", "three apple everywhere")
	for _, c := range []struct {
		limit, want int
	}{{0, 0}, {1, 1}, {100, 3}} {
		res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "apple", Limit: &c.limit})
		if err != nil || len(res.Facts) != c.want {
			t.Errorf("limit %d: %d facts, %v", c.limit, len(res.Facts), err)
		}
	}
	for _, limit := range []int{-1, 101} {
		_, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "apple", Limit: &limit})
		if record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	for _, mode := range []string{"", "hybrid", "semantic"} {
		res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "apple", Mode: mode})
		if err != nil || len(res.Facts) != 3 || len(res.Degraded) == 0 {
			t.Errorf("mode %q without a model: %d facts, degraded %q, %v", mode, len(res.Facts), res.Degraded, err)
		}
	}
	if _, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "apple", Mode: "psychic"}); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("unknown mode: %v", err)
	}
}

func TestSearch_filtersBeforeCut(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	propose := func(domain string, i int) {
		_, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: domain, Topic: fmt.Sprintf("t%d", i), Content: fmt.Sprintf("apple harvest report %d", i)})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		propose("small", i)
	}
	for i := range 600 {
		propose("large", 100+i)
	}
	res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "apple harvest", Domain: "small"})
	if err != nil || len(res.Facts) != 3 {
		t.Errorf("domain filter: %d facts, %v; want 3", len(res.Facts), err)
	}
	_, err = s.SetGrant(t.Context(), record.SetGrant{Caller: caller, ForRole: "qa", Domain: "large", Level: "none"})
	if err != nil {
		t.Fatal(err)
	}
	hidden := caller
	hidden.Role = "qa"
	res, err = NewEngine(nil).Search(t.Context(), s, record.Search{Caller: hidden, Query: "apple harvest"})
	if err != nil || len(res.Facts) != 3 {
		t.Errorf("grant none: %d facts, %v; want 3", len(res.Facts), err)
	}
	for _, h := range res.Facts {
		if h.Domain != "small" {
			t.Errorf("a hidden domain's fact was found: %+v", h.Fact)
		}
	}
	if res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "apple", Domain: "nowhere"}); err != nil || len(res.Facts) != 0 {
		t.Errorf("unknown domain: %d facts, %v", len(res.Facts), err)
	}
}

func TestSearch_repositoryFirst(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	for i, c := range []record.Caller{caller, {Workspace: "w", Agent: "a", Repo: "Web App"}} {
		_, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: c, Domain: "build", Topic: "t", Content: fmt.Sprintf("the build takes %d minutes", i+3)})
		if err != nil {
			t.Fatal(err)
		}
	}
	in := caller
	for repo, want := range map[string]string{"web-app": "repo:web-app/build", "": "build"} {
		in.Repo = repo
		res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: in, Query: "how many minutes does the build take: 3"})
		if err != nil || len(res.Facts) != 2 || res.Facts[0].Domain != want {
			t.Errorf("in repo %q: %+v, %v; want %s first of two", repo, res.Facts, err, want)
		}
	}
}

func TestSearch_currentOnly(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	var ids []string
	for _, c := range []string{"the queue is RabbitMQ", "the bus is Kafka and nothing else"} {
		res, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: "infra", Topic: c, Content: c})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, res.FactID)
	}
	wantFirst(t, s, "queue RabbitMQ", "the queue is RabbitMQ")
	if _, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: ids[0], New: ids[1]}); err != nil {
		t.Fatal(err)
	}
	if got := search(t, s, "queue RabbitMQ"); len(got) != 0 {
		t.Errorf("a superseded fact was found: %q", got)
	}
	res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "Kafka"})
	if err != nil || len(res.Facts) != 1 || res.Facts[0].HistoryLength != 2 {
		t.Errorf("history length: %+v, %v", res.Facts, err)
	}
	if _, err := s.RestoreFact(t.Context(), record.RestoreFact{Caller: caller, FactID: ids[0]}); err != nil {
		t.Fatal(err)
	}
	wantFirst(t, s, "queue RabbitMQ", "the queue is RabbitMQ")
}

func TestSearch_longAndOdd(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustFill(t, s, "an ordinary fact about deployment", strings.Repeat("long words about nothing ", 2600))
	for _, q := range []string{strings.Repeat("deployment ", 5000), "\u200b", "\u202edeployment", strings.Repeat("ب", 3000), "a\tb\nc deployment", "100% _under_ \\back"} {
		search(t, s, q)
	}
	_, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: "bad \xff utf8"})
	if record.ErrorCode(err) != record.InvalidUTF8 {
		t.Errorf("invalid UTF-8: %v", err)
	}
}
