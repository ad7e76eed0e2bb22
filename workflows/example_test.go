package workflows_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// A program finds the worker of its data folder, proposes a fact under a key of
// its own, and gets the text for an agent's next task.
func ExampleClient() {
	ctx := context.Background()
	data, err := locate.DataFolder("", os.LookupEnv)
	if err != nil {
		slog.Error("no data folder", "error", err)
		return
	}
	connection, shards, err := locate.Connect(ctx, data, os.LookupEnv, slog.Default())
	if err != nil {
		slog.Error("no worker", "error", err)
		return
	}
	defer connection.Close()
	client := workflows.NewClient(connection, shards)

	caller := record.Caller{Workspace: "demo", Agent: "scout", Key: "run-7/step-2"}
	fact, err := client.ProposeFact(ctx, record.ProposeFact{
		Caller: caller, Domain: "infra", Topic: "ports", Content: "The gateway listens on port 8080",
	})
	if record.ErrorCode(err) == record.IdempotencyKeyReused {
		slog.Error("the step asked for something else before")
		return
	}
	fmt.Println(fact.Status, fact.FactID)

	caller.Key = ""
	preamble, err := client.AssemblePreamble(ctx, record.Dispatch{Caller: caller, Task: "Which port does the gateway use?"})
	if err == nil {
		fmt.Println(preamble.Text)
	}
}

// An agent takes a step, acts, and commits what came of it. When it is told of
// a doubt it asks the outside system before it acts; place and find stand for
// that system.
func ExampleClient_StateClaim() {
	var client *workflows.Client
	var place, find func(key string) (receipt string, err error)
	act := func(ctx context.Context) (string, error) {
		me := record.Caller{Workspace: "shop", Agent: "scout"}
		step := record.StepRef{TaskID: "order-7", Step: "pay"}
		claim, err := client.StateClaim(ctx, record.ClaimObligation{Caller: me, StepRef: step, LeaseSeconds: 60})
		if err != nil {
			return "", err
		}
		if claim.Outcome == record.OutcomeHeld || claim.Outcome == record.OutcomeClosed {
			done, err := client.AwaitObligation(ctx, me, step)
			return done.Obligation.Result, err
		}
		receipt := ""
		if claim.Doubt != nil {
			if receipt, err = find(claim.Doubt.Key); err != nil {
				return "", err
			}
		}
		if receipt == "" {
			if receipt, err = place(claim.Obligation.Key); err != nil {
				return "", err
			}
		}
		done, err := client.StateCommit(ctx, record.CommitObligation{Caller: me, StepRef: step, Claim: claim.Obligation.Claim, Result: receipt})
		return done.Obligation.Result, err
	}
	_ = act
}
