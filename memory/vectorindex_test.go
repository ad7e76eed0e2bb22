package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// mustOpenVectors opens the workspace in dir with a model and an index.
func mustOpenVectors(tb testing.TB, dir, model string, index VectorIndex) *Store {
	tb.Helper()
	s, err := Open(context.Background(), dir, "w", Options{Embedding: model, VectorIndex: index})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// randomVector is a vector around one of a few centres; every third is a copy
// of its centre, so that many are equally near, and every seventh its opposite.
func randomVector(rng *rand.Rand) []float32 {
	centre := rand.New(rand.NewPCG(uint64(rng.IntN(7)), 1))
	kind, sign := rng.IntN(3), float32(1)
	if rng.IntN(7) == 0 {
		sign = -1
	}
	v := make([]float32, Dimensions)
	for i := range v {
		v[i] = sign * float32(centre.NormFloat64())
		if kind != 0 {
			v[i] += float32(rng.NormFloat64())
		}
	}
	return v
}

// mustEmbed gives every fact that has no vector of the model one.
func mustEmbed(tb testing.TB, s *Store, rng *rand.Rand) {
	tb.Helper()
	for {
		facts, err := s.WithoutVector(context.Background(), 0, 200)
		if err != nil {
			tb.Fatal(err)
		}
		if len(facts) == 0 {
			return
		}
		var out []Embedded
		for _, f := range facts {
			out = append(out, Embedded{f, randomVector(rng)})
		}
		if n, err := s.StoreVectors(context.Background(), out); err != nil || n != len(out) {
			tb.Fatalf("%d of %d vectors stored, %v", n, len(out), err)
		}
	}
}

// mustChange runs statements as one write of the store.
func mustChange(tb testing.TB, s *Store, query string, args ...any) {
	tb.Helper()
	_, err := apply(context.Background(), s, "test", record.Caller{Workspace: "w"}, func(t *tx) (struct{}, error) { return struct{}{}, t.exec(query, args...) })
	if err != nil {
		tb.Fatal(err)
	}
}

func mustNear(tb testing.TB, s *Store, query []float32, scope Scope, limit int) (out []string) {
	tb.Helper()
	mustView(tb, s, func(v *View) error {
		near, err := v.Nearest(query, scope, limit)
		for _, n := range near {
			out = append(out, fmt.Sprintf("%d %s %.9f", n.Seq, n.ID, n.Cosine))
		}
		return err
	})
	return out
}

// vectorHealth is the store's health, with only the problems of the vectors:
// rows that a test deletes by itself stay in the lexical index.
func vectorHealth(tb testing.TB, s *Store) (h record.Health, problems string) {
	tb.Helper()
	mustView(tb, s, func(v *View) (err error) {
		h, err = v.Health(true)
		return err
	})
	h.Problems = slices.DeleteFunc(h.Problems, func(p string) bool { return !strings.Contains(p, "vector") })
	return h, strings.Join(h.Problems, "; ")
}

// exactly is what a comparison with every vector in the file finds.
func exactly(tb testing.TB, s *Store, query []float32, scope Scope, limit int) (out []string) {
	tb.Helper()
	var near []Near
	mustView(tb, s, func(v *View) error {
		rows, err := v.query("SELECT seq, vector FROM embeddings WHERE model = ?", s.model)
		cosines := map[int64]float64{}
		seqs, err := collect(rows, err, func(r scanner) (seq int64, err error) {
			var raw []byte
			if err = r.Scan(&seq, &raw); err == nil {
				cosines[seq] = cosine(query, raw)
			}
			return seq, err
		})
		if err != nil {
			return err
		}
		facts, err := v.FactsAt(seqs, scope)
		for _, f := range facts {
			near = append(near, Near{f, cosines[f.Seq]})
		}
		return err
	})
	slices.SortFunc(near, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(b.Seq, a.Seq))
	})
	for _, n := range near[:min(len(near), limit)] {
		out = append(out, fmt.Sprintf("%d %s %.9f", n.Seq, n.ID, n.Cosine))
	}
	return out
}

