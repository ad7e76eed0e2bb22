package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Of two workspaces that know the same things, neither shows anything of the
// other, nor takes its ids (situation I5).
func TestIsolation_workspaces(t *testing.T) {
	t.Parallel()
	s := open(t)
	const secret = "quarkword"
	sides := map[string]*mcp.ClientSession{"left": s.agent("Polyphony-Workspace", "left", "Polyphony-Agent", "scout"), "right": s.agent("Polyphony-Workspace", "right", "Polyphony-Agent", "scout")}
	facts := map[string]string{}
	// The left one is filled and asked last, so that whatever is kept between
	// calls is its own.
	for _, side := range []string{"right", "left"} {
		c, word := sides[side], map[string]string{"left": secret, "right": "plainword"}[side]
		facts[side] = called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "payment gateway", "content": "The payment gateway is called " + word}).FactID
		called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "payment gateway", "content": "The payment gateway needs the " + word + " ledger before it starts"})
		called[record.PolicyResult](t, c, "propose_policy", args{"domain": "infra", "rule": "Never restart the payment gateway of " + word})
		called[record.RecordObservationResult](t, c, "record_observation", args{"text": "The payment gateway of " + word + " was slow"})
		called[record.AppendEpisodeResult](t, c, "state_append_episode", args{"task_id": "t", "content": "Look at the payment gateway of " + word})
		called[record.ObligationResult](t, c, "state_open", args{"task_id": "t", "step": "restart " + word})
		called[record.SearchResult](t, c, "search_memory", args{"query": "payment gateway"})
	}
	right := sides["right"]
	for tool, in := range map[string]args{
		"search_memory": {"query": "payment gateway " + secret, "limit": 100}, "assemble_preamble": {"task": "Look after the payment gateway of " + secret, "context": []string{"The payment gateway is called " + secret}},
		"list_policies": {"all": true}, "list_memory_domains": {}, "list_memory_conflicts": {}, "list_beliefs": {}, "get_my_notes": {},
		"state_read_facts": {"subject": "payment gateway", "all": true}, "state_list": {},
	} {
		res, err := right.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v, %s", tool, err, text(res))
		}
		// What the caller says itself may come back: the query is not ours.
		said := text(res)
		if tool == "assemble_preamble" {
			said, _, _ = strings.Cut(said, "Statements of your context")
		}
		if strings.Contains(said, secret) || strings.Contains(said, facts["left"]) {
			t.Errorf("%s shows another workspace: %s", tool, said)
		}
	}
	w := []string{"Polyphony-Workspace", "right", "Polyphony-Agent", "scout"}
	for _, method := range []string{"memory_fact.list", "memory_graph.get", "memory_policy.list", "workspace.export"} {
		if a := s.rpc(method, args{}, w...); a.Error != nil || strings.Contains(string(a.Result), secret) {
			t.Errorf("%s shows another workspace: %s, %+v", method, a.Result, a.Error)
		}
	}
	before := ask[record.Fact](s, "memory_fact.get", args{"workspace": "left", "fact_id": facts["left"]})
	for method, in := range map[string]args{
		"memory_fact.get": {}, "memory_fact.history": {}, "memory_fact.restore": {}, "memory_fact.delete": {}, "memory_fact.update": {"expected_version": 1, "content": "It is gone"},
	} {
		in["fact_id"] = facts["left"]
		if a := s.rpc(method, in, w...); a.Error == nil || a.Error.Data.Code != record.NotFound {
			t.Errorf("%s takes an id of another workspace: %s, %+v", method, a.Result, a.Error)
		}
	}
	refused(t, right, "fact_history", args{"fact_id": facts["left"]}, record.NotFound)
	refused(t, right, "restore_fact", args{"fact_id": facts["left"]}, record.NotFound)
	refused(t, right, "supersede_fact", args{"old": facts["left"], "new": facts["right"]}, record.NotFound)
	refused(t, right, "supersede_fact", args{"old": facts["right"], "new": facts["left"]}, record.NotFound)
	if status, body := s.request(http.MethodGet, "/workspaces/right/settings/memory/facts/"+facts["left"], ""); status != http.StatusNotFound || strings.Contains(body, secret) {
		t.Errorf("the page answers %d", status)
	}
	if after := ask[record.Fact](s, "memory_fact.get", args{"workspace": "left", "fact_id": facts["left"]}); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the fact became %+v, was %+v", after, before)
	}
}

