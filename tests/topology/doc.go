// Package topology runs the system of docker-compose.yml as processes: Temporal
// on a real PostgreSQL, two workers with half of the shards each, callers that
// know workspaces only. Workers are killed here, replaced, and give shards to
// one another.
//
// It needs PostgreSQL's programs, as Debian's package postgresql installs them,
// and is skipped without. It must never hold what one worker can show.
package topology
