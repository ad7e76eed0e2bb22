package endtoend

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// database opens the workspace file in a folder beside whoever serves it, for
// questions only.
func database(t testing.TB, folder string) *sql.DB {
	t.Helper()
	q := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(20000)", "query_only(1)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.Join(folder, memory.FileName), RawQuery: q.Encode()}).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rows asks the workspace file in a folder; each row is its values joined by
// a bar.
func rows(t testing.TB, folder, query string, args ...any) []string {
	t.Helper()
	db := database(t, folder)
	defer func() { _ = db.Close() }()
	return ask(t, db, query, args...)
}

func ask(t testing.TB, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for found.Next() {
		values := make([]any, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := found.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = fmt.Sprintf("x'%x'", b)
			}
			row[i] = fmt.Sprint(v)
		}
		out = append(out, strings.Join(row, "|"))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// one asks for a single value.
func one(t testing.TB, folder, query string, args ...any) string {
	t.Helper()
	found := rows(t, folder, query, args...)
	if len(found) != 1 {
		t.Fatalf("%s: %d rows", query, len(found))
	}
	return found[0]
}

// dump returns every row of every table of the workspace file, the index's own
// tables too, less the tables named.
func dump(t testing.TB, folder string, less ...string) []string {
	t.Helper()
	db := database(t, folder)
	defer func() { _ = db.Close() }()
	var out []string
	for _, table := range ask(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name") {
		if slices.Contains(less, table) {
			continue
		}
		lines := ask(t, db, "SELECT * FROM "+table)
		slices.Sort(lines)
		for _, line := range lines {
			out = append(out, table+": "+line)
		}
	}
	return out
}

// sameDump reports the lines in which two dumps differ.
func sameDump(t testing.TB, what string, before, after []string) {
	t.Helper()
	if slices.Equal(before, after) {
		return
	}
	shown := 0
	show := func(sign string, from, other []string) {
		had := make(map[string]int, len(other))
		for _, line := range other {
			had[line]++
		}
		for _, line := range from {
			if had[line]--; had[line] < 0 && shown < 6 {
				shown++
				t.Errorf("%s: %s %.160s", what, sign, line)
			}
		}
	}
	show("gone", before, after)
	show("new", after, before)
}

// names lists every path below a folder, less those below the engine's own,
// whose files come and go.
func names(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "engine" {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		out = append(out, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// opened opens a workspace file with the store itself, after the worker is
// gone or beside it.
func opened(t testing.TB, folder, workspace string) *memory.Store {
	t.Helper()
	s, err := memory.Open(t.Context(), folder, workspace, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// wantSound checks every page of the file and its index, and returns its
// counts.
func wantSound(t testing.TB, folder, workspace string) record.Health {
	t.Helper()
	s := opened(t, folder, workspace)
	defer func() { _ = s.Close() }()
	var h record.Health
	err := s.View(context.Background(), func(v *memory.View) (err error) {
		h, err = v.Health(true)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !h.OK {
		t.Errorf("the file is not sound: %q", h.Problems)
	}
	if h.SchemaVersion != 1 {
		t.Errorf("schema %d, want 1", h.SchemaVersion)
	}
	return h
}
