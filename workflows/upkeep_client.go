package workflows

import (
	"context"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// BackUp copies the workspace's file as it is at one moment into the backups
// folder of the worker that serves it, while it is written and read.
//
// Errors: NotFound (the workspace), InvalidArgument, StoreCorrupt, Unavailable.
func (c *Client) BackUp(ctx context.Context, in record.BackUp) (record.Backup, error) {
	if err := in.Check(); err != nil {
		return record.Backup{}, err
	}
	in.Key = ""
	return run[record.Backup](ctx, c, c.upkeep(ID(record.KindBackUp, in.Workspace, in.Name), record.KindBackUp, BackUpWorkspace, in.Caller), in)
}

// Backups returns the names of a workspace's backups, in order.
func (c *Client) Backups(ctx context.Context, caller record.Caller) ([]string, error) {
	return ReadAll[string](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadBackups})
}

// RestoreBackup puts a copy of a backup in the place of the workspace's file.
// Calls wait meanwhile. The same call while it runs joins it.
//
// Errors: NotFound (the backup), InvalidArgument (the workspace exists and
// overwrite was not asked for), StoreCorrupt, StoreNewer, Unavailable (also
// while another backup is being restored).
func (c *Client) RestoreBackup(ctx context.Context, in record.RestoreBackup) (record.Backup, error) {
	if err := in.Check(); err != nil {
		return record.Backup{}, err
	}
	in.Key = ""
	out, err := run[record.Backup](ctx, c, c.upkeep(MaintenanceID(record.KindRestoreBackup, in.Workspace), record.KindRestoreBackup, RestoreBackup, in.Caller), in)
	if err == nil && (out.Name != in.Name || out.Workspace != in.Source()) {
		return out, record.Errorf(record.Unavailable, "name", "another backup was being restored; ask again")
	}
	return out, err
}

// Doctor compares everything derived from the workspace's facts with them and,
// when asked, makes it agree; while a run is under way it joins it.
func (c *Client) Doctor(ctx context.Context, in record.Doctor) (record.DoctorReport, error) {
	in.Key = ""
	kind := record.KindDoctor
	if in.Repair {
		// One that repairs must not be answered by one that only looks.
		kind += "-repair"
	}
	return run[record.DoctorReport](ctx, c, c.upkeep(MaintenanceID(kind, in.Workspace), record.KindDoctor, DoctorWorkspace, in.Caller), in)
}

// PruneLedger forgets ledger rows of closed runs that are older than an age;
// while a run is under way it joins it. onProgress, when not nil, is told about
// it about every second.
func (c *Client) PruneLedger(ctx context.Context, in record.PruneLedger, onProgress func(record.PruneLedgerReport)) (record.PruneLedgerReport, error) {
	if err := in.Check(); err != nil {
		return record.PruneLedgerReport{}, err
	}
	in.Key = ""
	return maintenance[record.PruneLedgerReport](ctx, c, record.KindPruneLedger, PruneLedger, in.Caller, PruneInput{PruneLedger: in}, onProgress)
}

// upkeep is a call whose id may be used again once its run is closed.
func (c *Client) upkeep(id, kind string, workflow any, caller record.Caller) start {
	return start{id: id, workflow: workflow, caller: caller, queue: c.maintenanceQueue(caller), reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, summary: kind}
}

// openRunsPage is how many runs one list of the engine's holds.
const openRunsPage = 1000

// OpenRuns returns the ids of the workspace's open workflows, in order. The
// engine's list lags a moment behind: a run that just began may be missing.
//
// Errors: Unavailable.
func (c *Client) OpenRuns(ctx context.Context, workspace string) ([]string, error) {
	if err := record.CheckWorkspace(workspace); err != nil {
		return nil, err
	}
	ids := []string{}
	in := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: openRunsPage, Query: AttributeWorkspace.GetName() + " = '" + workspace + "' AND ExecutionStatus = 'Running'",
	}
	for {
		out, err := c.temporal.ListWorkflow(ctx, in)
		if err != nil {
			return nil, FromTemporal(err)
		}
		for _, e := range out.GetExecutions() {
			// The run that asks changes nothing that it could repeat.
			if id := e.GetExecution().GetWorkflowId(); !strings.HasPrefix(id, record.KindPruneLedger+"/") {
				ids = append(ids, id)
			}
		}
		if in.NextPageToken = out.GetNextPageToken(); len(in.NextPageToken) == 0 {
			slices.Sort(ids)
			return slices.Compact(ids), nil
		}
	}
}
