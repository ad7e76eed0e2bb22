package memory

import "github.com/polyphony-memory/polyphony/memory/record"

// Check refuses a request that can be seen to be wrong without the file, so
// that a wrong first call does not make a workspace.
func Check(req record.Request) error {
	if err := req.Origin().Check(); err != nil {
		return err
	}
	switch r := req.(type) {
	case record.ProposeFact:
		_, err := checkProposal(r)
		return err
	case record.ProposePolicy:
		_, err := checkPolicy(r)
		return err
	case record.Remember:
		return checkRemember(r)
	case record.RecordObservation:
		return checkObservation(r)
	case record.UpdateNotes:
		return checkNotes(r)
	case record.MeetingPage:
		return CheckMeeting(r.CaptureMeeting)
	case record.ImportFacts:
		return checkImport(r)
	case record.OpenObligation:
		return checkOpen(r)
	case record.ClaimObligation:
		return checkClaim(r)
	case record.CommitObligation:
		return checkCommit(r)
	case record.FailObligation:
		return checkEnd(r.Caller, r.StepRef, r.Claim, r.Reason)
	case record.CancelObligation:
		return checkEnd(r.Caller, r.StepRef, r.Claim, r.Reason)
	case record.ObserveObligation:
		return r.CheckStep()
	case record.AppendEpisode:
		return checkEpisode(r)
	}
	return nil
}

// Creates reports whether a request may be the first of a workspace. The
// others speak of something that is there already.
func Creates(req record.Request) bool {
	switch req.(type) {
	case record.ProposeFact, record.ProposePolicy, record.Remember, record.RecordObservation, record.UpdateNotes, record.MeetingPage, record.ImportFacts,
		record.OpenObligation, record.AppendEpisode:
		return true
	}
	return false
}
