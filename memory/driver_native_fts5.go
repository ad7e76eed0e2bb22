//go:build native && !sqlite_fts5

package memory

// Without FTS5 there is no lexical index.
const _ = the_tag_native_needs_the_tag_sqlite_fts5
