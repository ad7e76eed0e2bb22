package recall

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// bagModel is a model of the tests' own: a text's vector is the sum of its
// words' random ones, so that texts with common words are near.
type bagModel struct {
	fail  atomic.Bool
	calls atomic.Int64
}

func (*bagModel) ID() string { return "bag-1" }

func (m *bagModel) Embed(_ context.Context, texts []string) ([][]float32, error) {
	m.calls.Add(1)
	if m.fail.Load() {
		return nil, errors.New("the model is down")
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = bag(t)
	}
	return out, nil
}

func (m *bagModel) EmbedQuery(ctx context.Context, q string) ([]float32, error) {
	v, err := m.Embed(ctx, []string{q})
	if err != nil {
		return nil, err
	}
	return v[0], nil
}

func bag(s string) []float32 {
	v := make([]float32, memory.Dimensions)
	sum := 0.0
	for _, t := range text.QueryTerms(s) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(t.Text))
		x := h.Sum64()
		for i := range v {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			v[i] += float32(int64(x)) / math.MaxInt64
		}
	}
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		return nil
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// embedded runs f with workspaces whose facts are embedded by m.
func embedded(tb testing.TB, data string, m *bagModel, f func(*memory.Workspaces, *memory.Store)) {
	tb.Helper()
	e := NewEmbedder(m, slog.New(slog.DiscardHandler))
	w, err := memory.NewWorkspaces(data, memory.Options{Embedding: m.ID(), OnQueued: e.Queued, Now: func() time.Time { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	e.Start(w)
	err = w.Use(context.Background(), "w", func(s *memory.Store) error {
		f(w, s)
		return nil
	})
	e.Stop()
	if err := errors.Join(err, w.Close()); err != nil {
		tb.Fatal(err)
	}
}

func health(tb testing.TB, s *memory.Store) (h record.Health) {
	tb.Helper()
	err := s.View(context.Background(), func(v *memory.View) (err error) {
		h, err = v.Health(false)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// await waits until the queue is as long as wanted.
func await(tb testing.TB, s *memory.Store, embedded, queued int64) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		h := health(tb, s)
		if h.Embedded == embedded && h.EmbeddingQueue == queued {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%d embedded and %d queued, want %d and %d", h.Embedded, h.EmbeddingQueue, embedded, queued)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestEmbedder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	m := &bagModel{}
	m.fail.Store(true)
	embedded(t, data, m, func(_ *memory.Workspaces, s *memory.Store) {
		mustFill(t, s, "the heron nests by the river", "otters dive for clams", "the invoice is late")
		for m.calls.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		await(t, s, 0, 3)
		// With the model down the words still find, and the answer says so.
		res, err := NewEngine(m).Search(t.Context(), s, record.Search{Caller: caller, Query: "heron river"})
		if err != nil || len(res.Facts) == 0 || len(res.Degraded) != 1 {
			t.Errorf("with the model down: %q, degraded %q, %v", contents(res.Facts), res.Degraded, err)
		}
	})
	// The queue survives the restart, and what is new joins it.
	m.fail.Store(false)
	embedded(t, data, m, func(_ *memory.Workspaces, s *memory.Store) {
		mustFill(t, s, "a fourth fact about geese")
		await(t, s, 4, 0)
		res, err := NewEngine(m).Search(t.Context(), s, record.Search{Caller: caller, Query: "heron by a river", Mode: "hybrid"})
		if err != nil || len(res.Facts) == 0 || res.Facts[0].Content != "the heron nests by the river" || res.Facts[0].Voices["semantic"] != 1 || len(res.Degraded) != 0 {
			t.Errorf("with the model: %+v, %v", res, err)
		}
		for _, q := range []string{"", "*", "who are you", "xylophone concerto"} {
			if res, err := NewEngine(m).Search(t.Context(), s, record.Search{Caller: caller, Query: q}); err != nil || len(res.Facts) != 0 {
				t.Errorf("%q finds %q, %v", q, contents(res.Facts), err)
			}
		}
	})
}

func TestEmbedder_earlierFactsGetNone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s, err := memory.Open(context.Background(), filepath.Join(data, "workspaces", "w"), "w", memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustFill(t, s, "written before the model came")
	if h := health(t, s); h.EmbeddingQueue != 0 {
		t.Errorf("without a model %d facts wait for a vector", h.EmbeddingQueue)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	embedded(t, data, &bagModel{}, func(_ *memory.Workspaces, s *memory.Store) {
		mustFill(t, s, "already there is one", "written after the model came")
		await(t, s, 2, 0)
		missing, err := s.WithoutVector(t.Context(), 0, 10)
		if err != nil || len(missing) != 1 || missing[0].Content != "written before the model came" {
			t.Errorf("without a vector: %+v, %v", missing, err)
		}
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	m := &bagModel{}
	data := t.TempDir()
	embedded(t, data, m, func(_ *memory.Workspaces, s *memory.Store) {
		var rows []string
		animals := strings.Fields("heron otter goose crane finch stork eagle raven robin swift")
		places := strings.Fields("river lake marsh meadow forest valley cliff harbour garden island")
		for _, a := range animals {
			for _, p := range places {
				rows = append(rows, "the "+a+" lives near the "+p)
			}
		}
		mustFill(t, s, rows...)
		await(t, s, int64(len(rows)), 0)
		for _, q := range []string{"heron marsh", "raven cliff lives", "a garden with a robin"} {
			query := bag(q)
			err := s.View(t.Context(), func(v *memory.View) error {
				near, err := v.Nearest(query, memory.Scope{}, 10)
				if err != nil || len(near) != 10 {
					t.Fatalf("nearest to %q: %d, %v", q, len(near), err)
				}
				// Compared with every row, exactly.
				for i, r := range rows {
					c := dot(query, bag(r))
					found := false
					for _, n := range near {
						found = found || n.Content == r
					}
					if !found && c > near[9].Cosine+1e-6 {
						t.Errorf("row %d of %q has cosine %v and is missing; the tenth has %v", i, q, c, near[9].Cosine)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, q := range map[string][]float32{"short": {1, 2}, "zero": make([]float32, memory.Dimensions), "nan": nanVector(), "none": nil} {
			err := s.View(t.Context(), func(v *memory.View) error {
				near, err := v.Nearest(q, memory.Scope{}, 10)
				if len(near) != 0 {
					t.Errorf("a %s vector finds %d", name, len(near))
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		// Vectors that cannot be compared are none.
		facts, err := s.WithoutVector(t.Context(), 0, 5)
		if err != nil || len(facts) != 0 {
			t.Errorf("without a vector: %v, %v", facts, err)
		}
	})
	// Another model's vectors are not compared.
	s, err := memory.Open(context.Background(), filepath.Join(data, "workspaces", "w"), "w", memory.Options{Embedding: "other-2"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.View(t.Context(), func(v *memory.View) error {
		near, err := v.Nearest(bag("heron"), memory.Scope{}, 10)
		if len(near) != 0 {
			t.Errorf("vectors of another model were compared: %d", len(near))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.StoreVectors(t.Context(), []memory.Embedded{{ToEmbed: memory.ToEmbed{Seq: 1, Content: "the heron lives near the river"}, Vector: nanVector()}, {ToEmbed: memory.ToEmbed{Seq: 2, Content: "stale text"}, Vector: bag("x y z")}})
	if err != nil || n != 0 {
		t.Errorf("%d vectors stored of a NaN and one of stale text, %v", n, err)
	}
}

func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func nanVector() []float32 {
	v := make([]float32, memory.Dimensions)
	v[7] = float32(math.NaN())
	return v
}
