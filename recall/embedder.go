package recall

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
)

const (
	// embedBatch is how many facts are embedded at once: long enough to keep
	// the model busy, short enough to stop soon.
	embedBatch = 16
	// indexBatch is how many vectors are indexed at once: a write that comes
	// meanwhile waits a few hundredths of a second (docs/benchmarks.md).
	indexBatch = 256
	// embedRetry is how long the embedder waits after a failure.
	embedRetry = 15 * time.Second
)

// Embedder gives queued facts their vectors, after the commits that queued
// them and never inside one. The queue is in the workspace files, so what a
// crash or a failing model leaves waits there.
type Embedder struct {
	model      *inUse
	workspaces *memory.Workspaces
	log        *slog.Logger
	// retry is how long it waits after a failure.
	retry time.Duration

	mu      sync.Mutex
	waiting map[string]bool
	order   []string
	wake    chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
}

// NewEmbedder makes an embedder with a model, nil for none; Start runs it.
func NewEmbedder(m Model, log *slog.Logger) *Embedder {
	return &Embedder{model: newInUse(m), log: log, retry: embedRetry, waiting: map[string]bool{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// UseModel makes m the model of what is embedded from now on, nil for none: then
// what is queued waits. Once the stores are of m too, Queued must be called for
// every workspace.
func (e *Embedder) UseModel(m Model) { e.model.set(m) }

// Queued tells the embedder that a workspace has facts that wait. It returns at
// once.
func (e *Embedder) Queued(workspace string) {
	e.mu.Lock()
	if !e.waiting[workspace] {
		e.waiting[workspace] = true
		e.order = append(e.order, workspace)
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Start embeds in the background until Stop.
func (e *Embedder) Start(workspaces *memory.Workspaces) {
	e.workspaces = workspaces
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	go func() {
		defer close(e.done)
		e.run(ctx)
	}()
}

// Stop ends the work; what is left stays queued.
func (e *Embedder) Stop() {
	if e.stop != nil {
		e.stop()
		<-e.done
	}
}

func (e *Embedder) run(ctx context.Context) {
	for {
		workspace, ok := e.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-e.wake:
			}
			continue
		}
		if err := e.drain(ctx, workspace); err != nil && ctx.Err() == nil {
			e.log.Warn("facts wait for their vectors", "workspace", workspace, "error", err)
			e.Queued(workspace)
			select {
			case <-ctx.Done():
			case <-time.After(e.retry):
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (e *Embedder) next() (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.order) == 0 {
		return "", false
	}
	w := e.order[0]
	e.order = e.order[1:]
	delete(e.waiting, w)
	return w, true
}

// drain embeds what a workspace has queued, and then brings the index of the
// vectors up to date where it is behind. It leaves off when the model turns out
// to be another than the store's: who changes it says Queued again.
func (e *Embedder) drain(ctx context.Context, workspace string) error {
	return e.workspaces.Use(ctx, workspace, func(s *memory.Store) error {
		for {
			m := e.model.get()
			if m == nil || m.ID() != s.Model() {
				return nil
			}
			facts, err := s.QueuedForEmbedding(ctx, embedBatch)
			if err != nil {
				return err
			}
			if len(facts) == 0 {
				break
			}
			if _, err := EmbedFacts(ctx, s, m, facts); err != nil {
				if e.model.get() != m {
					return nil
				}
				return err
			}
		}
		for {
			if left, err := s.IndexVectors(ctx, indexBatch); err != nil || !left {
				return err
			}
		}
	})
}

// EmbedText gives a single text its vector by the model named, for the store's
// judgement of proposals; nil when another is in use by now, or none.
func (e *Embedder) EmbedText(ctx context.Context, model, text string) ([]float32, error) {
	m := e.model.get()
	if m == nil || m.ID() != model {
		return nil, nil
	}
	vectors, err := m.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// EmbedFacts gives facts their vectors and returns how many got one. The model
// must be the store's.
func EmbedFacts(ctx context.Context, s *memory.Store, m Model, facts []memory.ToEmbed) (int, error) {
	embedded, err := embedFacts(ctx, m, facts)
	if err != nil {
		return 0, err
	}
	return s.StoreVectors(ctx, embedded)
}

// embedFacts computes the vectors of facts.
func embedFacts(ctx context.Context, m Model, facts []memory.ToEmbed) ([]memory.Embedded, error) {
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = f.Content
	}
	vectors, err := m.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	out := make([]memory.Embedded, len(facts))
	for i, f := range facts {
		out[i] = memory.Embedded{ToEmbed: f, Vector: vectors[i]}
	}
	return out, nil
}
