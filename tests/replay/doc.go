// Package replay keeps the histories of every workflow that was ever released
// and replays them with today's code: a run that was started by an older
// program must be able to go on.
//
// A history that is here is never recorded again. When a replay fails, the
// workflow needs workflow.GetVersion around what changed; the file stays.
package replay
