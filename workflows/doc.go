// Package workflows is the contract of polyphony with its callers: the
// workflows, their inputs and results, their ids, timeouts and retry policies,
// and the typed client that other programs import (client.go).
//
// Workflow code is deterministic: it must never hold I/O, clocks, randomness,
// goroutines or ranges over maps, and it knows activities by name only, so that
// a program that imports the client does not pull in the store.
package workflows
