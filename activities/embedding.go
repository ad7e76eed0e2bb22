package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
)

// Keeper keeps the embedding model of a worker; recall/embedding has it.
type Keeper interface {
	// Install installs a model and has the worker use it; progress hears of
	// bytes.
	Install(ctx context.Context, source string, progress func(done, total int64)) error
	// Remove does without the model; NotFound when there is none.
	Remove(ctx context.Context) error
	Status() (record.EmbeddingModel, error)
}

// Embedding holds the activities around the embedding model.
type Embedding struct {
	Workspaces *memory.Workspaces
	Embedder   *recall.Embedder
	Keeper     Keeper
}

// InstallModel installs a model on the worker's machine. Its heartbeat carries
// a record.InstallProgress. Again it installs the same.
func (a *Embedding) InstallModel(ctx context.Context, in record.InstallModel) (record.EmbeddingModel, error) {
	if err := in.Check(); err != nil {
		return record.EmbeddingModel{}, applicationError(ctx, err)
	}
	p := startPulse(ctx, record.InstallProgress{})
	defer p.end()
	err := a.Keeper.Install(ctx, in.Source, func(done, total int64) { p.set(record.InstallProgress{Done: done, Total: total}) })
	return a.model(ctx, in.Identity(), err)
}

// RemoveModel removes the model. A later attempt that finds none has done it
// before.
func (a *Embedding) RemoveModel(ctx context.Context, in record.RemoveModel) (record.EmbeddingModel, error) {
	if err := in.Caller.Check(); err != nil {
		return record.EmbeddingModel{}, applicationError(ctx, err)
	}
	p := startPulse(ctx, nil)
	defer p.end()
	err := a.Keeper.Remove(ctx)
	if record.ErrorCode(err) == record.NotFound && activity.GetInfo(ctx).Attempt > 1 {
		err = nil
	}
	return a.model(ctx, in.Identity(), err)
}

// model is the answer to a change of the model.
func (a *Embedding) model(ctx context.Context, identity string, err error) (record.EmbeddingModel, error) {
	if ctx.Err() != nil {
		return record.EmbeddingModel{}, ctx.Err()
	}
	var out record.EmbeddingModel
	if err == nil {
		out, err = a.Keeper.Status()
	}
	out.Stamp(identity)
	return out, applicationError(ctx, err)
}

// BackfillPage runs [recall.Embedder.Backfill]. Its heartbeat carries how far
// the page is, and a later attempt goes on from there.
func (a *Embedding) BackfillPage(ctx context.Context, in record.BackfillPage) (record.BackfillResult, error) {
	var at record.BackfillResult
	if activity.HasHeartbeatDetails(ctx) {
		// Details that cannot be read only mean to begin the page again.
		_ = activity.GetHeartbeatDetails(ctx, &at)
	}
	p := startPulse(ctx, at)
	defer p.end()
	return write(ctx, a.Workspaces, in, func(s *memory.Store, ctx context.Context, in record.BackfillPage) (record.BackfillResult, error) {
		return a.Embedder.Backfill(ctx, s, in, at, func(at record.BackfillResult) { p.set(at) })
	})
}
