// Package seal encrypts what workflows carry, so that the engine's database and
// its Web UI hold no stored text: AES-256-GCM under the keys of a file, each
// payload bound to the id of its workflow.
//
// The worker, the command line and every program that uses the typed client
// read the same key file. The newest key seals, every key in the file opens.
// Ids, search attributes, activity and error names stay readable: they tell an
// operator what runs, not what it says.
//
// The package must never hold what a payload means.
package seal
