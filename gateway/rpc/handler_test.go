package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// testHandler has operations that need no memory.
func testHandler(log *bytes.Buffer) *handler {
	h := &handler{Options: Options{Log: slog.New(slog.NewTextHandler(log, nil)), Count: func(string, time.Time, error) {}}, operations: map[string]operation{}}
	for _, o := range []operation{
		{name: "echo", args: params.List{params.Name("text", "x")}, run: func(_ context.Context, c call) (any, error) { return c.args, nil }},
		{name: "big", run: func(context.Context, call) (any, error) { return strings.Repeat("x", 1<<20), nil }},
		{name: "panic", run: func(context.Context, call) (any, error) { panic("secret path /etc/x") }},
		{name: "fail", run: func(context.Context, call) (any, error) {
			return nil, record.Wrap(record.Unavailable, context.Canceled, "the store failed")
		}},
	} {
		h.operations[o.name] = o
	}
	return h
}

func TestHandler_panic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	raw, err := json.Marshal(testHandler(&log).answer(t.Context(), source{}, []byte(`{"jsonrpc":"2.0","id":1,"method":"panic"}`)))
	if err != nil || !strings.Contains(string(raw), `"code":"Unavailable"`) || strings.Contains(string(raw), "secret") {
		t.Errorf("it answers %s, %v", raw, err)
	}
	if !strings.Contains(log.String(), "secret path") {
		t.Error("the log says nothing of the panic")
	}
}

// A batch whose answers grow too large ends, and says which calls it left out.
func TestHandler_bigBatch(t *testing.T) {
	t.Parallel()
	calls := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"big"},`, maxBatch), ",") + "]"
	all, _ := testHandler(&bytes.Buffer{}).answer(t.Context(), source{}, []byte(calls)).([]*response)
	answered := 0
	for _, r := range all {
		switch {
		case r.Result != nil:
			answered++
		case r.Error.Data.Code != record.PayloadTooLarge:
			t.Errorf("a call is answered with %+v", r.Error)
		}
	}
	if len(all) != maxBatch || answered < 8 || answered > 9 {
		t.Errorf("%d of %d calls are answered", answered, len(all))
	}
}

// FuzzAnswer holds that every request is answered by the protocol.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"x"}}`, `[]`, `[{"jsonrpc":"2.0","method":"fail"}]`, `{"jsonrpc":"2.0","id":"a","method":"panic"}`,
		`[1,[],{}]`, `{`, "", `{"jsonrpc":"2.0","id":null,"method":"fail","params":[]}`,
	} {
		f.Add([]byte(seed))
	}
	h := testHandler(&bytes.Buffer{})
	h.Log = slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, body []byte) {
		answer := h.answer(t.Context(), source{}, body)
		if answer == nil {
			return
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if raw[0] == '{' {
			raw = append(append([]byte("["), raw...), ']')
		}
		var all []map[string]json.RawMessage
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for _, a := range all {
			_, result := a["result"]
			_, failed := a["error"]
			if string(a["jsonrpc"]) != `"2.0"` || a["id"] == nil || result == failed {
				t.Errorf("%q is answered with %s", body, raw)
			}
		}
	})
}
