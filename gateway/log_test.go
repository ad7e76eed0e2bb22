package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// lost is a connection to an engine that is gone.
type lost struct{ client.Client }

func (lost) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return nil, serviceerror.NewUnavailable("the engine is gone")
}

// TestLog has calls of every surface fail. Each leaves a line that says what was
// called, for whom, which workflow it was to be and why it failed; neither these
// nor the lines of what was denied hold what was said.
func TestLog(t *testing.T) {
	t.Parallel()
	const planted = "Quetzalcoatlus"
	s := open(t)
	id := s.holds(record.ProposeFact{Topic: planted, Content: planted + " flies"})[0]
	conflict := "/conflicts/none"
	s.memory.Client = workflows.NewClient(lost{}, 1)
	agent := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "scout")
	refused(t, agent, "propose_fact", args{"domain": "birds", "topic": planted, "content": planted + " swims", "key": "run-1"}, record.Unavailable)
	s.rpc("memory_fact.update", args{"workspace": "w", "agent": "mason", "fact_id": id, "expected_version": 1, "content": planted + " walks", "key": "run-2"})
	s.submit(factsPath+conflict, url.Values{"winner": {"both"}, "reason": {planted}, "key": {"run-3"}})
	// A failure that has no workflow: the file cannot be read.
	if err := s.memory.Workspaces.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, agent, "search_memory", args{"query": planted}, record.Unavailable)

	type line struct {
		Level, Msg, Tool, Operation, Page, Workspace, Agent, Workflow, Code, Cause string
	}
	var got []line
	for raw := range strings.Lines(s.log.String()) {
		var l line
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if l.Level == slog.LevelWarn.String() && l.Code != "" {
			got = append(got, l)
		}
	}
	want := []line{
		{Msg: "a tool failed", Tool: "propose_fact", Workspace: "w", Agent: "scout", Workflow: workflows.ID(record.KindProposeFact, "w", "run-1"), Cause: "the engine is gone"},
		{Msg: "an operation failed", Operation: "memory_fact.update", Workspace: "w", Agent: "mason", Workflow: workflows.ID(record.KindUpdateFact, "w", "run-2"), Cause: "the engine is gone"},
		{Msg: "a page failed", Page: "POST /workspaces/{workspace}/settings/memory/conflicts/{id}", Workspace: "w", Workflow: workflows.ID(record.KindResolveConflict, "w", "run-3"), Cause: "the engine is gone"},
	}
	for i, w := range want {
		if i >= len(got) {
			t.Fatalf("the log has %d failures:\n%s", len(got), s.log)
		}
		g := got[i]
		if !strings.Contains(g.Cause, w.Cause) {
			t.Errorf("the cause is %q", g.Cause)
		}
		w.Level, w.Code, w.Cause = g.Level, string(record.Unavailable), g.Cause
		if g != w {
			t.Errorf("the log says\n%+v, want\n%+v", g, w)
		}
	}
	if strings.Contains(s.log.String(), planted) {
		t.Errorf("the log holds what was said:\n%s", s.log)
	}
}

// TestLog_denied names the token that was turned away and whose it is, not whom
// the caller pretended to be.
func TestLog_denied(t *testing.T) {
	t.Parallel()
	s := open(t)
	secret, id := s.token("demo", "scout", "coder")
	auth := []string{"Authorization", "Bearer " + secret}
	agent := s.agent(auth...)
	refused(t, agent, "get_my_notes", args{"workspace": "pretended"}, record.Unauthenticated)
	s.rpc("memory_fact.list", args{"agent": "pretended"}, auth...)
	denied := 0
	for raw := range strings.Lines(s.log.String()) {
		if !strings.Contains(raw, `"denied"`) {
			continue
		}
		denied++
		for _, part := range []string{`"token":"` + id + `"`, `"workspace":"demo"`, `"agent":"scout"`} {
			if !strings.Contains(raw, part) {
				t.Errorf("the line lacks %s: %s", part, raw)
			}
		}
	}
	for _, called := range []string{`"tool":"get_my_notes"`, `"operation":"memory_fact.list"`} {
		if !strings.Contains(s.log.String(), called) {
			t.Errorf("no line has %s:\n%s", called, s.log)
		}
	}
	if denied != 2 || strings.Contains(s.log.String(), "pretended") || strings.Contains(s.log.String(), secret) {
		t.Errorf("%d were denied:\n%s", denied, s.log)
	}
}
