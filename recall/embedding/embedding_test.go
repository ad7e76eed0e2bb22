package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

type goldenText struct {
	Text   string
	IDs    []int32
	Vector []float32
}

func golden(tb testing.TB) []goldenText {
	tb.Helper()
	content, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		tb.Fatal(err)
	}
	var g struct{ Texts []goldenText }
	if err := json.Unmarshal(content, &g); err != nil {
		tb.Fatal(err)
	}
	if len(g.Texts) < 24 {
		tb.Fatalf("%d texts", len(g.Texts))
	}
	return g.Texts
}

// TestModel_golden holds both sessions to what the reference implementation
// made of the same texts.
func TestModel_golden(t *testing.T) {
	t.Parallel()
	for _, session := range []Session{Encoder, Hugot} {
		t.Run(string(session), func(t *testing.T) {
			t.Parallel()
			m := openModel(t, Options{Session: session})
			texts := golden(t)
			if session == Hugot && raceDetector {
				texts = texts[:2] // The others take minutes.
			}
			all := make([]string, len(texts))
			for i, g := range texts {
				all[i] = g.Text
			}
			batch, err := m.Embed(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			for i, g := range texts {
				name := fmt.Sprintf("%.40q", g.Text)
				if got := m.encode(g.Text); !slices.Equal(got, g.IDs) {
					t.Errorf("%s: pieces %v, want %v", name, got, g.IDs)
				}
				if cosine := dot(batch[i], g.Vector); !(cosine >= 0.99999) {
					t.Errorf("%s: cosine %v with the reference's", name, cosine)
				}
				if n := math.Sqrt(dot(batch[i], batch[i])); math.Abs(n-1) > 1e-6 {
					t.Errorf("%s: length %v", name, n)
				}
				single, err := m.Embed(t.Context(), []string{g.Text})
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case session == Encoder && !slices.Equal(single[0], batch[i]):
					t.Errorf("%s: alone and in a batch it has two vectors", name)
				case !(dot(single[0], batch[i]) >= 0.999999):
					t.Errorf("%s: cosine %v between alone and in a batch", name, dot(single[0], batch[i]))
				}
			}
		})
	}
}

func TestModel_sameOnAnyNumberOfCores(t *testing.T) {
	t.Parallel()
	one, many := openModel(t, Options{Threads: 1}), openModel(t, Options{Threads: 7})
	var texts []string
	for range 3 {
		for _, g := range golden(t) {
			texts = append(texts, g.Text)
		}
	}
	a, err := one.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b, err := many.Embed(t.Context(), texts)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range texts {
				if !slices.Equal(a[i], b[i]) {
					t.Errorf("text %d has two vectors", i)
				}
			}
		})
	}
	wg.Wait()
}

func TestModel_meaning(t *testing.T) {
	t.Parallel()
	m := openModel(t, Options{})
	v, err := m.Embed(t.Context(), []string{
		"Which database do we use?", "The team settled on PostgreSQL for storage.", "The office plants are watered on Fridays.",
	})
	if err != nil {
		t.Fatal(err)
	}
	if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near < far+.2 {
		t.Errorf("related %v, unrelated %v", near, far)
	}
}

// fakeRunner counts the texts it is given.
type fakeRunner struct {
	mu     sync.Mutex
	texts  int
	vector func(ids []int32) []float32
	err    error
}

func (f *fakeRunner) run(ctx context.Context, texts [][]int32) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out [][]float32
	for _, ids := range texts {
		f.texts++
		out = append(out, f.vector(ids))
	}
	return out, errors.Join(f.err, ctx.Err())
}

func (f *fakeRunner) close() error { return nil }

// fakeModel embeds a text by its length.
func fakeModel(opts Options) (*Model, *fakeRunner) {
	f := &fakeRunner{vector: func(ids []int32) []float32 {
		v := make([]float32, Dimensions)
		v[int(ids[0])%Dimensions] = 3
		return v
	}}
	return newModel("fake@1", Encoder, f, func(text string) []int32 { return []int32{int32(len(text))} }, opts), f
}

