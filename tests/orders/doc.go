// Package orders is a worked example: a task of five steps, three of which have
// an effect outside that cannot be taken back, driven by a workflow of its own
// through polyphony's state. It shows the pattern of claim, act and commit, what
// it means that a claim is in doubt, and how an agent settles it, with an
// outside service that honours idempotency keys and with one that ignores them.
//
// Its tests run it against the real worker process and its engine:
//
//	go test ./tests/orders -v
//
// It must never hold rules of the record: those are the store's.
package orders
