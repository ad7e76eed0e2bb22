package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
)

// recallReport is what `bench recall --json` prints.
type recallReport struct {
	Sizes   []sizeRow    `json:"sizes"`
	Rows    []latencyRow `json:"rows"`
	Readers []readersRow `json:"readers"`
}

// sizeRow is what a workspace of so many facts costs. HeapBytes is the Go
// heap's growth by opening it and searching, RSSBytes the process as a whole.
type sizeRow struct {
	Facts        int     `json:"facts"`
	LoadSeconds  float64 `json:"load_seconds,omitempty"`
	FactsASecond float64 `json:"facts_a_second,omitempty"`
	Vectors      float64 `json:"vectors_a_second,omitempty"`
	FileBytes    int64   `json:"file_bytes"`
	HeapBytes    int64   `json:"heap_bytes"`
	RSSBytes     int64   `json:"rss_bytes"`
	// FirstMS is the first semantic search after opening.
	FirstMS float64 `json:"first_semantic_ms"`
}

// latencyRow is one mode ("keyword", "semantic", "hybrid") or one voice
// ("voice lexical", ...) at one size. CPU is the mean processor time, garbage
// collection included, 0 where the system does not tell.
type latencyRow struct {
	Facts int     `json:"facts"`
	What  string  `json:"what"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	CPU   float64 `json:"cpu_ms"`
}

// timings are the samples of what was measured, by its name.
type timings struct {
	took map[string][]time.Duration
	cpu  map[string]time.Duration
}

// measure runs f and keeps how long it took, unless it only warms up.
func (t *timings) measure(what string, warming bool, f func() error) error {
	start, used := time.Now(), cpuTime()
	if err := f(); err != nil || warming {
		return err
	}
	t.took[what] = append(t.took[what], time.Since(start))
	t.cpu[what] += cpuTime() - used
	return nil
}

func (t *timings) row(n int, what string) latencyRow {
	samples := t.took[what]
	return latencyRow{n, what, inMS(load.Percentile(samples, 50)), inMS(load.Percentile(samples, 95)), inMS(t.cpu[what] / time.Duration(max(1, len(samples))))}
}

// loadedMark names the file that says that a folder of --dir is complete.
const loadedMark = "loaded"

func benchRecall(ctx context.Context, dir string, sizes []int, opts memory.Options, asJSON bool) error {
	rep := recallReport{Sizes: []sizeRow{}, Rows: []latencyRow{}, Readers: []readersRow{}}
	for _, n := range sizes {
		size, rows, err := recallAt(ctx, filepath.Join(dir, fmt.Sprintf("recall-%d", n)), n, opts)
		if err != nil {
			return err
		}
		rep.Sizes, rep.Rows = append(rep.Sizes, size), append(rep.Rows, rows...)
	}
	busy, err := benchReaders(ctx, filepath.Join(dir, "readers"), min(10000, sizes[len(sizes)-1]), opts)
	if err != nil {
		return err
	}
	rep.Readers = busy
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(rep)
	}
	rep.print()
	return nil
}

func (r recallReport) print() {
	fmt.Println("| facts | loaded s | facts/s | vectors/s | file MB | bytes a fact | heap MB | process MB | first semantic ms |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, s := range r.Sizes {
		fmt.Printf("| %d | %.0f | %.0f | %.0f | %.0f | %d | %.0f | %.0f | %.1f |\n", s.Facts, s.LoadSeconds, s.FactsASecond, s.Vectors, mega(s.FileBytes), s.FileBytes/int64(s.Facts), mega(s.HeapBytes), mega(s.RSSBytes), s.FirstMS)
	}
	fmt.Println("\n| facts | search or voice | p50 ms | p95 ms | CPU ms |\n| --- | --- | --- | --- | --- |")
	for _, l := range r.Rows {
		fmt.Printf("| %d | %s | %.1f | %.1f | %.1f |\n", l.Facts, l.What, l.P50, l.P95, l.CPU)
	}
	fmt.Println("\n| facts | 16 readers | searches/s | p50 ms | p95 ms |\n| --- | --- | --- | --- | --- |")
	for _, b := range r.Readers {
		fmt.Printf("| %d | %s | %.0f | %.1f | %.1f |\n", b.Facts, b.While, b.Rate, b.P50, b.P95)
	}
}

func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// recallAt measures one size; a folder that an earlier run filled is used
// again.
func recallAt(ctx context.Context, dir string, n int, opts memory.Options) (sizeRow, []latencyRow, error) {
	size := sizeRow{Facts: n}
	opts.Embedding = plantedModel
	mark := filepath.Join(dir, loadedMark)
	if _, err := os.Stat(mark); errors.Is(err, fs.ErrNotExist) {
		if err := fillVectors(ctx, dir, n, opts, &size); err != nil {
			return size, nil, err
		}
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return size, nil, err
		}
	}
	before := heap()
	s, err := memory.Open(ctx, dir, "bench", opts)
	if err != nil {
		return size, nil, err
	}
	rows, err := latencies(ctx, s, n, &size)
	size.HeapBytes, size.RSSBytes = heap()-before, resident()
	if err := errors.Join(err, s.Close()); err != nil {
		return size, nil, err
	}
	info, err := os.Stat(filepath.Join(dir, memory.FileName))
	if err == nil {
		size.FileBytes = info.Size()
	}
	return size, rows, err
}

// fillVectors fills a workspace through the write path that every fact takes, then
// gives the facts their vectors.
func fillVectors(ctx context.Context, dir string, n int, opts memory.Options, size *sizeRow) error {
	s, err := memory.Open(ctx, dir, "bench", opts)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	const part = 50000
	c := corpus.New(1)
	start := time.Now()
	for from := 0; from < n; from += part {
		if _, _, err := fill(ctx, s, c, from, min(n, from+part), 256); err != nil {
			return err
		}
	}
	took := time.Since(start)
	vectors := time.Now()
	p := newPlanted()
	for {
		waiting, err := s.QueuedForEmbedding(ctx, 1024)
		if err != nil {
			return err
		}
		if len(waiting) == 0 {
			break
		}
		out := make([]memory.Embedded, len(waiting))
		for i, w := range waiting {
			out[i] = memory.Embedded{ToEmbed: w, Vector: p.of(w.Seq, 0)}
		}
		if _, err := s.StoreVectors(ctx, out); err != nil {
			return err
		}
	}
	size.LoadSeconds, size.FactsASecond, size.Vectors = time.Since(start).Seconds(), float64(n)/took.Seconds(), float64(n)/time.Since(vectors).Seconds()
	return s.Close()
}

// latencies times every mode and every voice with the same questions.
func latencies(ctx context.Context, s *memory.Store, n int, size *sizeRow) ([]latencyRow, error) {
	rounds := 300
	if n >= 1000000 {
		rounds = 150
	}
	model := newPlanted()
	engine := recall.NewEngine(model)
	asked, err := questions(ctx, s, n, rounds+warmUp)
	if err != nil {
		return nil, err
	}
	first := time.Now()
	if err := s.View(ctx, func(v *memory.View) error {
		_, err := v.Nearest(model.of(asked[0].seq, 1), memory.Scope{}, 10)
		return err
	}); err != nil {
		return nil, err
	}
	size.FirstMS = inMS(time.Since(first))
	times := &timings{map[string][]time.Duration{}, map[string]time.Duration{}}
	modes := []string{"keyword", "semantic", "hybrid"}
	for i, q := range asked {
		model.next = model.of(q.seq, 1)
		for _, mode := range modes {
			err := times.measure(mode, i < warmUp, func() error {
				_, err := engine.Search(ctx, s, record.Search{Caller: record.Caller{Workspace: "bench"}, Query: q.text, Mode: mode})
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		if err := askVoices(ctx, s, q.text, model.next, i < warmUp, times); err != nil {
			return nil, err
		}
	}
	rows := []latencyRow{}
	for _, mode := range modes {
		rows = append(rows, times.row(n, mode))
	}
	for _, voice := range voices {
		rows = append(rows, times.row(n, "voice "+voice.Name()))
	}
	return rows, nil
}

// warmUp is how many questions are asked before the clock counts.
const warmUp = 20

// voices are asked in this order, each in a view of its own.
var voices = []recall.Voice{recall.Lexical{}, recall.Semantic{}, recall.Graph{}, recall.Temporal{}}

// askVoices asks the voices one by one; the graph and the temporal voice go on
// from what the lexical and the semantic one found.
func askVoices(ctx context.Context, s *memory.Store, question string, vector []float32, warming bool, times *timings) error {
	q := recall.Query{Text: question, Intent: recall.ClassifyIntent(question), Vector: vector, Limit: 100}
	for _, voice := range voices {
		err := s.View(ctx, func(v *memory.View) (err error) {
			var found []recall.Candidate
			err = times.measure("voice "+voice.Name(), warming, func() error {
				if q.Lexicon == nil {
					// Only the lexical voice, the first, needs the words weighed.
					if q.Lexicon, err = recall.NewLexicon(v, question); err != nil {
						return err
					}
				}
				found, err = voice.Find(ctx, v, q)
				return err
			})
			if name := voice.Name(); name == "lexical" || name == "semantic" {
				q.Found = append(q.Found, found...)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// asking is a question about the fact in a row.
type asking struct {
	text string
	seq  int64
}

// questions asks for stored facts, chosen at random, in eight of their words.
func questions(ctx context.Context, s *memory.Store, n, count int) ([]asking, error) {
	rng := rand.New(rand.NewPCG(5, 5))
	out := make([]asking, 0, count)
	err := s.View(ctx, func(v *memory.View) error {
		for len(out) < count {
			rows, err := v.Facts(memory.Scope{}, false, rng.Int64N(int64(n)), 1)
			if err != nil {
				return err
			}
			for _, r := range rows {
				out = append(out, asking{corpus.Question(r.Value.Content, rng), r.Seq})
			}
		}
		return nil
	})
	return out, err
}

// heap is what the Go heap holds after a collection.
func heap() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// resident is the process's memory as the system counts it, 0 where it does
// not say.
func resident() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}

// plantedModel is the id of the vectors that the bench plants.
const plantedModel = "bench-1"

// planted stands for a model: the vector of a fact comes from its row. They
// share a direction, as sentence embeddings do, and lie in clusters of forty:
// two of one cluster have a cosine of about 0.5, two others of about 0.1.
type planted struct {
	common []float32
	// next is the vector of the question that is asked next: embedding it is no
	// part of what is measured.
	next []float32
}

const clusterSize = 40

func newPlanted() *planted { return &planted{common: normals(0, 1)} }

// of returns the vector of the fact in a row; noise, 0 to 1, is how far a
// question about it lies off.
func (p *planted) of(seq int64, noise float64) []float32 {
	centre, own, off := normals(1, uint64(seq/clusterSize)), normals(2, uint64(seq)), normals(3, uint64(seq))
	v := make([]float32, memory.Dimensions)
	sum := 0.0
	for i := range v {
		f := 0.33*float64(p.common[i]) + 0.62*float64(centre[i]) + 0.71*float64(own[i]) + 0.5*noise*float64(off[i])
		v[i] = float32(f)
		sum += f * f
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func normals(kind, n uint64) []float32 {
	rng := rand.New(rand.NewPCG(kind, n))
	v := make([]float32, memory.Dimensions)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func (*planted) ID() string { return plantedModel }

func (*planted) Embed(context.Context, []string) ([][]float32, error) {
	return nil, errors.New("the bench plants its vectors itself")
}

func (p *planted) EmbedQuery(context.Context, string) ([]float32, error) { return p.next, nil }
