package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// Activities is the interceptor of a Temporal worker that times activities,
// says on their spans for whom they are, and logs those that failed for another
// reason than a refusal, with workspace, agent and workflow id.
func (t *Telemetry) Activities() interceptor.WorkerInterceptor { return &workerInterceptor{t: t} }

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	t *Telemetry
}

func (w *workerInterceptor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &activityInterceptor{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, t: w.t}
}

type activityInterceptor struct {
	interceptor.ActivityInboundInterceptorBase
	t *Telemetry
}

func (a *activityInterceptor) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	began := time.Now()
	info := activity.GetInfo(ctx)
	name := info.ActivityType.Name
	var who record.Caller
	for _, arg := range in.Args {
		if r, ok := arg.(record.Request); ok {
			who = r.Origin()
		}
	}
	trace.SpanFromContext(ctx).SetAttributes(attribute.String("polyphony.workspace", who.Workspace), attribute.String("polyphony.agent", who.Agent))
	out, err := a.Next.ExecuteActivity(ctx, in)
	// The activity's error is Temporal's; its name is ours.
	named := workflows.FromTemporal(err)
	a.t.metrics.activities.Record(ctx, since(began), metric.WithAttributes(attribute.String("activity", name), attribute.String("outcome", outcome(named))))
	switch code := record.ErrorCode(named); code {
	case record.Unavailable, record.StoreCorrupt, record.StoreNewer:
		a.t.log.LogAttrs(ctx, slog.LevelError, "a call failed", slog.String("error", string(code)), slog.String("activity", name),
			slog.String("workspace", who.Workspace), slog.String("agent", who.Agent),
			slog.String("workflow", info.WorkflowExecution.ID), slog.String("run", info.WorkflowExecution.RunID), slog.Int("attempt", int(info.Attempt)))
	}
	return out, err
}
