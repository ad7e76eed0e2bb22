package memory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestDamage_everyPage spoils one page of a file after the other. Each read is
// answered in full or with StoreCorrupt, never as if memory were empty, and the
// deep check sees every one of them.
func TestDamage_everyPage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := openAll(t, data)
	const n = 60
	for i := range n {
		put(t, w, "demo", fmt.Sprintf("Statement number %d is about the thing on shelf %d %s", i, i, strings.Repeat("and so on ", 30)))
	}
	backUp(t, w, "demo", "whole")
	whole, err := os.ReadFile(w.backupPath("demo", "whole"))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	refused := 0
	for at := 0; at < len(whole); at += page {
		dir := t.TempDir()
		spoiled := slices.Clone(whole)
		copy(spoiled[at:], bytes.Repeat([]byte{0xa5}, 64))
		if err := os.WriteFile(filepath.Join(dir, FileName), spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		healthy, err := func() (bool, error) {
			s, err := Open(context.Background(), dir, "w", Options{})
			if err != nil {
				return false, err
			}
			defer func() { _ = s.Close() }()
			var facts []Row[record.Fact]
			err = s.View(t.Context(), func(v *View) (err error) {
				facts, err = v.Facts(Scope{}, false, 0, 1000)
				return err
			})
			if err == nil && len(facts) != n {
				t.Errorf("page %d: %d of %d facts and no error", at/page, len(facts), n)
			}
			if err != nil && record.ErrorCode(err) != record.StoreCorrupt {
				t.Errorf("page %d: a read says %v", at/page, err)
			}
			var h record.Health
			err = s.View(t.Context(), func(v *View) (err error) {
				h, err = v.Health(true)
				return err
			})
			if err != nil {
				return false, err
			}
			r, err := s.Doctor(t.Context(), record.Doctor{Caller: caller})
			return h.OK && (err != nil || r.OK), err
		}()
		if err != nil {
			refused++
			if record.ErrorCode(err) != record.StoreCorrupt {
				t.Errorf("page %d: %v", at/page, err)
			}
		}
		if err == nil && healthy {
			t.Errorf("page %d is spoiled and neither health nor the doctor says so", at/page)
		}
	}
	t.Logf("%d pages, %d of them refused by name, the others named by the deep check", len(whole)/page, refused)
}

// TestDamage_fullDisk fills the file to a limit, as a full disk does: the write
// that does not fit is refused by name and leaves nothing, reads go on, and
// when there is room again the same call succeeds.
func TestDamage_fullDisk(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	mustPropose(t, s, req("first", "The first fact"))
	limit := func(query string) {
		t.Helper()
		// The writer is idle: the test is its only caller.
		if _, err := s.writer.conn.raw.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	limit("PRAGMA max_page_count = 1")
	taken := 1
	var refused record.ProposeFact
	for i := 0; ; i++ {
		in := req(fmt.Sprint("topic ", i), fmt.Sprintf("Fact %d %s", i, strings.Repeat(fmt.Sprint("filler", i, " "), 2000)))
		in.Key = fmt.Sprint("key-", i)
		_, err := s.ProposeFact(t.Context(), in)
		if err == nil {
			taken++
			continue
		}
		wantCode(t, err, record.Unavailable)
		if !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("the error says %v", err)
		}
		refused = in
		break
	}
	if got := activeContents(t, s); len(got) != taken {
		t.Errorf("%d facts, %d were taken", len(got), taken)
	}
	limit("PRAGMA max_page_count = 1000000")
	if out := mustPropose(t, s, refused); out.Status != record.StatusCreated {
		t.Errorf("the refused call, with room again, answers %s", out.Status)
	}
	if r := examine(t, s, false); !r.OK || r.Facts != int64(taken)+1 {
		t.Errorf("%+v", r)
	}
}
