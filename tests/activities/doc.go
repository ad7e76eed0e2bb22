// Package activities runs every activity against a real store twice: what the
// engine repeats after a crash must give the same answer and change nothing.
//
// It must never hold what a rule of the store is; the store's own tests do.
package activities
