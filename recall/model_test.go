package recall

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall/embedding"
)

// envModel names the folder of the model that these tests need.
const envModel = "POLYPHONY_MODEL_DIR"

// modelStore is a workspace whose facts have the vectors of the real model.
func modelStore(tb testing.TB, facts ...aged) (*memory.Store, *embedding.Model) {
	tb.Helper()
	dir := os.Getenv(envModel)
	if dir == "" {
		tb.Skip("needs the model's weights: set " + envModel)
	}
	m, err := embedding.Open(dir, embedding.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := memory.Open(context.Background(), filepath.Join(tb.TempDir(), "w"), "w", memory.Options{Embedding: m.ID(), Now: func() time.Time { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	mustAge(tb, s, facts...)
	for {
		waiting, err := s.QueuedForEmbedding(context.Background(), embedBatch)
		if err != nil {
			tb.Fatal(err)
		}
		if len(waiting) == 0 {
			return s, m
		}
		if n, err := EmbedFacts(context.Background(), s, m, waiting); err != nil || n != len(waiting) {
			tb.Fatalf("%d of %d embedded, %v", n, len(waiting), err)
		}
	}
}

func modelSearch(tb testing.TB, s *memory.Store, m Model, query, mode string, limit int) []string {
	tb.Helper()
	res, err := NewEngine(m).Search(context.Background(), s, record.Search{Caller: caller, Query: query, Mode: mode, Limit: &limit})
	if err != nil || len(res.Degraded) > 0 {
		tb.Fatalf("%q: degraded %q, %v", query, res.Degraded, err)
	}
	return contents(res.Facts)
}

func TestModel_identifiersFirst(t *testing.T) {
	t.Parallel()
	facts := []aged{{200, "Error E_TLS_4711 is a clock that runs late"}, {200, "Commit 9f8e7d6c5b4a reverted it"}, {200, "See /opt/relay/relay.toml for the limits"}, {200, "Start it with --dry-run-all"}}
	for i := range 25 {
		facts = append(facts, aged{0, fmt.Sprintf("An error in the clock of relay %d made the commit late, see the limits and start again", i)})
	}
	s, m := modelStore(t, facts...)
	for query, want := range map[string]string{"what is error E_TLS_4711 about the clock": facts[0].content, "which commit 9f8e7d6c5b4a": facts[1].content, "limits in /opt/relay/relay.toml": facts[2].content, "start --dry-run-all": facts[3].content} {
		for _, mode := range []string{"keyword", "semantic", "hybrid"} {
			if got := modelSearch(t, s, m, query, mode, 10); len(got) == 0 || got[0] != want {
				t.Errorf("%s %q = %q", mode, query, got)
			}
		}
	}
}

func TestModel_nothing(t *testing.T) {
	t.Parallel()
	want := []string{"The walrus exporter writes parquet files", "Parquet files of the walrus exporter are kept a year", "Walrus exporter failures page the data team"}
	var facts []aged
	for _, c := range want {
		facts = append(facts, aged{120, c})
	}
	for i := range 30 {
		facts = append(facts, aged{0, fmt.Sprintf("Lunch order number %d was noodles with %c", i, 'a'+i%26)})
	}
	s, m := modelStore(t, facts...)
	got := modelSearch(t, s, m, "walrus exporter parquet", "hybrid", 10)
	for i := range want {
		if i >= len(got) || !slices.Contains(want, got[i]) {
			t.Fatalf("hits = %q, want the three relevant ones first", got)
		}
	}
	for _, query := range []string{"zeppelin mooring rights", "42 * /", "who are you"} {
		if got := modelSearch(t, s, m, query, "hybrid", 10); len(got) != 0 {
			t.Errorf("%q matches nothing and finds %q", query, got)
		}
	}
}

func TestModel_oldAnswerBeforeVagueNews(t *testing.T) {
	t.Parallel()
	exact := "The invoice archive is encrypted with the key in vault path kv/billing"
	facts := []aged{{400, exact}}
	for i := range 20 {
		facts = append(facts, aged{0, fmt.Sprintf("Somebody moved archive box %d to another shelf", i)})
	}
	s, m := modelStore(t, facts...)
	if got := modelSearch(t, s, m, "which key encrypts the invoice archive", "hybrid", 10); len(got) == 0 || got[0] != exact {
		t.Errorf("hits = %q", got)
	}
}

func TestModel_restatementsLeaveRoom(t *testing.T) {
	t.Parallel()
	var facts []aged
	for _, end := range []string{"", "now", "already", "indeed", "still"} {
		facts = append(facts, aged{10, "The osprey gateway retries failed uploads three times " + end})
	}
	for _, c := range []string{"Osprey gateway uploads go to the bucket in Oslo", "The osprey gateway drops uploads over a gigabyte", "Osprey gateway uploads need a signed header", "Failed uploads of the osprey gateway are listed at noon"} {
		facts = append(facts, aged{10, c})
	}
	s, m := modelStore(t, facts...)
	got := modelSearch(t, s, m, "osprey gateway uploads", "hybrid", 5)
	others := slices.DeleteFunc(slices.Clone(got), func(c string) bool { return strings.Contains(c, "three times") })
	if len(got) != 5 || len(others) < 4 {
		t.Errorf("hits = %q, want one restatement and four others", got)
	}
}
