// Package fault has the points at which a test may end the process, and the
// clock that a test may disturb. Only a build with the tag "faults" contains
// either: in all others a point is an empty function and the clock is the
// system's.
//
// The harness in tests/chaos builds the worker with the tag and arms it through
// the environment (docs/reliability.md).
//
// It must never hold anything that a build without the tag depends on.
package fault

// Point names a moment in the life of a change.
type Point string

// The points, in the order in which a change passes them.
const (
	// SchemaWritten is in the transaction of a migration, before its commit.
	SchemaWritten Point = "schema-written"
	// BatchBegun is after the writer took the file's lock.
	BatchBegun Point = "batch-begun"
	// OperationWritten is in the transaction, after one operation's effect and
	// its ledger row.
	OperationWritten Point = "operation-written"
	// Committing is before the commit, with all operations of a batch and their
	// index rows written.
	Committing Point = "committing"
	// Committed is after the commit, before any caller was told.
	Committed Point = "committed"
	// Answered is in the activity, with the store's answer in hand, before the
	// engine was told.
	Answered Point = "answered"
)