// TestNearest_sameByEveryIndex asks the index in the file, the scan in memory
// and the scan of a program without the extension the same things while facts
// come, are superseded and deleted, and change their model.
func TestNearest_sameByEveryIndex(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 3))
			dir := filepath.Join(t.TempDir(), "w")
			model, writes := "model a", VectorsInMemory
			for round := range 4 {
				writer := mustOpenVectors(t, dir, model, writes)
				var ids []string
				for i := range 60 + rng.IntN(160) {
					r := req(fmt.Sprintf("topic %d", i), fmt.Sprintf("round %d says that item %d has colour %d", round, i, rng.Uint32()))
					r.Domain = fmt.Sprintf("domain %d", rng.IntN(4))
					ids = append(ids, mustPropose(t, writer, r).FactID)
				}
				mustEmbed(t, writer, rng)
				mustNear(t, writer, randomVector(rng), Scope{}, 1)
				for range 10 {
					mustChange(t, writer, "DELETE FROM facts WHERE seq = (SELECT seq FROM facts ORDER BY seq LIMIT 1 OFFSET ?)", rng.IntN(50))
					i := rng.IntN(len(ids) - 1)
					if _, err := writer.SupersedeFact(t.Context(), record.SupersedeFact{Caller: record.Caller{Workspace: "w"}, Old: ids[i], New: ids[i+1]}); err != nil && record.ErrorCode(err) == record.Unavailable {
						t.Fatal(err)
					}
				}
				mustChange(t, writer, "INSERT INTO grants (role, domain_id, level, updated_at) VALUES ('qa', ?, 'none', 0) ON CONFLICT DO UPDATE SET level = 'none'", 1+rng.IntN(2))
				file, bare := mustOpenVectors(t, dir, model, VectorsInFile), mustOpenVectors(t, dir, model, VectorsWithoutExtension)
				for range 25 {
					query, limit := randomVector(rng), 1+rng.IntN(60)
					scope := Scope{}
					if err := writer.View(t.Context(), func(v *View) (err error) {
						scope, err = v.Scope([]string{"", "domain 2"}[rng.IntN(2)], "", []record.Role{"", record.Role("qa")}[rng.IntN(2)])
						return err
					}); err != nil {
						t.Fatal(err)
					}
					want := exactly(t, bare, query, scope, limit)
					if rng.IntN(10) == 0 {
						want = nil
						query = slices.Repeat([]float32{float32(math.NaN())}, Dimensions)
					}
					for _, s := range []*Store{writer, file, bare} {
						if got := mustNear(t, s, query, scope, limit); !slices.Equal(got, want) {
							t.Fatalf("round %d, %d nearest by %s:\n%q, want\n%q", round, limit, s.index, got, want)
						}
					}
				}
				if !indexAnswers(t, file, randomVector(rng)) {
					t.Errorf("round %d: the index in the file did not answer", round)
				}
				if h, problems := vectorHealth(t, file); problems != "" || h.VectorsIndexed != h.Embedded || h.Embedded == 0 {
					t.Errorf("round %d: health = %+v", round, h)
				}
				for _, s := range []*Store{file, bare, writer} {
					mustClose(t, s)
				}
				model, writes = []string{"model a", "model b"}[rng.IntN(2)], []VectorIndex{VectorsInMemory, VectorsInFile}[rng.IntN(2)]
			}
		})
	}
}

// indexAnswers reports whether the index in the file answers by itself.
func indexAnswers(tb testing.TB, s *Store, query []float32) (ok bool) {
	tb.Helper()
	mustView(tb, s, func(v *View) error {
		_, ok = v.nearestInFile(signBits(query), Scope{}, 10)
		return nil
	})
	return ok
}

