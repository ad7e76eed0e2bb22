// Package endtoend tests the promises of the whole system over the real worker
// process: the built program, its embedded engine, its files, and the typed
// client that other programs use. Processes are killed here, and started again.
//
// It must never hold what a smaller test can show.
package endtoend
