package record

// The kinds of calls. A kind names the call in the operation ledger, starts
// its workflow's id, and goes into its request hash.
const (
	KindProposeFact       = "propose-fact"
	KindSupersedeFact     = "supersede-fact"
	KindRestoreFact       = "restore-fact"
	KindProposePolicy     = "propose-policy"
	KindSupersedePolicy   = "supersede-policy"
	KindSetGrant          = "set-grant"
	KindRemember          = "remember"
	KindRecordObservation = "record-observation"
	KindUpdateNotes       = "update-notes"
	KindResolveConflict   = "resolve-conflict"
	KindCaptureMeeting    = "meeting"
	KindImportFacts       = "import"
	KindConsolidate       = "consolidate"
	KindHarmonize         = "harmonize"
	KindBackfill          = "backfill"
	KindInstallModel      = "install-model"
	KindRemoveModel       = "remove-model"
	KindOpenObligation    = "state-open"
	KindClaimObligation   = "state-claim"
	KindCommitObligation  = "state-commit"
	KindFailObligation    = "state-fail"
	KindCancelObligation  = "state-cancel"
	KindObserveObligation = "state-observe"
	KindAppendEpisode     = "append-episode"
	KindObligation        = "obligation"
	KindPreamble          = "preamble"
	KindSearch            = "search"
	KindRead              = "read"
)

// The steps of a maintenance run, in order.
const (
	PhaseExpireItems = "expire-items"
	PhaseExpireFacts = "expire-facts"
	PhasePromote     = "promote"
	PhaseMerge       = "merge"
	PhaseArchive     = "archive"
	// PhaseBeliefs and PhasePrune are those of a harmonization.
	PhaseBeliefs = "beliefs"
	PhasePrune   = "prune"
	// PhaseFinish ends either: it notes when the run was.
	PhaseFinish = "finish"
)

// ConsolidationPhases returns the phases of a consolidation, in order.
func ConsolidationPhases() []string {
	return []string{PhaseExpireItems, PhaseExpireFacts, PhasePromote, PhaseMerge, PhaseArchive, PhaseFinish}
}

// HarmonizationPhases returns the phases of a harmonization, in order.
func HarmonizationPhases() []string { return []string{PhaseBeliefs, PhasePrune, PhaseFinish} }
