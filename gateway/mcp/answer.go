package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// maxAnswerBytes bounds the encoded rows of one answer. Clients give a tool's
// result a share of the model's context, of which this is about 25,000 tokens;
// past it they cut in the middle of a row.
const maxAnswerBytes = 96 << 10

// answer is what a tool returns.
type answer struct {
	value any
	// text is shown to the model instead of the value's JSON, when not empty.
	text string
}

func (a answer) result() (*sdk.CallToolResult, error) {
	raw, err := encode(a.value)
	if err != nil {
		return nil, record.Wrap(record.Unavailable, err, "the result cannot be encoded")
	}
	if a.text == "" {
		a.text = string(raw)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.text}}, StructuredContent: json.RawMessage(raw)}, nil
}

// encode writes JSON as people and models read it best: without escapes for
// HTML, which it is not.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// fitting returns how many of the rows fit into an answer, beside the bytes
// that are in it already: at least one, so that a reader always gets on.
func fitting[T any](rows []T, size int) (int, error) {
	for i, r := range rows {
		raw, err := encode(r)
		if err != nil {
			return 0, err
		}
		if size += len(raw) + 1; size > maxAnswerBytes && i > 0 {
			return i, nil
		}
	}
	return len(rows), nil
}

// schemaOf returns the schema of a result's type.
func schemaOf[T any]() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[record.Time](): {Types: []string{"string", "null"}, Format: "date-time"},
	}})
	if err != nil {
		return nil, err
	}
	// The receipt is between the client library and the ledger, the awaited steps
	// between the store and the workflows.
	delete(s.Properties, "request_hash")
	delete(s.Properties, "awaited")
	return s, nil
}
