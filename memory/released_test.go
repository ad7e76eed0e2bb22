package memory

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// release writes the file of the newest schema into testdata, where it stays:
// one of a released schema is never written again.
var release = flag.Bool("release", false, "write testdata/released/schema-N.db.gz of the newest schema")

func releasedPath(schema int) string {
	return filepath.Join("testdata", "released", fmt.Sprintf("schema-%d.db.gz", schema))
}

// Statements that a released file holds.
const (
	releasedFact    = "The gateway listens on port 8080"
	releasedPersian = "سد کوهستانی در پاییز باز می‌شود"
	releasedRule    = "Run the tests before you push."
	releasedNotes   = "Halfway through moving the session store."
)

// TestReleased opens a file that each released schema wrote: it is brought to
// the newest schema, holds what it held, and takes writes.
func TestReleased(t *testing.T) {
	t.Parallel()
	if *release {
		writeReleased(t)
	}
	for schema := 1; schema <= len(migrations); schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			unpack(t, releasedPath(schema), filepath.Join(dir, FileName))
			s := openModel(t, dir)
			defer func() { _ = s.Close() }()
			if got := activeContents(t, s); !slices.Contains(got, releasedFact) || !slices.Contains(got, releasedPersian) {
				t.Errorf("it holds %v", got)
			}
			mustView(t, s, func(v *View) error {
				h, err := v.Health(true)
				if !h.OK || h.SchemaVersion != len(migrations) || h.Policies != 1 || h.OpenConflicts+h.Edges == 0 || h.Operations == 0 || h.Embedded == 0 {
					t.Errorf("%+v", h)
				}
				hits, err2 := v.Postings("8080", 0, 10)
				if len(hits) == 0 {
					t.Error("the index does not find it")
				}
				notes, err3 := v.Notes("a")
				if notes.Text != releasedNotes {
					t.Errorf("notes are %q", notes.Text)
				}
				for _, err := range []error{err, err2, err3} {
					if err != nil {
						return err
					}
				}
				return nil
			})
			if r := examine(t, s, false); !r.OK {
				t.Errorf("%+v", r)
			}
			// A key from then still answers, and a new call is taken.
			again := req("ports", releasedFact)
			again.Key = "released/1"
			if out := mustPropose(t, s, again); out.Status != record.StatusCreated {
				t.Errorf("the old key answers %s", out.Status)
			}
			mustPropose(t, s, req("ports", "The browser listens on port 9090"))

			fresh := openModel(t, t.TempDir())
			defer func() { _ = fresh.Close() }()
			got, want := ddl(t, s), ddl(t, fresh)
			for _, object := range slices.Concat(got, want) {
				if slices.Contains(got, object) != slices.Contains(want, object) {
					t.Errorf("only one of this file and a new one has %q; if schema %d is not released yet, write it again with: go test ./memory -run TestReleased -release", object, schema)
				}
			}
		})
	}
}

func ddl(t *testing.T, s *Store) (out []string) {
	t.Helper()
	mustView(t, s, func(v *View) (err error) {
		rows, err := v.query("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY type, name")
		out, err = collect(rows, err, scanOne[string])
		return err
	})
	return out
}

func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, z); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeReleased makes a workspace with some of everything and packs it.
func writeReleased(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	s := openModel(t, dir)
	first := req("ports", releasedFact)
	first.Key = "released/1"
	mustPropose(t, s, first)
	mustPropose(t, s, req("dam", releasedPersian))
	mustPropose(t, s, req("gateway", "The gateway on port 8080 is written in Go"))
	mustPropose(t, s, req("deploy", "The service deploys to prod"))
	mustPropose(t, s, req("deploy", "The service deploys to staging"))
	waiting, err := s.QueuedForEmbedding(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []Embedded
	for i, w := range waiting {
		v := make([]float32, Dimensions)
		v[i] = 1
		vectors = append(vectors, Embedded{w, v})
	}
	_, err = s.StoreVectors(t.Context(), vectors)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	_, err = s.ProposePolicy(t.Context(), record.ProposePolicy{Caller: caller, Domain: "engineering", Rule: releasedRule, RequiredRole: "coder"})
	must(err)
	_, err = s.UpdateNotes(t.Context(), record.UpdateNotes{Caller: caller, Text: releasedNotes})
	must(err)
	_, err = s.Remember(t.Context(), record.Remember{Caller: caller, Content: "The ropes are wet"})
	must(err)
	_, err = s.CaptureMeetingPage(t.Context(), record.MeetingPage{CaptureMeeting: record.CaptureMeeting{Caller: caller, MeetingID: "m", Revision: 1, Decisions: []record.Decision{{Text: "The crane is painted red."}}}, Last: true})
	must(err)
	packed := filepath.Join(t.TempDir(), FileName)
	must(s.copyTo(context.Background(), packed))
	must(s.Close())
	raw, err := os.ReadFile(packed)
	must(err)
	must(os.MkdirAll(filepath.Join("testdata", "released"), 0o755))
	f, err := os.Create(releasedPath(len(migrations)))
	must(err)
	z := gzip.NewWriter(f)
	_, err = z.Write(raw)
	must(err)
	must(z.Close())
	must(f.Close())
}
