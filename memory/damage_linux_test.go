package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// disk mounts a small disk of its own, where the system lets the test.
func disk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDamage_realDisk fills a real disk, makes room, and then makes it
// read-only.
func TestDamage_realDisk(t *testing.T) {
	t.Parallel()
	root := disk(t, "2m")
	dir := filepath.Join(root, "w")
	s, err := Open(t.Context(), dir, "w", Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPropose(t, s, req("first", "The first fact"))
	filler := filepath.Join(root, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	taken := 1
	var refused record.ProposeFact
	for i := 0; refused.Content == ""; i++ {
		in := req(fmt.Sprint("topic ", i), fmt.Sprintf("Fact %d %s", i, strings.Repeat(fmt.Sprint("filler", i, " "), 500)))
		if _, err := s.ProposeFact(t.Context(), in); err != nil {
			wantCode(t, err, record.Unavailable)
			refused = in
		} else {
			taken++
		}
	}
	if got := activeContents(t, s); len(got) != taken {
		t.Errorf("%d facts on a full disk, %d were taken", len(got), taken)
	}
	err = s.copyTo(t.Context(), filepath.Join(root, "copy.db"))
	wantCode(t, err, record.Unavailable)
	for _, name := range []string{filler, filepath.Join(root, "copy.db")} {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
	mustPropose(t, s, refused)
	if r := examine(t, s, false); !r.OK || r.Facts != int64(taken)+1 {
		t.Errorf("with room again: %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s, err = Open(context.Background(), dir, "w", Options{})
	if err != nil {
		wantCode(t, err, record.Unavailable)
		return
	}
	defer func() { _ = s.Close() }()
	if got := activeContents(t, s); len(got) != taken+1 {
		t.Errorf("%d facts on a read-only disk, %d were written", len(got), taken+1)
	}
	_, err = s.ProposeFact(t.Context(), req("late", "The late fact"))
	wantCode(t, err, record.Unavailable)
	mustView(t, s, func(v *View) error {
		h, err := v.Health(true)
		if h.OK || !strings.Contains(strings.Join(h.Problems, "; "), "read-only") {
			t.Errorf("health says %v", h.Problems)
		}
		return err
	})
}
