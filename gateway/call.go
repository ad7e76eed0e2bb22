package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
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

// End ends the span with whom the call was for, nobody when that was not let
// through, and how it ended.
func (s *Span) End(who record.Caller, err error) {
	s.span.SetAttributes(attribute.String("polyphony.workspace", who.Workspace), attribute.String("polyphony.agent", who.Agent), attribute.String("polyphony.outcome", Outcome(err)))
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

// Denied logs that what was called was refused for who calls, if it was. It says
// what the token says, not what the caller pretends.
func Denied(log *slog.Logger, what slog.Attr, id Identity, err error) {
	if record.ErrorCode(err) == record.Unauthenticated {
		log.Warn("denied", "reason", "identity", what, "token", id.Token, "workspace", id.Workspace, "agent", id.Agent, "error", err)
	}
}

// Recover, deferred, makes a panic of what was called an error with the text,
// and logs it with the message.
func Recover(log *slog.Logger, message string, what slog.Attr, who *record.Caller, err *error, text string) {
	if p := recover(); p != nil {
		log.Error(message, what, "workspace", who.Workspace, "agent", who.Agent, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = record.Errorf(record.Unavailable, "", "%s", text)
	}
}

// Failure returns the error that a caller is told: ours, or Unavailable with the
// text for any other. Its cause is logged with the message, and stays there.
func Failure(log *slog.Logger, message string, what slog.Attr, who record.Caller, err error, text string) *record.Error {
	var e *record.Error
	if !errors.As(err, &e) {
		e = record.Wrap(record.Unavailable, err, "%s", text)
	}
	if cause := e.Unwrap(); cause != nil {
		log.Warn(message, what, "workspace", who.Workspace, "agent", who.Agent, "workflow", workflows.IDOf(err), "code", string(e.Code), "cause", cause.Error())
	}
	return e
}
