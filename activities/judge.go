package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"

	"github.com/polyphony-memory/polyphony/activities/judge"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// Judge holds the activities that ask a language model about suspected pairs.
type Judge struct {
	Workspaces *memory.Workspaces
	// Client is nil when no judge is configured: then nobody is asked.
	Client *judge.Client
}

// judgePatience is after how many attempts a judge that does not answer is
// given up on.
const judgePatience = 3

// ListSuspicions runs [memory.Store.Suspicions]. Without a judge there is
// nothing to do.
func (a *Judge) ListSuspicions(ctx context.Context, in record.ListSuspicions) (record.Suspicions, error) {
	none := record.Suspicions{ConflictIDs: []string{}}
	if a.Client == nil {
		return none, nil
	}
	return read(ctx, a.Workspaces, in.Caller, none, func(s *memory.Store) (record.Suspicions, error) { return s.Suspicions(ctx, in) })
}

// AskJudge reads a pair, lets go of the file, and asks. A pair with too little
// in common is not asked about, and an answer that cannot be used is a
// judgement without a relation. Only a judge that cannot be reached is an
// error, and that not for ever.
func (a *Judge) AskJudge(ctx context.Context, in record.AskJudge) (record.Judgement, error) {
	out := record.Judgement{ConflictID: in.ConflictID}
	if a.Client == nil {
		out.Words = "no judge is configured any more"
		return out, nil
	}
	out.Judge = a.Client.Model()
	pair, err := read(ctx, a.Workspaces, in.Caller, memory.Suspicion{}, func(s *memory.Store) (memory.Suspicion, error) { return s.Suspicion(ctx, in.ConflictID) })
	if err != nil {
		return out, err
	}
	if !pair.Alike {
		out.Words = "not asked: the statements have too little in common"
		return out, nil
	}
	answer, err := a.Client.Ask(ctx, judge.Question{
		ID: in.ConflictID, Domain: pair.New.Domain, Topic: pair.New.Topic, Older: pair.Old.Content, Newer: pair.New.Content,
	})
	var unusable *judge.UnusableError
	switch {
	case err == nil:
		out.Relation, out.Words = answer.Relation, answer.Reason
	case errors.As(err, &unusable):
		out.Words = unusable.Error()
	case activity.GetInfo(ctx).Attempt >= judgePatience:
		activity.GetLogger(ctx).Warn("the judge does not answer", "cause", err.Error())
		out.Words = "no answer in time"
	default:
		return out, applicationError(ctx, record.Wrap(record.Unavailable, err, "the judge does not answer"))
	}
	return out, nil
}
