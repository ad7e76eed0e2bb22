package workflows

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// BackfillEmbeddings gives facts without a vector one; while a run is under way
// it joins it. onProgress, when not nil, is told about it about every second.
func (c *Client) BackfillEmbeddings(ctx context.Context, in record.Backfill, onProgress func(BackfillProgress)) (record.BackfillReport, error) {
	return maintenance[record.BackfillReport](ctx, c, record.KindBackfill, BackfillEmbeddings, in.Caller, BackfillInput{Backfill: in}, onProgress)
}

// InstallModel installs an embedding model on the machine of the worker that
// serves the caller's workspace, and has it used there. The same call while it
// runs joins it. onProgress, when not nil, is told about it about every second.
//
// Errors: InvalidArgument, NotFound (the hub has no such model), Unavailable
// (also while the model is being changed in another way).
func (c *Client) InstallModel(ctx context.Context, in record.InstallModel, onProgress func(record.InstallProgress)) (record.EmbeddingModel, error) {
	if err := in.Check(); err != nil {
		return record.EmbeddingModel{}, err
	}
	s := c.modelChange(record.KindInstallModel, InstallModel, in.Caller)
	look := func() {
		if onProgress == nil {
			return
		}
		if p, ok := c.heartbeat(ctx, s.id); ok {
			onProgress(p)
		}
	}
	out, err := watched[record.EmbeddingModel](ctx, c, s, in, look)
	return out, checkChange(out, in.Identity(), err)
}

// RemoveModel has the worker that serves the caller's workspace do without an
// embedding model; NotFound when none is installed.
func (c *Client) RemoveModel(ctx context.Context, in record.RemoveModel) (record.EmbeddingModel, error) {
	out, err := run[record.EmbeddingModel](ctx, c, c.modelChange(record.KindRemoveModel, RemoveModel, in.Caller), in)
	return out, checkChange(out, in.Identity(), err)
}

// EmbeddingModel tells of the embedding model of the worker that serves the
// caller's workspace.
func (c *Client) EmbeddingModel(ctx context.Context, caller record.Caller) (record.EmbeddingModel, error) {
	return readOne[record.EmbeddingModel](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadModel})
}

func (c *Client) modelChange(kind string, workflow any, caller record.Caller) start {
	return start{
		id: ModelID(Shard(caller.Workspace, c.shards)), workflow: workflow, caller: caller, queue: c.maintenanceQueue(caller),
		reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, summary: kind,
	}
}

// checkChange refuses the answer of a change that was under way and is another
// than the one asked for.
func checkChange(out record.EmbeddingModel, identity string, err error) error {
	if err == nil && out.Hash() != identity {
		return record.Errorf(record.Unavailable, "model", "the embedding model was being changed in another way; see what it is now, then ask again")
	}
	return err
}

// heartbeat reads how far a run's one activity said that it is.
func (c *Client) heartbeat(ctx context.Context, id string) (p record.InstallProgress, ok bool) {
	d, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil || len(d.GetPendingActivities()) == 0 {
		return p, false
	}
	of := converter.WithDataConverterSerializationContext(c.heartbeats, converter.WorkflowSerializationContext{WorkflowID: id})
	err = of.FromPayloads(d.GetPendingActivities()[0].GetHeartbeatDetails(), &p)
	return p, err == nil
}
