package gateway

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Span is the span of one call of the gateway. It says what was called, for
// whom and how it ended, never what was sent or found.
type Span struct{ span trace.Span }

// StartSpan begins the span of a call; surface is mcp, rpc or browser and
// operation one of its own names. It continues the caller's trace when head
// holds a traceparent. A nil tracer makes no span.
func StartSpan(ctx context.Context, tracer trace.Tracer, head http.Header, surface, operation string) (context.Context, *Span) {
	if tracer == nil {
		return ctx, &Span{span: noop.Span{}}
	}
	// Only the ids: what else a caller may put into a trace's context, its state
	// and baggage, is free text.
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": head.Get("traceparent")})
	ctx, span := tracer.Start(ctx, surface+" "+operation, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("polyphony.operation", operation)))
	return ctx, &Span{span: span}
}

// For says for whom the call is, once that was checked.
func (s *Span) For(c record.Caller) {
	s.span.SetAttributes(attribute.String("polyphony.workspace", c.Workspace), attribute.String("polyphony.agent", c.Agent))
}

// End ends the span with how the call ended.
func (s *Span) End(err error) {
	s.span.SetAttributes(attribute.String("polyphony.outcome", Outcome(err)))
	if err != nil {
		// The name only: a message may hold what a caller sent.
		s.span.SetStatus(codes.Error, Outcome(err))
	}
	s.span.End()
}

// Outcome names how a call ended: ok, or the error's name.
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(record.ErrorCode(err))
}
