package workflows

import "go.temporal.io/sdk/worker"

// Register adds every workflow to a worker or a replayer.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflow(ProposeFact)
	r.RegisterWorkflow(SupersedeFact)
	r.RegisterWorkflow(RestoreFact)
	r.RegisterWorkflow(ProposePolicy)
	r.RegisterWorkflow(SupersedePolicy)
	r.RegisterWorkflow(SetGrant)
	r.RegisterWorkflow(Remember)
	r.RegisterWorkflow(RecordObservation)
	r.RegisterWorkflow(UpdateNotes)
	r.RegisterWorkflow(ResolveConflict)
	r.RegisterWorkflow(AssemblePreamble)
	r.RegisterWorkflow(SearchMemory)
	r.RegisterWorkflow(ReadMemory)
	r.RegisterWorkflow(CaptureMeetingDecisions)
	r.RegisterWorkflow(ConsolidateMemory)
	r.RegisterWorkflow(HarmonizeMemory)
	r.RegisterWorkflow(ImportFacts)
	r.RegisterWorkflow(BackfillEmbeddings)
	r.RegisterWorkflow(InstallModel)
	r.RegisterWorkflow(RemoveModel)
	r.RegisterWorkflow(StateOpen)
	r.RegisterWorkflow(StateClaim)
	r.RegisterWorkflow(StateCommit)
	r.RegisterWorkflow(StateFail)
	r.RegisterWorkflow(StateCancel)
	r.RegisterWorkflow(CommitObligation)
	r.RegisterWorkflow(AppendEpisode)
}