// A fact belongs to the workspace, not to who made it: every verb of another
// agent in another session reaches it (situation I7).
func TestIsolation_sessions(t *testing.T) {
	t.Parallel()
	s := open(t)
	maker := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "ada", "Polyphony-Role", "coder")
	other := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "bob", "Polyphony-Role", "qa")
	who := []string{"Polyphony-Workspace", "w", "Polyphony-Agent", "bob", "Polyphony-Role", "qa"}
	var ids []string
	for _, topic := range []string{"anchor", "buoy", "chart", "dinghy"} {
		ids = append(ids, called[record.ProposeFactResult](t, maker, "propose_fact", args{"domain": "ship", "topic": topic, "content": "The walrus keeps the " + topic}).FactID)
	}
	if err := maker.Close(); err != nil {
		t.Fatal(err)
	}
	found := called[record.SearchResult](t, other, "search_memory", args{"query": "walrus anchor"})
	if !slices.ContainsFunc(found.Facts, func(h record.Hit) bool { return h.ID == ids[0] }) {
		t.Errorf("it finds %+v", found.Facts)
	}
	if f := ask[record.Fact](s, "memory_fact.get", args{"fact_id": ids[0]}, who...); f.AuthoredByAgent != "ada" {
		t.Errorf("it reads %+v", f)
	}
	ask[record.UpdateFactResult](s, "memory_fact.update", args{"fact_id": ids[0], "expected_version": 1, "content": "The walrus keeps two anchors"}, who...)
	called[record.SupersedeFactResult](t, other, "supersede_fact", args{"old": ids[1], "new": ids[2]})
	called[record.RestoreFactResult](t, other, "restore_fact", args{"fact_id": ids[1]})
	ask[record.DeleteFactResult](s, "memory_fact.delete", args{"fact_id": ids[3]}, who...)
	h := called[record.FactHistory](t, other, "fact_history", args{"fact_id": ids[1]})
	events := map[string]string{}
	for _, e := range h.Events {
		events[e.Kind] = e.Agent
	}
	if events["created"] != "ada" || events["restored"] != "bob" {
		t.Errorf("the history says %+v", h.Events)
	}
}

// The signs of patterns are letters like all others: in names, in queries, in
// filters and in ids, of which no beginning stands for the whole
// (situation I3).
func TestIsolation_wildcards(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "a")
	long := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "ab")
	domains := []string{"a", "ab", "axc", "a%c", "x", "%", "_", `\`}
	ids := map[string]string{}
	for _, d := range domains {
		res, failed := tried[record.ProposeFactResult](t, c, "propose_fact", args{"domain": d, "topic": d, "content": "The walrus of " + d + " is fed"})
		if failed != "" {
			if !strings.HasPrefix(failed, string(record.InvalidArgument)) {
				t.Errorf("the domain %q: %s", d, failed)
			}
			continue
		}
		ids[d] = res.FactID
	}
	if ids["a"] == "" || ids["ab"] == "" {
		t.Fatal("plain names are refused")
	}
	type facts struct{ Items []record.Fact }
	for _, d := range domains {
		want := 0
		if ids[d] != "" {
			want = 1
		}
		listed, err := tried[facts](t, c, "state_read_facts", args{"subject": "walrus", "domain": d})
		if err == "" && (len(listed.Items) != want || want == 1 && listed.Items[0].ID != ids[d]) {
			t.Errorf("the domain %q holds %d facts", d, len(listed.Items))
		}
		found, err := tried[record.SearchResult](t, c, "search_memory", args{"query": "walrus", "domain": d, "limit": 100})
		if err == "" && (len(found.Facts) != want || want == 1 && found.Facts[0].ID != ids[d]) {
			t.Errorf("a search in the domain %q finds %d facts", d, len(found.Facts))
		}
	}
	for _, q := range []string{"%", "_", `\`, "%%", "wal%", "w_lrus", `wal\us`, "*", "wal*", "?"} {
		if found := called[record.SearchResult](t, c, "search_memory", args{"query": q, "mode": "keyword"}); len(found.Facts) == len(ids) {
			t.Errorf("%q finds everything", q)
		}
		body := s.page(factsPath + "?" + url.Values{"q": {q}, "all": {"1"}}.Encode())
		if strings.Contains(body, ids["ab"]) {
			t.Errorf("%q finds every fact on the page", q)
		}
		if got := called[facts](t, c, "state_read_facts", args{"subject": q + "us"}); len(got.Items) != 0 {
			t.Errorf("the subject %q has %d facts", q, len(got.Items))
		}
		refused(t, c, "fact_history", args{"fact_id": q}, record.NotFound)
	}
	for _, part := range []string{ids["a"][:8], ids["a"] + "a", ids["a"][:35] + "_", strings.ToUpper(ids["a"]) + " "} {
		refused(t, c, "fact_history", args{"fact_id": part}, record.NotFound)
		if a := s.rpc("memory_fact.delete", args{"workspace": "w", "fact_id": part}); a.Error == nil || a.Error.Data.Code != record.NotFound {
			t.Errorf("%q is an id: %s", part, a.Result)
		}
	}
	// Names that begin alike are others'.
	called[record.RecordObservationResult](t, long, "record_observation", args{"text": "Mine alone"})
	for _, agent := range []string{"a", "a%", "a_", "%"} {
		if n := called[record.Notes](t, c, "get_my_notes", args{"agent": agent}); n.Text != "" {
			t.Errorf("the agent %q reads %q", agent, n.Text)
		}
	}
	for _, task := range []string{"t", "t%", "t_"} {
		called[record.ObligationResult](t, c, "state_open", args{"task_id": task, "step": "s"})
		type steps struct{ Items []record.Obligation }
		if got := called[steps](t, c, "state_list", args{"task_id": task}).Items; len(got) != 1 || got[0].TaskID != task {
			t.Errorf("the task %q has %+v", task, got)
		}
	}
}
