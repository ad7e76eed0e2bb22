package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// judgePage is how many pairs one list holds, judgeRun after how many a run
	// continues as new.
	judgePage = 20
	judgeRun  = 200
	// askTimeout bounds one question, askPatience all attempts at it with the
	// time that a stopped worker may be away.
	askTimeout  = 90 * time.Second
	askPatience = 24 * time.Hour
)

// JudgeInput is the input of JudgeConflicts; a caller sets only who it is.
type JudgeInput struct {
	record.Caller
	Report record.JudgeReport `json:"report"`
}

// JudgeConflicts asks the judge about the suspected pairs of a workspace, one
// after the other, until none is left. It follows proposals and is never waited
// for by one. A new suspicion wakes it with [SignalSuspected], so that none is
// missed between its last look and its end.
func JudgeConflicts(ctx workflow.Context, in JudgeInput) (record.JudgeReport, error) {
	woken := workflow.GetSignalChannel(ctx, SignalSuspected)
	for asked := 0; ; {
		for woken.ReceiveAsync(nil) {
			// What it tells of is on the next list.
		}
		list, err := call[record.Suspicions](ctx, ActivityListSuspicions, record.ListSuspicions{Caller: in.Caller, Limit: judgePage})
		if err != nil {
			return in.Report, err
		}
		for _, id := range list.ConflictIDs {
			if err := judgePair(ctx, in.Caller, id, &in.Report); err != nil {
				return in.Report, err
			}
			asked++
		}
		switch {
		case len(list.ConflictIDs) == 0 && woken.Len() == 0:
			return in.Report, nil
		case asked >= judgeRun || asked > 0 && workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return in.Report, workflow.NewContinueAsNewError(ctx, JudgeConflicts, in)
		}
	}
}

// judgePair asks about one pair and keeps the answer. A pair that somebody
// settled meanwhile is passed over.
func judgePair(ctx workflow.Context, caller record.Caller, id string, report *record.JudgeReport) error {
	asking := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: askTimeout, ScheduleToCloseTimeout: askPatience,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 4, MaximumInterval: time.Minute},
	})
	var judgement record.Judgement
	err := workflow.ExecuteActivity(asking, ActivityAskJudge, record.AskJudge{Caller: caller, ConflictID: id}).Get(ctx, &judgement)
	if err != nil {
		switch record.ErrorCode(FromTemporal(err)) {
		case record.NotFound, record.SupersedeInvalid:
			return nil
		}
		return failure(err)
	}
	in := record.RecordJudgement{Caller: caller, Judgement: judgement}
	in.Key = LedgerKey(workflow.GetInfo(ctx).WorkflowExecution.ID, id)
	out, err := call[record.RecordJudgementResult](ctx, ActivityRecordJudgement, in)
	switch record.ErrorCode(FromTemporal(err)) {
	case "":
	case record.NotFound: // deleted while the judge thought
		return nil
	default:
		return err
	}
	report.Asked++
	if judgement.Relation == "" {
		report.Unanswered++
	}
	if !out.Conflict.Open {
		report.Settled++
	}
	return nil
}
