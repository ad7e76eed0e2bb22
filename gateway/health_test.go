package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	s, err := gateway.NewServer(gateway.Options{Address: "127.0.0.1:0", Tokens: tokens.Open(t.TempDir(), nil), Log: logTo(log)})
	if err != nil {
		t.Fatal(err)
	}
	s.MountHealth(
		gateway.Check{Name: "good", Run: func(context.Context) error { return nil }},
		gateway.Check{Name: "bad", Run: func(context.Context) error {
			return record.Wrap(record.Unavailable, context.DeadlineExceeded, "secret path /etc/x")
		}},
	)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	at := &site{t: t, url: "http://" + s.Address()}
	if status, body := at.request("GET", "/healthz", ""); status != 200 || strings.TrimSpace(body) != `{"ok":true}` {
		t.Errorf("/healthz answers %d %s", status, body)
	}
	if status, body := at.request("GET", "/readyz", ""); status != 503 || strings.TrimSpace(body) != `{"ready":false,"checks":{"bad":"Unavailable","good":"ok"}}` {
		t.Errorf("/readyz answers %d %s", status, body)
	}
	if !strings.Contains(log.String(), "not ready") {
		t.Error("the log does not say what is not ready")
	}
}

// TestMetrics holds that calls are counted, under names of ours only.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	called[record.SearchResult](t, c, "search_memory", args{"query": "port"})
	refused(t, c, "search_memory", args{"query": "port", "role": "king"}, record.InvalidArgument)
	s.rpc("nosuch.operation", nil)
	s.rpc("workspace.list", nil)
	s.request("POST", "/rpc", listCall, "Host", "evil.example")
	s.request("GET", "/nosuchpath", "")
	status, body := s.request("GET", "/metrics", "")
	if status != 200 {
		t.Fatalf("/metrics answers %d", status)
	}
	for _, want := range []string{
		`polyphony_call_seconds_count{name="search_memory",outcome="ok",surface="mcp"} 1`,
		`polyphony_call_seconds_count{name="search_memory",outcome="InvalidArgument",surface="mcp"} 1`,
		`polyphony_call_seconds_count{name="workspace.list",outcome="ok",surface="rpc"} 1`,
		`polyphony_denied_total{reason="host"} 1`, `polyphony_http_request_seconds_count{route="/rpc",status="403"} 1`, "go_goroutines",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for _, never := range []string{"nosuch", "demo", "king", "evil"} {
		if strings.Contains(body, never) {
			t.Errorf("the metrics hold %q, which a caller sent", never)
		}
	}
}
