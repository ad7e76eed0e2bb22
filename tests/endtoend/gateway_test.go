package endtoend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// agent is an agent that talks to the memory over MCP.
type agent struct {
	t testing.TB
	*mcp.ClientSession
}

// headers are put on every request of an agent.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// gateway is the address of the worker's gateway.
func (p *process) gateway() string {
	p.t.Helper()
	w := must[locate.Worker](p.t)(locate.Announced(p.data))
	if w.HTTP == "" {
		p.t.Fatal("the worker announces no gateway")
	}
	return "http://" + w.HTTP
}

// overHTTP connects an agent as one whose settings hold the address.
func (p *process) overHTTP(h headers) *agent {
	p.t.Helper()
	return connect(p.t, &mcp.StreamableClientTransport{Endpoint: p.gateway() + "/mcp", HTTPClient: &http.Client{Transport: h}, MaxRetries: -1})
}

// overStdio connects an agent that starts its server itself.
func (p *process) overStdio(environ []string, args ...string) *agent {
	p.t.Helper()
	cmd := exec.Command(command, append([]string{"--data", p.data}, append(args, "mcp")...)...)
	cmd.Env = environment(environ...)
	return connect(p.t, &mcp.CommandTransport{Command: cmd})
}

func connect(t testing.TB, transport mcp.Transport) *agent {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "endtoend", Version: "1"}, nil)
	session, err := c.Connect(timed(t), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &agent{t, session}
}

