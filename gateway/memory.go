package gateway

import (
	"context"
	"encoding/json"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/workflows"
)

// Memory is how calls reach workspaces. What writes is a workflow of Client;
// what reads goes straight to the file when this worker owns it, else to the
// owner through a workflow.
type Memory struct {
	Client     *workflows.Client
	Workspaces *memory.Workspaces
	Recall     *recall.Engine
	// Owns reports whether this worker owns a workspace's file.
	Owns func(workspace string) bool
}

// Search answers search_memory.
func (m *Memory) Search(ctx context.Context, in record.Search) (record.SearchResult, error) {
	if m.Owns(in.Workspace) {
		return m.Recall.SearchWorkspace(ctx, m.Workspaces, in)
	}
	return m.Client.SearchMemory(ctx, in)
}

// ReadPage reads one page of rows of T, which must be the type of in.What.
func ReadPage[T any](ctx context.Context, m *Memory, in record.ReadMemory) (record.Page[T], error) {
	if !m.Owns(in.Workspace) {
		return workflows.ReadPage[T](ctx, m.Client, in)
	}
	page := record.Page[T]{Items: []T{}}
	raw, err := m.Workspaces.Read(ctx, in)
	if err != nil {
		return page, err
	}
	page.Next = raw.Next
	for _, r := range raw.Items {
		var row T
		if err := json.Unmarshal(r, &row); err != nil {
			return page, record.Wrap(record.StoreCorrupt, err, "a row cannot be read")
		}
		page.Items = append(page.Items, row)
	}
	return page, nil
}

// One reads a kind that has exactly one row.
//
// Errors: NotFound for a workspace that does not exist.
func One[T any](ctx context.Context, m *Memory, in record.ReadMemory) (T, error) {
	page, err := ReadPage[T](ctx, m, in)
	if err == nil && len(page.Items) != 1 {
		err = record.Errorf(record.NotFound, "workspace", "there is no workspace %s", in.Workspace)
	}
	if err != nil {
		var none T
		return none, err
	}
	return page.Items[0], nil
}

// Notes reads the calling agent's page; one never written is empty at version
// 0, also in a workspace that does not exist.
func (m *Memory) Notes(ctx context.Context, caller record.Caller) (record.Notes, error) {
	n, err := One[record.Notes](ctx, m, record.ReadMemory{Caller: caller, What: record.ReadNotes})
	if record.ErrorCode(err) == record.NotFound {
		return record.Notes{Agent: caller.Agent}, nil
	}
	return n, err
}

// History is one page of a fact's history.
type History struct {
	record.FactHistory
	// Next is the cursor of the next page; there is more when it is there.
	Next string `json:"next,omitempty" jsonschema:"cursor of the next page; there is more when it is there"`
}

// HistoryOf puts the rows of a page of a history read together.
//
// Errors: NotFound when there are none: the workspace does not exist.
func HistoryOf(in record.ReadMemory, rows []record.HistoryRow, next string) (History, error) {
	out := History{record.FactHistory{FactID: in.ID, Chain: []record.Fact{}, Events: []record.FactEvent{}}, next}
	if len(rows) == 0 && in.Cursor == "" {
		return out, record.Errorf(record.NotFound, "fact_id", "there is no fact with that id in this workspace")
	}
	for _, r := range rows {
		switch {
		case r.Fact != nil:
			out.Chain = append(out.Chain, *r.Fact)
		case r.Version != nil:
			out.Versions = append(out.Versions, *r.Version)
		case r.Event != nil:
			out.Events = append(out.Events, *r.Event)
		}
	}
	return out, nil
}

// DefaultWorkspace is the one of a caller that names none, as on the command
// line.
const DefaultWorkspace = "default"
