package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// big is a proposal whose statement has sixty kilobytes.
func big(n int) record.ProposeFact {
	r := req(fmt.Sprintf("log %d", n), fmt.Sprintf("Log %d: %s", n, strings.Repeat("rope and timber ", 3800)))
	r.Key = fmt.Sprintf("log-%d", n)
	return r
}

// limitPages lets the file grow by so many pages from now on; 0 takes the limit
// away. SQLite answers as it does on a full disk.
func limitPages(tb testing.TB, s *Store, more int) {
	tb.Helper()
	query := "PRAGMA max_page_count = 1073741823"
	if more > 0 {
		var pages int
		mustView(tb, s, func(v *View) error { return v.row("SELECT page_count FROM pragma_page_count").Scan(&pages) })
		query = fmt.Sprintf("PRAGMA max_page_count = %d", pages+more)
	}
	if _, err := s.writer.conn.raw.ExecContext(context.Background(), query); err != nil {
		tb.Fatal(err)
	}
}

// TestStore_full meets a file that may not grow: a write is refused whole,
// reads go on, and the same call is taken once there is room.
func TestStore_full(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	mustPropose(t, s, big(0))
	limitPages(t, s, 40)
	n := 1
	var err error
	for ; err == nil && n < 10; n++ {
		_, err = s.ProposeFact(t.Context(), big(n))
	}
	wantCode(t, err, record.Unavailable)
	if !strings.Contains(err.Error(), "full") {
		t.Errorf("the error does not say what is wrong: %v", err)
	}
	if got := len(activeContents(t, s)); got != n-1 {
		t.Errorf("%d facts while the file is full, want %d", got, n-1)
	}
	mustView(t, s, func(v *View) error {
		h, err := v.Health(true)
		if h.OK || !strings.Contains(strings.Join(h.Problems, "\n"), "full") {
			t.Errorf("while the file is full health says %v, %q", h.OK, h.Problems)
		}
		return err
	})
	limitPages(t, s, 0)
	if out := mustPropose(t, s, big(n-1)); out.Status != record.StatusCreated {
		t.Errorf("with room again the same call is %s", out.Status)
	}
	mustPropose(t, s, big(n))
	mustView(t, s, func(v *View) error {
		h, err := v.Health(true)
		if !h.OK || h.FactsTotal != int64(n+1) {
			t.Errorf("%+v", h)
		}
		return err
	})
}

// TestStore_staleSnapshot writes while an older read of the same caller is
// open and another opener of the file has committed since: the write begins
// from the newest state and is taken.
func TestStore_staleSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, other := mustReopen(t, dir), mustReopen(t, dir)
	mustPropose(t, one, req("port", "The gateway listens on port 8080"))
	mustView(t, one, func(v *View) error {
		before, err := v.Facts(Scope{}, false, 0, 10)
		if err != nil {
			return err
		}
		mustPropose(t, other, req("port", "The gateway listens on port 9090"))
		if out := mustPropose(t, one, req("port", "the gateway listens on port 9090.")); out.Status != record.StatusReMentioned {
			t.Errorf("the write did not see the other's: %s", out.Status)
		}
		after, err := v.Facts(Scope{}, false, 0, 10)
		if len(before) != 1 || len(after) != 1 || after[0].Value.ID != before[0].Value.ID {
			t.Errorf("the open read changed from %d facts to %d", len(before), len(after))
		}
		return err
	})
}

