// Package borders holds the rooms of the repository to their directions: which package may import what, directly or
// through others, is written here as rules and checked against what `go list` sees and what every file says.
//
// It must never hold exceptions for one file: a room that needs another's thing needs another border, in the design
// first and then here.
package borders
