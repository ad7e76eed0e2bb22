package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// MaxAfter bounds the steps that one obligation waits for.
	MaxAfter = 256
	// MaxObligationKeyBytes bounds an obligation's key, which stands in a
	// workflow's id beside its workspace and its task: together they stay under
	// the 255 bytes that some of the engine's stores cap ids at.
	MaxObligationKeyBytes = 80
	// DefaultLeaseSeconds is how long a claim holds when the claimer does not
	// say; MaxLeaseSeconds is the longest there is, one day.
	DefaultLeaseSeconds = 300
	MaxLeaseSeconds     = 24 * 3600
)

// ObligationState is where an obligation stands.
type ObligationState string

// The states of behaviour.md 11. The first two are open ends, the others
// final.
const (
	ObligationOpen      ObligationState = "open"
	ObligationClaimed   ObligationState = "claimed"
	ObligationDone      ObligationState = "done"
	ObligationFailed    ObligationState = "failed"
	ObligationCancelled ObligationState = "cancelled"
	ObligationExpired   ObligationState = "expired"
)

// Closed reports whether the state is final.
func (s ObligationState) Closed() bool { return s != ObligationOpen && s != ObligationClaimed }

// Obligation is one step that a task has committed to. Whether it was met is a
// matter of record, never of similarity.
type Obligation struct {
	ID        string `json:"id"`
	Workspace string `json:"workspace"`
	StepRef
	// Kind says what the step does, in the task's own words ("payment").
	Kind string `json:"kind,omitempty"`
	// Key is ObligationKey of task and step: what an outside system is given
	// as its idempotency key.
	Key   string          `json:"key"`
	State ObligationState `json:"state"`
	// After lists the steps of the same task that must be done first, sorted.
	After     []string `json:"after"`
	OpenedBy  string   `json:"opened_by"`
	CreatedAt Time     `json:"created_at"`
	// Deadline is when an obligation that is not closed expires; zero for never.
	Deadline Time `json:"deadline,omitzero"`
	// Claim numbers the latest claim, from 1; 0 when there was none. ClaimedBy,
	// ClaimedAt and LeaseUntil are that claim's, also after it ended.
	Claim      int64  `json:"claim,omitempty"`
	ClaimedBy  string `json:"claimed_by,omitempty"`
	ClaimedAt  Time   `json:"claimed_at,omitzero"`
	LeaseUntil Time   `json:"lease_until,omitzero"`
	// InDoubt says that a claim ended without its holder telling how: the
	// effect may have happened. Ask the outside system by Key before acting.
	InDoubt bool `json:"in_doubt,omitempty"`
	// ClosedBy and ClosedAt say who closed it and when; one that expired was
	// closed by nobody.
	ClosedBy string `json:"closed_by,omitempty"`
	ClosedAt Time   `json:"closed_at,omitzero"`
	// Result is what the commit recorded, up to 65,536 bytes.
	Result string `json:"result,omitempty"`
	// Reason says why it failed or was cancelled.
	Reason string `json:"reason,omitempty"`
}

// StepRef names one obligation of a workspace. Task and step are ids: they are
// compared byte for byte.
type StepRef struct {
	TaskID string `json:"task_id"`
	Step   string `json:"step"`
}

// ObligationKey is the key of the obligation.
func (r StepRef) ObligationKey() string { return ObligationKey(r.TaskID, r.Step) }

// CheckStep refuses a task or a step that is no id.
func (r StepRef) CheckStep() error {
	if err := CheckID("task_id", r.TaskID); err != nil {
		return err
	}
	return CheckID("step", r.Step)
}

// CheckID refuses a name that is empty or has white space at its ends, beside
// what CheckName refuses: two spellings of one id would be two obligations.
func CheckID(field, s string) error {
	if err := CheckName(field, s); err != nil {
		return err
	}
	if trimmed := strings.TrimSpace(s); trimmed == "" || trimmed != s {
		return Errorf(InvalidArgument, field, "an id is not empty and has no white space at its ends")
	}
	return nil
}