// TestStore_walShrinks holds a read open until the write-ahead log is past what
// health warns of. Health says so, and once the read is over a few writes bring
// the log back without a restart.
func TestStore_walShrinks(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	mustPropose(t, s, big(0))
	wal := s.path + "-wal"
	mustView(t, s, func(v *View) error {
		// The snapshot begins with the first row that is read.
		if _, err := v.Facts(Scope{}, false, 0, 1); err != nil {
			return err
		}
		for n := 1; fileSize(wal) <= walWarning; n++ {
			if n > 5000 {
				t.Fatalf("the log has %d bytes after %d writes", fileSize(wal), n)
			}
			mustPropose(t, s, big(n))
		}
		h, err := v.Health(false)
		if h.OK || h.WALBytes <= walWarning || !strings.Contains(strings.Join(h.Problems, "\n"), "write-ahead log") {
			t.Errorf("with %d bytes of log health says %q", fileSize(wal), h.Problems)
		}
		return err
	})
	for n := range 4 {
		mustPropose(t, s, req(fmt.Sprintf("after %d", n), fmt.Sprintf("The read is over, %d", n)))
	}
	mustView(t, s, func(v *View) error {
		h, err := v.Health(false)
		if !h.OK || h.WALBytes > walWarning {
			t.Errorf("after the read the log has %d bytes: %q", h.WALBytes, h.Problems)
		}
		return err
	})
}

// TestStore_readsHoldNothing reads again and again, also in ways that fail:
// handles and goroutines stay as many as they were. With POLYPHONY_LONG it
// reads ten thousand times.
func TestStore_readsHoldNothing(t *testing.T) {
	dir := t.TempDir()
	s := mustReopen(t, dir)
	for n := range 20 {
		mustPropose(t, s, req(fmt.Sprintf("shelf %d", n), fmt.Sprintf("Shelf %d holds %d ropes", n, n)))
	}
	reads := func(n int) {
		for range n {
			mustView(t, s, func(v *View) error {
				_, err := v.Facts(Scope{}, false, 0, 5)
				_, missing := v.History("none")
				wantCode(t, missing, record.NotFound)
				return err
			})
			gaveUp, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.View(gaveUp, func(*View) error { return nil }); err == nil {
				t.Fatal("a reader that gave up was served")
			}
			failed := errors.New("the reader's own")
			if err := s.View(t.Context(), func(*View) error { return failed }); err == nil {
				t.Fatal("a reader's error was lost")
			}
		}
	}
	reads(20)
	handles, routines := openHandles(t), runtime.NumGoroutine()
	n := 500
	if os.Getenv("POLYPHONY_LONG") != "" {
		n = 10_000
	}
	reads(n)
	deadline := time.Now().Add(10 * time.Second)
	for openHandles(t) > handles+2 || runtime.NumGoroutine() > routines+2 {
		if time.Now().After(deadline) {
			t.Fatalf("%d handles and %d goroutines after %d reads, %d and %d before", openHandles(t), runtime.NumGoroutine(), n, handles, routines)
		}
		runtime.Gosched()
	}
}

// TestStore_sessionsBeginAlike proposes the same opening text for fifty
// sessions of several agents: it is one fact.
func TestStore_sessionsBeginAlike(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	for n := range 50 {
		r := req("how to work", "You are a careful assistant who tests before pushing.")
		r.Agent, r.Key = fmt.Sprintf("agent-%d", n%7), fmt.Sprintf("session-%d", n)
		mustPropose(t, s, r)
	}
	if got := activeContents(t, s); len(got) != 1 {
		t.Errorf("fifty sessions left %d facts", len(got))
	}
}

// TestOpen_cutShort opens what a kill during the making of the file can leave
// behind: nothing, an empty file, a file in WAL mode without a schema.
func TestOpen_cutShort(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, path string){
		"no file": func(*testing.T, string) {},
		"empty":   func(t *testing.T, path string) { write(t, path, nil) },
		"no schema": func(t *testing.T, path string) {
			raw(t, path, "PRAGMA journal_mode = WAL", "CREATE TABLE x (y)", "DROP TABLE x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			leave(t, filepath.Join(dir, FileName))
			s := mustReopen(t, dir)
			mustPropose(t, s, req("t", "a first statement"))
			mustView(t, s, func(v *View) error {
				h, err := v.Health(true)
				if !h.OK || h.FactsTotal != 1 {
					t.Errorf("%+v", h)
				}
				return err
			})
		})
	}
}

func write(tb testing.TB, path string, content []byte) {
	tb.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
}
