package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// The activities, by name. Package activities has a method for each.
const (
	ActivityProposeFact       = "ProposeFact"
	ActivitySupersedeFact     = "SupersedeFact"
	ActivityRestoreFact       = "RestoreFact"
	ActivityProposePolicy     = "ProposePolicy"
	ActivitySupersedePolicy   = "SupersedePolicy"
	ActivityUpdateFact        = "UpdateFact"
	ActivityDeleteFact        = "DeleteFact"
	ActivityUpdatePolicy      = "UpdatePolicy"
	ActivityDeletePolicy      = "DeletePolicy"
	ActivitySetGrant          = "SetGrant"
	ActivityDeleteGrant       = "DeleteGrant"
	ActivityRemember          = "Remember"
	ActivityRecordObservation = "RecordObservation"
	ActivityUpdateNotes       = "UpdateNotes"
	ActivityResolveConflict   = "ResolveConflict"
	ActivityCaptureMeeting    = "CaptureMeetingPage"
	ActivityImportFacts       = "ImportFactsPage"
	ActivityConsolidate       = "ConsolidatePage"
	ActivityHarmonize         = "HarmonizePage"
	ActivityBackfill          = "BackfillPage"
	ActivityInstallModel      = "InstallModel"
	ActivityRemoveModel       = "RemoveModel"
	ActivityOpenObligation    = "OpenObligation"
	ActivityClaimObligation   = "ClaimObligation"
	ActivityCommitObligation  = "CommitObligation"
	ActivityFailObligation    = "FailObligation"
	ActivityCancelObligation  = "CancelObligation"
	ActivityObserveObligation = "ObserveObligation"
	ActivityAppendEpisode     = "AppendEpisode"
	ActivityAssemble          = "AssemblePreamble"
	ActivitySearch            = "SearchMemory"
	ActivityRead              = "ReadMemory"
	ActivityBackUp            = "BackUp"
	ActivityRestoreBackup     = "RestoreBackup"
	ActivityDoctor            = "Doctor"
	ActivityPruneLedger       = "PruneLedgerPage"
	ActivityListSuspicions    = "ListSuspicions"
	ActivityAskJudge          = "AskJudge"
	ActivityRecordJudgement   = "RecordJudgement"
)

// Queries, updates and signals.
const (
	// QueryProgress asks a maintenance run or an import how far it is.
	QueryProgress = "progress"
	// UpdatePage gives an import its next page.
	UpdatePage = "page"
	// UpdateBegin asks an import which page it wants next.
	UpdateBegin = "begin"
	// UpdateFinish ends an import after its last page.
	UpdateFinish = "finish"
	// SignalOffer gives a waiting CommitObligation a commit to make.
	SignalOffer = "offer"
	// SignalNews tells it that something it may wait for has changed.
	SignalNews = "news"
	// SignalSuspected tells a judge's run that there is a new suspected pair.
	SignalSuspected = "suspected"
)

// Search attributes by which an operator finds runs. They are stored in clear
// text, so they hold ids and names, never what a memory says.
var (
	AttributeWorkspace = temporal.NewSearchAttributeKeyKeyword("MemoryWorkspace")
	AttributeAgent     = temporal.NewSearchAttributeKeyKeyword("MemoryAgent")
	AttributeDomain    = temporal.NewSearchAttributeKeyKeyword("MemoryDomain")
	AttributeOutcome   = temporal.NewSearchAttributeKeyKeyword("MemoryOutcome")
)

// SearchAttributes returns ours with their types, for registering them.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	all := map[string]enumspb.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKeyKeyword{AttributeWorkspace, AttributeAgent, AttributeDomain, AttributeOutcome} {
		all[key.GetName()] = key.GetValueType()
	}
	return all
}

// Shard returns the shard, 0 to shards-1, that owns a workspace: FNV-1a of its
// id, 32 bits, modulo the shards.
func Shard(workspace string, shards int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(workspace))
	return int(h.Sum32() % uint32(max(1, shards)))
}

// ShardQueue returns the task queue of one shard.
func ShardQueue(shard int) string { return fmt.Sprintf("memory-%d", shard) }

// MaintenanceQueue returns the second task queue of one shard: maintenance,
// imports and changes of the model run there, a few at a time, so that calls
// that somebody waits for never stand behind them.
func MaintenanceQueue(shard int) string { return ShardQueue(shard) + "-maintenance" }

// TaskQueue returns the task queue that serves a workspace.
func TaskQueue(workspace string, shards int) string { return ShardQueue(Shard(workspace, shards)) }

// ID returns the id of the workflow that answers a call of kind in workspace
// under an idempotency key: the id is the key, so a second caller joins the
// first.
func ID(kind, workspace, key string) string { return kind + "/" + workspace + "/" + segment(key) }

// MeetingID returns the id of the workflow that captures one revision of a
// meeting.
func MeetingID(workspace, meeting string, revision int64) string {
	return fmt.Sprintf("%s/%s/%s/%d", record.KindCaptureMeeting, workspace, segment(meeting), revision)
}

// ObligationID returns the id of the workflow that waits for one obligation.
func ObligationID(workspace string, ref record.StepRef) string {
	return record.KindObligation + "/" + workspace + "/" + boundedSegment(ref.TaskID, record.MaxObligationKeyBytes) + "/" + ref.ObligationKey()
}

// MaintenanceID returns the id of a workspace's maintenance run of kind.
func MaintenanceID(kind, workspace string) string { return kind + "/" + workspace }

// ModelID returns the id of the runs that change the embedding model of the
// worker that serves a shard: one at a time.
func ModelID(shard int) string { return fmt.Sprintf("model/%d", shard) }

// ShardID returns the id of the run by which a shard shows that its worker
// answers.
func ShardID(shard int) string { return fmt.Sprintf("shard/%d", shard) }

// maxSegment keeps ids well below the 255 bytes that some of the engine's
// stores cap them at.
const maxSegment = record.MaxKeyBytes

// segment returns s when it can stand in an id as it is, else a hash of it: a
// meeting's id may be of any script and longer than an id may be.
func segment(s string) string { return boundedSegment(s, maxSegment) }

func boundedSegment(s string, limit int) string {
	plain := s != "" && len(s) <= limit
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] > ' ' && s[i] < 0x7f
	}
	if plain && !strings.HasPrefix(s, "h.") {
		return s
	}
	return digest(s)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "h." + hex.EncodeToString(sum[:16])
}

// LedgerKey returns the operation ledger's key of one step of a workflow. It
// comes from the workflow's id, so that retries, replays and resets of the run
// find the same row; maintenance, whose ids are used again, gives its run too.
// An id and step that are together longer than a key may be give a hash of both.
func LedgerKey(workflowID, step string) string {
	key := workflowID + "#" + step
	if len(key) > record.MaxKeyBytes {
		return digest(key)
	}
	return key
}
