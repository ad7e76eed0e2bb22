// Package embedding turns text into vectors with all-MiniLM-L6-v2, and keeps
// the folder that the model lies in.
//
// A vector has 384 numbers, is the mean of the model's last hidden states over
// the tokens of the text, at most 256 word pieces of it, and has length one, so
// that the dot product of two is their cosine.
//
// Weights are data: nothing here is downloaded, and nothing works, until
// somebody has installed a model. Two sessions run it. The encoder knows this
// one architecture and is fast; hugot's pure Go session runs any ONNX graph,
// far slower, and is what checks the encoder when a model is installed and
// what takes over from it when a graph is not one it knows.
//
// It must never hold HTTP of its own: who wants downloads gives an Installer
// the means.
package embedding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall/embedding/internal/wordpiece"
)

const (
	// Dimensions is the length of every vector.
	Dimensions = 384
	// ModelName is the model that vectors come from.
	ModelName = "all-MiniLM-L6-v2"
	// MaxPieces is how many word pieces of a text are read, with the two that
	// frame it. What comes after has no part in the vector.
	MaxPieces = 256
)

// The files of a model's folder.
const (
	weightsFile   = "model.onnx"
	tokenizerFile = "tokenizer.json"
)

// Limits on a model's files.
const (
	maxWeights   = 1 << 30
	maxTokenizer = 32 << 20
)

// Session names what computes vectors.
type Session string

const (
	// Auto is the encoder where the graph allows it, hugot's session otherwise.
	Auto Session = ""
	// Encoder is the encoder of this package, for BERT graphs of MiniLM's size.
	Encoder Session = "encoder"
	// Hugot is hugot's pure Go session, for any graph.
	Hugot Session = "hugot"
)

// Options adjust a Model. The zero value is what most callers want.
type Options struct {
	// Session chooses what computes vectors.
	Session Session
	// Threads is how many cores one call may use; 0 means all of them.
	Threads int
	// CachedQueries is how many vectors of questions are kept; 0 means 1024.
	CachedQueries int
}

// Model is a loaded model. Its methods may be called at the same time.
type Model struct {
	id      string
	kind    Session
	encode  func(text string) []int32
	queries *lru.Cache[string, []float32]

	mu     sync.RWMutex // Held for reading while the session works.
	runner runner       // nil once closed.
}

// runner computes pooled hidden states, not yet of length one.
type runner interface {
	run(ctx context.Context, texts [][]int32) ([][]float32, error)
	close() error
}

// Open loads the model in a folder that holds model.onnx and tokenizer.json.
// A missing file is Unavailable: the model is not installed. Files that make no
// model of 384 dimensions are InvalidArgument.
func Open(dir string, opts Options) (*Model, error) {
	for _, name := range []string{weightsFile, tokenizerFile} {
		if err := present(dir, name); err != nil {
			return nil, err
		}
	}
	content, err := readLimited(filepath.Join(dir, tokenizerFile), maxTokenizer)
	if err != nil {
		return nil, record.Wrap(record.Unavailable, err, "the embedding model's %s cannot be read", tokenizerFile)
	}
	tokens, err := wordpiece.New(content)
	if err != nil {
		return nil, record.Wrap(record.InvalidArgument, err, "%s is not the tokenizer of %s: %v", tokenizerFile, ModelName, err)
	}

	weights := filepath.Join(dir, weightsFile)
	var id string
	var hashed error
	var wg sync.WaitGroup
	wg.Go(func() { id, hashed = modelID(weights) })
	r, kind, err := open(dir, opts, tokens.Size())
	wg.Wait()
	if err = errors.Join(err, hashed); err != nil {
		if r != nil {
			err = errors.Join(err, r.close())
		}
		var e *record.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, record.Wrap(record.Unavailable, err, "the embedding model cannot be loaded")
	}
	return newModel(id, kind, r, func(text string) []int32 { return tokens.Encode(text, MaxPieces) }, opts), nil
}

