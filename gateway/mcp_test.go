package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// minimal has the smallest arguments of every tool; %s is the id of a fact that
// the proposal among them supersedes.
var minimal = map[string]args{
	"search_memory": {"query": "port"}, "propose_fact": {"domain": "infra", "topic": "ports", "content": "The gateway listens on port 9000"},
	"supersede_fact": {"old": "%s", "new": "%s"}, "restore_fact": {"fact_id": "%s"}, "fact_history": {"fact_id": "%s"},
	"capture_meeting_decisions": {"meeting_id": "weekly", "revision": 1, "decisions": []any{}},
	"propose_policy":            {"domain": "infra", "rule": "Test before you push."}, "supersede_policy": {"policy_id": "nothing"},
	"list_policies": {}, "list_memory_domains": {}, "remember": {"content": "The ropes are wet"}, "record_observation": {"text": "Low tide."},
	"get_my_notes": {}, "update_my_notes": {"text": ""}, "assemble_preamble": {}, "consolidate_memory": {}, "harmonize_memory": {},
	"list_memory_conflicts": {}, "resolve_conflict": {"conflict_id": "nothing", "winner": "both"}, "list_beliefs": {},
	"state_open": {"task_id": "order-7", "step": "pay"}, "state_claim": {"task_id": "order-7", "step": "pay"}, "state_commit": {"task_id": "order-7", "step": "pay"},
	"state_list": {}, "state_read_facts": {"subject": "gateway"}, "state_append_episode": {"task_id": "order-7", "content": "Please pay."}, "state_check": {"context": []any{}},
}

// fails are the tools whose minimal arguments above the memory refuses.
var fails = map[string]record.Code{
	"supersede_fact":   record.SupersedeInvalid,
	"supersede_policy": record.NotFound, "resolve_conflict": record.NotFound,
	// Tools are listed by name: nothing was opened yet.
	"state_claim": record.NotFound, "state_commit": record.NotFound,
}

// Every tool that is listed can be called with the least that it takes
// (situation K3).
func TestMCP_everyTool(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	fact := called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "ports", "content": "The gateway listens on port 8080"})
	seen := map[string]bool{}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		seen[tool.Name] = true
		if strings.Contains(tool.Name, ".") || tool.Title == "" || len(tool.Description) < 60 || tool.Annotations == nil || tool.OutputSchema == nil {
			t.Errorf("%s is not described: %+v", tool.Name, tool)
		}
		raw, err := json.Marshal(minimal[tool.Name])
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: json.RawMessage(strings.ReplaceAll(string(raw), "%s", fact.FactID))})
		if err != nil {
			t.Errorf("%s: %v", tool.Name, err)
			continue
		}
		if want := fails[tool.Name]; res.IsError != (want != "") || !strings.HasPrefix(text(res), string(want)) {
			t.Errorf("%s answers %s", tool.Name, text(res))
		}
	}
	if len(seen) != len(minimal) {
		t.Errorf("%d tools are listed, want %d", len(seen), len(minimal))
	}
}

// The same call with an optional argument left out, null or "" is the same.
func TestMCP_blankIsOmitted(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	base := args{"domain": "infra", "topic": "ports", "content": "The gateway listens on port 8080", "key": "k"}
	first := called[record.ProposeFactResult](t, c, "propose_fact", base)
	for _, blank := range []any{nil, ""} {
		in := args{}
		for k, v := range base {
			in[k] = v
		}
		for _, name := range []string{"veracity", "confidence", "memory_type", "valid_until", "source_observation_ids", "dry_run", "workspace", "agent", "role", "repo"} {
			in[name] = blank
		}
		if again := called[record.ProposeFactResult](t, c, "propose_fact", in); again.FactID != first.FactID || again.MentionCount != 1 {
			t.Errorf("with %v the answer is %+v, want %+v", blank, again, first)
		}
	}
}

