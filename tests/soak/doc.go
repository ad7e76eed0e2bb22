// Package soak runs the real worker under a steady, mixed load for minutes and
// checks that its memory, goroutines, file descriptors and write-ahead logs stay
// flat. It is skipped unless POLYPHONY_SOAK says for how long, like 20m.
//
// It must never hold what shows within seconds.
package soak
