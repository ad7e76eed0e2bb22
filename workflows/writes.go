package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// stepWrite is the step of workflows that do one thing.
const stepWrite = "write"

// ownKey is the ledger key of a workflow that does one thing.
func ownKey(ctx workflow.Context) string {
	return LedgerKey(workflow.GetInfo(ctx).WorkflowExecution.ID, stepWrite)
}

// ProposeFact adds a fact, or finds that it is known, refines or contradicts
// what is known.
func ProposeFact(ctx workflow.Context, in record.ProposeFact) (record.ProposeFactResult, error) {
	in.Key = ownKey(ctx)
	out, err := call[record.ProposeFactResult](ctx, ActivityProposeFact, in)
	if err != nil {
		return out, err
	}
	return out, outcome(ctx, string(out.Status))
}

// outcome lets an operator find runs by what became of them.
func outcome(ctx workflow.Context, value string) error {
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeOutcome.ValueSet(value))
}

// SupersedeFact retires one fact in favour of another.
func SupersedeFact(ctx workflow.Context, in record.SupersedeFact) (record.SupersedeFactResult, error) {
	in.Key = ownKey(ctx)
	return call[record.SupersedeFactResult](ctx, ActivitySupersedeFact, in)
}

// RestoreFact undoes a supersession or an archiving.
func RestoreFact(ctx workflow.Context, in record.RestoreFact) (record.RestoreFactResult, error) {
	in.Key = ownKey(ctx)
	return call[record.RestoreFactResult](ctx, ActivityRestoreFact, in)
}

// ProposePolicy adds a policy.
func ProposePolicy(ctx workflow.Context, in record.ProposePolicy) (record.PolicyResult, error) {
	in.Key = ownKey(ctx)
	return call[record.PolicyResult](ctx, ActivityProposePolicy, in)
}

// SupersedePolicy retires a policy, with or without a replacement.
func SupersedePolicy(ctx workflow.Context, in record.SupersedePolicy) (record.PolicyResult, error) {
	in.Key = ownKey(ctx)
	return call[record.PolicyResult](ctx, ActivitySupersedePolicy, in)
}

// UpdateFact is a person's edit of a fact.
func UpdateFact(ctx workflow.Context, in record.UpdateFact) (record.UpdateFactResult, error) {
	in.Key = ownKey(ctx)
	return call[record.UpdateFactResult](ctx, ActivityUpdateFact, in)
}

// DeleteFact removes a fact for good, on a person's word.
func DeleteFact(ctx workflow.Context, in record.DeleteFact) (record.DeleteFactResult, error) {
	in.Key = ownKey(ctx)
	return call[record.DeleteFactResult](ctx, ActivityDeleteFact, in)
}

// UpdatePolicy is a person's edit of a policy.
func UpdatePolicy(ctx workflow.Context, in record.UpdatePolicy) (record.UpdatePolicyResult, error) {
	in.Key = ownKey(ctx)
	return call[record.UpdatePolicyResult](ctx, ActivityUpdatePolicy, in)
}

// DeletePolicy removes a policy for good, on a person's word.
func DeletePolicy(ctx workflow.Context, in record.DeletePolicy) (record.DeletePolicyResult, error) {
	in.Key = ownKey(ctx)
	return call[record.DeletePolicyResult](ctx, ActivityDeletePolicy, in)
}

// DeleteGrant takes a role's grant in a domain back.
func DeleteGrant(ctx workflow.Context, in record.DeleteGrant) (record.SetGrantResult, error) {
	in.Key = ownKey(ctx)
	return call[record.SetGrantResult](ctx, ActivityDeleteGrant, in)
}

// SetGrant gives a role a level in a domain.
func SetGrant(ctx workflow.Context, in record.SetGrant) (record.SetGrantResult, error) {
	in.Key = ownKey(ctx)
	return call[record.SetGrantResult](ctx, ActivitySetGrant, in)
}

// Remember stores a session item.
func Remember(ctx workflow.Context, in record.Remember) (record.RememberResult, error) {
	in.Key = ownKey(ctx)
	return call[record.RememberResult](ctx, ActivityRemember, in)
}

// RecordObservation appends a line to the agent's notes.
func RecordObservation(ctx workflow.Context, in record.RecordObservation) (record.RecordObservationResult, error) {
	in.Key = ownKey(ctx)
	return call[record.RecordObservationResult](ctx, ActivityRecordObservation, in)
}

// UpdateNotes replaces the agent's page.
func UpdateNotes(ctx workflow.Context, in record.UpdateNotes) (record.UpdateNotesResult, error) {
	in.Key = ownKey(ctx)
	return call[record.UpdateNotesResult](ctx, ActivityUpdateNotes, in)
}

// ResolveConflict closes an open conflict row.
func ResolveConflict(ctx workflow.Context, in record.ResolveConflict) (record.ResolveConflictResult, error) {
	in.Key = ownKey(ctx)
	return call[record.ResolveConflictResult](ctx, ActivityResolveConflict, in)
}
