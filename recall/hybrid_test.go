package recall

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

var now = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// aged is a statement that was made some days before now.
type aged struct {
	days    int
	content string
}

func mustAge(tb testing.TB, s *memory.Store, facts ...aged) {
	tb.Helper()
	for i, f := range facts {
		_, err := s.ProposeFact(context.Background(), record.ProposeFact{
			Caller: caller, Domain: "notes", Topic: fmt.Sprintf("topic %d", i), Content: f.content, MemoryType: "fact",
			OccurredAt: record.At(now.AddDate(0, 0, -f.days)),
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func hybrid(tb testing.TB, s *memory.Store, query string, limit int) []record.Hit {
	tb.Helper()
	res, err := NewEngine(nil).Search(context.Background(), s, record.Search{Caller: caller, Query: query, Limit: &limit})
	if err != nil {
		tb.Fatal(err)
	}
	for i, h := range res.Facts {
		if math.IsNaN(h.Score) || h.Score < 0 || h.Score > 1 || len(h.Voices) == 0 {
			tb.Errorf("hit %d of %q: score %v, voices %v", i, query, h.Score, h.Voices)
		}
	}
	return res.Facts
}

func contents(hits []record.Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Content)
	}
	return out
}

func TestHybrid_relevanceBeforeRecency(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	exact := "The invoice archive is encrypted with the key in vault path kv/billing"
	facts := []aged{{400, exact}}
	for i := range 20 {
		facts = append(facts, aged{0, fmt.Sprintf("Somebody moved archive box %d to another shelf", i)})
	}
	mustAge(t, s, facts...)
	if got := contents(hybrid(t, s, "which key encrypts the invoice archive", 10)); len(got) == 0 || got[0] != exact {
		t.Errorf("hits = %q, want the old exact answer first", got)
	}
}

func TestHybrid_relevantAmongRecent(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	var facts []aged
	want := []string{"The walrus exporter writes parquet files", "Parquet files of the walrus exporter are kept a year", "Walrus exporter failures page the data team"}
	for _, c := range want {
		facts = append(facts, aged{120, c})
	}
	for i := range 30 {
		facts = append(facts, aged{0, fmt.Sprintf("Lunch order number %d was noodles with %c", i, 'a'+i%26)})
	}
	mustAge(t, s, facts...)
	got := contents(hybrid(t, s, "walrus exporter parquet", 10))
	for i := range want {
		if i >= len(got) || !slices.Contains(want, got[i]) {
			t.Fatalf("hits = %q, want the three relevant ones first", got)
		}
	}
	if got := hybrid(t, s, "zeppelin mooring rights", 10); len(got) != 0 {
		t.Errorf("a query that matches nothing found %q", contents(got))
	}
}

func TestHybrid_newerOfEquals(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustAge(t, s, aged{300, "The heron job runs on cluster north"}, aged{1, "The heron job runs on cluster south"})
	if got := contents(hybrid(t, s, "on which cluster does the heron job run", 2)); len(got) != 2 || !strings.HasSuffix(got[0], "south") {
		t.Errorf("hits = %q, want the newer of two equally relevant first", got)
	}
}

func TestHybrid_identifiersFirst(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	facts := []aged{{200, "Error E_TLS_4711 is a clock that runs late"}, {200, "Commit 9f8e7d6c5b4a reverted it"}, {200, "See /opt/relay/relay.toml for the limits"}, {200, "Start it with --dry-run-all"}}
	for i := range 25 {
		facts = append(facts, aged{0, fmt.Sprintf("An error in the clock of relay %d made the commit late, see the limits and start again", i)})
	}
	mustAge(t, s, facts...)
	for query, want := range map[string]string{"what is error E_TLS_4711 about the clock": facts[0].content, "which commit 9f8e7d6c5b4a": facts[1].content, "limits in /opt/relay/relay.toml": facts[2].content, "start --dry-run-all": facts[3].content} {
		for _, mode := range []string{"keyword", "semantic", "hybrid"} {
			res, err := NewEngine(nil).Search(t.Context(), s, record.Search{Caller: caller, Query: query, Mode: mode})
			if err != nil || len(res.Facts) == 0 || res.Facts[0].Content != want {
				t.Errorf("%s %q = %q, %v", mode, query, contents(res.Facts), err)
			}
		}
	}
}

func TestHybrid_restatementsLeaveRoom(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	var facts []aged
	for i := range 5 {
		facts = append(facts, aged{10, "The osprey gateway retries failed uploads three times " + []string{"", "now", "already", "indeed", "still"}[i]})
	}
	for _, c := range []string{"Osprey gateway uploads go to the bucket in Oslo", "The osprey gateway drops uploads over a gigabyte", "Osprey gateway uploads need a signed header", "Failed uploads of the osprey gateway are listed at noon"} {
		facts = append(facts, aged{10, c})
	}
	mustAge(t, s, facts...)
	got := contents(hybrid(t, s, "osprey gateway uploads", 5))
	others := 0
	for _, c := range got {
		if !strings.Contains(c, "three times") {
			others++
		}
	}
	if len(got) != 5 || others < 4 {
		t.Errorf("hits = %q, want one restatement and four others", got)
	}
}

func TestHybrid_sameAnswerEachRun(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	var facts []aged
	for i := range 60 {
		facts = append(facts, aged{i % 7, fmt.Sprintf("The kestrel queue holds batch %d for worker %c", i, 'a'+i%20)})
	}
	mustAge(t, s, facts...)
	first := fmt.Sprint(contents(hybrid(t, s, "kestrel queue batch worker", 20)))
	for range 1000 {
		if again := fmt.Sprint(contents(hybrid(t, s, "kestrel queue batch worker", 20))); again != first {
			t.Fatalf("two answers to one question:\n%s\n%s", first, again)
		}
	}
}

func TestHybrid_smallStores(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustAge(t, s, aged{500, "The only fact is about marmots"})
	got := hybrid(t, s, "marmots", 10)
	if len(got) != 1 || got[0].Score != 1 {
		t.Errorf("the only hit = %+v", got)
	}
}

func TestHybrid_asOf(t *testing.T) {
	t.Parallel()
	at := now
	s, err := memory.Open(context.Background(), filepath.Join(t.TempDir(), "w"), "w", memory.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	propose := func(topic, content string) string {
		res, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: "d", Topic: topic, Content: content})
		if err != nil {
			t.Fatal(err)
		}
		return res.FactID
	}
	old := propose("a", "the curlew database is Postgres")
	at = now.AddDate(0, 1, 0)
	if _, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: old, New: propose("b", "the curlew database is Cassandra")}); err != nil {
		t.Fatal(err)
	}
	at = now.AddDate(0, 2, 0)
	for _, c := range []struct {
		at   time.Time
		want string
	}{{time.Time{}, "the curlew database is Cassandra"}, {now.AddDate(0, 0, 3), "the curlew database is Postgres"}, {now.AddDate(0, 1, 3), "the curlew database is Cassandra"}, {now.AddDate(-1, 0, 0), ""}} {
		req := record.Search{Caller: caller, Query: "curlew database"}
		if !c.at.IsZero() {
			req.AsOf = record.At(c.at)
		}
		res, err := NewEngine(nil).Search(t.Context(), s, req)
		if got := strings.Join(contents(res.Facts), "; "); err != nil || got != c.want {
			t.Errorf("as of %v: %q, %v; want %q", c.at, got, err, c.want)
		}
	}
}

