package embedding

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/polyphony-memory/polyphony/recall/embedding/internal/bert"
	"github.com/polyphony-memory/polyphony/recall/embedding/internal/onnxfile"
)

// encoderSession runs the encoder, which is safe for concurrent use.
type encoderSession struct {
	encoder *bert.Encoder
	threads int
}

func openEncoder(dir string, threads, vocabulary int) (runner, error) {
	f, err := onnxfile.Open(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	encoder, err := bert.Load(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if encoder.Vocabulary() < vocabulary || encoder.MaxTokens() < MaxPieces {
		return nil, fmt.Errorf("a vocabulary of %d and %d tokens, want %d and %d",
			encoder.Vocabulary(), encoder.MaxTokens(), vocabulary, MaxPieces)
	}
	return &encoderSession{encoder, threads}, nil
}

func (s *encoderSession) run(ctx context.Context, texts [][]int32) ([][]float32, error) {
	return s.encoder.Encode(ctx, texts, s.threads)
}

func (s *encoderSession) close() error {
	s.encoder = nil
	return nil
}
