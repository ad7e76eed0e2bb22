package activities

import (
	"context"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// Runs tells which runs of a workspace are open.
type Runs interface {
	// OpenRuns returns their workflow ids.
	OpenRuns(ctx context.Context, workspace string) ([]string, error)
}

// Upkeep holds the activities of an operator: backup, restore, repair.
type Upkeep struct {
	Workspaces *memory.Workspaces
	Runs       Runs
}

// BackUp runs [memory.Workspaces.BackUp].
func (a *Upkeep) BackUp(ctx context.Context, in record.BackUp) (record.Backup, error) {
	p := startPulse(ctx, nil)
	defer p.end()
	out, err := a.Workspaces.BackUp(ctx, in)
	out.Stamp(record.RequestHash(record.KindBackUp, in))
	return out, applicationError(ctx, err)
}

// RestoreBackup runs [memory.Workspaces.Restore].
func (a *Upkeep) RestoreBackup(ctx context.Context, in record.RestoreBackup) (record.Backup, error) {
	p := startPulse(ctx, nil)
	defer p.end()
	out, err := a.Workspaces.Restore(ctx, in)
	out.Stamp(record.RequestHash(record.KindRestoreBackup, in))
	return out, applicationError(ctx, err)
}

// Doctor runs [memory.Store.Doctor].
func (a *Upkeep) Doctor(ctx context.Context, in record.Doctor) (record.DoctorReport, error) {
	p := startPulse(ctx, nil)
	defer p.end()
	return write(ctx, a.Workspaces, in, (*memory.Store).Doctor)
}

// PruneLedgerPage runs [memory.Store.PruneLedgerPage], sparing what the open
// runs of the workspace did.
func (a *Upkeep) PruneLedgerPage(ctx context.Context, in record.PruneLedgerPage) (record.PruneLedgerResult, error) {
	p := startPulse(ctx, in.Cursor)
	defer p.end()
	open, err := a.Runs.OpenRuns(ctx, in.Workspace)
	if err != nil {
		return record.PruneLedgerResult{}, applicationError(ctx, err)
	}
	return write(ctx, a.Workspaces, in, func(s *memory.Store, ctx context.Context, in record.PruneLedgerPage) (record.PruneLedgerResult, error) {
		return s.PruneLedgerPage(ctx, in, memory.KeysOf(open))
	})
}
