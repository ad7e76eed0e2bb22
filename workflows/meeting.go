package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// meetingPage is how many decisions one transaction takes: a page holds the
// file's writer for some tens of milliseconds.
const meetingPage = 100

// CaptureMeetingDecisions takes one revision of a meeting's decisions, page by
// page, and withdraws what the revision no longer holds. The meeting's id and
// revision are the idempotency key; in.Key carries the request's hash, which
// comes back as the receipt, so that a caller can tell another capture under
// the same revision from its own.
func CaptureMeetingDecisions(ctx workflow.Context, in record.CaptureMeeting) (record.MeetingReport, error) {
	total := record.MeetingReport{MeetingID: in.MeetingID, Revision: in.Revision, Failed: []record.ItemError{}, FactIDs: []string{}}
	if err := in.CheckSize(); err != nil {
		return total, failure(err)
	}
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	decisions := in.Decisions
	for first := 0; ; first += meetingPage {
		part := record.MeetingPage{CaptureMeeting: in, First: first}
		part.Decisions = decisions[first:min(first+meetingPage, len(decisions))]
		part.Last = first+meetingPage >= len(decisions)
		part.Key = LedgerKey(id, fmt.Sprintf("page-%d", first/meetingPage))
		report, err := call[record.MeetingReport](ctx, ActivityCaptureMeeting, part)
		if err != nil {
			return total, err
		}
		total.Outdated = report.Outdated
		total.Added += report.Added
		total.ReMentioned += report.ReMentioned
		total.Withdrawn += report.Withdrawn
		total.Failed = append(total.Failed, report.Failed...)
		total.FactIDs = report.FactIDs
		if part.Last || report.Outdated {
			total.RequestHash = in.Key
			return total, nil
		}
	}
}
