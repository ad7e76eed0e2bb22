package activities

import (
	"context"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// OpenObligation runs [memory.Store.OpenObligation].
func (a *Store) OpenObligation(ctx context.Context, in record.OpenObligation) (record.ObligationResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).OpenObligation)
}

// ClaimObligation runs [memory.Store.ClaimObligation].
func (a *Store) ClaimObligation(ctx context.Context, in record.ClaimObligation) (record.ObligationResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).ClaimObligation)
}

// CommitObligation runs [memory.Store.CommitObligation].
func (a *Store) CommitObligation(ctx context.Context, in record.CommitObligation) (record.ObligationResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).CommitObligation)
}

// FailObligation runs [memory.Store.FailObligation].
func (a *Store) FailObligation(ctx context.Context, in record.FailObligation) (record.ObligationResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).FailObligation)
}

// CancelObligation runs [memory.Store.CancelObligation].
func (a *Store) CancelObligation(ctx context.Context, in record.CancelObligation) (record.ObligationResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).CancelObligation)
}

// ObserveObligation runs [memory.Store.ObserveObligation].
func (a *Store) ObserveObligation(ctx context.Context, in record.ObserveObligation) (record.Observed, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).ObserveObligation)
}

// AppendEpisode runs [memory.Store.AppendEpisode].
func (a *Store) AppendEpisode(ctx context.Context, in record.AppendEpisode) (record.AppendEpisodeResult, error) {
	return write(ctx, a.Workspaces, in, (*memory.Store).AppendEpisode)
}
