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