// open starts the session that opts ask for.
func open(dir string, opts Options, vocabulary int) (runner, Session, error) {
	threads := opts.Threads
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	switch opts.Session {
	case Auto, Encoder:
		r, err := openEncoder(dir, threads, vocabulary)
		if err == nil {
			return r, Encoder, nil
		}
		if opts.Session == Encoder {
			return nil, "", record.Wrap(record.InvalidArgument, err, "%s is not a graph that the encoder can run: %v", weightsFile, err)
		}
	case Hugot:
	default:
		return nil, "", record.Errorf(record.InvalidArgument, "session", "no session is called %q", opts.Session)
	}
	r, err := openHugot(dir)
	if err != nil {
		return nil, "", err
	}
	return r, Hugot, nil
}

func newModel(id string, kind Session, r runner, encode func(string) []int32, opts Options) *Model {
	size := opts.CachedQueries
	if size <= 0 {
		size = 1024
	}
	queries, err := lru.New[string, []float32](size)
	if err != nil {
		panic(err) // The size is positive.
	}
	return &Model{id: id, kind: kind, encode: encode, queries: queries, runner: r}
}

// ID names the model and its weights: vectors that carry another one do not
// compare with this model's.
func (m *Model) ID() string { return m.id }

// Session tells what computes the vectors.
func (m *Model) Session() Session { return m.kind }

// Embed returns one vector per text, in their order. A text that has none, for
// whatever reason, has nil: such a vector must not be stored.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.runner == nil {
		return nil, record.Errorf(record.Unavailable, "", "the embedding model is closed")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, nil
	}
	ids := make([][]int32, len(texts))
	for i, text := range texts {
		ids[i] = m.encode(text)
	}
	vectors, err := m.runner.run(ctx, ids)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, record.Wrap(record.Unavailable, err, "the embedding model failed")
	}
	if len(vectors) != len(texts) {
		return nil, record.Errorf(record.Unavailable, "", "the embedding model gave %d vectors for %d texts", len(vectors), len(texts))
	}
	for i, v := range vectors {
		vectors[i] = unit(v)
	}
	return vectors, nil
}

// maxCachedQuery is the longest text, in bytes, whose vector is kept.
const maxCachedQuery = 4096

// EmbedQuery returns the vector of a question. Those asked last are kept. The
// result is the caller's own.
func (m *Model) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if v, ok := m.queries.Get(text); ok {
		return slices.Clone(v), nil
	}
	vectors, err := m.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	if vectors[0] == nil {
		return nil, record.Errorf(record.Unavailable, "", "the embedding model gave no vector for the query")
	}
	if len(text) <= maxCachedQuery {
		m.queries.Add(text, slices.Clone(vectors[0]))
	}
	return vectors[0], nil
}

// Close waits for calls under way and frees the model. Later ones fail.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runner == nil {
		return nil
	}
	r := m.runner
	m.runner = nil
	m.queries.Purge()
	return r.close()
}

// Valid reports whether v is a vector of this package's kind: of its length,
// all numbers finite and not all of them zero.
func Valid(v []float32) bool { return len(v) == Dimensions && length(v) > 0 }

// length returns the Euclidean length of v, and 0 if it has none to speak of.
func length(v []float32) float64 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if !(sum > 1e-12) || math.IsInf(sum, 0) {
		return 0
	}
	return math.Sqrt(sum)
}

// unit brings v to length one, or returns nil if it is no vector.
func unit(v []float32) []float32 {
	if !Valid(v) {
		return nil
	}
	n := float32(length(v))
	for i := range v {
		v[i] /= n
	}
	return v
}

// present returns an Unavailable error unless dir has a regular file of that
// name.
func present(dir, name string) error {
	info, err := os.Stat(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return record.Wrap(record.Unavailable, err, "no embedding model is installed: %s is missing", name)
	case err != nil:
		return record.Wrap(record.Unavailable, err, "the embedding model's %s cannot be read", name)
	case !info.Mode().IsRegular():
		return record.Errorf(record.InvalidArgument, "", "the embedding model's %s is not a file", name)
	}
	return nil
}

func readLimited(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errors.New("too large")
	}
	return content, errors.Join(err, f.Close())
}

// modelID hashes the weights.
func modelID(weights string) (string, error) {
	f, err := os.Open(weights)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return ModelName + "@" + hex.EncodeToString(h.Sum(nil))[:12], nil
}