func TestHybrid_graphReaches(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	propose := func(content string) {
		if _, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: "talk", Topic: "session 1", Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	propose("Ana: where did you put the ptarmigan report?")
	propose("Ben: under the blue folder, second shelf")
	hits := hybrid(t, s, "ptarmigan report", 10)
	if len(hits) != 2 || hits[0].Voices["lexical"] != 1 || hits[1].Voices["graph"] == 0 || hits[1].Voices["lexical"] != 0 {
		t.Errorf("hits = %+v, want the linked answer by the graph", hits)
	}
}

func TestGraph_strengthFallsWithHops(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	for _, content := range []string{"Ana: so what now", "Ben: nobody told me", "Cleo: the ptarmigan report is late", "Ana: since Monday, the printer broke", "Ben: then let us borrow one", "Dan: from whom"} {
		if _, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: "talk", Topic: "session 1", Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	for _, h := range hybrid(t, s, "ptarmigan report", 10) {
		got[h.Content[:8]] = h.Voices["graph"]
	}
	// Both neighbours are as near, then the find itself by the way back and
	// what is two hops away; three hops are too far.
	want := map[string]int{"Ben: nob": 1, "Ana: sin": 1, "Cleo: th": 3, "Ana: so ": 3, "Ben: the": 3}
	if !maps.Equal(got, want) {
		t.Errorf("ranks by the graph %v, want %v", got, want)
	}
}

func TestDiversify(t *testing.T) {
	t.Parallel()
	make10 := func() []*fused {
		var all []*fused
		for i := range 10 {
			f := &fused{FactRow: &memory.FactRow{}, score: 1 - float64(i)*0.03}
			f.Seq = int64(100 - i)
			f.Content = fmt.Sprintf("the same words about harbour cranes %c", 'a'+i)
			if i >= 8 {
				f.Content = fmt.Sprintf("quite different number %d speaks of lighthouses", i)
			}
			all = append(all, f)
		}
		return all
	}
	for _, lambda := range []float64{0, 0.5, 0.7, 1} {
		all := make10()
		got := diversify(slices.Clone(all), lambda)
		if got[0] != all[0] || len(got) != 10 {
			t.Errorf("lambda %v: rank 1 moved or hits were lost", lambda)
		}
		if lambda == 1 && !slices.Equal(got, all) {
			t.Error("lambda 1 changes the order")
		}
		if lambda == 0.5 && !slices.Contains(got[:5], all[8]) {
			t.Error("lambda 0.5 leaves the different ones out")
		}
	}
	// Texts without terms are not all alike, and few hits stay as they are.
	var empty []*fused
	for _, score := range []float64{1, .9, .8, .7} {
		empty = append(empty, &fused{FactRow: &memory.FactRow{}, score: score})
	}
	if got := diversify(slices.Clone(empty), 0.7); !slices.Equal(got, empty) {
		t.Error("empty texts were taken for copies")
	}
	if got := diversify(nil, 0.7); got != nil {
		t.Errorf("nothing diversified is %v", got)
	}
}

func TestHybrid_scriptsStayDistinct(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	mustFill(t, s, "سرور آزمایشی در تهران است و پروژه را می‌سازد", "پروژه را تیم زیرساخت نگه می‌دارد", "گزارش پروژه هر دوشنبه فرستاده می‌شود", "پروژه روی شاخه اصلی منتشر می‌شود", "هزینه پروژه را مدیر مالی می‌پردازد", "the project is in English too: پروژه")
	if got := hybrid(t, s, "پروژه", 6); len(got) != 6 {
		t.Errorf("hits = %q, want all six", contents(got))
	}
}

func TestClassifyIntent(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]Intent{
		"When did the outage happen?": IntentTemporal, "what is the latest release": IntentTemporal, "Wann war das?": IntentTemporal, "کی بود": IntentTemporal, "什么时候部署": IntentTemporal, "いつですか": IntentTemporal,
		"How do I rotate the key": IntentProcedural, "怎么部署": IntentProcedural, "what does Sara prefer": IntentPreference, "Who owns billing?": IntentEntity,
		"which port is used": IntentFactual, "gateway timeout": IntentGeneral, "": IntentGeneral, "whenever nowhere": IntentGeneral, "сервер где": IntentFactual,
	} {
		if got := ClassifyIntent(query); got != want {
			t.Errorf("ClassifyIntent(%q) = %s, want %s", query, got, want)
		}
	}
	for _, i := range []Intent{IntentTemporal, IntentFactual, IntentEntity, IntentPreference, IntentProcedural, IntentGeneral} {
		w := weigh(i)
		if sum := w.semantic + w.graph + w.lexical + w.temporal; math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s weighs %v together", i, sum)
		}
	}
	if weigh(IntentTemporal).temporal <= weigh(IntentGeneral).temporal {
		t.Error("a temporal intent does not raise the temporal voice")
	}
}
