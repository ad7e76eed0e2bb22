package record

// Fact is one statement that is held true, with how it came to be and what
// became of it. An agent never edits a fact in place: a changed truth is a new
// fact that supersedes the old one.
type Fact struct {
	ID        string `json:"id"`
	Workspace string `json:"workspace"`
	// Domain is the domain's name as shown, "architecture" or
	// "repo:<slug>/architecture".
	Domain string `json:"domain"`
	// Topic is the topic in the form first given.
	Topic string `json:"topic"`
	// Content is the statement byte for byte as given, 1 to 65,536 bytes.
	Content string `json:"content"`
	// Confidence is 0 to 1.
	Confidence           float64    `json:"confidence"`
	MemoryType           MemoryType `json:"memory_type"`
	Veracity             Veracity   `json:"veracity"`
	SourceObservationIDs []string   `json:"source_observation_ids"`
	// SupersededBy is the fact that took this one's place, if any did.
	SupersededBy string `json:"superseded_by,omitempty"`
	// SupersededKind says why it is no longer current: a conflict kind, or
	// "withdrawn" when the meeting that decided it took it back.
	SupersededKind string `json:"superseded_kind,omitempty"`
	SupersededAt   Time   `json:"superseded_at,omitzero"`
	ValidUntil     Time   `json:"valid_until,omitzero"`
	RecallCount    int64  `json:"recall_count"`
	LastRecalledAt Time   `json:"last_recalled_at,omitzero"`
	// MentionCount is 1 for a new fact and grows by one with each re-mention.
	MentionCount    int64  `json:"mention_count"`
	LastMentionedAt Time   `json:"last_mentioned_at,omitzero"`
	AuthoredByAgent string `json:"authored_by_agent,omitempty"`
	AuthoredByRole  Role   `json:"authored_by_role,omitempty"`
	Version         int64  `json:"version"`
	CreatedAt       Time   `json:"created_at"`
	UpdatedAt       Time   `json:"updated_at"`
	ArchivedAt      Time   `json:"archived_at,omitzero"`
	ArchiveReason   string `json:"archive_reason,omitempty"`
}

// Active reports whether the fact is current at now: neither superseded nor
// archived nor expired.
func (f *Fact) Active(now Time) bool {
	return f.SupersededAt.IsZero() && f.ArchivedAt.IsZero() && !f.Expired(now)
}

// Expired reports whether the fact's validity ended at or before now.
func (f *Fact) Expired(now Time) bool {
	return !f.ValidUntil.IsZero() && !f.ValidUntil.After(now.Time)
}

// FactEvent is one line of a fact's history.
type FactEvent struct {
	FactID string `json:"fact_id"`
	At     Time   `json:"at"`
	// Kind is created, re-mentioned, superseded, superseding, restored,
	// archived, expired, withdrawn, promoted, resolved or edited.
	Kind  string `json:"kind"`
	Agent string `json:"agent,omitempty"`
	Role  Role   `json:"role,omitempty"`
	// Other is the other fact of the event, if there is one.
	Other string `json:"other,omitempty"`
	// Veracity is the incoming veracity of a creation or re-mention.
	Veracity Veracity `json:"veracity,omitempty"`
	// Confidence is the fact's confidence after the event.
	Confidence float64 `json:"confidence"`
	// Reason says why, in words for people.
	Reason string `json:"reason,omitempty"`
}

