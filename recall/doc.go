// Package recall finds what is relevant: ranked voices over one workspace,
// fused into one answer. A voice is one file behind the Voice interface.
//
// Recall is a relevance filter and decides nothing. It must never hold
// Temporal, HTTP, or anything that changes a file.
package recall
