package workflows_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// bar is a store of suspected pairs and a judge, by answer.
type bar struct {
	waiting  []string
	answers  map[string]string // relation by pair; "gone" for one that is settled
	judged   []string
	onRecord func(id string)
}

func (b *bar) register(env *testsuite.TestWorkflowEnvironment) {
	name := func(n string) activity.RegisterOptions { return activity.RegisterOptions{Name: n} }
	env.RegisterActivityWithOptions(func(_ context.Context, in record.ListSuspicions) (record.Suspicions, error) {
		return record.Suspicions{ConflictIDs: slices.Clone(b.waiting[:min(in.Limit, len(b.waiting))])}, nil
	}, name(workflows.ActivityListSuspicions))
	env.RegisterActivityWithOptions(func(_ context.Context, in record.AskJudge) (record.Judgement, error) {
		if b.answers[in.ConflictID] == "gone" {
			b.waiting = slices.DeleteFunc(b.waiting, func(id string) bool { return id == in.ConflictID })
			return record.Judgement{}, workflows.ApplicationError(record.Errorf(record.SupersedeInvalid, "conflict_id", "settled"), true)
		}
		return record.Judgement{ConflictID: in.ConflictID, Relation: b.answers[in.ConflictID]}, nil
	}, name(workflows.ActivityAskJudge))
	env.RegisterActivityWithOptions(func(_ context.Context, in record.RecordJudgement) (record.RecordJudgementResult, error) {
		b.waiting = slices.DeleteFunc(b.waiting, func(id string) bool { return id == in.ConflictID })
		b.judged = append(b.judged, in.ConflictID)
		if b.onRecord != nil {
			b.onRecord(in.ConflictID)
		}
		return record.RecordJudgementResult{Conflict: record.Conflict{ID: in.ConflictID, Open: in.Relation != "contradiction" && in.Relation != "compatible"}}, nil
	}, name(workflows.ActivityRecordJudgement))
}

func judgeEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(workflows.JudgeConflicts)
	return env
}

func TestJudgeConflicts(t *testing.T) {
	t.Parallel()
	env := judgeEnvironment()
	b := &bar{waiting: []string{"a", "b", "c", "d"}, answers: map[string]string{"a": "contradiction", "b": "", "c": "gone", "d": "compatible", "e": "duplicate"}}
	b.onRecord = func(id string) {
		if id == "d" { // a proposal opens another pair while the last is judged
			b.waiting = append(b.waiting, "e")
			env.SignalWorkflow(workflows.SignalSuspected, nil)
		}
	}
	b.register(env)
	env.ExecuteWorkflow(workflows.JudgeConflicts, workflows.JudgeInput{Caller: record.Caller{Workspace: "w"}})
	var got record.JudgeReport
	if err := env.GetWorkflowResult(&got); err != nil {
		t.Fatal(err)
	}
	if want := (record.JudgeReport{Asked: 4, Settled: 2, Unanswered: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if want := []string{"a", "b", "d", "e"}; !slices.Equal(b.judged, want) {
		t.Errorf("judged %v, want %v", b.judged, want)
	}
}

func TestJudgeConflicts_continuesAsNew(t *testing.T) {
	t.Parallel()
	env := judgeEnvironment()
	b := &bar{answers: map[string]string{}}
	for n := range 450 {
		b.waiting = append(b.waiting, fmt.Sprintf("%03d", n))
	}
	b.register(env)
	env.ExecuteWorkflow(workflows.JudgeConflicts, workflows.JudgeInput{Caller: record.Caller{Workspace: "w"}})
	if err := env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
		t.Fatalf("%v, want that it continues as new", err)
	}
	if len(b.judged) != 200 {
		t.Errorf("%d judged in one run, want 200", len(b.judged))
	}
}
