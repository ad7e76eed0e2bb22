package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestMCP_bounded calls every tool where megabytes would be an answer: each is
// cut between entries, says that there is more, and stays within what clients
// give a tool's result (situation K9).
func TestMCP_bounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "scout")
	// No entry alone is too large, so that every answer fits.
	long := func(word string, i int) string {
		return fmt.Sprintf("%s number%d is kept in %s", word, i, strings.Repeat("q", 30_000))
	}
	var facts []record.ProposeFact
	for i := range 170 {
		facts = append(facts, record.ProposeFact{Topic: fmt.Sprintf("lantern %d", i), Content: long("lantern", i)})
	}
	ids := s.holds(facts...)
	const retired = 20
	var stale, unheard []string
	for i := range retired {
		called[record.SupersedeFactResult](t, c, "supersede_fact", args{"old": ids[i], "new": ids[i+1]})
		stale, unheard = append(stale, facts[i].Content), append(unheard, long("anchor", i))
		called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "general", "topic": facts[retired+i].Topic, "content": facts[retired+i].Content})
		called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": fmt.Sprintf("d%d-%s", i, strings.Repeat("x", 480)), "topic": "t", "content": fmt.Sprintf("buoy %d floats", i)})
		step := args{"task_id": "t", "step": fmt.Sprint(i)}
		called[record.ObligationResult](t, c, "state_open", step)
		called[record.ObligationResult](t, c, "state_claim", step)
		called[record.ObligationResult](t, c, "state_commit", args{"task_id": "t", "step": fmt.Sprint(i), "result": long("receipt", i)})
	}
	for i := range 12 {
		called[record.PolicyResult](t, s.agent("Polyphony-Workspace", "rules"), "propose_policy", args{"domain": "infra", "rule": fmt.Sprintf("Rule %d: %s", i, strings.Repeat("r", 15_000))})
	}
	called[record.UpdateNotesResult](t, c, "update_my_notes", args{"text": strings.Repeat("n", record.MaxContentBytes)})
	called[record.HarmonizationReport](t, c, "harmonize_memory", args{})

	decisions := make([]args, record.MaxDecisions)
	for i := range decisions {
		decisions[i] = args{"text": "", "topic": strings.Repeat("t", 100)}
	}
	type list struct {
		Items []json.RawMessage `json:"items"`
		Next  string            `json:"next"`
	}
	page := func(raw json.RawMessage) (string, bool) {
		var p list
		err := json.Unmarshal(raw, &p)
		return fmt.Sprintf("%d rows, next %.20q, %v", len(p.Items), p.Next, err), err == nil && len(p.Items) > 0 && p.Next != ""
	}
	left := func(rows string) func(json.RawMessage) (string, bool) {
		return func(raw json.RawMessage) (string, bool) {
			var fields map[string]json.RawMessage
			var all []json.RawMessage
			err := json.Unmarshal(raw, &fields)
			_ = json.Unmarshal(fields[rows], &all)
			return fmt.Sprintf("%d %s, left %s, %v", len(all), rows, fields["left"], err), len(all) > 0 && fields["left"] != nil
		}
	}
	// What overflows, and how its answer says so. All other tools answer small.
	overflow := map[string]struct {
		in   args
		more func(json.RawMessage) (string, bool)
	}{
		"search_memory":             {args{"query": "lantern", "limit": 100}, left("facts")},
		"capture_meeting_decisions": {args{"meeting_id": "weekly", "revision": 1, "decisions": decisions}, left("failed")},
		"list_policies":             {args{"workspace": "rules"}, page},
		"list_memory_domains":       {args{"limit": 20}, page},
		"list_memory_conflicts":     {args{}, page},
		"list_beliefs":              {args{}, page},
		"state_list":                {args{}, page},
		"state_read_facts":          {args{"subject": "lantern"}, page},
		"state_check":               {args{"context": unheard}, page},
		"fact_history": {args{"fact_id": ids[0]}, func(raw json.RawMessage) (string, bool) {
			var h struct {
				Chain []record.Fact `json:"chain"`
				Next  string        `json:"next"`
			}
			err := json.Unmarshal(raw, &h)
			return fmt.Sprintf("a chain of %d, next %q, %v", len(h.Chain), h.Next, err), len(h.Chain) > 0 && h.Next != ""
		}},
		"assemble_preamble": {args{"context": stale}, func(raw json.RawMessage) (string, bool) {
			var p record.Preamble
			err := json.Unmarshal(raw, &p)
			return fmt.Sprintf("%d stale, cut %v, %v", len(p.Stale), p.Cut, err), len(p.Stale) > 0 && slices.Contains(p.Cut, "stale")
		}},
	}
	// A page of notes, which the preamble holds too, is one entry.
	const room = 96<<10 + 2<<10
	alone := map[string]int{"assemble_preamble": room + record.MaxContentBytes}
	tools := 0
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools++
		in, big := overflow[tool.Name]
		if !big {
			raw := strings.ReplaceAll(string(must(json.Marshal(minimal[tool.Name]))), "%s", ids[100])
			if err := json.Unmarshal([]byte(raw), &in.in); err != nil {
				t.Fatal(err)
			}
		}
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: in.in})
		if err != nil {
			t.Errorf("%s: %v", tool.Name, err)
			continue
		}
		structured := must(json.Marshal(res.StructuredContent))
		if most := max(room, alone[tool.Name]); len(text(res)) > most || len(structured) > most {
			t.Errorf("%s answers %d bytes for the model and %d for its program", tool.Name, len(text(res)), len(structured))
		}
		if !big {
			continue
		}
		if res.IsError {
			t.Errorf("%s: %.200s", tool.Name, text(res))
			continue
		}
		if got, ok := in.more(structured); !ok {
			t.Errorf("%s does not say that there is more: %s", tool.Name, got)
		}
		if tool.Name != "assemble_preamble" && !json.Valid([]byte(text(res))) {
			t.Errorf("%s is cut within an entry: %.100s", tool.Name, text(res))
		}
	}
	if tools != len(minimal) {
		t.Errorf("%d tools are called, want %d", tools, len(minimal))
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}
