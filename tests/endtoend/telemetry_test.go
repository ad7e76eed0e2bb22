package endtoend

import (
	"bytes"
	"context"
	"encoding/hex"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// collector keeps what is sent to it over OTLP.
type collector struct {
	tracepb.UnimplementedTraceServiceServer
	address string

	mu      sync.Mutex
	spans   []*tracev1.Span
	metrics []string
	// raw is every message as it came.
	raw []byte
}

// metricsSide receives the metrics: both services name their method Export.
type metricsSide struct {
	metricspb.UnimplementedMetricsServiceServer
	c *collector
}

func collect(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: l.Addr().String()}
	s := grpc.NewServer()
	tracepb.RegisterTraceServiceServer(s, c)
	metricspb.RegisterMetricsServiceServer(s, metricsSide{c: c})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return c
}

func (c *collector) keep(m proto.Message) {
	raw, _ := proto.Marshal(m)
	c.raw = append(c.raw, raw...)
}

func (c *collector) Export(_ context.Context, in *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(in)
	for _, r := range in.GetResourceSpans() {
		for _, s := range r.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
	return &tracepb.ExportTraceServiceResponse{}, nil
}

func (m metricsSide) Export(_ context.Context, in *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.keep(in)
	for _, r := range in.GetResourceMetrics() {
		for _, s := range r.GetScopeMetrics() {
			for _, metric := range s.GetMetrics() {
				m.c.metrics = append(m.c.metrics, metric.GetName())
			}
		}
	}
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

// way returns the names of the spans from one up to its root.
func (c *collector) way(of *tracev1.Span) (names []string) {
	for of != nil {
		names = append(names, of.GetName())
		i := slices.IndexFunc(c.spans, func(s *tracev1.Span) bool { return bytes.Equal(s.GetSpanId(), of.GetParentSpanId()) })
		if i < 0 {
			break
		}
		of = c.spans[i]
	}
	return names
}

// leads checks that a span of each name lies beneath all of those that are given
// for it. Only spans of the trace count, of any when it is empty.
func (c *collector) leads(t *testing.T, traceID string, ways map[string][]string) {
	t.Helper()
	for from, through := range ways {
		var seen [][]string
		for _, s := range c.spans {
			if s.GetName() == from && (traceID == "" || traceID == hex.EncodeToString(s.GetTraceId())) {
				seen = append(seen, c.way(s))
			}
		}
		if !slices.ContainsFunc(seen, func(way []string) bool {
			return !slices.ContainsFunc(through, func(name string) bool { return !slices.Contains(way, name) })
		}) {
			t.Errorf("%q lies beneath %q, nowhere beneath all of %q", from, seen, through)
		}
	}
}

// checkAgentsTrace looks at the trace that an agent began: its calls' spans are
// beneath the agent's own, what they made happen is beneath them, and they tell
// names only.
func (c *collector) checkAgentsTrace(t *testing.T, traceID, spanID string) {
	t.Helper()
	outcomes := map[string]string{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) != traceID {
			continue
		}
		name, isCall := strings.CutPrefix(s.GetName(), "mcp ")
		if !isCall {
			continue
		}
		if got := hex.EncodeToString(s.GetParentSpanId()); got != spanID || s.GetKind() != tracev1.Span_SPAN_KIND_SERVER {
			t.Errorf("the span of %s is a %v beneath %s", name, s.GetKind(), got)
		}
		told := map[string]string{}
		for _, a := range s.GetAttributes() {
			told[a.GetKey()] = a.GetValue().GetStringValue()
		}
		outcomes[name] = told["polyphony.outcome"]
		delete(told, "polyphony.outcome")
		if want := map[string]string{"polyphony.operation": name, "polyphony.workspace": "told", "polyphony.agent": "scout"}; !maps.Equal(told, want) {
			t.Errorf("the span of %s tells %v", name, told)
		}
	}
	if want := map[string]string{"propose_fact": "ok", "search_memory": "ok", "fact_history": "NotFound"}; !maps.Equal(outcomes, want) {
		t.Errorf("the calls end with %v, want %v", outcomes, want)
	}
	c.leads(t, traceID, map[string][]string{
		"store propose-fact": {"RunActivity:ProposeFact", "RunWorkflow:ProposeFact", "StartWorkflow:ProposeFact", "mcp propose_fact"},
		// Read from the file, without a workflow.
		"voice lexical": {"mcp search_memory"},
		"store view":    {"mcp search_memory"},
	})
}

// TestTelemetry sends a worker's telemetry to a collector. A call's trace goes
// from the gateway, or the agent that said where it began, through workflow and
// activity to the store; the metrics are there;
// and nothing that a memory says is in any of it, nor in the log at its most
// talkative.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	c := collect(t)
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address}
	p := announced(t, spawnWith(t, env, t.TempDir(), "--log-level", "debug", "--log-format", "json"))
	plant(t, p.client(), "told")
	_, err := p.client().SearchMemory(timed(t), record.Search{Caller: caller("told"), Query: planted[0], Mode: "psychic"})
	wantCode(t, err, record.InvalidArgument)
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	agent := p.overHTTP(headers{"Polyphony-Workspace": "told", "Polyphony-Agent": "scout", "traceparent": "00-" + traceID + "-" + spanID + "-01", "tracestate": "vendor=" + planted[0]})
	use[record.ProposeFactResult](agent, "propose_fact", in{"domain": "birds", "topic": "wings", "content": planted[0] + " has wide wings"})
	use[record.SearchResult](agent, "search_memory", in{"query": "the wings of " + planted[0]})
	if text, _, failed := agent.try("fact_history", in{"fact_id": planted[0]}); !failed || !strings.HasPrefix(text, "NotFound: ") {
		t.Errorf("the history of no fact answers %q", text)
	}
	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	c.leads(t, "", map[string][]string{
		"store propose-fact": {"RunActivity:ProposeFact", "RunWorkflow:ProposeFact"},
		"voice lexical":      {"RunActivity:SearchMemory", "RunWorkflow:SearchMemory"},
		"store consolidate":  {"RunActivity:ConsolidatePage", "RunWorkflow:ConsolidateMemory"},
	})
	c.checkAgentsTrace(t, traceID, spanID)
	for _, want := range []string{
		"polyphony_commit_operations", "polyphony_commit_duration", "polyphony_recall_voice_duration", "polyphony_activity_duration",
		"polyphony_writes_waiting", "polyphony_index_drift", "polyphony_embeddings_backlog", "polyphony_conflicts_open", "temporal_workflow_completed",
	} {
		if !slices.Contains(c.metrics, want) {
			t.Errorf("no metric %s among %v", want, slices.Compact(slices.Sorted(slices.Values(c.metrics))))
		}
	}
	log := p.stderr.String()
	for _, w := range planted {
		for name, text := range map[string]string{"the telemetry": string(c.raw), "the log": log} {
			if strings.Contains(text, w) || strings.Contains(text, hex.EncodeToString([]byte(w))) {
				t.Errorf("%s holds %q", name, w)
			}
		}
	}
	if len(c.raw) == 0 || !strings.Contains(log, `"msg":"ready"`) {
		t.Error("nothing was told")
	}
}
