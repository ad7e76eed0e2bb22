// Package compose checks docker-compose.yml and the Dockerfile without a Docker engine: what an operator relies on
// (every variable has a default, nothing is published beyond this machine, no shard is owned twice or not at all) must
// not be found out by starting it.
//
// It must never hold anything that starts a container.
package compose
