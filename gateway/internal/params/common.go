package params

import "github.com/polyphony-memory/polyphony/memory/record"

// Names returns the texts of an enumeration.
func Names[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// Name is an argument that takes a name or an id.
func Name(name, about string) Param {
	return Param{Name: name, Kind: Text, MaxLength: record.MaxNameBytes, About: about}
}

// Must returns the argument as one that a call needs.
func (p Param) Must() Param {
	p.Required = true
	return p
}

// Caller returns the arguments that say for whom a call is made. Most clients
// say it once, in their settings.
func Caller() List {
	return List{
		{Name: "workspace", Kind: Text, MaxLength: 64, About: "Workspace to work in; leave out to use the connection's own."},
		Name("agent", "Your name as an agent; leave out to use the connection's own."),
		{Name: "role", Kind: Text, Enum: Names(record.Roles()), About: "Your role, which grants depend on; leave out to use the connection's own."},
		Name("repo", "Repository that the call is about: a domain then means that repository's, and its facts and policies rank first."),
	}
}

// Key returns the argument for an idempotency key.
func Key() Param {
	return Param{Name: "key", Kind: Text, MaxLength: record.MaxKeyBytes, About: "Idempotency key, printable ASCII: the same call again with it changes nothing twice and returns the first answer."}
}

// Page returns the arguments of a list that has rows by default.
func Page(rows int) List {
	return List{
		{Name: "limit", Kind: Integer, Min: Bound(1), Max: Bound(1000), Default: rows, About: "How many rows at most. An answer that grows too large ends earlier."},
		Name("cursor", "Where to go on: next of the answer before."),
	}
}