func TestModel_EmbedQuery(t *testing.T) {
	t.Parallel()
	ask := func(m *Model, text string) []float32 {
		t.Helper()
		v, err := m.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		m, f := fakeModel(Options{CachedQueries: 2})
		first := ask(m, "a")
		first[0] = 99 // The caller's own.
		if v := ask(m, "a"); v[0] != 0 || v[1] != 1 {
			t.Errorf("the kept vector is %v", v[:3])
		}
		if f.texts != 1 {
			t.Errorf("computed %d times, want once", f.texts)
		}
		ask(m, "bb")
		ask(m, "ccc") // Pushes out "a".
		ask(m, "ccc")
		if ask(m, "a"); f.texts != 4 {
			t.Errorf("computed %d, want 4", f.texts)
		}
		if ask(m, strings.Repeat("x", maxCachedQuery+1)); m.queries.Len() != 2 {
			t.Error("a very long text is kept")
		}
	})
	t.Run("failure_is_not_kept", func(t *testing.T) {
		t.Parallel()
		m, f := fakeModel(Options{})
		f.err = errors.New("broken")
		if _, err := m.EmbedQuery(t.Context(), "a"); record.ErrorCode(err) != record.Unavailable || strings.Contains(err.Error(), "broken") {
			t.Errorf("got %v", err)
		}
		f.err = nil
		ask(m, "a")
		good := f.vector
		f.vector = func([]int32) []float32 { return make([]float32, Dimensions) }
		if _, err := m.EmbedQuery(t.Context(), "bb"); record.ErrorCode(err) != record.Unavailable {
			t.Errorf("got %v", err)
		}
		f.vector = good
		ask(m, "bb")
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		m, _ := fakeModel(Options{})
		ask(m, "a")
		for range 2 {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.EmbedQuery(t.Context(), "a"); record.ErrorCode(err) != record.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}

func TestModel_Embed(t *testing.T) {
	t.Parallel()
	t.Run("no_vector_is_nil", func(t *testing.T) {
		t.Parallel()
		m, f := fakeModel(Options{})
		good := f.vector
		f.vector = func(ids []int32) []float32 {
			v := good(ids)
			switch ids[0] {
			case 2:
				clear(v)
			case 3:
				v[7] = float32(math.NaN())
			case 4:
				v[7] = float32(math.Inf(-1))
			case 5:
				v = v[1:]
			case 6:
				v = nil
			}
			return v
		}
		got, err := m.Embed(t.Context(), []string{"1", "22", "333", "4444", "55555", "666666", "7777777"})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			switch {
			case i >= 1 && i <= 5:
				if v != nil {
					t.Errorf("text %d has %v", i, v[:8])
				}
			case !Valid(v) || v[i+1] != 1:
				t.Errorf("text %d has %v", i, v)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		m, f := fakeModel(Options{})
		if got, err := m.Embed(t.Context(), nil); err != nil || len(got) != 0 || f.texts != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		m, f := fakeModel(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) || f.texts != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestValid(t *testing.T) {
	t.Parallel()
	with := func(n int, f float64) []float32 {
		v := make([]float32, n)
		if n > 0 {
			v[n/2] = float32(f)
		}
		return v
	}
	for _, tc := range []struct {
		name string
		v    []float32
		want bool
	}{
		{"one", with(Dimensions, 1), true},
		{"small", with(Dimensions, -1e-4), true},
		{"nil", nil, false},
		{"zero", with(Dimensions, 0), false},
		{"vanishing", with(Dimensions, 1e-30), false},
		{"NaN", with(Dimensions, math.NaN()), false},
		{"infinite", with(Dimensions, math.Inf(1)), false},
		{"short", with(Dimensions-1, 1), false},
		{"long", with(Dimensions+1, 1), false},
	} {
		if got := Valid(tc.v); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	good := made(t, Dimensions, 1)
	tokenizer := func(change func(map[string]any)) []byte {
		tk := madeTokenizer()
		change(tk)
		content, err := json.Marshal(tk)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		opts  Options
		want  record.Code
		says  string
	}{
		{"good", good, Options{}, "", ""},
		{"missing_all", nil, Options{}, record.Unavailable, "model.onnx is missing"},
		{"missing_tokenizer", map[string][]byte{weightsFile: good[weightsFile]}, Options{}, record.Unavailable, "tokenizer.json is missing"},
		{"missing_weights", map[string][]byte{tokenizerFile: good[tokenizerFile]}, Options{}, record.Unavailable, "model.onnx is missing"},
		{"weights_a_folder", map[string][]byte{tokenizerFile: good[tokenizerFile], weightsFile + "/x": nil}, Options{}, record.InvalidArgument, "not a file"},
		{"weights_empty", map[string][]byte{tokenizerFile: good[tokenizerFile], weightsFile: nil}, Options{}, record.InvalidArgument, "model.onnx"},
		{"weights_text", map[string][]byte{tokenizerFile: good[tokenizerFile], weightsFile: []byte("version https://git-lfs")}, Options{}, record.InvalidArgument, "model.onnx"},
		{"weights_cut", map[string][]byte{tokenizerFile: good[tokenizerFile], weightsFile: good[weightsFile][:9000]}, Options{}, record.InvalidArgument, "model.onnx"},
		{"other_size", made(t, 256, 1), Options{}, record.InvalidArgument, "256 dimensions, want 384"},
		{"tokenizer_no_json", map[string][]byte{tokenizerFile: []byte("{"), weightsFile: good[weightsFile]}, Options{}, record.InvalidArgument, "tokenizer.json"},
		{"tokenizer_of_another_kind", map[string][]byte{weightsFile: good[weightsFile], tokenizerFile: tokenizer(func(tk map[string]any) {
			tk["model"].(map[string]any)["type"] = "BPE"
		})}, Options{}, record.InvalidArgument, "word piece"},
		{"encoder_only", good, Options{Session: Encoder}, record.InvalidArgument, "encoder"},
		{"unknown_session", good, Options{Session: "gpu"}, record.InvalidArgument, "gpu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, tc.files)
			m, err := Open(dir, tc.opts)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if m.Session() != Hugot {
					t.Errorf("session %q", m.Session())
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			var e *record.Error
			if !errors.As(err, &e) || e.Code != tc.want || !strings.Contains(e.Message, tc.says) || strings.Contains(e.Error(), dir) {
				t.Errorf("got %v, want %s with %q", err, tc.want, tc.says)
			}
		})
	}
}

func TestModel_ID(t *testing.T) {
	t.Parallel()
	open := func(seed uint64) *Model {
		m, err := Open(write(t, made(t, Dimensions, seed)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	a, again, b := open(1), open(1), open(2)
	if a.ID() != again.ID() || a.ID() == b.ID() || !strings.HasPrefix(a.ID(), ModelName+"@") || len(a.ID()) != len(ModelName)+13 {
		t.Errorf("%s, %s, %s", a.ID(), again.ID(), b.ID())
	}
	v, err := a.Embed(t.Context(), []string{"the team decided", "", "the team decided", "unheard of"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v[0], v[2]) || slices.Equal(v[0], v[3]) || !Valid(v[1]) {
		t.Error("the vectors are mixed up")
	}
}

var questions = []string{
	"What did we decide about the database?",
	"Who is responsible for the payment service rollout?",
	"When did Caroline go to the LGBTQ support group?",
	"Which flag skips the hooks when committing?",
	"چه کسی مسئول استقرار سرویس پرداخت است؟",
	"谁负责部署支付服务？",
}

// BenchmarkQuery embeds one question, a new one each time.
func BenchmarkQuery(b *testing.B) {
	for _, session := range []Session{Encoder, Hugot} {
		b.Run(string(session), func(b *testing.B) {
			m := openModel(b, Options{Session: session})
			n, pieces := 0, 0
			for _, q := range questions { // Warm.
				pieces += len(m.encode(q))
				if _, err := m.Embed(b.Context(), []string{q}); err != nil {
					b.Fatal(err)
				}
			}
			took := newDurations()
			for b.Loop() {
				took.start()
				if _, err := m.Embed(b.Context(), []string{questions[n%len(questions)]}); err != nil {
					b.Fatal(err)
				}
				took.stop()
				n++
			}
			took.report(b)
			b.ReportMetric(float64(pieces)/float64(len(questions)), "pieces")
		})
	}
}

// BenchmarkEmbed embeds facts of one or two sentences.
func BenchmarkEmbed(b *testing.B) {
	for _, session := range []Session{Encoder, Hugot} {
		for _, size := range []int{8, 32, 64} {
			b.Run(fmt.Sprintf("%s/%d", session, size), func(b *testing.B) {
				m := openModel(b, Options{Session: session})
				texts := make([]string, size)
				for i := range texts {
					texts[i] = strings.Repeat(fmt.Sprintf("In meeting %d the group agreed to review the proposal for the %s. ", i, questions[i%4]), 1+i%2)
				}
				pieces := 0
				for _, text := range texts {
					pieces += len(m.encode(text))
				}
				if _, err := m.Embed(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := m.Embed(b.Context(), texts); err != nil {
						b.Fatal(err)
					}
				}
				seconds := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(float64(size)/seconds, "texts/s")
				b.ReportMetric(float64(pieces)/seconds, "pieces/s")
			})
		}
	}
}

// BenchmarkOpen loads the model, and tells what it keeps in memory.
func BenchmarkOpen(b *testing.B) {
	dir := modelDir(b)
	for _, session := range []Session{Encoder, Hugot} {
		b.Run(string(session), func(b *testing.B) {
			before := heap()
			for b.Loop() {
				m, err := Open(dir, Options{Session: session})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if _, err := m.Embed(b.Context(), questions); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(heap()-before, "MB-kept")
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