// TestNearest_manyEquallyFar has more equal vectors than are compared exactly
// at once, so that the cut falls among them.
func TestNearest_manyEquallyFar(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "w")
	s := mustOpenVectors(t, dir, "m", VectorsInMemory)
	same := randomVector(rand.New(rand.NewPCG(1, 1)))
	propose := func(from, to int) {
		for i := from; i < to; i++ {
			mustPropose(t, s, req(fmt.Sprint(i), fmt.Sprintf("copy %d of the same", i)))
		}
		waiting, err := s.QueuedForEmbedding(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		// Later facts get their vectors first.
		slices.Reverse(waiting)
		var out []Embedded
		for _, f := range waiting {
			out = append(out, Embedded{f, same})
		}
		if _, err := s.StoreVectors(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
	propose(0, 500)
	mustNear(t, s, same, Scope{}, 5)
	propose(500, 1000)
	for i := range 3 {
		r := req(fmt.Sprint("far", i), fmt.Sprintf("far away %d", i))
		r.Domain = "elsewhere"
		mustPropose(t, s, r)
	}
	mustEmbed(t, s, rand.New(rand.NewPCG(5, 5)))
	file := mustOpenVectors(t, dir, "m", VectorsInFile)
	if !indexAnswers(t, file, same) {
		t.Error("the index in the file did not answer")
	}
	for _, s := range []*Store{s, file} {
		got := mustNear(t, s, same, Scope{}, 3)
		if len(got) != 3 || !strings.HasPrefix(got[0], "1000 ") || !strings.HasPrefix(got[2], "998 ") {
			t.Errorf("by %s: %q, want the three newest", s.index, got)
		}
		// What a scope hides is left out before the cut, not after it.
		var scope Scope
		mustView(t, s, func(v *View) (err error) {
			scope, err = v.Scope("elsewhere", "", "")
			return err
		})
		if got := mustNear(t, s, same, scope, 10); len(got) != 3 {
			t.Errorf("by %s, in a domain of three: %q", s.index, got)
		}
	}
}

// TestNearest_damagedVectors has vectors in the file that no write of ours would
// leave: they are near to nothing, and the others keep their order.
func TestNearest_damagedVectors(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 6))
	dir := filepath.Join(t.TempDir(), "w")
	s := mustOpenVectors(t, dir, "m", VectorsInMemory)
	for i := range 20 {
		mustPropose(t, s, req(fmt.Sprint(i), fmt.Sprintf("statement number %d", i)))
	}
	mustEmbed(t, s, rng)
	query := randomVector(rng)
	want := mustNear(t, s, query, Scope{}, 20)
	for seq, bad := range map[int64][]byte{
		2: encodeVector(slices.Repeat([]float32{float32(math.NaN())}, Dimensions)), 3: encodeVector(slices.Repeat([]float32{float32(math.Inf(1))}, Dimensions)),
		5: encodeVector(make([]float32, Dimensions)), 7: encodeVector([]float32{1, 2, 3}), 11: {},
	} {
		mustChange(t, s, "UPDATE embeddings SET vector = ? WHERE seq = ?", bad, seq)
		want = slices.DeleteFunc(want, func(row string) bool { return strings.HasPrefix(row, fmt.Sprint(seq, " ")) })
	}
	file := mustOpenVectors(t, dir, "m", VectorsInFile)
	for _, s := range []*Store{s, file} {
		if got := mustNear(t, s, query, Scope{}, 20); len(got) != 15 || !slices.Equal(got, want) {
			t.Errorf("by %s: %q, want %q", s.index, got, want)
		}
	}
}

