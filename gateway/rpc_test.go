package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

type rpcError struct {
	Code    int           `json:"code"`
	Message string        `json:"message"`
	Data    *record.Error `json:"data"`
}

type rpcAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

// rpc makes one call and returns its answer.
func (s *site) rpc(method string, params any, headers ...string) rpcAnswer {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	status, raw := s.request(http.MethodPost, "/rpc", string(body), append([]string{"Content-Type", "application/json"}, headers...)...)
	if status != http.StatusOK {
		s.t.Fatalf("%s answers %d: %s", method, status, raw)
	}
	var a rpcAnswer
	if err := json.Unmarshal([]byte(raw), &a); err != nil {
		s.t.Fatal(err)
	}
	if a.Version != "2.0" || string(a.ID) != "7" || (a.Result == nil) == (a.Error == nil) {
		s.t.Fatalf("%s is not answered by the protocol: %s", method, raw)
	}
	return a
}

// ask makes a call that must succeed.
func ask[T any](s *site, method string, params any, headers ...string) T {
	s.t.Helper()
	a := s.rpc(method, params, headers...)
	var out T
	if a.Error != nil {
		s.t.Fatalf("%s: %s (%+v)", method, a.Error.Message, a.Error.Data)
	}
	if err := json.Unmarshal(a.Result, &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// deny makes a call that must fail with the error's name.
func deny(s *site, method string, params any, code record.Code, headers ...string) *rpcError {
	s.t.Helper()
	a := s.rpc(method, params, headers...)
	if a.Error == nil || a.Error.Data == nil || a.Error.Data.Code != code {
		s.t.Fatalf("%s answers %s %+v, want %s", method, a.Result, a.Error, code)
	}
	return a.Error
}

func TestRPC_correctingByHand(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	p := called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "ports", "content": "The gateway listens on port 8080"})
	w := []string{"Polyphony-Workspace", "demo", "Polyphony-Agent", "ada"}
	f := ask[record.Fact](s, "memory_fact.get", args{"fact_id": p.FactID}, w...)

	edit := args{"fact_id": f.ID, "expected_version": f.Version, "content": "The gateway listens on port 9090", "topic": "", "key": "edit-1"}
	u := ask[record.UpdateFactResult](s, "memory_fact.update", edit, w...)
	if again := ask[record.UpdateFactResult](s, "memory_fact.update", edit, w...); again != u || u.Version != f.Version+1 {
		t.Errorf("the edit gives %+v, and again %+v", u, again)
	}
	edit["key"] = "edit-2"
	if e := deny(s, "memory_fact.update", edit, record.VersionConflict, w...); e.Code != -32001 || e.Data.Field != "expected_version" {
		t.Errorf("an old version gives %+v", e)
	}
	deny(s, "memory_fact.update", args{"fact_id": f.ID, "content": "x"}, record.InvalidArgument, w...)
	found := ask[record.SearchResult](s, "memory_fact.search", args{"query": "gateway 9090"}, w...)
	if len(found.Facts) != 1 || found.Facts[0].Topic != "ports" || len(found.Voices) != 1 {
		t.Errorf("the search finds %+v", found)
	}
	h := ask[gateway.History](s, "memory_fact.history", args{"fact_id": f.ID}, w...)
	if len(h.Chain) != 1 || len(h.Versions) != 1 || h.Versions[0].Content != f.Content || h.Versions[0].Agent != "ada" {
		t.Errorf("the history is %+v", h)
	}
	g := ask[record.Graph](s, "memory_graph.get", nil, w...)
	if len(g.Nodes) != 3 || len(g.Edges) != 2 || g.Left != 0 {
		t.Errorf("the graph is %+v", g)
	}

	ask[record.DeleteFactResult](s, "memory_fact.delete", args{"fact_id": f.ID, "expected_version": u.Version}, w...)
	deny(s, "memory_fact.get", args{"fact_id": f.ID}, record.NotFound, w...)
	deny(s, "memory_fact.restore", args{"fact_id": f.ID}, record.NotFound, w...)
	if found := called[record.SearchResult](t, c, "search_memory", args{"query": "gateway 9090"}); len(found.Facts) != 0 {
		t.Errorf("a deleted fact is recalled: %+v", found.Facts)
	}
}

func TestRPC_policiesAndGrants(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	p := called[record.PolicyResult](t, c, "propose_policy", args{"domain": "safety", "rule": "Wear a vest."})
	w := []string{"Polyphony-Workspace", "demo"}
	ask[record.UpdatePolicyResult](s, "memory_policy.update", args{"policy_id": p.PolicyID, "expected_version": 1, "rule": "Wear a vest and a helmet."}, w...)
	r := ask[record.PolicyRecord](s, "memory_policy.get", args{"policy_id": p.PolicyID}, w...)
	if r.Rule != "Wear a vest and a helmet." || len(r.Versions) != 1 {
		t.Errorf("the policy is %+v", r)
	}
	g := ask[record.SetGrantResult](s, "memory_access_grant.set", args{"for_role": "qa", "domain": "safety", "level": "none"}, w...)
	if g.Grant.Level != record.None {
		t.Errorf("the grant is %+v", g)
	}
	qa := append(w, "Polyphony-Role", "qa")
	if l := ask[record.Page[record.Policy]](s, "memory_policy.list", nil, qa...); len(l.Items) != 0 {
		t.Errorf("a role with none lists %+v", l.Items)
	}
	if e := deny(s, "memory_policy.delete", args{"policy_id": p.PolicyID}, record.InsufficientMemoryPermission, qa...); e.Code != -32002 || e.Data.Required != "write" {
		t.Errorf("without write: %+v", e)
	}
	ask[record.SetGrantResult](s, "memory_access_grant.delete", args{"for_role": "qa", "domain": "safety"}, w...)
	if l := ask[record.Page[record.Policy]](s, "memory_policy.list", nil, qa...); len(l.Items) != 1 {
		t.Errorf("a role without a grant lists %+v", l.Items)
	}
	ask[record.DeletePolicyResult](s, "memory_policy.delete", args{"policy_id": p.PolicyID}, w...)
	if l := ask[record.Page[record.Policy]](s, "memory_policy.list", args{"all": true}, w...); len(l.Items) != 0 {
		t.Errorf("a deleted policy is listed: %+v", l.Items)
	}
}

