// Package memory is the store: one SQLite file per workspace that holds facts,
// policies, working memory and the record beneath them, with the operation
// ledger that makes every change happen exactly once, and the rules of what a
// proposed fact does to the facts that are there.
//
// # The file
//
// <data>/workspaces/<workspace>/memory.db, WAL, synchronous=FULL, foreign keys
// on. One goroutine writes: it takes queued operations and commits several in
// one transaction, each in its own savepoint (writer.go). Readers use a pool of
// read-only connections and never wait for it (store.go). Several processes may
// open one file; SQLite's lock puts their transactions in order.
//
// # Every change
//
// runs through apply (writer.go): look up the idempotency key in the ledger, do
// the effect, write the ledger row, in one transaction. Nothing else writes.
//
// It must never hold Temporal, HTTP, embeddings or presentation.
package memory
