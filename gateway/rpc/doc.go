// Package rpc offers the memory to thin clients as JSON-RPC 2.0 over HTTP:
// reading, correcting and deleting. There is no operation that creates;
// writing is the agents' side.
//
// An operation is a row of one table (operations.go). docs/rpc.md is written
// from the same table.
//
// It must never hold rules about memory.
package rpc
