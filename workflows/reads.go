package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// AssemblePreamble makes the text that an agent gets at dispatch.
func AssemblePreamble(ctx workflow.Context, in record.Dispatch) (record.Preamble, error) {
	return call[record.Preamble](ctx, ActivityAssemble, in)
}

// SearchMemory recalls for callers that do not own the file.
func SearchMemory(ctx workflow.Context, in record.Search) (record.SearchResult, error) {
	return call[record.SearchResult](ctx, ActivitySearch, in)
}

// ReadMemory answers one page of a read, by the owner of the file.
func ReadMemory(ctx workflow.Context, in record.ReadMemory) (record.Page[json.RawMessage], error) {
	return call[record.Page[json.RawMessage]](ctx, ActivityRead, in)
}