func TestRPC_workspaces(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i := range 5 {
		c := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", fmt.Sprint("scout", i))
		called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": fmt.Sprint("host ", i), "content": fmt.Sprintf("Host number%d is up", i)})
	}
	type listed struct{ Workspaces []string }
	if l := ask[listed](s, "workspace.list", nil); len(l.Workspaces) != 1 || l.Workspaces[0] != "demo" {
		t.Errorf("the list is %+v", l)
	}
	if h := ask[record.Health](s, "workspace.health", args{"workspace": "demo", "deep": true}); !h.OK || h.FactsActive != 5 {
		t.Errorf("the health is %+v", h)
	}
	deny(s, "workspace.health", args{"workspace": "elsewhere"}, record.NotFound)
	seen := 0
	for cursor := ""; ; {
		p := ask[record.Page[record.Fact]](s, "workspace.export", args{"workspace": "demo", "limit": 2, "cursor": cursor})
		seen += len(p.Items)
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	if seen != 5 {
		t.Errorf("%d facts are exported", seen)
	}
}

func TestRPC_protocol(t *testing.T) {
	t.Parallel()
	s := open(t)
	const ok = `{"jsonrpc":"2.0","id":1,"method":"workspace.list"}`
	batch := func(n int, call string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(call+",", n), ",") + "]"
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"a call":              {ok, 200, `"result":{"workspaces":[]}`},
		"a text id":           {strings.Replace(ok, `:1`, `:"a"`, 1), 200, `"id":"a"`},
		"a null id":           {strings.Replace(ok, `:1`, `:null`, 1), 200, `"id":null,"result"`},
		"an object id":        {strings.Replace(ok, `:1`, `:{}`, 1), 200, "-32600"},
		"no JSON":             {`{"jsonrpc"`, 200, "-32700"},
		"not even close":      {"\x00\xff", 200, "-32700"},
		"another version":     {`{"jsonrpc":"1.0","id":1,"method":"workspace.list"}`, 200, "-32600"},
		"no method":           {`{"jsonrpc":"2.0","id":1}`, 200, "-32600"},
		"unknown method":      {`{"jsonrpc":"2.0","id":1,"method":"memory_fact.create"}`, 200, "-32601"},
		"list of params":      {`{"jsonrpc":"2.0","id":1,"method":"workspace.list","params":[1]}`, 200, "-32602"},
		"unknown param":       {`{"jsonrpc":"2.0","id":1,"method":"workspace.list","params":{"wrkspace":"x"}}`, 200, "wrkspace"},
		"a notification":      {`{"jsonrpc":"2.0","method":"workspace.list"}`, 204, ""},
		"unknown, no id":      {`{"jsonrpc":"2.0","method":"nothing"}`, 204, ""},
		"a batch":             {batch(3, ok), 200, `[{"jsonrpc":"2.0","id":1,"result":{"workspaces":[]}},{"jsonrpc"`},
		"a mixed batch":       {"[" + ok + `,5,{"jsonrpc":"2.0","method":"workspace.list"}]`, 200, `},{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		"an empty batch":      {"[]", 200, "-32600"},
		"a bomb":              {batch(51, ok), 200, "-32600"},
		"only notifications":  {batch(2, `{"jsonrpc":"2.0","method":"workspace.list"}`), 204, ""},
		"nested batches":      {"[[" + ok + "]]", 200, "-32600"},
		"a deep one":          {strings.Repeat(`[`, 200_000), 200, "-32700"},
		"a deep param":        {`{"jsonrpc":"2.0","id":1,"method":"workspace.list","params":{"repo":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + "}}", 200, "-32700"},
		"path in a workspace": {`{"jsonrpc":"2.0","id":1,"method":"workspace.health","params":{"workspace":"../../etc"}}`, 200, `"code":"WorkspaceInvalid"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, got := s.request(http.MethodPost, "/rpc", tc.body, "Content-Type", "application/json; charset=utf-8")
			if status != tc.status || !strings.Contains(got, tc.want) {
				t.Errorf("%d %.300s, want %d with %s", status, got, tc.status, tc.want)
			}
		})
	}
	if status, _ := s.request(http.MethodPost, "/rpc", ok, "Content-Type", "text/plain"); status != http.StatusUnsupportedMediaType {
		t.Errorf("a form's content type answers %d", status)
	}
	if status, _ := s.request(http.MethodGet, "/rpc", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET answers %d", status)
	}
}