// ObligationKey makes the key of a task's step: task/step when both are plain
// ids, else a hash of them. It is printable ASCII of at most
// MaxObligationKeyBytes, no two pairs share one, and an outside system may be
// given it as an idempotency key; tasks that call the same system from several
// workspaces need ids of their own.
func ObligationKey(task, step string) string {
	if key := task + "/" + step; len(key) <= MaxObligationKeyBytes && plainID(task) && plainID(step) {
		return key
	}
	// The length tells where the task ends.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%s", len(task), task, step))
	return "h." + hex.EncodeToString(sum[:16])
}

func plainID(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

// OpenObligation is state.open: it commits a task to a step. The same step
// again finds the obligation, another definition of it is refused.
type OpenObligation struct {
	Caller
	StepRef
	Kind string `json:"kind,omitempty"`
	// After lists at most 256 steps of the same task that must be done first.
	// They may be opened later.
	After []string `json:"after,omitempty"`
	// Deadline, in the future of the store's clock, is when the obligation
	// expires.
	Deadline Time `json:"deadline,omitzero"`
}

// ClaimObligation is state.claim: it takes an obligation for one agent until
// the lease ends, so that only that agent acts.
type ClaimObligation struct {
	Caller
	StepRef
	// LeaseSeconds is 1 to 86,400; 0 is 300.
	LeaseSeconds int64 `json:"lease_seconds,omitempty"`
	// Claim, when not 0, is the caller's own claim, whose lease begins anew.
	Claim int64 `json:"claim,omitempty"`
}

// CommitObligation is state.commit: it records that the step is done, and its
// result.
type CommitObligation struct {
	Caller
	StepRef
	// Claim is the number of the claim under which the caller acted. Without it
	// the claim must be the calling agent's, or the obligation unclaimed.
	Claim  int64  `json:"claim,omitempty"`
	Result string `json:"result,omitempty"`
}

// CheckCommit refuses a commit that is wrong in itself.
func (c CommitObligation) CheckCommit() error {
	if err := c.CheckStep(); err != nil {
		return err
	}
	if err := CheckClaim(c.Claim); err != nil {
		return err
	}
	return CheckText("result", c.Result, MaxContentBytes)
}

// CheckClaim refuses a negative claim number.
func CheckClaim(claim int64) error {
	if claim < 0 {
		return Errorf(InvalidArgument, "claim", "a claim's number is 1 or more")
	}
	return nil
}

// FailObligation says that the step was tried and cannot be done.
type FailObligation struct {
	Caller
	StepRef
	// Claim is as that of CommitObligation.
	Claim  int64  `json:"claim,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CancelObligation says that the step is no longer wanted. It cannot take an
// obligation from under a claim whose lease lasts.
type CancelObligation struct {
	Caller
	StepRef
	// Claim is as that of CommitObligation.
	Claim  int64  `json:"claim,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ObligationOutcome is what a call did to an obligation, or found.
type ObligationOutcome string

// The outcomes. Held and closed mean that the call changed nothing: another's
// claim stands, or the obligation was closed before; the obligation says by
// whom, and with which result.
const (
	OutcomeOpened    ObligationOutcome = "opened"
	OutcomeExists    ObligationOutcome = "exists"
	OutcomeClaimed   ObligationOutcome = "claimed"
	OutcomeExtended  ObligationOutcome = "extended"
	OutcomeHeld      ObligationOutcome = "held"
	OutcomeCommitted ObligationOutcome = "committed"
	OutcomeFailed    ObligationOutcome = "failed"
	OutcomeCancelled ObligationOutcome = "cancelled"
	OutcomeClosed    ObligationOutcome = "closed"
)

// Doubt is an earlier claim whose holder never told how it ended.
type Doubt struct {
	// Key is what the holder gave the outside system, if it acted.
	Key        string `json:"key"`
	Claim      int64  `json:"claim"`
	ClaimedBy  string `json:"claimed_by"`
	ClaimedAt  Time   `json:"claimed_at"`
	LeaseUntil Time   `json:"lease_until"`
}

// ObligationResult is the answer of a write to an obligation, which it shows as
// it stands afterwards.
type ObligationResult struct {
	Receipt
	Outcome    ObligationOutcome `json:"outcome"`
	Obligation Obligation        `json:"obligation"`
	// Doubt is set for a claim that follows one whose holder never told how it
	// ended: settle it, by asking the outside system for Key, before acting.
	Doubt *Doubt `json:"doubt,omitempty"`
	// Awaited lists the steps of the task whose waiting runs have something new
	// to see. It is between the store and the workflow; callers get none.
	Awaited []string `json:"awaited,omitempty"`
}

// ObserveObligation asks how an obligation stands, for a run that waits on it:
// a deadline that has passed is written down, and so is that somebody waits.
type ObserveObligation struct {
	Caller
	StepRef
}

// Observed is an obligation and what it waits for.
type Observed struct {
	Receipt
	Obligation Obligation `json:"obligation"`
	// CommitHash is the request hash of the commit that closed it, by which a
	// caller knows its own; empty when it was not committed.
	CommitHash string `json:"commit_hash,omitempty"`
	// Missing lists the steps before it that are not done, and Never those of
	// them that no longer can be.
	Missing []string `json:"missing"`
	Never   []string `json:"never"`
	// Due is the next deadline that may change any of it; zero for none.
	Due Time `json:"due,omitzero"`
	// Awaited is as that of ObligationResult.
	Awaited []string `json:"awaited,omitempty"`
}

// Episode is something that was said in a task: large, lossy, searchable, and
// without authority.
type Episode struct {
	ID        string `json:"id"`
	Workspace string `json:"workspace"`
	TaskID    string `json:"task_id"`
	// Role is that of the speaker in the conversation: user, agent, tool or any
	// other name.
	Role  string `json:"role"`
	Agent string `json:"agent,omitempty"`
	// ContentRef identifies the content: "sha256:" and its hex SHA-256. The same
	// words are stored once.
	ContentRef string `json:"content_ref"`
	Content    string `json:"content"`
	CreatedAt  Time   `json:"created_at"`
}

// AppendEpisode is state.append_episode.
type AppendEpisode struct {
	Caller
	TaskID string `json:"task_id"`
	// EpisodeRole is the role of who spoke; empty is agent.
	EpisodeRole string `json:"episode_role,omitempty"`
	// Content is 1 to 65,536 bytes.
	Content string `json:"content"`
}

// AppendEpisodeResult names the episode.
type AppendEpisodeResult struct {
	Receipt
	EpisodeID  string `json:"episode_id"`
	ContentRef string `json:"content_ref"`
}

// Standing is how a statement stands against the record.
type Standing string

// The standings. Unknown means that the record is silent.
const (
	StandingCurrent      Standing = "current"
	StandingStale        Standing = "stale"
	StandingContradicted Standing = "contradicted"
	StandingUnknown      Standing = "unknown"
)

// CheckedStatement is one statement of the caller's held against the record.
type CheckedStatement struct {
	Statement string   `json:"statement"`
	Standing  Standing `json:"standing"`
	// FactID is the version of the record that the statement repeats, current or
	// superseded; empty when it repeats none.
	FactID string `json:"fact_id,omitempty"`
	// Now is what the record says now on the matter; none when a stale
	// statement was withdrawn without another taking its place.
	Now []RecordedNow `json:"now"`
	// Left counts those of Now that were left out because the answer would have
	// been too large to travel.
	Left int `json:"left,omitempty"`
}

// RecordedNow is a current fact that bears on a statement.
type RecordedNow struct {
	FactID  string `json:"fact_id"`
	Domain  string `json:"domain"`
	Topic   string `json:"topic"`
	Content string `json:"content"`
	// Reason says how it bears on the statement, for people.
	Reason string `json:"reason,omitempty"`
}
