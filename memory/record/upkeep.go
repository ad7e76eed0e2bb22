package record

import "time"

// BackUp asks for a copy of the workspace's file as it is at one moment, beside
// the data folder's workspaces.
type BackUp struct {
	Caller
	// Name names the copy: like a workspace id. A backup of that name that is
	// there already is the answer.
	Name string `json:"name"`
}

// Check refuses a name that cannot be a file's.
func (in BackUp) Check() error {
	if err := in.Caller.Check(); err != nil {
		return err
	}
	return CheckBackupName(in.Name)
}

// CheckBackupName refuses what is not like a workspace id.
func CheckBackupName(name string) error {
	if CheckWorkspace(name) != nil {
		return Errorf(InvalidArgument, "name", "a backup's name has 1 to 64 of a-z 0-9 . _ - and starts with a letter or digit")
	}
	return nil
}

// Backup is one copy of a workspace's file.
type Backup struct {
	Receipt
	// Workspace is the one that it is a copy of.
	Workspace string `json:"workspace"`
	Name      string `json:"name"`
	// MadeAt is the moment that it shows.
	MadeAt        Time  `json:"made_at"`
	Bytes         int64 `json:"bytes"`
	SchemaVersion int   `json:"schema_version"`
	Facts         int64 `json:"facts"`
	// SHA256 is of the file, in hex.
	SHA256 string `json:"sha256"`
}

// RestoreBackup asks for a workspace's file to become a copy of a backup.
type RestoreBackup struct {
	Caller
	Name string `json:"name"`
	// Of is the workspace that the backup is of; empty is the caller's.
	Of string `json:"of,omitempty"`
	// Overwrite lets an existing workspace be replaced, with all that was
	// written to it since the backup.
	Overwrite bool `json:"overwrite,omitempty"`
}

// Check refuses names that cannot be files'.
func (in RestoreBackup) Check() error {
	if err := in.Caller.Check(); err != nil {
		return err
	}
	if in.Of != "" {
		if CheckWorkspace(in.Of) != nil {
			return Errorf(InvalidArgument, "of", "of is the id of a workspace")
		}
	}
	return CheckBackupName(in.Name)
}

// Source is the workspace that the backup is of.
func (in RestoreBackup) Source() string {
	if in.Of != "" {
		return in.Of
	}
	return in.Workspace
}

// What a doctor looks at.
const (
	FindingPages       = "pages"
	FindingReferences  = "references"
	FindingIndexRows   = "index_rows"
	FindingFrequencies = "term_frequencies"
	FindingTotals      = "index_totals"
	FindingEpisodeRows = "episode_rows"
	FindingVectors     = "vectors"
	FindingVectorBits  = "vector_bits"
	FindingVectorIndex = "vector_index"
)

// Doctor asks whether everything that is derived from facts agrees with them.
type Doctor struct {
	Caller
	// Repair makes it agree again.
	Repair bool `json:"repair,omitempty"`
}

// Finding is one thing that does not agree.
type Finding struct {
	// What is one of the finding names, Count how many rows it concerns.
	What  string `json:"what"`
	Count int64  `json:"count"`
	// Repaired is true when it was made to agree.
	Repaired bool `json:"repaired"`
	// Detail names what, never stored text.
	Detail string `json:"detail,omitempty"`
}

// DoctorReport is what a doctor found.
type DoctorReport struct {
	Receipt
	Workspace string `json:"workspace"`
	// OK is true when nothing is wrong any more.
	OK bool `json:"ok"`
	// Facts and Vectors are how many were looked at.
	Facts    int64     `json:"facts"`
	Vectors  int64     `json:"vectors"`
	Findings []Finding `json:"findings"`
}

// MinLedgerAge is the least age at which ledger rows may be pruned: as long as
// the engine remembers closed runs, so that a repeated call is answered by one
// or the other for that long.
const MinLedgerAge = 30 * 24 * time.Hour

// PruneLedger asks for ledger rows of closed runs that are older than an age to
// be forgotten. A call that is repeated with a forgotten key is a new call.
type PruneLedger struct {
	Caller
	// OlderThanSeconds is the age, at least MinLedgerAge.
	OlderThanSeconds int64 `json:"older_than_seconds"`
}

// Check refuses an age that would forget what may still be asked for.
func (in PruneLedger) Check() error {
	if err := in.Caller.Check(); err != nil {
		return err
	}
	if in.OlderThanSeconds < int64(MinLedgerAge/time.Second) || in.OlderThanSeconds > int64(100*365*24*time.Hour/time.Second) {
		return Errorf(InvalidArgument, "older_than_seconds", "the age is at least %d days and at most 100 years", MinLedgerAge/(24*time.Hour))
	}
	return nil
}

// PruneLedgerPage is one page of it.
type PruneLedgerPage struct {
	Caller
	// Before is the time that the rows must be older than.
	Before Time `json:"before"`
	// Cursor is the key that the page starts after, Limit how many rows it
	// considers.
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit"`
}

// PruneLedgerReport counts rows older than the age.
type PruneLedgerReport struct {
	Considered int `json:"considered"`
	Pruned     int `json:"pruned"`
	// Kept counts rows of runs that are still open.
	Kept int `json:"kept"`
}

// Add adds o to r.
func (r *PruneLedgerReport) Add(o PruneLedgerReport) {
	r.Considered += o.Considered
	r.Pruned += o.Pruned
	r.Kept += o.Kept
}

// PruneLedgerResult is the outcome of one page; an empty Next ends it.
type PruneLedgerResult struct {
	Report PruneLedgerReport `json:"report"`
	Next   string            `json:"next,omitempty"`
}