// try calls a tool and returns what the model reads, and whether it failed.
func (a *agent) try(tool string, in any) (text string, structured json.RawMessage, failed bool) {
	a.t.Helper()
	res, err := a.CallTool(timed(a.t), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, must[[]byte](a.t)(json.Marshal(res.StructuredContent)), res.IsError
}

// use calls a tool that must succeed.
func use[T any](a *agent, tool string, in any) (out T) {
	a.t.Helper()
	text, structured, failed := a.try(tool, in)
	if failed {
		a.t.Fatalf("%s: %s", tool, text)
	}
	if err := json.Unmarshal(structured, &out); err != nil {
		a.t.Fatal(err)
	}
	return out
}

type in = map[string]any

// TestConversation plays what agents do over two runs of the worker: one
// proposes, another recalls after a kill, a third may not see it.
func TestConversation(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	scout := p.overHTTP(headers{"Polyphony-Workspace": "demo", "Polyphony-Agent": "scout", "Polyphony-Role": "coder"})
	fact := use[record.ProposeFactResult](scout, "propose_fact", in{"domain": "infra", "topic": "ports", "content": "The payment gateway listens on port 8443", "veracity": "stated", "key": "run-1"})
	policy := use[record.PolicyResult](scout, "propose_policy", in{"domain": "infra", "rule": "Never restart the payment gateway by hand."})
	use[record.RecordObservationResult](scout, "record_observation", in{"text": "Halfway through the move of the gateway."})
	if again := use[record.ProposeFactResult](scout, "propose_fact", in{"domain": "infra", "topic": "ports", "content": "The payment gateway listens on port 8443", "veracity": "stated", "key": "run-1"}); again.FactID != fact.FactID || again.MentionCount != 1 {
		t.Errorf("the same call again gives %+v", again)
	}
	p.kill()

	p = start(t, p.data)
	mason := p.overStdio(nil, "-w", "demo", "--agent", "mason", "--role", "reviewer")
	found := use[record.SearchResult](mason, "search_memory", in{"query": "Which port does the payment gateway use?"})
	if len(found.Facts) != 1 || found.Facts[0].ID != fact.FactID || found.Facts[0].AuthoredByAgent != "scout" {
		t.Errorf("after the kill the memory recalls %+v", found.Facts)
	}
	task := in{"task": "Find out which port the payment gateway listens on"}
	if text, _, failed := mason.try("assemble_preamble", task); failed || !strings.Contains(text, "8443") || !strings.Contains(text, "Never restart") || strings.Contains(text, "Halfway") {
		t.Errorf("mason's preamble is %q", text)
	}
	own := p.overStdio(nil, "-w", "demo", "--agent", "scout", "--role", "coder")
	if text, _, _ := own.try("assemble_preamble", task); !strings.Contains(text, "Halfway through the move") {
		t.Errorf("scout's preamble lacks its notes: %q", text)
	}

	if _, err := p.client().SetGrant(timed(t), record.SetGrant{Caller: caller("demo"), ForRole: "qa", Domain: "infra", Level: "none"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client().SetGrant(timed(t), record.SetGrant{Caller: caller("demo"), ForRole: "reviewer", Domain: "infra", Level: "read"}); err != nil {
		t.Fatal(err)
	}
	blind := p.overHTTP(headers{"Polyphony-Workspace": "demo", "Polyphony-Agent": "tester", "Polyphony-Role": "qa"})
	if hidden := use[record.SearchResult](blind, "search_memory", in{"query": "payment gateway port"}); len(hidden.Facts) != 0 || len(hidden.Policies) != 0 {
		t.Errorf("a role with none finds %+v", hidden)
	}
	if text, _, failed := mason.try("supersede_policy", in{"policy_id": policy.PolicyID, "rule": "Restart at will."}); !failed || !strings.HasPrefix(text, "InsufficientMemoryPermission: ") {
		t.Errorf("without write the policy is superseded: %q", text)
	}
	if report := use[record.ConsolidationReport](mason, "consolidate_memory", nil); report.Considered == 0 {
		t.Errorf("consolidation considered %+v", report)
	}
}

// TestConversation_state has two agents at one obligation: one proceeds, also
// over a kill of the worker, the other observes. What one of them still holds
// true is found stale.
func TestConversation_state(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	connected := func() (scout, mason *agent) {
		return p.overHTTP(headers{"Polyphony-Workspace": "demo", "Polyphony-Agent": "scout"}), p.overStdio(nil, "-w", "demo", "--agent", "mason")
	}
	scout, mason := connected()
	pay, ship := in{"task_id": "order-7", "step": "pay"}, in{"task_id": "order-7", "step": "ship"}
	use[record.ObligationResult](scout, "state_open", pay)
	use[record.ObligationResult](mason, "state_open", in{"task_id": "order-7", "step": "ship", "after": []string{"pay"}})
	type answer struct {
		by string
		record.ObligationResult
		err error
	}
	answers := make(chan answer, 2)
	ctx := timed(t)
	for name, a := range map[string]*agent{"scout": scout, "mason": mason} {
		go func() {
			out := answer{by: name}
			res, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "state_claim", Arguments: pay})
			if out.err = err; err == nil {
				raw, err := json.Marshal(res.StructuredContent)
				out.err = errors.Join(err, json.Unmarshal(raw, &out.ObligationResult))
			}
			answers <- out
		}()
	}
	one, other := <-answers, <-answers
	if err := errors.Join(one.err, other.err); err != nil {
		t.Fatal(err)
	}
	if one.Outcome != record.OutcomeClaimed {
		one, other = other, one
	}
	if one.Outcome != record.OutcomeClaimed || other.Outcome != record.OutcomeHeld || other.Obligation.ClaimedBy != one.by {
		t.Fatalf("of two agents %s is told %+v and %s %+v", one.by, one.Obligation, other.by, other.Obligation)
	}
	if text, _, failed := scout.try("state_claim", ship); !failed || !strings.HasPrefix(text, "OutOfOrder: ") || !strings.Contains(text, "pay") {
		t.Errorf("out of order, the answer is %q", text)
	}
	use[record.ProposeFactResult](scout, "propose_fact", in{"domain": "orders", "topic": "address", "content": "Order 7 ships to Tehran"})
	use[record.ProposeFactResult](scout, "propose_fact", in{"domain": "orders", "topic": "address", "content": "Order 7 ships to Shiraz", "veracity": "stated"})
	p.kill()

	p = start(t, p.data)
	scout, mason = connected()
	proceeds, observes := scout, mason
	if one.by == "mason" {
		proceeds, observes = mason, scout
	}
	if done := use[record.ObligationResult](proceeds, "state_commit", in{"task_id": "order-7", "step": "pay", "claim": one.Obligation.Claim, "result": "receipt 41"}); done.Outcome != record.OutcomeCommitted {
		t.Errorf("the claim that outlived the worker commits as %+v", done)
	}
	if told := use[record.ObligationResult](observes, "state_claim", pay); told.Outcome != record.OutcomeClosed || told.Obligation.Result != "receipt 41" || told.Obligation.ClosedBy != one.by {
		t.Errorf("the other is told %+v", told)
	}
	type checked struct {
		Items []record.CheckedStatement `json:"items"`
	}
	held := use[checked](observes, "state_check", in{"context": []string{"Order 7 ships to Tehran"}}).Items
	if len(held) != 1 || held[0].Standing != record.StandingStale || len(held[0].Now) == 0 || held[0].Now[0].Content != "Order 7 ships to Shiraz" {
		t.Errorf("the old statement is %+v", held)
	}
	if next := use[record.ObligationResult](observes, "state_claim", ship); next.Outcome != record.OutcomeClaimed {
		t.Errorf("after it was paid, shipping is %+v", next)
	}
}

// TestTokens makes the first token while the worker runs, and takes it back
// while an agent is connected.
func TestTokens(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	open := p.overHTTP(headers{"Polyphony-Workspace": "demo"})
	use[record.ProposeFactResult](open, "propose_fact", in{"domain": "infra", "topic": "ports", "content": "The gateway listens on port 8080"})
	status := func(token string) int {
		t.Helper()
		req := must[*http.Request](t)(http.NewRequestWithContext(timed(t), http.MethodPost, p.gateway()+"/rpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"memory_fact.list"}`)))
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res := must[*http.Response](t)(http.DefaultClient.Do(req))
		defer func() { _ = res.Body.Close() }()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	if got := status(""); got != http.StatusOK {
		t.Errorf("without tokens the loopback address answers %d", got)
	}
	type made struct{ ID, Token string }
	var token made
	if err := json.Unmarshal(p.starter("-w", "demo", "--agent", "scout", "--role", "coder", "--json", "token", "create"), &token); err != nil {
		t.Fatal(err)
	}
	if got := status(""); got != http.StatusUnauthorized {
		t.Errorf("after the first token, no token answers %d", got)
	}
	if got := status(token.Token); got != http.StatusOK {
		t.Errorf("the token answers %d", got)
	}
	a := p.overStdio([]string{"POLYPHONY_TOKEN=" + token.Token})
	if found := use[record.SearchResult](a, "search_memory", in{"query": "gateway port"}); len(found.Facts) != 1 {
		t.Errorf("with the token the memory recalls %+v", found.Facts)
	}
	if text, _, failed := a.try("search_memory", in{"query": "gateway port", "workspace": "other"}); !failed || !strings.HasPrefix(text, "Unauthenticated: ") {
		t.Errorf("an argument stands over the token: %q", text)
	}
	p.starter("token", "revoke", token.ID)
	if got := status(token.Token); got != http.StatusUnauthorized {
		t.Errorf("the revoked token answers %d", got)
	}
	if res, err := a.CallTool(timed(t), &mcp.CallToolParams{Name: "search_memory", Arguments: in{"query": "gateway"}}); err == nil && !res.IsError {
		t.Error("a revoked token still calls over its open connection")
	}
	if strings.Contains(p.stderr.String(), token.Token) {
		t.Error("the token stands in the log")
	}
}

// starter runs the command line on the worker's folder and returns what it
// prints.
func (p *process) starter(args ...string) []byte {
	p.t.Helper()
	cmd := exec.CommandContext(timed(p.t), command, append([]string{"--data", p.data}, args...)...)
	cmd.Env = environment()
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("starter %v: %v", args, err)
	}
	return out
}

// TestGateway_address holds where a worker listens, and where it refuses to.
func TestGateway_address(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := spawn(t, data, "--http", "0.0.0.0:0")
	if code := p.wait(time.Minute); code != record.ExitUsage || !strings.Contains(p.stderr.String(), "starter token create") {
		t.Errorf("an address others reach, without tokens: exit %d\n%s", code, tail(p.stderr.String(), 5))
	}
	off := start(t, data, "--http", "off")
	if w := must[locate.Worker](t)(locate.Announced(data)); w.HTTP != "" {
		t.Errorf("a worker without its gateway announces %q", w.HTTP)
	}
	off.starter("-w", "demo", "--agent", "scout", "token", "create")
	if code, _ := off.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	on := start(t, data, "--http", "0.0.0.0:0")
	_, port, _ := strings.Cut(strings.TrimPrefix(on.gateway(), "http://[::]"), ":")
	for path, want := range map[string]string{"/healthz": `{"ok":true}`, "/readyz": `{"ready":true,"checks":{"engine":"ok","files":"ok"}}`} {
		res := must[*http.Response](t)(http.Get(fmt.Sprintf("http://127.0.0.1:%s%s", port, path)))
		body := must[[]byte](t)(io.ReadAll(res.Body))
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || strings.TrimSpace(string(body)) != want {
			t.Errorf("%s answers %d %s", path, res.StatusCode, body)
		}
	}
	if code, took := on.terminate(); code != 0 || took > 30*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
}

// TestStdio_orphan holds that the bridge ends with its client, and that only
// the protocol stands on its standard output, whatever goes wrong (situations K1
// and K5).
func TestStdio_orphan(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	for range 50 {
		cmd := exec.Command(command, "--data", p.data, "-w", "demo", "mcp")
		cmd.Env = environment()
		stdin := must[io.WriteCloser](t)(cmd.StdinPipe())
		var out output
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n")
		eventually(t, time.Minute, "the bridge answers", func() bool { return strings.Contains(out.String(), "\n") })
		_ = stdin.Close()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the bridge ends with %v", err)
			}
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			t.Error("the bridge outlives its client")
		}
		cancel()
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("standard output holds %q", line)
			}
		}
	}
	p.kill()
	for name, args := range map[string][]string{"a worker that is gone": {"mcp"}, "bad settings": {"-w", "../x", "mcp"}, "an unknown flag": {"mcp", "--stdio"}} {
		cmd := exec.Command(command, append([]string{"--data", p.data}, args...)...)
		cmd.Env = environment()
		var stdout, stderr output
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err == nil || stdout.String() != "" || stderr.String() == "" {
			t.Errorf("%s: %v, stdout %q, stderr %q", name, err, stdout.String(), stderr.String())
		}
	}
}
