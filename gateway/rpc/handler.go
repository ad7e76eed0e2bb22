package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// maxBatch bounds the calls of one batch, maxBatchBytes their answers
	// together; the calls past it are refused.
	maxBatch      = 50
	maxBatchBytes = 8 << 20
	// callTime bounds the calls of one request together.
	callTime = time.Minute
)

// The error codes of JSON-RPC 2.0, and ours for what the memory refuses.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeMethod  = -32601
	codeParams  = -32602
	// codeRefused is a well-formed call that the record refuses, codeDenied one
	// that the caller may not make, codeUnavailable one to try again later.
	codeRefused     = -32001
	codeDenied      = -32002
	codeUnavailable = -32003
)

// Options are what a handler is made of.
type Options struct {
	Memory *gateway.Memory
	// Count is told of every call and how it ended.
	Count func(operation string, began time.Time, err error)
	// Tracer begins a span for every call of an operation; nil for none.
	Tracer trace.Tracer
	Log    *slog.Logger
}

// handler answers requests; who calls is in their context.
type handler struct {
	Options
	operations map[string]operation
}

// NewHandler serves JSON-RPC 2.0 over POST.
func NewHandler(opts Options) http.Handler {
	h := &handler{Options: opts, operations: map[string]operation{}}
	for _, o := range operations() {
		h.operations[o.name] = o
	}
	return h
}

// request is one call. ID is nil in a notification.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// response is one answer.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *wireError      `json:"error,omitempty"`
}

// wireError is an error on the wire; Data is the memory's own, when it is one.
type wireError struct {
	Code    int           `json:"code"`
	Message string        `json:"message"`
	Data    *record.Error `json:"data,omitempty"`
}

var null = json.RawMessage("null")

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		gateway.WriteError(w, http.StatusMethodNotAllowed, record.Errorf(record.InvalidArgument, "", "calls are POST requests"))
		return
	}
	// A page cannot send this type across origins without asking first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		gateway.WriteError(w, http.StatusUnsupportedMediaType, record.Errorf(record.InvalidArgument, "", "the content type must be application/json"))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		gateway.WriteError(w, http.StatusBadRequest, record.Errorf(record.InvalidArgument, "", "the request cannot be read"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTime)
	defer cancel()
	answer := h.answer(ctx, source{gateway.IdentityOf(ctx), r.Header}, body)
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	gateway.WriteJSON(w, http.StatusOK, answer)
}

// source is whom a request's calls come from.
type source struct {
	identity gateway.Identity
	head     http.Header
}

// answer returns the response, the list of a batch, or nil when nothing was
// asked but notifications.
func (h *handler) answer(ctx context.Context, from source, body []byte) any {
	if body = bytes.TrimSpace(body); !bytes.HasPrefix(body, []byte("[")) {
		if res := h.one(ctx, from, body); res != nil {
			return res
		}
		return nil
	}
	var calls []json.RawMessage
	if err := json.Unmarshal(body, &calls); err != nil {
		return failure(null, codeParse, "the request is not valid JSON")
	}
	if len(calls) == 0 || len(calls) > maxBatch {
		return failure(null, codeInvalid, fmt.Sprintf("a batch has 1 to %d calls", maxBatch))
	}
	var all []*response
	size := 0
	for _, call := range calls {
		var res *response
		if size > maxBatchBytes {
			res = refusedCall(call)
		} else {
			res = h.one(ctx, from, call)
		}
		if res != nil {
			size += len(res.Result)
			all = append(all, res)
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// refusedCall answers a call that a batch has no room for any more; it was not
// made.
func refusedCall(raw json.RawMessage) *response {
	var req request
	if json.Unmarshal(raw, &req) != nil || req.ID == nil {
		return nil
	}
	return refusal(req.ID, record.Errorf(record.PayloadTooLarge, "", "the answers of a batch have at most %d bytes; call again", maxBatchBytes))
}

// one answers one call; nil for a notification.
func (h *handler) one(ctx context.Context, from source, raw json.RawMessage) *response {
	if !json.Valid(raw) {
		return failure(null, codeParse, "the request is not valid JSON")
	}
	var req request
	if err := json.Unmarshal(raw, &req); err != nil || req.Version != "2.0" || req.Method == nil || !validID(req.ID) {
		return failure(null, codeInvalid, "the call is not one of JSON-RPC 2.0")
	}
	began := time.Now()
	o, known := h.operations[*req.Method]
	var out json.RawMessage
	var who record.Caller
	var err error
	if known {
		ctx, span := gateway.StartSpan(ctx, h.Tracer, from.head, "rpc", o.name)
		out, who, err = h.run(ctx, from.identity, o, req.Params)
		span.End(who, err)
		h.Count(o.name, began, err)
	}
	switch {
	case req.ID == nil:
		return nil
	case !known:
		return failure(req.ID, codeMethod, "there is no such operation")
	case err != nil:
		return h.failed(req.ID, o.name, who, err)
	}
	return &response{Version: "2.0", ID: req.ID, Result: out}
}

// validID reports whether an id is absent, null, a string or a number.
func validID(id json.RawMessage) bool {
	return id == nil || id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9' || string(id) == "null"
}

// run finds the caller, checks the arguments and calls. A caller that is not
// let through is nobody.
func (h *handler) run(ctx context.Context, id gateway.Identity, o operation, raw json.RawMessage) (out json.RawMessage, who record.Caller, err error) {
	defer gateway.Recover(h.Log, "an operation panicked", slog.String("operation", o.name), &who, &err, "internal error in the operation")
	args, err := o.params().Decode(raw)
	if err != nil {
		return nil, who, err
	}
	c := call{args: args, memory: h.Memory, identity: id}
	words, err := params.Words(args)
	if err == nil {
		c.caller, err = id.Caller(words)
	}
	gateway.Denied(h.Log, slog.String("operation", o.name), id, err)
	if err != nil {
		return nil, who, err
	}
	if c.caller.Workspace == "" {
		c.caller.Workspace = gateway.DefaultWorkspace
	}
	if err := c.caller.Check(); err != nil {
		return nil, who, err
	}
	who = c.caller
	v, err := o.run(ctx, c)
	if err != nil {
		return nil, who, err
	}
	out, err = json.Marshal(v)
	return out, who, err
}

// failed answers a call that did not succeed; the cause stays in the log.
func (h *handler) failed(id json.RawMessage, name string, who record.Caller, err error) *response {
	e := gateway.Failure(h.Log, "an operation failed", slog.String("operation", name), who, err, "the call failed")
	return refusal(id, e)
}

func refusal(id json.RawMessage, e *record.Error) *response {
	return &response{Version: "2.0", ID: id, Error: &wireError{Code: wireCode(e.Code), Message: e.Message, Data: e}}
}

// wireCode is the number of an error's name.
func wireCode(c record.Code) int {
	switch c {
	case record.InsufficientMemoryPermission, record.Unauthenticated:
		return codeDenied
	}
	switch c.ExitCode() {
	case record.ExitUsage:
		return codeParams
	case record.ExitRefused:
		return codeRefused
	}
	return codeUnavailable
}

func failure(id json.RawMessage, code int, message string) *response {
	return &response{Version: "2.0", ID: id, Error: &wireError{Code: code, Message: message}}
}
