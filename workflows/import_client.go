package workflows

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// importAttempts bounds how often a page is given again when the import's run
// changed under it (it continues as new from time to time).
const importAttempts = 20

// Import is a bulk import under way.
type Import struct {
	client *Client
	start  start
	input  ImportInput
}

// BeginImport starts the import of the file with hash source (hex SHA-256), or
// finds it where an earlier attempt left it. The state says which page it wants
// next; Done means that all of it is imported already.
func (c *Client) BeginImport(ctx context.Context, caller record.Caller, source string) (*Import, ImportState, error) {
	caller.Key = ""
	i := &Import{client: c, input: ImportInput{Caller: caller, Source: source}}
	i.start = start{
		id: ID(record.KindImportFacts, caller.Workspace, source), workflow: ImportFacts, caller: caller, queue: c.maintenanceQueue(caller),
		reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, summary: record.KindImportFacts,
	}
	if err := caller.Check(); err != nil {
		return nil, ImportState{}, err
	}
	state, err := i.begin(ctx)
	return i, state, err
}

func (i *Import) begin(ctx context.Context) (ImportState, error) {
	var state ImportState
	id, err := updateID()
	if err != nil {
		return state, err
	}
	op := i.client.temporal.NewWithStartWorkflowOperation(i.client.options(i.start), i.start.workflow, i.input)
	handle, err := i.client.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: op,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: id, UpdateName: UpdateBegin, WorkflowID: i.start.id, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = handle.Get(ctx, &state)
	}
	var closed *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &closed) {
		state.Done = true
		err = i.client.temporal.GetWorkflow(ctx, i.start.id, "").Get(ctx, &state.Report)
	}
	return state, FromTemporal(err)
}

// Page gives the import its next page. A page that was taken before changes
// nothing.
func (i *Import) Page(ctx context.Context, page ImportPage) (ImportState, error) {
	if err := checkSize(page); err != nil {
		return ImportState{}, err
	}
	return i.update(ctx, UpdatePage, page)
}

// Finish ends the import after its last page and returns the whole report.
func (i *Import) Finish(ctx context.Context) (record.ImportReport, error) {
	state, err := i.update(ctx, UpdateFinish)
	return state.Report, err
}

// update gives the run an update under an id of its own each time: the engine
// would answer a repeated id with the first outcome, also when that was a
// passing failure. Twice the same page is once by the run's count and the
// ledger.
func (i *Import) update(ctx context.Context, name string, args ...any) (ImportState, error) {
	var state ImportState
	var err error
	for range importAttempts {
		var id string
		if id, err = updateID(); err != nil {
			return state, err
		}
		var handle client.WorkflowUpdateHandle
		handle, err = i.client.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID: id, UpdateName: name, WorkflowID: i.start.id, WaitForStage: client.WorkflowUpdateStageCompleted, Args: args,
		})
		if err == nil {
			err = handle.Get(ctx, &state)
		}
		if err == nil || !runChanged(err) {
			break
		}
		// The run continued as new, or closed idle; find its successor.
		if state, err = i.begin(ctx); err != nil {
			return state, err
		}
		if state.Done {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return state, FromTemporal(ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return state, FromTemporal(err)
}

func updateID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", record.Wrap(record.Unavailable, err, "no randomness for an id")
	}
	return id.String(), nil
}

// runChanged reports whether an update missed because its run ended.
func runChanged(err error) bool {
	return errors.As(err, new(*serviceerror.NotFound)) || errors.As(err, new(*serviceerror.WorkflowNotReady)) ||
		errors.As(err, new(*serviceerror.Aborted)) || errors.As(err, new(*serviceerror.FailedPrecondition))
}
