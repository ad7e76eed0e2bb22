// Package activities adapts the store, recall and dispatch to Temporal: each
// method decodes its input, calls, and maps the error. It must never hold rules
// or SQL.
package activities
