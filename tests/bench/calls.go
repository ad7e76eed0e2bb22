package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
	"github.com/polyphony-memory/polyphony/workflows"
)

// actions are the events that Temporal Cloud counts as billable actions: a start,
// an activity or the marker of local ones, a timer, a signal, an update.
var actions = map[enumspb.EventType]bool{
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: true, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: true,
	enumspb.EVENT_TYPE_MARKER_RECORDED: true, enumspb.EVENT_TYPE_TIMER_STARTED: true,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: true, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: true,
}

// benchCalls makes each kind of call once on a workspace of 300 facts and reads
// what the engine keeps of it.
func benchCalls(ctx context.Context, dir string) error {
	return withWorker(ctx, filepath.Join(dir, "data"), func(t client.Client, c *workflows.Client) error { return tellCalls(ctx, t, c) })
}

func tellCalls(ctx context.Context, t client.Client, c *workflows.Client) error {
	const ws, facts = "calls", 300
	who := record.Caller{Workspace: ws, Agent: "agent-1", Role: "coder"}
	words := corpus.New(21)
	source := fmt.Sprintf("%064x", 1)
	if _, err := load.Import(ctx, c, who, source, words, facts); err != nil {
		return err
	}
	keyed := func(kind string) (record.Caller, string) {
		k := who
		k.Key = "calls-" + uuid.NewString()
		return k, workflows.ID(kind, ws, k.Key)
	}
	fmt.Println("| call | events | history bytes | actions |\n| --- | --- | --- | --- |")
	tell := func(name, id string, share int, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		events, bytes, billed, err := history(ctx, t, id)
		if err == nil {
			fmt.Printf("| %s | %.1f | %d | %.2f |\n", name, float64(events)/float64(share), bytes/share, float64(billed)/float64(share))
		}
		return err
	}
	proposal := words.Proposal(ws, facts, facts)
	caller, id := keyed(record.KindProposeFact)
	proposal.Caller = caller
	_, err := c.ProposeFact(ctx, proposal)
	if err := tell("propose", id, 1, err); err != nil {
		return err
	}
	caller, id = keyed(record.KindPreamble)
	_, err = c.AssemblePreamble(ctx, record.Dispatch{Caller: caller, Task: "Please look into " + proposal.Content})
	if err := tell("dispatch", id, 1, err); err != nil {
		return err
	}
	caller, id = keyed(record.KindRecordObservation)
	_, err = c.RecordObservation(ctx, record.RecordObservation{Caller: caller, Text: "Halfway through the move of the session store."})
	if err := tell("observe", id, 1, err); err != nil {
		return err
	}
	if err := tell("a fact of an import, pages of 100", workflows.ID(record.KindImportFacts, ws, source), facts, nil); err != nil {
		return err
	}
	_, err = c.ConsolidateMemory(ctx, record.Consolidate{Caller: who}, nil)
	if err := tell("consolidate", workflows.MaintenanceID(record.KindConsolidate, ws), 1, err); err != nil {
		return err
	}
	_, err = c.HarmonizeMemory(ctx, record.Harmonize{Caller: who}, nil)
	return tell("harmonize", workflows.MaintenanceID(record.KindHarmonize, ws), 1, err)
}

// history counts what the engine keeps of a run.
func history(ctx context.Context, t client.Client, id string) (events, bytes, billed int, err error) {
	for it := t.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			return 0, 0, 0, err
		}
		events++
		bytes += proto.Size(e)
		if actions[e.GetEventType()] {
			billed++
		}
	}
	return events, bytes, billed, nil
}
