package mcp

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// effect is what a tool does to the memory, as clients are told.
type effect struct {
	// readOnly changes nothing.
	readOnly bool
	// destructive takes something out of what is current.
	destructive bool
	// idempotent again changes nothing more, even without a key.
	idempotent bool
}

var (
	reading    = effect{readOnly: true, idempotent: true}
	adding     = effect{}
	correcting = effect{destructive: true}
)

// tool is one row of the table.
type tool struct {
	// name is the contract's, which may hold dots.
	name, title string
	// about says when to use the tool, and when not.
	about  string
	effect effect
	// keyed tools take an idempotency key; those with an ownKey have one in
	// their arguments already.
	keyed, ownKey bool
	// long tools take as long as they need.
	long bool
	args params.List
	run  func(context.Context, call) (answer, error)
	// result makes the schema of what run returns.
	result func() (*jsonschema.Schema, error)
}

// call is one call of a tool, its arguments checked and its caller known.
type call struct {
	args     map[string]json.RawMessage
	caller   record.Caller
	memory   *gateway.Memory
	progress func(done float64, what string)
}

// params returns every argument of the tool.
func (t tool) params() params.List {
	all := append(t.args[:len(t.args):len(t.args)], params.Caller()...)
	if t.keyed {
		all = append(all, params.Key())
	}
	return all
}

// describe makes what clients are shown.
func (t tool) describe() (*sdk.Tool, error) {
	out, err := t.result()
	if err != nil {
		return nil, err
	}
	closed := false
	return &sdk.Tool{
		Name: wireName(t.name), Title: t.title, Description: t.about,
		InputSchema: t.params().Schema(), OutputSchema: out,
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.effect.readOnly, DestructiveHint: &t.effect.destructive,
			IdempotentHint: t.effect.idempotent, OpenWorldHint: &closed,
		},
	}, nil
}

// writes makes t a tool that runs a workflow through a method of the client.
func writes[In, Out any](t tool, method func(*workflows.Client, context.Context, In) (Out, error)) tool {
	t.keyed, t.result = !t.ownKey, schemaOf[Out]
	t.run = func(ctx context.Context, c call) (answer, error) {
		in, err := params.Into[In](c.args, c.caller)
		if err != nil {
			return answer{}, err
		}
		out, err := method(c.memory.Client, ctx, in)
		if r, ok := any(&out).(interface{ Stamp(string) }); ok {
			r.Stamp("")
		}
		return answer{value: out}, err
	}
	return t
}

// rows is a page of a list.
type rows[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the next page; there is more when it is there.
	Next string `json:"next,omitempty" jsonschema:"cursor of the next page; there is more when it is there"`
}

// defaultRows is how many rows a list has when no limit is given: about what a
// model reads with profit.
const defaultRows = 50

// lists makes t a tool that reads pages of rows.
func lists[T any](t tool, what record.ReadKind) tool {
	t.effect, t.result = reading, schemaOf[rows[T]]
	t.args = append(t.args, params.Page(defaultRows)...)
	t.run = func(ctx context.Context, c call) (answer, error) {
		in, err := params.Into[record.ReadMemory](c.args, c.caller)
		if err != nil {
			return answer{}, err
		}
		in.What = what
		page, err := readFitting[T](ctx, c.memory, in)
		return answer{value: page}, err
	}
	return t
}

// readFitting reads a page that fits into an answer. One that does not is read
// again with fewer rows, so that its cursor is right.
func readFitting[T any](ctx context.Context, m *gateway.Memory, in record.ReadMemory) (rows[T], error) {
	if in.Limit == 0 {
		in.Limit = defaultRows
	}
	page, err := gateway.ReadPage[T](ctx, m, in)
	if err != nil {
		return rows[T]{}, err
	}
	n, err := fitting(page.Items, 0)
	if err == nil && n < len(page.Items) {
		in.Limit = n
		page, err = gateway.ReadPage[T](ctx, m, in)
	}
	return rows[T]{Items: page.Items, Next: page.Next}, err
}
