package orders

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// Queue is the task queue of the agents.
const Queue = "orders"

// Order is one task.
type Order struct {
	Workspace string `json:"workspace"`
	Task      string `json:"task"`
	// LeaseSeconds is how long a claim holds: longer than an agent takes to act.
	LeaseSeconds int64 `json:"lease_seconds"`
}

// Work is one step of an order.
type Work struct {
	Order
	Step string `json:"step"`
	// Outside says that the step has an effect on the shop.
	Outside bool `json:"outside"`
}

// plan is the task: each step comes after the one before it.
func plan() []Work {
	return []Work{{Step: "quote"}, {Step: "reserve", Outside: true}, {Step: "pay", Outside: true}, {Step: "ship", Outside: true}, {Step: "thank"}}
}

// Fulfil opens the order's steps and does them one after the other. What was
// done is not in this workflow but in the record: it may be started again, from
// anywhere, and finds the steps as they stand.
func Fulfil(ctx workflow.Context, in Order) ([]string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 2 * time.Second},
	})
	var agent *Agent
	if err := workflow.ExecuteActivity(ctx, agent.Open, in).Get(ctx, nil); err != nil {
		return nil, err
	}
	var results []string
	for _, work := range plan() {
		work.Order = in
		var result string
		if err := workflow.ExecuteActivity(ctx, agent.Do, work).Get(ctx, &result); err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// Agent does the work. Every attempt is an agent of its own, as it would be on
// another machine.
type Agent struct {
	State *workflows.Client
	Shop  Counter
	// Asks says whether an agent that is told of a doubt asks the shop before it
	// acts. One that does not relies on the shop to honour the key.
	Asks bool
	// Dies, when it returns true, ends an agent right after it acted, before it
	// told anybody.
	Dies func(step string, attempt int32) bool
}

// Open commits the task to its steps. Twice is once.
func (a *Agent) Open(ctx context.Context, in Order) error {
	var after []string
	for _, work := range plan() {
		_, err := a.State.StateOpen(ctx, record.OpenObligation{
			Caller: record.Caller{Workspace: in.Workspace, Agent: "planner"}, StepRef: record.StepRef{TaskID: in.Task, Step: work.Step}, After: after,
		})
		if err != nil {
			return err
		}
		after = []string{work.Step}
	}
	return nil
}

// Do claims a step, acts, and commits what came of it.
func (a *Agent) Do(ctx context.Context, in Work) (string, error) {
	attempt := activity.GetInfo(ctx).Attempt
	me := record.Caller{Workspace: in.Workspace, Agent: fmt.Sprintf("agent-%d", attempt)}
	step := record.StepRef{TaskID: in.Task, Step: in.Step}
	if !in.Outside {
		// Nothing can be done twice, so nothing needs to be claimed.
		out, err := a.State.CommitObligation(ctx, record.CommitObligation{Caller: me, StepRef: step, Result: in.Step + " is done"})
		return out.Obligation.Result, err
	}

	// Claim: from here on, and until the lease ends, nobody else acts.
	claim, err := a.State.StateClaim(ctx, record.ClaimObligation{Caller: me, StepRef: step, LeaseSeconds: in.LeaseSeconds})
	if err != nil {
		return "", err
	}
	switch claim.Outcome {
	case record.OutcomeClosed:
		return claim.Obligation.Result, nil
	case record.OutcomeHeld:
		return "", temporal.NewApplicationErrorWithOptions("another agent has the step", "Held", temporal.ApplicationErrorOptions{
			NextRetryDelay: max(time.Until(claim.Obligation.LeaseUntil.Time), 0) + 100*time.Millisecond,
		})
	}

	// Act, once. A doubt says that an agent before may have done so: the shop
	// knows, by the key.
	var done Effect
	if claim.Doubt != nil && a.Asks {
		known, err := a.Shop.Under(ctx, claim.Doubt.Key)
		if err != nil {
			return "", err
		}
		if len(known) > 0 {
			done = known[0]
		}
	}
	if done.ID == "" {
		if done, err = a.Shop.Do(ctx, claim.Obligation.Key, in.Step); err != nil {
			return "", err
		}
	}
	if a.Dies(in.Step, attempt) {
		return "", fmt.Errorf("the agent died after it acted")
	}

	// Commit: what was done is on record, for everybody.
	out, err := a.State.StateCommit(ctx, record.CommitObligation{Caller: me, StepRef: step, Claim: claim.Obligation.Claim, Result: done.ID})
	if err != nil {
		return "", err
	}
	if out.Outcome == record.OutcomeHeld {
		return "", fmt.Errorf("the lease ended meanwhile and %s took over", out.Obligation.ClaimedBy)
	}
	return out.Obligation.Result, nil
}
