package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// callTimeout bounds one attempt of a store call, which takes milliseconds
	// unless another process holds the file.
	callTimeout = 20 * time.Second
	// callPatience is how long a store call is retried before the workflow
	// gives up and says Unavailable: long enough to mend a full disk.
	callPatience = 10 * time.Minute
	// pageTimeout and pageHeartbeat bound one page of maintenance.
	pageTimeout   = 5 * time.Minute
	pageHeartbeat = 15 * time.Second
)

// retry is the retry policy of every store call. What a retry cannot mend is a
// non-retryable error at its source; a payload over the limit is one too, and
// only the SDK knows.
func retry() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second,
		NonRetryableErrorTypes: []string{"payloadSizeError"},
	}
}

// call runs a store call of a few milliseconds as a local activity.
func call[Out any](ctx workflow.Context, activity string, in any) (Out, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: callTimeout, ScheduleToCloseTimeout: callPatience, RetryPolicy: retry(),
	})
	var out Out
	err := workflow.ExecuteLocalActivity(ctx, activity, in).Get(ctx, &out)
	return out, failure(err)
}

// page runs one page of maintenance as an activity with a heartbeat.
func page[Out any](ctx workflow.Context, activity string, in any) (Out, error) {
	return beating[Out](ctx, activity, in, pageTimeout, 0)
}

// beating runs an activity with a heartbeat. Each attempt is bounded by the
// timeout; 0 attempts are as many as it takes.
func beating[Out any](ctx workflow.Context, activity string, in any, timeout time.Duration, attempts int32) (Out, error) {
	policy := retry()
	policy.MaximumAttempts = attempts
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout, HeartbeatTimeout: pageHeartbeat, RetryPolicy: policy,
	})
	var out Out
	err := workflow.ExecuteActivity(ctx, activity, in).Get(ctx, &out)
	return out, failure(err)
}

// failure turns an activity's error into the workflow's: the same name and
// details, without the layers between. A refusal is an expected outcome, so it
// is marked benign.
func failure(err error) error {
	if err == nil || temporal.IsCanceledError(err) {
		return err
	}
	var own *record.Error
	if errors.As(err, &own) {
		return ApplicationError(own, true)
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		e := record.Error{Code: record.Code(app.Type()), Message: app.Message()}
		if app.HasDetails() {
			// Details of another shape leave the name and message standing.
			_ = app.Details(&e)
		}
		if !e.Code.Known() {
			e.Code = record.Unavailable
		}
		return ApplicationError(&e, true)
	}
	return ApplicationError(record.Errorf(record.Unavailable, "", "the store did not answer in time"), true)
}

// ApplicationError makes the Temporal error of one of ours: its type is the
// error's name, its details the error itself. final forbids a retry whatever
// the error's kind.
func ApplicationError(e *record.Error, final bool) error {
	category := temporal.ApplicationErrorCategoryBenign
	if e.Code == record.StoreCorrupt || e.Code == record.Unavailable {
		category = temporal.ApplicationErrorCategoryUnspecified
	}
	return temporal.NewApplicationErrorWithOptions(e.Message, string(e.Code), temporal.ApplicationErrorOptions{
		NonRetryable: final || !e.Code.Retryable(), Category: category, Details: []any{*e},
	})
}
