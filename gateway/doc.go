// Package gateway is how agents and people reach polyphony over HTTP: the
// server, who may call it, and how a call's reads and writes reach the memory.
// What is offered under a path lies in packages of its own: gateway/mcp for
// agents, gateway/rpc for thin clients.
//
// Every request passes the same checks in the same order (guard.go): the Host
// and Origin it came with, the size and time of its body, then who calls
// (identity.go). A handler that is mounted with [Server.Handle] sees none that
// failed, and finds the caller in the request's context.
//
// It must never hold SQL or rules about memory.
package gateway
