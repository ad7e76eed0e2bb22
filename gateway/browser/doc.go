// Package browser serves the memory browser: pages on which a person reads,
// corrects and deletes what agents hold. Nothing on them creates anything.
//
// Pages are rendered on the server and work without scripts; the scripts in
// assets add a drawer, live updates and the drawn graph. Every change is a
// POST that the server's guard lets through only from the same site.
//
// Stored text is data: templates escape it, and the Content-Security-Policy
// runs nothing that is not a file of ours.
//
// It must never hold rules about memory.
package browser
