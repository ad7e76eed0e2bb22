// Package chaos is the fault harness: it starts the real worker, built with the
// tag "faults", gives it a seeded mixed load, kills it again and again, and
// holds what is left against what was acknowledged and against a run of the
// same seed that nobody interrupted. Beside it are the other disturbances: a
// full disk, a folder that cannot be written, a damaged file, a lost engine.
//
// What is promised, and the figures, are in docs/reliability.md.
//
// It must never hold what a smaller test can show.
package chaos
