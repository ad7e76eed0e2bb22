package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestSpans calls over every surface: each call has one span in the caller's
// trace that says what was called, for whom and how it ended, and nothing else.
func TestSpans(t *testing.T) {
	t.Parallel()
	const planted, traceID, spanID = "quetzalcoatlus", "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	s := open(t)
	continued := []string{"traceparent", "00-" + traceID + "-" + spanID + "-01", "tracestate", "vendor=" + planted, "baggage", "said=" + planted}
	c := s.agent(append(continued, "Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")...)
	called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "birds", "topic": planted, "content": planted + " flies"})
	refused(t, c, "fact_history", args{"fact_id": planted}, record.NotFound)
	refused(t, c, "search_memory", args{"query": planted, planted: true}, record.InvalidArgument)
	s.request("POST", "/rpc", `[{"jsonrpc":"2.0","id":1,"method":"memory_fact.search","params":{"workspace":"demo","query":"`+planted+`"}},
		{"jsonrpc":"2.0","id":2,"method":"memory_fact.get","params":{"workspace":"demo","agent":"mason","fact_id":"`+planted+`"}},
		{"jsonrpc":"2.0","id":3,"method":"`+planted+`"}]`, append(continued, "Content-Type", "application/json")...)
	s.request("GET", "/workspaces/demo/settings/memory/facts/"+planted, "", continued...)
	s.request("GET", "/workspaces/..%2f"+planted+"/settings/memory", "")

	var got []string
	for _, span := range s.spans.Ended() {
		line := span.Name()
		for _, a := range span.Attributes() {
			line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(a.Key), "polyphony."), a.Value.String())
		}
		if span.SpanContext().TraceID().String() != traceID || span.Parent().SpanID().String() != spanID {
			line += " new"
		}
		if span.SpanKind() != trace.SpanKindServer || len(span.Events()) != 0 || strings.Contains(fmt.Sprint(line, span.Status(), span.SpanContext().TraceState()), planted) {
			t.Errorf("the span %s tells %v, %v", line, span.Status(), span.SpanContext())
		}
		got = append(got, line)
	}
	slices.Sort(got)
	const page = "browser GET /workspaces/{workspace}/settings/memory"
	want := []string{
		page + " operation=" + strings.TrimPrefix(page, "browser ") + " workspace= agent= outcome=WorkspaceInvalid new",
		page + "/facts/{id} operation=" + strings.TrimPrefix(page, "browser ") + "/facts/{id} workspace=demo agent= outcome=NotFound",
		"mcp fact_history operation=fact_history workspace=demo agent=scout outcome=NotFound",
		"mcp propose_fact operation=propose_fact workspace=demo agent=scout outcome=ok",
		"mcp search_memory operation=search_memory workspace= agent= outcome=InvalidArgument",
		"rpc memory_fact.get operation=memory_fact.get workspace=demo agent=mason outcome=NotFound",
		"rpc memory_fact.search operation=memory_fact.search workspace=demo agent= outcome=ok",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