// FactVersion is what a fact said before a person edited it.
type FactVersion struct {
	FactID     string     `json:"fact_id"`
	Version    int64      `json:"version"`
	Topic      string     `json:"topic"`
	Content    string     `json:"content"`
	Confidence float64    `json:"confidence"`
	MemoryType MemoryType `json:"memory_type"`
	Veracity   Veracity   `json:"veracity"`
	ValidUntil Time       `json:"valid_until,omitzero"`
	// Until is when it was edited, Agent and Role who did.
	Until  Time   `json:"until"`
	Agent  string `json:"agent,omitempty"`
	Role   Role   `json:"role,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// FactHistory is the whole chain a fact belongs to, oldest fact first.
type FactHistory struct {
	FactID string      `json:"fact_id"`
	Chain  []Fact      `json:"chain"`
	Events []FactEvent `json:"events"`
	// Versions are what facts of the chain said before edits, oldest first.
	Versions []FactVersion `json:"versions,omitempty"`
}

// Domain is a named part of a workspace, or of one repository in it.
type Domain struct {
	Name      string `json:"name"`
	Repo      string `json:"repo,omitempty"`
	Facts     int64  `json:"facts"`
	Policies  int64  `json:"policies"`
	CreatedAt Time   `json:"created_at"`
}

// Grant is what a role may do in a domain.
type Grant struct {
	Role      Role   `json:"role"`
	Domain    string `json:"domain"`
	Level     Level  `json:"level"`
	UpdatedAt Time   `json:"updated_at"`
	UpdatedBy string `json:"updated_by,omitempty"`
}

// Policy is what agents should do; every active one is in every preamble.
type Policy struct {
	ID        string `json:"id"`
	Workspace string `json:"workspace"`
	Domain    string `json:"domain"`
	Rule      string `json:"rule"`
	// RequiredRole is advice shown after the rule; it filters nothing.
	RequiredRole    Role   `json:"required_role,omitempty"`
	SupersededBy    string `json:"superseded_by,omitempty"`
	SupersededAt    Time   `json:"superseded_at,omitzero"`
	SupersedeReason string `json:"supersede_reason,omitempty"`
	AuthoredByAgent string `json:"authored_by_agent,omitempty"`
	AuthoredByRole  Role   `json:"authored_by_role,omitempty"`
	Version         int64  `json:"version"`
	CreatedAt       Time   `json:"created_at"`
	UpdatedAt       Time   `json:"updated_at"`
}

// PolicyVersion is what a policy said before a person edited it.
type PolicyVersion struct {
	Version      int64  `json:"version"`
	Rule         string `json:"rule"`
	RequiredRole Role   `json:"required_role,omitempty"`
	// Until is when it was edited, Agent and Role who did.
	Until  Time   `json:"until"`
	Agent  string `json:"agent,omitempty"`
	Role   Role   `json:"role,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// PolicyRecord is one policy with what it said before edits, oldest first.
type PolicyRecord struct {
	Policy
	Versions []PolicyVersion `json:"versions"`
}

// Notes is one agent's private page, kept over runs.
type Notes struct {
	Agent string `json:"agent"`
	// Text is up to 65,536 bytes.
	Text string `json:"text"`
	// Version is 0 for a page never written.
	Version   int64 `json:"version"`
	UpdatedAt Time  `json:"updated_at,omitzero"`
}

// Observation is one line that an agent noted; facts may cite its id.
type Observation struct {
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Text      string `json:"text"`
	CreatedAt Time   `json:"created_at"`
}

// SessionItem is something worth keeping for a while; consolidation may
// promote it to a fact. It is never searched as one.
type SessionItem struct {
	ID         string     `json:"id"`
	SessionID  string     `json:"session_id"`
	Agent      string     `json:"agent"`
	Content    string     `json:"content"`
	MemoryType MemoryType `json:"memory_type"`
	Veracity   Veracity   `json:"veracity"`
	// Importance is 0 to 1; it is the confidence asked for when promoted.
	Importance float64 `json:"importance"`
	ExpiresAt  Time    `json:"expires_at,omitzero"`
	// Domain and Topic say where a promotion would put it.
	Domain    string `json:"domain,omitempty"`
	Topic     string `json:"topic,omitempty"`
	FactID    string `json:"fact_id,omitempty"`
	CreatedAt Time   `json:"created_at"`
}

// Conflict is one unordered pair of facts that met, and what came of it.
type Conflict struct {
	ID   string       `json:"id"`
	Kind ConflictKind `json:"kind"`
	// FactA and FactB are the pair, smaller id first.
	FactA string `json:"fact_a"`
	FactB string `json:"fact_b"`
	// Winner and Loser are set once one side won; both are empty while the row
	// is open and when both were kept.
	Winner string `json:"winner,omitempty"`
	Loser  string `json:"loser,omitempty"`
	Open   bool   `json:"open"`
	// Resolution is "superseded", "both", "gone" or empty while open.
	Resolution string `json:"resolution,omitempty"`
	// Rule and Reason say which rule judged the pair and on which words.
	Rule       string `json:"rule,omitempty"`
	Reason     string `json:"reason,omitempty"`
	ContentA   string `json:"content_a,omitempty"`
	ContentB   string `json:"content_b,omitempty"`
	ResolvedBy string `json:"resolved_by,omitempty"`
	// Judge is the model that was asked about the pair, Judgement the relation
	// it found, empty when it gave no usable answer, and JudgeWords what it
	// said or why it said nothing.
	Judge      string `json:"judge,omitempty"`
	Judgement  string `json:"judgement,omitempty"`
	JudgeWords string `json:"judge_words,omitempty"`
	JudgedAt   Time   `json:"judged_at,omitzero"`
	CreatedAt  Time   `json:"created_at"`
	ClosedAt   Time   `json:"closed_at,omitzero"`
}

// Belief is a statement that at least two agents hold.
type Belief struct {
	ID        string `json:"id"`
	Domain    string `json:"domain"`
	Topic     string `json:"topic"`
	Statement string `json:"statement"`
	// Confidence is clamp(mean + min(0.2, 0.1 (n − 1)), 0.5, 0.95) over the n
	// agents' facts (behaviour.md 9).
	Confidence float64  `json:"confidence"`
	FactIDs    []string `json:"fact_ids"`
	Agents     []string `json:"agents"`
	Version    int64    `json:"version"`
	CreatedAt  Time     `json:"created_at"`
	UpdatedAt  Time     `json:"updated_at"`
}

// Edge links two facts.
type Edge struct {
	Source string `json:"source"`
	Target string `json:"target"`
	// Kind is related_to, references or contextual.
	Kind string `json:"kind"`
	// Weight is 0 to 1.
	Weight    float64 `json:"weight"`
	CreatedAt Time    `json:"created_at"`
}

// GraphNode is a domain, a topic, a fact or a policy.
type GraphNode struct {
	// ID is the fact's or policy's id, or starts with "domain:" or "topic:".
	ID string `json:"id"`
	// Kind is domain, topic, fact or policy.
	Kind string `json:"kind"`
	// Label is the name, or the beginning of the text.
	Label      string  `json:"label"`
	Domain     string  `json:"domain"`
	Confidence float64 `json:"confidence,omitempty"`
}

// GraphEdge joins two nodes: "contains" from a domain to its topics and
// policies and from a topic to its facts, or an edge's kind between facts.
type GraphEdge struct {
	Source string  `json:"source"`
	Target string  `json:"target"`
	Kind   string  `json:"kind"`
	Weight float64 `json:"weight"`
}

// Graph is the knowledge graph of a workspace, or the newest part of it.
type Graph struct {
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
	// Left counts the current facts that are not in it.
	Left int64 `json:"left,omitempty"`
}

// Health is the state of one workspace file.
type Health struct {
	Workspace string `json:"workspace"`
	// OK is false as soon as one check failed; Problems says which.
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
	// Warnings say what waits for somebody; nothing is broken.
	Warnings      []string `json:"warnings,omitempty"`
	SchemaVersion int      `json:"schema_version"`
	FileBytes     int64    `json:"file_bytes"`
	WALBytes      int64    `json:"wal_bytes"`
	// FactsTotal counts every stored fact, FactsActive the current ones.
	FactsTotal  int64 `json:"facts_total"`
	FactsActive int64 `json:"facts_active"`
	// Indexed counts the facts the lexical index holds; it equals FactsTotal.
	Indexed       int64 `json:"indexed"`
	Policies      int64 `json:"policies"`
	Domains       int64 `json:"domains"`
	Edges         int64 `json:"edges"`
	OpenConflicts int64 `json:"open_conflicts"`
	Beliefs       int64 `json:"beliefs"`
	SessionItems  int64 `json:"session_items"`
	// Obligations counts those that are not closed, InDoubt those of them whose
	// claim's lease ended without a word of its holder.
	Obligations int64 `json:"obligations"`
	InDoubt     int64 `json:"in_doubt"`
	Episodes    int64 `json:"episodes"`
	Operations  int64 `json:"operations"`
	// Embedded counts the facts that have a vector of the model in use,
	// EmbeddingQueue those that wait for one.
	Embedded       int64 `json:"embedded"`
	EmbeddingQueue int64 `json:"embedding_queue"`
	// VectorIndex is what finds the nearest vectors: "memory", "file" or "none"
	// (without sqlite-vec). VectorsIndexed counts those in the index in the
	// file, of every model.
	VectorIndex    string `json:"vector_index"`
	VectorsIndexed int64  `json:"vectors_indexed"`
	// Model is the embedding model in use, empty for none.
	Model string `json:"model,omitempty"`
	// Queue is how many writes wait for the file's writer now.
	Queue            int  `json:"queue"`
	LastConsolidated Time `json:"last_consolidated,omitzero"`
	LastHarmonized   Time `json:"last_harmonized,omitzero"`
}
