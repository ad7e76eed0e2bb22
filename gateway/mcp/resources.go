package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// The resources.
const (
	preambleURI = "polyphony://preamble"
	notesURI    = "polyphony://notes"
)

func (s *server) addResources(out *sdk.Server) {
	out.AddResource(&sdk.Resource{
		URI: preambleURI, Name: "preamble", Title: "Preamble", MIMEType: "text/markdown",
		Description: "What an agent needs at the start of a task: every policy and its own notes.",
	}, s.preambleResource)
	out.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: preambleURI + "{?task}", Name: "preamble-for-task", Title: "Preamble for a task", MIMEType: "text/markdown",
		Description: "The preamble with the facts that match a task.",
	}, s.preambleResource)
	out.AddResource(&sdk.Resource{
		URI: notesURI, Name: "notes", Title: "My notes", MIMEType: "text/plain",
		Description: "The calling agent's own page of notes, as it left it.",
	}, s.notesResource)
}

func (s *server) preambleResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	at, err := url.Parse(req.Params.URI)
	if err != nil {
		return nil, wireError(record.Errorf(record.InvalidArgument, "uri", "the address of the resource cannot be read"))
	}
	text, err := s.preambleText(ctx, req.Session, req.Extra, at.Query().Get("task"))
	if err != nil {
		return nil, wireError(err)
	}
	return contents(req.Params.URI, "text/markdown", text), nil
}

func (s *server) preambleText(ctx context.Context, session *sdk.ServerSession, extra *sdk.RequestExtra, task string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	caller, err := s.caller(slog.String("resource", "preamble"), session, extra, record.Caller{})
	if err != nil {
		return "", err
	}
	p, err := s.Memory.Client.AssemblePreamble(ctx, record.Dispatch{Caller: caller, Task: task})
	return p.Text, err
}

func (s *server) notesResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	caller, err := s.caller(slog.String("resource", "notes"), req.Session, req.Extra, record.Caller{})
	if err != nil {
		return nil, wireError(err)
	}
	n, err := s.Memory.Notes(ctx, caller)
	if err != nil {
		return nil, wireError(err)
	}
	return contents(req.Params.URI, "text/plain", n.Text), nil
}

func contents(uri, kind, text string) *sdk.ReadResourceResult {
	if text == "" {
		// The protocol wants the text to be there, and the library leaves out
		// an empty one.
		text = "\n"
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: kind, Text: text}}}
}

// wireError is an error of ours in the protocol's form, for what is not a tool:
// its name and message, without its cause.
func wireError(err error) error {
	var e *record.Error
	if !errors.As(err, &e) {
		e = record.Wrap(record.Unavailable, err, "the call failed")
	}
	code := int64(jsonrpc.CodeInternalError)
	if !e.Code.Retryable() {
		code = jsonrpc.CodeInvalidParams
	}
	data, failed := encode(e)
	if failed != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: code, Message: e.Error(), Data: data}
}
