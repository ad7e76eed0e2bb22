// Package text is what the store and recall know about written language: how a
// piece of text is normalised, when two spellings are the same key, which index
// terms it holds, which names it mentions and how it is cut to a length, in any
// script.
//
// The same functions serve the index and the query, so what was stored in one
// spelling is found in another. They are pure and deterministic: same bytes in,
// same bytes out, whatever the bytes are. Invalid UTF-8 is never an error here;
// it counts as a replacement character, which is neither a letter nor a digit.
//
// It must never hold I/O, clocks, SQL, state that changes, or knowledge of what
// the text is used for: facts, policies and rankings live elsewhere.
package text
