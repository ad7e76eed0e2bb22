// Package mcp gives agents the memory as tools, resources and a prompt of the
// Model Context Protocol, over streamable HTTP.
//
// A tool is a row of one table (tools.go): what it is for, its arguments, its
// result and the call that answers it. Tools that write run workflows; tools
// that read ask the file's owner.
//
// Stored text is data: results carry it as JSON, in which it can neither end a
// fence nor become a heading, and the preamble fences it itself.
//
// It must never hold rules about memory.
package mcp