func TestIndexVectors(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	dir := filepath.Join(t.TempDir(), "w")
	fill := func(index VectorIndex, from, to int) {
		s := mustOpenVectors(t, dir, "m", index)
		for i := from; i < to; i++ {
			mustPropose(t, s, req(fmt.Sprint(i), fmt.Sprintf("statement number %d", i)))
		}
		mustEmbed(t, s, rng)
		mustClose(t, s)
	}
	fill(VectorsInMemory, 0, 40)
	fill(VectorsWithoutExtension, 40, 90)
	bare := mustOpenVectors(t, dir, "m", VectorsWithoutExtension)
	mustChange(t, bare, "DELETE FROM facts WHERE seq IN (3, 44)")
	query := randomVector(rng)
	want := mustNear(t, bare, query, Scope{}, 30)
	if h, problems := vectorHealth(t, bare); problems != "" || h.VectorIndex != "none" || h.Embedded != 88 {
		t.Errorf("without the extension: %+v", h)
	}
	mustClose(t, bare)

	told := make(chan string, 10)
	s, err := Open(t.Context(), dir, "w", Options{Embedding: "m", VectorIndex: VectorsInFile, OnQueued: func(w string) { told <- w }})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	default:
		t.Error("nobody was told that the index is behind")
	}
	if _, problems := vectorHealth(t, s); problems != "the vector index holds 40 of 88 vectors" {
		t.Errorf("behind: %q", problems)
	}
	if indexAnswers(t, s, query) || !slices.Equal(mustNear(t, s, query, Scope{}, 30), want) {
		t.Error("an index that is behind answers")
	}
	// Ended in the middle, it goes on; what is written meanwhile is kept.
	if left, err := s.IndexVectors(t.Context(), 20); err != nil || !left {
		t.Fatalf("left %v, %v", left, err)
	}
	mustClose(t, s)
	fill(VectorsInMemory, 90, 95)
	s = mustOpenVectors(t, dir, "m", VectorsInFile)
	for calls := 0; ; calls++ {
		left, err := s.IndexVectors(t.Context(), 20)
		if err != nil || calls > 10 {
			t.Fatalf("after %d calls: %v", calls, err)
		}
		if !left {
			break
		}
	}
	if h, problems := vectorHealth(t, s); problems != "" || h.VectorsIndexed != 93 {
		t.Errorf("made anew: %+v", h)
	}
	if !indexAnswers(t, s, query) {
		t.Error("the index that was made anew does not answer")
	}
	if left, err := s.IndexVectors(t.Context(), 20); err != nil || left {
		t.Errorf("once more: left %v, %v", left, err)
	}
	mustClose(t, s)

	// Damage that somebody else did is seen, and the scan in memory answers.
	raw(t, filepath.Join(dir, FileName), "UPDATE embedding_bits SET bits = zeroblob(48) WHERE seq = 20")
	s = mustOpenVectors(t, dir, "m", VectorsInFile)
	if _, problems := vectorHealth(t, s); problems != "the vector index differs in 1 vectors" {
		t.Errorf("a changed row: %q", problems)
	}
	mustClose(t, s)
	raw(t, filepath.Join(dir, FileName), "DROP TABLE embedding_index_chunks")
	s = mustOpenVectors(t, dir, "m", VectorsInFile)
	if got := mustNear(t, s, query, Scope{}, 30); len(got) != 30 {
		t.Errorf("with a broken index %d are found", len(got))
	}
	if _, problems := vectorHealth(t, s); !strings.Contains(problems, "the vector index cannot be read") {
		t.Errorf("a broken index: %q", problems)
	}
}

// TestVectors_ofAnotherStore sees what another store of the file has changed.
func TestVectors_ofAnotherStore(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 9))
	dir := filepath.Join(t.TempDir(), "w")
	a, b := mustOpenVectors(t, dir, "m", VectorsInMemory), mustOpenVectors(t, dir, "m", VectorsInMemory)
	for i := range 5 {
		mustPropose(t, a, req(fmt.Sprint(i), fmt.Sprintf("statement number %d", i)))
	}
	mustEmbed(t, a, rng)
	query := randomVector(rng)
	if got := mustNear(t, b, query, Scope{}, 10); len(got) != 5 {
		t.Fatalf("found %q", got)
	}
	// The last row's number is given again after it is deleted.
	mustChange(t, a, "DELETE FROM facts WHERE seq = 5")
	mustPropose(t, a, req("again", "another statement"))
	mustEmbed(t, a, rng)
	if got, want := mustNear(t, b, query, Scope{}, 10), exactly(t, a, query, Scope{}, 10); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestParseVectorIndex(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]VectorIndex{"": VectorsInMemory, "memory": VectorsInMemory, "file": VectorsInFile, "none": VectorsWithoutExtension} {
		if got, err := ParseVectorIndex(in); got != want || err != nil {
			t.Errorf("%q = %s, %v", in, got, err)
		}
	}
	_, err := ParseVectorIndex("disk")
	wantCode(t, err, record.InvalidArgument)
}

// TestHealth_vectorsOfAnotherModel looks at a file whose vectors are of a model
// that is not in use now.
func TestHealth_vectorsOfAnotherModel(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "w")
	for _, model := range []string{"heron", "", "stork"} {
		s, err := Open(t.Context(), dir, "w", Options{Embedding: model, OnQueued: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		if model == "heron" {
			mustPropose(t, s, req("birds", "the heron nests by the pond"))
			mustEmbed(t, s, rand.New(rand.NewPCG(1, 1)))
		}
		mustView(t, s, func(v *View) error {
			h, err := v.Health(true)
			if !h.OK || h.VectorsIndexed != 1 {
				t.Errorf("with the model %q: %+v", model, h)
			}
			return err
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
