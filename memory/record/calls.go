package record

import "slices"

// Caller says who calls and where; every request carries one.
type Caller struct {
	// Workspace is 1 to 64 of a-z 0-9 . _ -, starting with a letter or digit.
	Workspace string `json:"workspace"`
	Agent     string `json:"agent,omitempty"`
	Role      string `json:"role,omitempty"`
	// Repo scopes the call's domain to one repository, and ranks that
	// repository's facts and policies first in reads.
	Repo string `json:"repo,omitempty"`
	// Key is the idempotency key: the same key and request give the stored
	// result again, the same key with another request IdempotencyKeyReused.
	// Empty: the client makes one, so that its own retries are safe.
	Key string `json:"key,omitempty"`
}

// Receipt is what every stored result carries.
type Receipt struct {
	// RequestHash identifies the request that the result answers (hex).
	RequestHash string `json:"request_hash,omitempty"`
}

// Hash returns the request hash.
func (r Receipt) Hash() string { return r.RequestHash }

// Stamp sets the request hash.
func (r *Receipt) Stamp(hash string) { r.RequestHash = hash }

// ProposeFact asks to add a fact; conflict detection decides what becomes of
// it.
type ProposeFact struct {
	Caller
	Domain  string `json:"domain"`
	Topic   string `json:"topic"`
	Content string `json:"content"`
	// Veracity defaults to inferred.
	Veracity string `json:"veracity,omitempty"`
	// Confidence is 0 to 1; without one the veracity's weight.
	Confidence *float64 `json:"confidence,omitempty"`
	// MemoryType is classified from the content when empty.
	MemoryType           string   `json:"memory_type,omitempty"`
	ValidUntil           Time     `json:"valid_until,omitzero"`
	SourceObservationIDs []string `json:"source_observation_ids,omitempty"`
	// OccurredAt dates an imported statement; zero is now.
	OccurredAt Time `json:"occurred_at,omitzero"`
	// DryRun reports the outcome and writes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// ConflictRef is one conflict row a write made or touched.
type ConflictRef struct {
	ID     string       `json:"id"`
	Kind   ConflictKind `json:"kind"`
	Winner string       `json:"winner,omitempty"`
	Loser  string       `json:"loser,omitempty"`
	// Other is the fact that was already there.
	Other  string `json:"other,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ProposeFactResult is the outcome of a proposal.
type ProposeFactResult struct {
	Receipt
	Status       ProposalStatus `json:"status"`
	FactID       string         `json:"fact_id"`
	Domain       string         `json:"domain"`
	Topic        string         `json:"topic"`
	MemoryType   MemoryType     `json:"memory_type"`
	Confidence   float64        `json:"confidence"`
	MentionCount int64          `json:"mention_count"`
	Conflicts    []ConflictRef  `json:"conflicts"`
	DryRun       bool           `json:"dry_run,omitempty"`
}

// SupersedeFact says that New takes the place of Old.
type SupersedeFact struct {
	Caller
	Old    string `json:"old"`
	New    string `json:"new"`
	Reason string `json:"reason,omitempty"`
}

// SupersedeFactResult names the pair and its conflict row.
type SupersedeFactResult struct {
	Receipt
	Old        string `json:"old"`
	New        string `json:"new"`
	ConflictID string `json:"conflict_id"`
}

// RestoreFact makes a superseded or archived fact current again.
type RestoreFact struct {
	Caller
	FactID string `json:"fact_id"`
	Reason string `json:"reason,omitempty"`
}

// RestoreFactResult is the fact after its restoration.
type RestoreFactResult struct {
	Receipt
	FactID string `json:"fact_id"`
	// Was is what was undone: "superseded" or "archived".
	Was string `json:"was"`
	// ConflictIDs are the rows that were reopened by it.
	ConflictIDs []string `json:"conflict_ids"`
}

// UpdateFact is a person's edit of a current fact. What is nil stays as it is;
// the version before is kept, and no counter is reset.
type UpdateFact struct {
	Caller
	FactID string `json:"fact_id"`
	// ExpectedVersion must be the fact's version.
	ExpectedVersion int64    `json:"expected_version"`
	Topic           *string  `json:"topic,omitempty"`
	Content         *string  `json:"content,omitempty"`
	Confidence      *float64 `json:"confidence,omitempty"`
	MemoryType      *string  `json:"memory_type,omitempty"`
	Veracity        *string  `json:"veracity,omitempty"`
	ValidUntil      *Time    `json:"valid_until,omitempty"`
	Reason          string   `json:"reason,omitempty"`
}

// UpdateFactResult is the fact after the edit.
type UpdateFactResult struct {
	Receipt
	FactID  string `json:"fact_id"`
	Version int64  `json:"version"`
}

// DeleteFact removes a fact and everything that was made of it, for good.
type DeleteFact struct {
	Caller
	FactID string `json:"fact_id"`
	// ExpectedVersion, when given, must be the fact's version.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
}

// DeleteFactResult names what is gone.
type DeleteFactResult struct {
	Receipt
	FactID string `json:"fact_id"`
}

// ProposePolicy asks to add a policy; it needs write on its domain.
type ProposePolicy struct {
	Caller
	Domain       string `json:"domain"`
	Rule         string `json:"rule"`
	RequiredRole string `json:"required_role,omitempty"`
}

// PolicyResult is the outcome of a policy write.
type PolicyResult struct {
	Receipt
	// Status is created, exists (the same active rule was there) or
	// superseded.
	Status   string `json:"status"`
	PolicyID string `json:"policy_id"`
	Domain   string `json:"domain"`
	// ReplacementID is the policy that took the superseded one's place.
	ReplacementID string `json:"replacement_id,omitempty"`
}

// SupersedePolicy retires a policy, with a replacement when Rule is given.
type SupersedePolicy struct {
	Caller
	PolicyID     string `json:"policy_id"`
	Rule         string `json:"rule,omitempty"`
	RequiredRole string `json:"required_role,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

// UpdatePolicy is a person's edit of a current policy. What is nil stays as it
// is; the version before is kept.
type UpdatePolicy struct {
	Caller
	PolicyID string `json:"policy_id"`
	// ExpectedVersion must be the policy's version.
	ExpectedVersion int64   `json:"expected_version"`
	Rule            *string `json:"rule,omitempty"`
	RequiredRole    *string `json:"required_role,omitempty"`
	Reason          string  `json:"reason,omitempty"`
}

// UpdatePolicyResult is the policy after the edit.
type UpdatePolicyResult struct {
	Receipt
	PolicyID string `json:"policy_id"`
	Version  int64  `json:"version"`
}

// DeletePolicy removes a policy and its earlier versions, for good.
type DeletePolicy struct {
	Caller
	PolicyID string `json:"policy_id"`
	// ExpectedVersion, when given, must be the policy's version.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
}

// DeletePolicyResult names what is gone.
type DeletePolicyResult struct {
	Receipt
	PolicyID string `json:"policy_id"`
}

// DeleteGrant takes a role's grant in a domain back; the role may read then.
type DeleteGrant struct {
	Caller
	ForRole string `json:"for_role"`
	Domain  string `json:"domain"`
	// NeedWrite is as in SetGrant.
	NeedWrite bool `json:"need_write,omitempty"`
}

// SetGrant gives a role a level in a domain.
type SetGrant struct {
	Caller
	ForRole string `json:"for_role"`
	Domain  string `json:"domain"`
	Level   string `json:"level"`
	// NeedWrite refuses a caller whose role has no write on the domain. It is
	// asked for where a caller's role is known, so that nobody lifts itself.
	NeedWrite bool `json:"need_write,omitempty"`
}

// SetGrantResult is the grant as it stands.
type SetGrantResult struct {
	Receipt
	Grant Grant `json:"grant"`
}

// Remember stores a session item.
type Remember struct {
	Caller
	SessionID  string   `json:"session_id,omitempty"`
	Content    string   `json:"content"`
	MemoryType string   `json:"memory_type,omitempty"`
	Importance *float64 `json:"importance,omitempty"`
	// TTLSeconds is how long the item lives; 0 is until consolidated.
	TTLSeconds int64  `json:"ttl_seconds,omitempty"`
	Domain     string `json:"domain,omitempty"`
	Topic      string `json:"topic,omitempty"`
}

// RememberResult names the item.
type RememberResult struct {
	Receipt
	ItemID     string     `json:"item_id"`
	SessionID  string     `json:"session_id"`
	MemoryType MemoryType `json:"memory_type"`
	ExpiresAt  Time       `json:"expires_at,omitzero"`
}

// RecordObservation appends one line to the agent's notes.
type RecordObservation struct {
	Caller
	Text string `json:"text"`
}

// RecordObservationResult names the observation.
type RecordObservationResult struct {
	Receipt
	ObservationID string `json:"observation_id"`
	// NotesVersion is the version of the agent's page after the line.
	NotesVersion int64 `json:"version"`
}

// UpdateNotes replaces the agent's page.
type UpdateNotes struct {
	Caller
	Text string `json:"text"`
	// ExpectedVersion, when given, must be the page's version.
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
}

// UpdateNotesResult is the page's new version.
type UpdateNotesResult struct {
	Receipt
	Version int64 `json:"version"`
	Bytes   int   `json:"bytes"`
}

// Decision is one decision of a meeting.
type Decision struct {
	Text string `json:"text"`
	// Topic groups decisions; without one the meeting's id does.
	Topic     string `json:"topic,omitempty"`
	DecidedBy string `json:"decided_by,omitempty"`
}

// CaptureMeeting gives all decisions of one meeting at one revision.
type CaptureMeeting struct {
	Caller
	MeetingID string `json:"meeting_id"`
	Title     string `json:"title,omitempty"`
	HeldAt    Time   `json:"held_at,omitzero"`
	// Revision is 1 or more and grows when the minutes change.
	Revision int64 `json:"revision"`
	// Decisions holds at most 1,000; none withdraws all.
	Decisions []Decision `json:"decisions"`
	Attendees []string   `json:"attendees,omitempty"`
}

// CheckSize refuses a meeting of more than 1,000 decisions.
func (m CaptureMeeting) CheckSize() error {
	if len(m.Decisions) > MaxDecisions {
		return Errorf(PayloadTooLarge, "decisions", "a meeting has at most %d decisions", MaxDecisions)
	}
	return nil
}

// ItemError is one item that could not be taken, by its index in the request.
type ItemError struct {
	Index   int    `json:"index"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
}

// MeetingReport says what a capture changed.
type MeetingReport struct {
	Receipt
	MeetingID string `json:"meeting_id"`
	Revision  int64  `json:"revision"`
	// Outdated is true when a later revision was captured before: nothing was
	// changed then.
	Outdated    bool        `json:"outdated,omitempty"`
	Added       int         `json:"added"`
	ReMentioned int         `json:"re_mentioned"`
	Withdrawn   int         `json:"withdrawn"`
	Failed      []ItemError `json:"failed"`
	// Left counts those of Failed that an agent's answer has no room for.
	Left int `json:"left,omitempty"`
	// FactIDs are the meeting's current decisions.
	FactIDs []string `json:"fact_ids"`
}

// MeetingPage is one part of a capture's decisions; First is the index of its
// first decision in the whole.
type MeetingPage struct {
	CaptureMeeting
	First int `json:"first"`
	// Last marks the final page, after which vanished decisions are withdrawn.
	Last bool `json:"last"`
}

// Consolidate asks for one agent's memory (or everybody's) to be put in order.
type Consolidate struct {
	Caller
	// ForAgent restricts the run to one agent's items and facts.
	ForAgent string `json:"for_agent,omitempty"`
	// DryRun lists what would happen and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// MaintenancePage is one page of a maintenance run.
type MaintenancePage struct {
	Caller
	ForAgent string `json:"for_agent,omitempty"`
	// Phase is the step of the run; Cursor where in it the page starts.
	Phase  string `json:"phase"`
	Cursor string `json:"cursor,omitempty"`
	// Limit is how many items the page considers, 1 to 1,000.
	Limit int `json:"limit"`
	// DryRun reports what the page would do and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// Change is one thing that a dry run of maintenance would do.
type Change struct {
	// What is promoted, re-mentioned, merged, archived, expired, belief or
	// conflict.
	What string `json:"what"`
	// ID is the fact's or the session item's, Other the fact's that it would be
	// merged into or that it opposes.
	ID      string `json:"id"`
	Other   string `json:"other,omitempty"`
	Content string `json:"content"`
	Reason  string `json:"reason,omitempty"`
}

// MaxChanges bounds the changes that the report of a dry run lists; the counts
// are exact beyond it.
const MaxChanges = 200

// Changes are what a dry run would do, the first MaxChanges of it.
type Changes []Change

// Add appends as many of more as there is room for.
func (c *Changes) Add(more ...Change) {
	*c = append(*c, more[:min(len(more), max(0, MaxChanges-len(*c)))]...)
}

// ConsolidationReport counts what consolidation did.
type ConsolidationReport struct {
	Considered  int `json:"considered"`
	Promoted    int `json:"promoted"`
	ReMentioned int `json:"re_mentioned"`
	Merged      int `json:"merged"`
	Archived    int `json:"archived"`
	Expired     int `json:"expired"`
	Conflicts   int `json:"conflicts"`
	// Skipped are items that could not be taken, in words.
	Skipped []string `json:"skipped"`
	// Would lists what a dry run would do; a real run leaves it empty.
	Would Changes `json:"would,omitempty"`
}

// Add adds o to r.
func (r *ConsolidationReport) Add(o ConsolidationReport) {
	r.Considered += o.Considered
	r.Promoted += o.Promoted
	r.ReMentioned += o.ReMentioned
	r.Merged += o.Merged
	r.Archived += o.Archived
	r.Expired += o.Expired
	r.Conflicts += o.Conflicts
	r.Would.Add(o.Would...)
	r.Skipped = addSkipped(r.Skipped, o.Skipped)
}

// maxSkipped bounds the skipped items that a report lists.
const maxSkipped = 100

// addSkipped adds what was skipped, each once however many phases met it.
func addSkipped(have, more []string) []string {
	for _, s := range more {
		if len(have) < maxSkipped && !slices.Contains(have, s) {
			have = append(have, s)
		}
	}
	return have
}

// ConsolidationPage is the outcome of one page; an empty Next ends its phase.
type ConsolidationPage struct {
	Receipt
	Report ConsolidationReport `json:"report"`
	Next   string              `json:"next,omitempty"`
}

// Harmonize asks for beliefs and contradictions between agents.
type Harmonize struct {
	Caller
	// DryRun lists what would happen and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// HarmonizationReport counts what harmonization did.
type HarmonizationReport struct {
	Considered      int `json:"considered"`
	BeliefsCreated  int `json:"beliefs_created"`
	BeliefsUpdated  int `json:"beliefs_updated"`
	BeliefsRemoved  int `json:"beliefs_removed"`
	ConflictsOpened int `json:"conflicts_opened"`
	// Skipped are facts that could not be taken, in words.
	Skipped []string `json:"skipped"`
	// Would lists what a dry run would do; a real run leaves it empty.
	Would Changes `json:"would,omitempty"`
}

// Add adds o to r.
func (r *HarmonizationReport) Add(o HarmonizationReport) {
	r.Considered += o.Considered
	r.BeliefsCreated += o.BeliefsCreated
	r.BeliefsUpdated += o.BeliefsUpdated
	r.BeliefsRemoved += o.BeliefsRemoved
	r.ConflictsOpened += o.ConflictsOpened
	r.Skipped = addSkipped(r.Skipped, o.Skipped)
	r.Would.Add(o.Would...)
}

// HarmonizationPage is the outcome of one page; an empty Next ends its phase.
type HarmonizationPage struct {
	Receipt
	Report HarmonizationReport `json:"report"`
	Next   string              `json:"next,omitempty"`
}

// ResolveConflict closes an open row.
type ResolveConflict struct {
	Caller
	ConflictID string `json:"conflict_id"`
	// Winner is the id of the fact that stays, or "both".
	Winner string `json:"winner"`
	Reason string `json:"reason,omitempty"`
}

// ResolveConflictResult is the row after its resolution.
type ResolveConflictResult struct {
	Receipt
	Conflict Conflict `json:"conflict"`
}

// ListSuspicions asks for open pairs of kind suspected that no judge was asked
// about yet.
type ListSuspicions struct {
	Caller
	// Limit is how many, 1 to 100.
	Limit int `json:"limit"`
}

// Suspicions are the ids of such rows, oldest first.
type Suspicions struct {
	ConflictIDs []string `json:"conflict_ids"`
}

// AskJudge asks the judge about one pair.
type AskJudge struct {
	Caller
	ConflictID string `json:"conflict_id"`
}

// Judgement is what a judge said about a pair. Relation is one of duplicate,
// refinement, contradiction and compatible, or empty: then Words says why there
// is no usable answer.
type Judgement struct {
	ConflictID string `json:"conflict_id"`
	Judge      string `json:"judge"`
	Relation   string `json:"relation,omitempty"`
	Words      string `json:"words,omitempty"`
}

// RecordJudgement keeps a judgement on its row, once.
type RecordJudgement struct {
	Caller
	Judgement
}

// RecordJudgementResult is the row afterwards.
type RecordJudgementResult struct {
	Receipt
	Conflict Conflict `json:"conflict"`
}

// JudgeReport counts what a run of the judge did.
type JudgeReport struct {
	// Asked counts the pairs, Settled those whose row closed, Unanswered those
	// without a usable answer.
	Asked      int `json:"asked"`
	Settled    int `json:"settled"`
	Unanswered int `json:"unanswered"`
}

// ImportFacts is one page of a bulk import.
type ImportFacts struct {
	Caller
	// Source identifies the imported file: the hex SHA-256 of its content.
	Source string `json:"source"`
	// Page counts from 0.
	Page  int           `json:"page"`
	Items []ProposeFact `json:"items"`
}

// ImportReport counts what an import did.
type ImportReport struct {
	Receipt
	// Items counts the facts read from the source, of which Created, Refined,
	// ReMentioned and Superseded (stored, but a stronger fact contradicts it)
	// were taken and Failed were not.
	Items       int `json:"items"`
	Created     int `json:"created"`
	Refined     int `json:"refined"`
	ReMentioned int `json:"re_mentioned"`
	Superseded  int `json:"superseded"`
	// Failed lists items that were refused, by index in the page or source.
	Failed []ItemError `json:"failed"`
}

// Add adds the report of a further page.
func (r *ImportReport) Add(o ImportReport) {
	for _, f := range o.Failed {
		f.Index += r.Items
		r.Failed = append(r.Failed, f)
	}
	r.Items += o.Items
	r.Created += o.Created
	r.Refined += o.Refined
	r.ReMentioned += o.ReMentioned
	r.Superseded += o.Superseded
}

// Search is search_memory.
type Search struct {
	Caller
	Query string `json:"query"`
	// Mode defaults to hybrid.
	Mode string `json:"mode,omitempty"`
	// Limit is 1 to 100, 10 when not given; 0 gives no facts.
	Limit  *int   `json:"limit,omitempty"`
	Domain string `json:"domain,omitempty"`
	// AsOf asks what was believed at that time.
	AsOf Time `json:"as_of,omitzero"`
}

// Hit is one fact that a search found.
type Hit struct {
	Fact
	// Score is 0 to 1, 1 for the best match of the answer.
	Score float64 `json:"score"`
	// Voices gives the rank, from 1, that each voice gave the fact.
	Voices map[string]int `json:"voices"`
	// HistoryLength counts the facts of its chain, 1 when nothing preceded it.
	HistoryLength int `json:"history_length"`
}

// PolicyHit is one policy that a search found.
type PolicyHit struct {
	Policy
	Score float64 `json:"score"`
}

// SearchResult is the answer of search_memory.
type SearchResult struct {
	Facts    []Hit       `json:"facts"`
	Policies []PolicyHit `json:"policies"`
	// Voices names the voices that answered.
	Voices []string `json:"voices"`
	// Degraded says which voices could not answer, and why.
	Degraded []string `json:"degraded,omitempty"`
	// Left counts the facts that were left out because the answer would have
	// been too large to travel.
	Left int `json:"left,omitempty"`
}

// Dispatch asks for the preamble of one agent's task.
type Dispatch struct {
	Caller
	Task string `json:"task"`
	// Context holds statements the agent already has; those that match a
	// superseded version come back as stale.
	Context []string `json:"context,omitempty"`
}

// Stale is a statement of the caller's that is no longer true.
type Stale struct {
	Statement string `json:"statement"`
	// FactID is the superseded version that the statement matches.
	FactID string `json:"fact_id"`
	// CurrentID and Current are the fact that holds now; empty when it was
	// withdrawn without another taking its place.
	CurrentID string `json:"current_id,omitempty"`
	Current   string `json:"current,omitempty"`
}

// Preamble is the text an agent gets at dispatch, and what it was made of.
type Preamble struct {
	Receipt
	Text      string   `json:"text"`
	PolicyIDs []string `json:"policy_ids"`
	FactIDs   []string `json:"fact_ids"`
	// Chars counts Unicode code points of Text.
	Chars int `json:"chars"`
	// Tokens is an estimate for the usual tokenizers.
	Tokens int `json:"tokens"`
	// Missing names the parts that could not be made: policies, notes, facts.
	Missing []string `json:"missing"`
	// Cut names what was left out or shortened, by id or part.
	Cut      []string `json:"cut"`
	Warnings []string `json:"warnings,omitempty"`
	Stale    []Stale  `json:"stale"`
}

// HistoryRow is one row of a history read: a fact of the chain, oldest first, a
// version of one before an edit, or one of its events.
type HistoryRow struct {
	Fact    *Fact        `json:"fact,omitempty"`
	Version *FactVersion `json:"version,omitempty"`
	Event   *FactEvent   `json:"event,omitempty"`
}

// ReadKind names a read operation.
type ReadKind string

// The read operations that the owner of a file answers.
const (
	ReadFacts       ReadKind = "facts"
	ReadFact        ReadKind = "fact"
	ReadHistory     ReadKind = "history"
	ReadPolicies    ReadKind = "policies"
	ReadPolicy      ReadKind = "policy"
	ReadDomains     ReadKind = "domains"
	ReadGrants      ReadKind = "grants"
	ReadNotes       ReadKind = "notes"
	ReadConflicts   ReadKind = "conflicts"
	ReadBeliefs     ReadKind = "beliefs"
	ReadHealth      ReadKind = "health"
	ReadItems       ReadKind = "session_items"
	ReadEdges       ReadKind = "edges"
	ReadGraph       ReadKind = "graph"
	ReadObservation ReadKind = "observations"
	ReadWorkspaces  ReadKind = "workspaces"
	ReadTable       ReadKind = "fact_table"
	ReadModel       ReadKind = "embedding_model"
	ReadBackups     ReadKind = "backups"
	// ReadSubject reads the facts about a subject, ReadObligations a task's
	// obligations, ReadEpisodes what was said, ReadCheck holds statements
	// against the record.
	ReadSubject     ReadKind = "facts_by_subject"
	ReadObligations ReadKind = "obligations"
	ReadEpisodes    ReadKind = "episodes"
	ReadCheck       ReadKind = "state_check"
)

// ReadMemory asks for one page of a read.
type ReadMemory struct {
	Caller
	What ReadKind `json:"what"`
	// ID is the fact of a fact, history or edges read, the policy of a policy
	// read.
	ID     string `json:"id,omitempty"`
	Domain string `json:"domain,omitempty"`
	// All includes superseded, archived and expired rows, marked.
	All bool `json:"all,omitempty"`
	// OpenOnly leaves out closed conflicts and obligations.
	OpenOnly bool `json:"open_only,omitempty"`
	// Subject is what the facts of a facts_by_subject read are about.
	Subject string `json:"subject,omitempty"`
	// TaskID restricts obligations and episodes to one task.
	TaskID string `json:"task_id,omitempty"`
	// Query finds episodes by their words, best first; without one they come
	// in the order they were said.
	Query string `json:"query,omitempty"`
	// Context holds the statements of a state_check, at most 256.
	Context []string `json:"context,omitempty"`
	// Cursor continues after an earlier page's Next.
	Cursor string `json:"cursor,omitempty"`
	// Limit bounds the page's rows, 1 to 1,000; 0 is 500. A page is cut
	// earlier when it would pass 1 MB.
	Limit int `json:"limit,omitempty"`
	// Table says which part of the facts a table read shows.
	Table FactTableQuery `json:"table,omitzero"`
}

// Page is one page of a read. Fact, fact table, policy, notes, graph and health have
// exactly one row, history has HistoryRows.
type Page[T any] struct {
	Items []T `json:"items"`
	// Next continues the read; empty at its end.
	Next string `json:"next,omitempty"`
}

// FactOrder names a column that a table of facts is sorted by.
type FactOrder string

// The orders of a table; ties are by age, the newer first when Descending.
const (
	ByUpdated    FactOrder = "updated"
	ByCreated    FactOrder = "created"
	ByDomain     FactOrder = "domain"
	ByTopic      FactOrder = "topic"
	ByConfidence FactOrder = "confidence"
	ByRecalls    FactOrder = "recalls"
	ByMentions   FactOrder = "mentions"
)

// FactTableQuery chooses and sorts the facts of a table, beside the domain,
// All and Limit (50 when 0, at most 100) of the read.
type FactTableQuery struct {
	// MemoryType and Veracity keep only those facts; empty keeps all.
	MemoryType string `json:"memory_type,omitempty"`
	Veracity   string `json:"veracity,omitempty"`
	// Order is ByUpdated when empty.
	Order      FactOrder `json:"order,omitempty"`
	Descending bool      `json:"descending,omitempty"`
	// Offset counts the facts before the page; past the end the page is empty.
	Offset int `json:"offset,omitempty"`
}

// FactTable is one page of a table of facts.
type FactTable struct {
	// Facts have their content cut to 2,000 characters; ReadFact has all of it.
	Facts []Fact `json:"facts"`
	// Total counts the facts that the query keeps, on any page.
	Total int64 `json:"total"`
}
