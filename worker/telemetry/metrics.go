package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/polyphony-memory/polyphony/memory"
)

const (
	// totalsAge is how old the sums over open workspaces may be when metrics
	// are read: counting rows takes milliseconds a workspace.
	totalsAge = 15 * time.Second
	// totalsTime bounds counting them.
	totalsTime = 5 * time.Second
)

// seconds are the buckets of what takes a millisecond to ten seconds.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// metrics are our instruments. Attributes are names of this program, so that
// their number is bounded; no workspace is among them.
type metrics struct {
	batch      metric.Int64Histogram
	commit     metric.Float64Histogram
	voice      metric.Float64Histogram
	activities metric.Float64Histogram
}

func newMetrics(m metric.Meter) (*metrics, error) {
	var out metrics
	var errs [4]error
	out.batch, errs[0] = m.Int64Histogram("polyphony_commit_operations", metric.WithDescription("Operations that one transaction of a workspace's file held."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256))
	out.commit, errs[1] = m.Float64Histogram("polyphony_commit_duration", metric.WithUnit("s"), metric.WithDescription("Time of one transaction, from its begin to its commit."),
		metric.WithExplicitBucketBoundaries(seconds...))
	out.voice, errs[2] = m.Float64Histogram("polyphony_recall_voice_duration", metric.WithUnit("s"), metric.WithDescription("Time that a voice of recall took to answer, by voice and outcome."),
		metric.WithExplicitBucketBoundaries(seconds...))
	out.activities, errs[3] = m.Float64Histogram("polyphony_activity_duration", metric.WithUnit("s"), metric.WithDescription("Time of one attempt of an activity, by activity and outcome."),
		metric.WithExplicitBucketBoundaries(seconds...))
	return &out, errors.Join(errs[:]...)
}

// Workspaces is what can be summed.
type Workspaces interface {
	Totals(ctx context.Context) (memory.Totals, error)
}

// Watch adds gauges over the workspaces that are open: writes that wait, drift
// of the lexical index, facts that wait for a vector, open conflicts, the size
// of logs.
func (t *Telemetry) Watch(w Workspaces) error {
	var mu sync.Mutex
	var at time.Time
	var sum memory.Totals
	read := func(ctx context.Context) memory.Totals {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && time.Since(at) < totalsAge {
			return sum
		}
		ctx, cancel := context.WithTimeout(ctx, totalsTime)
		defer cancel()
		fresh, err := w.Totals(ctx)
		if err != nil {
			t.log.Warn("the open workspaces could not be counted", "error", err)
		} else {
			sum = fresh
		}
		at = time.Now()
		return sum
	}
	gauges := map[string]struct {
		help string
		of   func(memory.Totals) int64
	}{
		"polyphony_workspaces_open":    {"Workspaces that are open.", func(s memory.Totals) int64 { return s.Open }},
		"polyphony_writes_waiting":     {"Writes that wait for a workspace's writer.", func(s memory.Totals) int64 { return s.Queue }},
		"polyphony_index_drift":        {"Facts that the lexical index lacks or has too many.", func(s memory.Totals) int64 { return s.Drift }},
		"polyphony_embeddings_backlog": {"Facts that wait for a vector.", func(s memory.Totals) int64 { return s.EmbeddingQueue }},
		"polyphony_conflicts_open":     {"Pairs of facts that wait for a decision.", func(s memory.Totals) int64 { return s.OpenConflicts }},
		"polyphony_wal_bytes":          {"Size of the write-ahead logs.", func(s memory.Totals) int64 { return s.WALBytes }},
	}
	for name, g := range gauges {
		_, err := t.meter.Int64ObservableGauge(name, metric.WithDescription(g.help), metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			o.Observe(g.of(read(ctx)))
			return nil
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// Begin and Committed make the telemetry a [memory.Observer]: a span for each
// read and write, and the size and time of transactions.
func (t *Telemetry) Begin(ctx context.Context, workspace, what string) (context.Context, func(error)) {
	return t.span(ctx, "store "+what, attribute.String("polyphony.workspace", workspace))
}

// Committed counts one transaction.
func (t *Telemetry) Committed(operations int, took time.Duration) {
	// Not the context of one caller: many share the transaction.
	ctx := context.Background()
	t.metrics.batch.Record(ctx, int64(operations))
	t.metrics.commit.Record(ctx, took.Seconds())
}

// Voice times a voice of recall and gives it a span.
func (t *Telemetry) Voice(ctx context.Context, voice string) (context.Context, func(error)) {
	began := time.Now()
	ctx, end := t.span(ctx, "voice "+voice)
	return ctx, func(err error) {
		end(err)
		t.metrics.voice.Record(ctx, since(began), metric.WithAttributes(attribute.String("voice", voice), attribute.String("outcome", outcome(err))))
	}
}

// span begins a span within the caller's; outside of any there is none, so
// that work in the background does not make traces of its own.
func (t *Telemetry) span(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, func(error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			// The name only: a message may hold what a caller sent.
			span.SetStatus(codes.Error, outcome(err))
		}
		span.End()
	}
}
