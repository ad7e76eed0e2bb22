// Package engine runs a Temporal server inside the worker's own process, on one file.
//
// It is what makes polyphony start without anything else installed: the worker calls [Start], gets an
// address back and uses it as it would use a cluster's. The server's state (histories of workflows, timers,
// task queues) lies in <Dir>/temporal.db, a SQLite file of its own, so that killing the process and starting
// it again resumes every workflow.
//
// # What this room is for
//
// Choosing ports, creating the file, wiring the server's four services and its Web UI on loopback, waiting
// until they answer and stopping them in order. Nothing outside this package imports the Temporal server: it
// is a large compile and everything else stays light without it.
//
// # What it must never hold
//
// Workflows, activities, memory or any rule about them. The engine does not know what runs on it, and the
// memory does not lie in its file: losing temporal.db loses the runs in flight and never a fact.
//
// # The file
//
// WAL, synchronous=FULL, one connection (SQLite has one writer, and the server keeps its own caches). The schema
// is built in temporal.db.new and renamed when complete, so a process killed in its first second leaves nothing
// half made. The file carries an application id and the version of its schema; a foreign or a differently
// versioned file is refused with words rather than run on. <Dir>/temporal.lock is held while the engine runs: a
// second engine on the same folder gets [ErrInUse].
//
// # Failure
//
// The server ends its process when it meets something it cannot go on from. Here it may not: such an end is
// logged, ends only the goroutine that met it and is delivered on [Engine.Failed], so that the owner can stop
// everything in order.
package engine