func TestMCP_arguments(t *testing.T) {
	t.Parallel()
	c := open(t).agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	secret := "xyzzy-" + strings.Repeat("s", 60)
	for name, tc := range map[string]struct {
		tool string
		args any
		code record.Code
		says string
	}{
		"unknown":       {"search_memory", args{"query": "x", "limti": 3}, record.InvalidArgument, `"limti"`},
		"missing":       {"search_memory", args{}, record.InvalidArgument, "query"},
		"wrong type":    {"search_memory", args{"query": 5}, record.InvalidArgument, "(query)"},
		"no object":     {"search_memory", []any{secret}, record.InvalidArgument, ""},
		"too large":     {"search_memory", args{"query": "x", "limit": 101}, record.InvalidArgument, "0 to 100"},
		"a fraction":    {"search_memory", args{"query": "x", "limit": 1.5}, record.InvalidArgument, "whole"},
		"unknown value": {"search_memory", args{"query": "x", "mode": secret}, record.InvalidArgument, "hybrid"},
		"no time":       {"search_memory", args{"query": "x", "as_of": secret}, record.InvalidArgument, "(as_of)"},
		"traversal":     {"search_memory", args{"query": "x", "workspace": "../" + secret}, record.WorkspaceInvalid, ""},
		"role":          {"search_memory", args{"query": "x", "role": "root"}, record.InvalidArgument, "(role)"},
		"in a list":     {"capture_meeting_decisions", args{"meeting_id": "m", "revision": 1, "decisions": []any{args{"txt": "x"}}}, record.InvalidArgument, "decisions[0].txt"},
		"blank content": {"propose_fact", args{"domain": "d", "topic": "t", "content": "\u200b"}, record.ContentEmpty, "(content)"},
		"no lease":      {"state_claim", args{"task_id": "t", "step": "s", "lease_seconds": 0}, record.InvalidArgument, "1 to 86400"},
		"no step":       {"state_commit", args{"task_id": "t", "step": nil}, record.InvalidArgument, "(step)"},
		"after itself":  {"state_open", args{"task_id": "t", "step": "s", "after": []any{"s"}}, record.InvalidArgument, "(after)"},
		"no context":    {"state_check", args{"context": ""}, record.InvalidArgument, "(context)"},
		"much context":  {"state_check", args{"context": make([]string, record.MaxContextStatements+1)}, record.PayloadTooLarge, "(context)"},
		"blank subject": {"state_read_facts", args{"subject": "\u200b"}, record.InvalidArgument, "(subject)"},
		"not the id":    {"fact_history", args{"fact_id": secret}, record.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := refused(t, c, tc.tool, tc.args, tc.code)
			if !strings.Contains(got, tc.says) {
				t.Errorf("it says %q, want %q in it", got, tc.says)
			}
			if strings.Contains(got, secret) || strings.Contains(got, "/tmp") {
				t.Errorf("it tells what it must not: %q", got)
			}
		})
	}
	// 3.0 is what some clients write for 3.
	called[record.SearchResult](t, c, "search_memory", json.RawMessage(`{"query":"x","limit":3.0}`))
}

// A result that is too big ends between rows and says that there is more.
func TestMCP_bigResults(t *testing.T) {
	t.Parallel()
	c := open(t).agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	const n = 12
	for i := range n {
		called[record.ProposeFactResult](t, c, "propose_fact", args{
			"domain": "infra", "topic": fmt.Sprintf("host %d", i), "content": fmt.Sprintf("Host number%d is known as lantern %s", i, strings.Repeat("q", 30_000)),
		})
	}
	out := called[record.SearchResult](t, c, "search_memory", args{"query": "lantern", "limit": 100})
	if len(out.Facts) == 0 || out.Left != n-len(out.Facts) || len(out.Facts) > 4 {
		t.Errorf("%d facts and %d left, want all %d together", len(out.Facts), out.Left, n)
	}
	// A list is read to its end, each page within the size.
	for i := range n {
		called[record.PolicyResult](t, c, "propose_policy", args{"domain": "infra", "rule": fmt.Sprintf("Rule %d: %s", i, strings.Repeat("r", 15_000))})
	}
	statements := make([]string, n)
	for i := range statements {
		statements[i] = fmt.Sprintf("Lamp number%d is lit %s", i, strings.Repeat("z", 30_000))
	}
	for tool, in := range map[string]args{
		"list_policies": {}, "state_read_facts": {"subject": "lantern"}, "state_check": {"context": statements},
	} {
		type page struct {
			Items []struct{ ID, Statement string } `json:"items"`
			Next  string                           `json:"next"`
		}
		seen, pages := map[string]bool{}, 0
		for {
			p := called[page](t, c, tool, in)
			for _, r := range p.Items {
				seen[r.ID+r.Statement] = true
			}
			if pages++; p.Next == "" {
				break
			}
			in["cursor"] = p.Next
		}
		if len(seen) != n || pages < 2 {
			t.Errorf("%s: %d of %d rows on %d pages", tool, len(seen), n, pages)
		}
	}
}

func TestMCP_resourcesAndPrompt(t *testing.T) {
	t.Parallel()
	c := open(t).agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	for _, uri := range []string{"polyphony://preamble", "polyphony://notes"} {
		res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || res.Contents[0].Text != "\n" {
			t.Errorf("with nothing to say %s is %+v, %v", uri, res, err)
		}
	}
	called[record.PolicyResult](t, c, "propose_policy", args{"domain": "infra", "rule": "Test before you push."})
	called[record.RecordObservationResult](t, c, "record_observation", args{"text": "Halfway through the gateway."})
	called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "ports", "content": "The gateway listens on port 8080"})
	for uri, want := range map[string]string{
		"polyphony://preamble": "Test before you push.", "polyphony://notes": "Halfway through the gateway.",
		"polyphony://preamble?task=Which%20port%20does%20the%20gateway%20listen%20on": "port 8080",
	} {
		res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if len(res.Contents) != 1 || !strings.Contains(res.Contents[0].Text, want) {
			t.Errorf("%s lacks %q: %+v", uri, want, res.Contents)
		}
	}
	p, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "use_memory", Arguments: map[string]string{"task": "Which port does the gateway listen on?"}})
	if err != nil || len(p.Messages) != 2 || !strings.Contains(p.Messages[1].Content.(*sdk.TextContent).Text, "port 8080") {
		t.Errorf("the prompt is %+v, %v", p, err)
	}
}

// An agent that names itself nowhere is called after its client.
func TestMCP_agentOfClient(t *testing.T) {
	t.Parallel()
	c := open(t).agent()
	if n := called[record.Notes](t, c, "get_my_notes", nil); n.Agent != "test-client" {
		t.Errorf("the notes are of %q", n.Agent)
	}
}
