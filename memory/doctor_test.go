package memory

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// doctored is a workspace with facts in several scripts and their vectors, as a
// folder that nobody has open.
func doctored(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := openModel(t, dir)
	var vectors []Embedded
	for i, content := range []string{
		"The gateway listens on port 8080", "درگاه روی درگاهِ ۸۰۸۰ گوش می‌دهد", "数据库在东京", "uteke-cloud-dev runs v1.2.3 --force", "C++ and snake_case", "…",
	} {
		r := req(fmt.Sprint("topic ", i), content)
		r.Domain = []string{"infra", "Infra", "Data Base", "data-base"}[i%4]
		mustPropose(t, s, r)
	}
	for i, content := range []string{"The gate opens at dusk, at dusk", "دروازه شبانگاه باز می‌شود"} {
		if _, err := s.AppendEpisode(t.Context(), record.AppendEpisode{Caller: caller, TaskID: fmt.Sprint("task-", i), Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	waiting, err := s.QueuedForEmbedding(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range waiting {
		v := make([]float32, Dimensions)
		v[i], v[i+1] = 1, -1
		vectors = append(vectors, Embedded{w, v})
	}
	if _, err := s.StoreVectors(t.Context(), vectors); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openModel(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, "w", Options{Now: newTestClock().Now, Embedding: "model-1"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func examine(t *testing.T, s *Store, repair bool) record.DoctorReport {
	t.Helper()
	r, err := s.Doctor(t.Context(), record.Doctor{Caller: record.Caller{Workspace: "w", Key: fmt.Sprint("doctor-", repair)}, Repair: repair})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func whats(r record.DoctorReport) (out []string) {
	for _, f := range r.Findings {
		out = append(out, f.What)
	}
	return out
}

// TestStore_Doctor damages what is derived from facts in each way, sees it
// found by name, mended, and not there any more.
func TestStore_Doctor(t *testing.T) {
	t.Parallel()
	index, counts, totals := record.FindingIndexRows, record.FindingFrequencies, record.FindingTotals
	for name, tc := range map[string]struct {
		damage []string
		found  []string
	}{
		"nothing":             {nil, nil},
		"a row is missing":    {[]string{"DELETE FROM fact_index WHERE rowid = 2"}, []string{index}},
		"a row of no fact":    {[]string{"INSERT INTO fact_index (rowid, topic, content, scope) VALUES (99, 'a', 'b', 'c')"}, []string{index}},
		"a row of other text": {[]string{"DELETE FROM fact_index WHERE rowid = 1", "INSERT INTO fact_index (rowid, topic, content, scope) VALUES (1, 'infra', 'wrong', 'd1')"}, []string{index}},
		"a row without scope": {[]string{"DELETE FROM fact_index WHERE rowid = 6", "INSERT INTO fact_index (rowid, topic, content, scope) VALUES (6, '', '', '')"}, []string{index}},
		"a wrong count":       {[]string{"UPDATE terms SET df = df + 1 WHERE term = 'gateway'"}, []string{counts}},
		"no counts":           {[]string{"DELETE FROM terms"}, []string{counts}},
		"a count of no term":  {[]string{"INSERT INTO terms VALUES ('nowhere', 3)"}, []string{counts}},
		"wrong totals":        {[]string{"UPDATE index_stats SET docs = docs - 1"}, []string{totals}},
		"no index at all":     {[]string{"INSERT INTO fact_index (fact_index) VALUES ('delete-all')", "DELETE FROM terms", "UPDATE index_stats SET docs = 0, tokens = 0"}, []string{index, counts, totals}},
		"a fact changed by hand": {[]string{"UPDATE facts SET content = 'Somebody wrote this whole statement with a shell, late at night' WHERE seq = 1"},
			[]string{index, counts, totals, record.FindingVectors}},
		"an episode is missing": {[]string{"DELETE FROM episode_index WHERE rowid = 1"}, []string{record.FindingEpisodeRows}},
		"an episode of other text": {[]string{"DELETE FROM episode_index WHERE rowid = 2", "INSERT INTO episode_index (rowid, content, scope) VALUES (2, 'gate', 'k1')"},
			[]string{record.FindingEpisodeRows}},
		"the vectors' index lacks one":  {[]string{"DELETE FROM embedding_index WHERE seq = 2"}, []string{record.FindingVectorIndex}},
		"the vectors' index differs":    {[]string{"DELETE FROM embedding_index WHERE seq = 2", "INSERT INTO embedding_index (seq, model, domain_id, bits) VALUES (2, 'model-1', 1, vec_bit(zeroblob(48)))"}, []string{record.FindingVectorIndex}},
		"the vectors' index has others": {[]string{"INSERT INTO embedding_index (seq, model, domain_id, bits) VALUES (99, 'm', 1, vec_bit(zeroblob(48)))"}, []string{record.FindingVectorIndex}},
		"a vector cut off":              {[]string{"UPDATE embeddings SET vector = substr(vector, 1, 100) WHERE seq = 1"}, []string{record.FindingVectors}},
		"a zero vector":                 {[]string{"UPDATE embeddings SET vector = zeroblob(1536) WHERE seq = 3"}, []string{record.FindingVectors}},
		"bits are missing":              {[]string{"DELETE FROM embedding_bits WHERE seq = 2"}, []string{record.FindingVectorBits, record.FindingVectorIndex}},
		"bits are others'":              {[]string{"UPDATE embedding_bits SET bits = zeroblob(48) WHERE seq = 2"}, []string{record.FindingVectorBits, record.FindingVectorIndex}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := doctored(t)
			raw(t, filepath.Join(dir, FileName), tc.damage...)
			s := openModel(t, dir)
			defer func() { _ = s.Close() }()
			before := examine(t, s, false)
			if got := whats(before); !slices.Equal(got, tc.found) || before.OK != (tc.found == nil) || before.Facts != 6 {
				t.Fatalf("found %+v, want %v", before, tc.found)
			}
			mended := examine(t, s, true)
			if !mended.OK || !slices.Equal(whats(mended), tc.found) {
				t.Errorf("after the repair: %+v", mended)
			}
			for _, f := range mended.Findings {
				if !f.Repaired || f.Count == 0 {
					t.Errorf("%+v", f)
				}
			}
			if after := examine(t, s, false); !after.OK || len(after.Findings) != 0 {
				t.Errorf("examined again: %+v", after)
			}
			for _, word := range []string{"۸۰۸۰", "东京", "snake_case"} {
				if !strings.Contains(strings.Join(activeContents(t, s), " "), word) {
					t.Errorf("a fact with %s is gone", word)
				}
			}
			mustView(t, s, func(v *View) error {
				h, err := v.Health(true)
				if !h.OK {
					t.Errorf("health says %v", h.Problems)
				}
				// A vector that was none is made again, by whoever owns the model.
				if slices.Contains(tc.found, record.FindingVectors) != (h.EmbeddingQueue > 0) {
					t.Errorf("%d facts wait for a vector", h.EmbeddingQueue)
				}
				return err
			})
		})
	}
}

// TestStore_Doctor_references finds what it cannot mend.
func TestStore_Doctor_references(t *testing.T) {
	t.Parallel()
	dir := doctored(t)
	raw(t, filepath.Join(dir, FileName), "INSERT INTO edges VALUES (1, 77, 'related_to', 1, 0)")
	s := openModel(t, dir)
	defer func() { _ = s.Close() }()
	r := examine(t, s, true)
	if r.OK || !slices.Equal(whats(r), []string{record.FindingReferences}) || r.Findings[0].Repaired {
		t.Errorf("%+v", r)
	}
}

// TestStore_Doctor_beside repairs while others write: nothing of theirs is
// lost or indexed twice.
func TestStore_Doctor_beside(t *testing.T) {
	t.Parallel()
	dir := doctored(t)
	raw(t, filepath.Join(dir, FileName), "DELETE FROM terms")
	s := openModel(t, dir)
	defer func() { _ = s.Close() }()
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			_, err = s.ProposeFact(context.Background(), req(fmt.Sprint("beside ", i), fmt.Sprintf("beside number %d stands a thing", i)))
		}
		done <- err
	}()
	for i := range 5 {
		_, err := s.Doctor(t.Context(), record.Doctor{Caller: record.Caller{Workspace: "w", Key: fmt.Sprint(i)}, Repair: true})
		if err != nil {
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r := examine(t, s, false); !r.OK || r.Facts != 206 {
		t.Errorf("%+v", r)
	}
}
