package replay

import (
	"context"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// modelScript stands for the activities around the embedding model, so that no
// history depends on a model or a path.
type modelScript struct {
	// pages are the results of a backfill's pages, in their order; the last one
	// answers all that come after it.
	pages []record.BackfillResult
	// refused is the answer to changes of the model; nil takes them.
	refused error
}

func (s *modelScript) BackfillPage(context.Context, record.BackfillPage) (record.BackfillResult, error) {
	out := s.pages[0]
	if len(s.pages) > 1 {
		s.pages = s.pages[1:]
	}
	return out, nil
}

func (s *modelScript) InstallModel(_ context.Context, in record.InstallModel) (record.EmbeddingModel, error) {
	out := record.EmbeddingModel{Installed: true, InUse: true, ID: "all-MiniLM-L6-v2@0123456789ab", Dimensions: 384, Bytes: 90752793}
	out.Stamp(in.Identity())
	return out, s.refused
}

func (s *modelScript) RemoveModel(_ context.Context, in record.RemoveModel) (record.EmbeddingModel, error) {
	var out record.EmbeddingModel
	out.Stamp(in.Identity())
	return out, s.refused
}
