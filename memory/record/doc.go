// Package record is the vocabulary of polyphony: what a fact, a policy, a
// note, a conflict is, what each call takes and returns, and how it fails. The
// store, recall, workflows, gateway and command line all speak it, so that one
// thing has one name in Go, in JSON and in SQL.
//
// It is a leaf: plain structs, constants and their checks. It must never hold
// SQL, Temporal, HTTP, files or clocks, and it imports the standard library
// only, so that a program that imports the client does not pull in the store.
//
// All times are UTC with microsecond resolution. All ids are UUIDv7 strings
// unless said otherwise.
package record
