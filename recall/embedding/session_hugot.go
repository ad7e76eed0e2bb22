package embedding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	gomlx "github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/backends"
	"github.com/knights-analytics/hugot/pipelines"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// hugotSession runs the graph as it is. Tokens come from our own tokenizer:
// hugot's ends the process on a text it cannot split, and cuts and pads as
// tokenizer.json says rather than as the model was meant to be used.
type hugotSession struct {
	mu       sync.Mutex // A pipeline serves one caller at a time.
	session  *hugot.Session
	pipeline *pipelines.FeatureExtractionPipeline
}

// hugot compiles, and keeps, one program per shape of its input, so there are
// few: batches of one or of hugotBatch, and lengths in steps of hugotStep.
const (
	hugotBatch = 8
	hugotStep  = 16
)

// init has hugot's backend compute the operators of a graph one after the
// other. Its other way, several at once, counts their uses without a lock,
// which the race detector rightly reports; a single product is spread over the
// cores either way.
func init() {
	gomlx.Register(simplego.BackendName, func(string) (gomlx.Backend, error) { return simplego.New("ops_sequential") })
}

func openHugot(dir string) (r runner, err error) {
	session, err := hugot.NewGoSession()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, session.Destroy())
		}
	}()
	s := &hugotSession{session: session}
	err = caught(func() (err error) {
		s.pipeline, err = hugot.NewPipeline(session, hugot.FeatureExtractionConfig{ModelPath: dir, Name: ModelName, OnnxFilename: weightsFile})
		return err
	})
	if err != nil {
		return nil, record.Wrap(record.InvalidArgument, err, "%s is not a model that can be run", weightsFile)
	}
	// What the graph says of its output may be wrong or missing; what it gives is not.
	vectors, err := s.run(context.Background(), [][]int32{{101, 102}})
	if err != nil {
		return nil, record.Wrap(record.InvalidArgument, err, "%s is not a model that can be run", weightsFile)
	}
	if n := len(vectors[0]); n != Dimensions {
		return nil, record.Errorf(record.InvalidArgument, "", "%s gives vectors of %d dimensions, want %d", weightsFile, n, Dimensions)
	}
	return s, nil
}

func (s *hugotSession) run(ctx context.Context, texts [][]int32) ([][]float32, error) {
	order := make([]int, len(texts)) // By length, so that little is padded.
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(texts[a]) - len(texts[b]) })
	vectors := make([][]float32, len(texts))
	for len(order) > 0 {
		n := 1
		if len(order) >= hugotBatch {
			n = hugotBatch
		}
		if err := s.batch(ctx, texts, order[:n], vectors); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return vectors, nil
}

func (s *hugotSession) batch(ctx context.Context, texts [][]int32, chosen []int, vectors [][]float32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	batch := backends.NewBatch(len(chosen))
	for _, i := range chosen {
		ids := make([]uint32, len(texts[i]))
		mask := make([]uint32, len(ids))
		for n, id := range texts[i] {
			ids[n], mask[n] = uint32(id), 1
		}
		batch.Input = append(batch.Input, backends.TokenizedInput{
			TokenIDs: ids, TypeIDs: make([]uint32, len(ids)), AttentionMask: mask, MaxAttentionIndex: len(ids) - 1,
		})
		batch.MaxSequenceLength = max(batch.MaxSequenceLength, min(MaxPieces, (len(ids)+hugotStep-1)/hugotStep*hugotStep))
	}
	return caught(func() (err error) {
		defer func() { err = errors.Join(err, batch.Destroy()) }()
		if err := backends.CreateInputTensors(batch, s.pipeline.Model, s.pipeline.Runtime); err != nil {
			return err
		}
		if err := s.pipeline.Forward(batch); err != nil {
			return err
		}
		out, err := s.pipeline.Postprocess(batch)
		if err != nil {
			return err
		}
		if len(out.Embeddings) != len(chosen) {
			return fmt.Errorf("%d vectors for %d texts", len(out.Embeddings), len(chosen))
		}
		for n, i := range chosen {
			vectors[i] = out.Embeddings[n]
		}
		return nil
	})
}

func (s *hugotSession) close() error {
	return caught(s.session.Destroy)
}

// caught turns a panic of the libraries below into an error: they use both.
func caught(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fn()
}
