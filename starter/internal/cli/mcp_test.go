package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// worker is a gateway for the bridge to talk to. Its tool says who called,
// fails, tells how far it is, or waits until it is cancelled.
type worker struct {
	calls atomic.Int64
	// told is closed by the test once it saw the progress; a result may overtake
	// notifications that are still on their way.
	told               chan struct{}
	waiting, cancelled chan struct{}
	handler            http.Handler
}

func newWorker() *worker {
	w := &worker{told: make(chan struct{}), waiting: make(chan struct{}), cancelled: make(chan struct{}, 1)}
	s := mcp.NewServer(&mcp.Implementation{Name: "polyphony", Version: "7"}, &mcp.ServerOptions{Instructions: "Remember."})
	s.AddTool(&mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.calls.Add(1)
		var in struct{ Do string }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		switch in.Do {
		case "fail":
			return nil, &jsonrpc.Error{Code: -32602, Message: "NotFound: it is not there"}
		case "progress":
			for i := range 3 {
				if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1)}); err != nil {
					return nil, err
				}
			}
			<-w.told
		case "wait":
			close(w.waiting)
			<-ctx.Done()
			w.cancelled <- struct{}{}
			return nil, ctx.Err()
		}
		h := req.Extra.Header
		text := fmt.Sprint(h.Get("Polyphony-Workspace"), " ", h.Get("Polyphony-Agent"), " ", h.Get("Authorization"))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	})
	w.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	return w
}

// pipes runs the bridge as a client's child process would be.
type pipes struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Scanner
	exited chan int
	stderr *strings.Builder
}

func startBridge(t *testing.T, env map[string]string, args ...string) *pipes {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipes{t: t, in: inW, out: bufio.NewScanner(outR), exited: make(chan int, 1), stderr: &strings.Builder{}}
	p.out.Buffer(nil, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		code := Run(ctx, append(args, "mcp"), inR, outW, p.stderr, func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		})
		_ = outW.Close()
		p.exited <- code
	}()
	t.Cleanup(func() {
		cancel()
		_ = inW.Close()
	})
	return p
}

func (p *pipes) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the next line, which must be a message of the protocol.
func (p *pipes) read() map[string]json.RawMessage {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("standard output ended: %v; %s", p.out.Err(), p.stderr)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(p.out.Bytes(), &m); err != nil || string(m["jsonrpc"]) != `"2.0"` {
		p.t.Fatalf("standard output holds %q", p.out.Text())
	}
	return m
}

func (p *pipes) begin() {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"کارگزار","version":"1"}}}`)
	if hello := string(p.read()["result"]); !strings.Contains(hello, "Remember.") || !strings.Contains(hello, `"polyphony"`) {
		p.t.Fatalf("the bridge presents itself as %s", hello)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// ask asks for a call of the tool, which may tell how far it is.
func (p *pipes) ask(id int, do string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool","arguments":{"Do":%q},"_meta":{"progressToken":"t"}}}`, id, do)
}

// call calls the tool and returns the answer.
func (p *pipes) call(id int, do string) map[string]json.RawMessage {
	p.t.Helper()
	p.ask(id, do)
	return p.read()
}

func (p *pipes) exit() int {
	p.t.Helper()
	// What is still written must not keep it.
	go func() {
		for p.out.Scan() {
		}
	}()
	select {
	case code := <-p.exited:
		return code
	case <-time.After(10 * time.Second):
		p.t.Fatal("the bridge did not end")
		return 0
	}
}

func TestMCP_bridge(t *testing.T) {
	t.Parallel()
	w := newWorker()
	site := httptest.NewServer(w.handler)
	t.Cleanup(site.Close)
	p := startBridge(t, map[string]string{envToken: "", envURL: site.URL + "/"}, "-w", "demo")
	p.begin()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if list := string(p.read()["result"]); !strings.Contains(list, `"tool"`) {
		t.Errorf("the list is %s", list)
	}
	// The agent is called after its client, in a header's own spelling.
	answer := p.call(2, "who")
	if got := string(answer["result"]); !strings.Contains(got, "demo %DA%A9") {
		t.Errorf("the worker is told %s", got)
	}
	if answer := p.call(3, "fail"); !strings.Contains(string(answer["error"]), "NotFound: it is not there") {
		t.Errorf("the worker's refusal arrives as %s", answer["error"])
	}
	p.ask(4, "progress")
	for i := range 3 {
		if m := p.read(); string(m["method"]) != `"notifications/progress"` || !strings.Contains(string(m["params"]), `"progressToken":"t"`) {
			t.Errorf("instead of notification %d comes %s", i+1, m)
		}
	}
	close(w.told)
	if m := p.read(); string(m["id"]) != "4" {
		t.Errorf("instead of the answer comes %s", m)
	}
	p.ask(5, "wait")
	<-w.waiting
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	select {
	case <-w.cancelled:
	case <-time.After(10 * time.Second):
		t.Error("the worker is not told that the client gave up")
	}
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != 0 || p.stderr.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, p.stderr)
	}
}

// A worker that was started anew is found again: the session is gone, and no
// call is made twice.
func TestMCP_bridgeAfterRestart(t *testing.T) {
	t.Parallel()
	var current atomic.Pointer[worker]
	first, second := newWorker(), newWorker()
	current.Store(first)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { current.Load().handler.ServeHTTP(rw, r) }))
	t.Cleanup(site.Close)
	p := startBridge(t, nil, "--data", t.TempDir())
	if code := p.exit(); code != record.ExitUnavailable {
		t.Errorf("without a worker the bridge ends with %d", code)
	}
	p = startBridge(t, map[string]string{envToken: "secret", envURL: site.URL})
	p.begin()
	answer := p.call(1, "who")
	if got := string(answer["result"]); !strings.Contains(got, "Bearer secret") || strings.Contains(got, "default") {
		t.Errorf("with a token the worker is told %s", got)
	}
	current.Store(second)
	if answer := p.call(2, "who"); !strings.Contains(string(answer["result"]), "Bearer secret") {
		t.Errorf("after the restart the answer is %s %s", answer["result"], answer["error"])
	}
	if first.calls.Load() != 1 || second.calls.Load() != 1 {
		t.Errorf("%d and %d calls were made", first.calls.Load(), second.calls.Load())
	}
}

// TestMCP_bridgeRefuses holds that whatever is wrong is said on standard error.
func TestMCP_bridgeRefuses(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		exit int
	}{
		"no worker":      {[]string{"--data", t.TempDir(), "mcp"}, record.ExitUnavailable},
		"no gateway":     {[]string{"mcp", "--url", site.URL}, record.ExitUnavailable},
		"nobody listens": {[]string{"mcp", "--url", "http://" + silent.Addr().String()}, record.ExitUnavailable},
		"no address":     {[]string{"mcp", "--url", "8733"}, record.ExitUsage},
		"another scheme": {[]string{"mcp", "--url", "ftp://x"}, record.ExitUsage},
		"workspace":      {[]string{"-w", "../x", "mcp"}, record.ExitUsage},
		"arguments":      {[]string{"mcp", "stdio"}, record.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cmd(t, newFake(), "", tc.args...)
			if got.out != "" || got.err == "" || got.exit != tc.exit {
				t.Errorf("%+v, want exit %d", got, tc.exit)
			}
		})
	}
}
