// Package drivers opens one workspace file with both builds, SQLite in pure Go
// and SQLite in C, and wants the same answers from both:
//
//	go test -tags 'native sqlite_fts5' ./tests/drivers
package drivers
