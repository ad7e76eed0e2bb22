// Package dispatch makes the preamble: the text that an agent gets when it is
// sent to a task, out of the workspace's policies, the agent's own notes and a
// shortlist of facts. Render is pure: the same parts give the same bytes, so
// that prompt caches hold.
//
// It must never hold embeddings (no vector is computed or read on this path),
// Temporal or HTTP, and it changes nothing.
package dispatch
