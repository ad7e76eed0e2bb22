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
