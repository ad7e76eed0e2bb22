package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// openAll serves a data folder.
func openAll(t *testing.T, data string) *Workspaces {
	t.Helper()
	w, err := NewWorkspaces(data, Options{Now: newTestClock().Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func in(workspace, key string) record.Caller {
	return record.Caller{Workspace: workspace, Agent: "scout", Key: key}
}

// put writes a fact; contents reads all.
func put(t *testing.T, w *Workspaces, workspace, content string) {
	t.Helper()
	err := w.Use(t.Context(), workspace, func(s *Store) error {
		_, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: in(workspace, ""), Domain: "infra", Topic: content, Content: content})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, w *Workspaces, workspace string) (out []string) {
	t.Helper()
	err := w.Use(t.Context(), workspace, func(s *Store) error {
		out = activeContents(t, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func backUp(t *testing.T, w *Workspaces, workspace, name string) record.Backup {
	t.Helper()
	b, err := w.BackUp(t.Context(), record.BackUp{Caller: in(workspace, ""), Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWorkspaces_BackUp_roundTrip(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := openAll(t, data)
	put(t, w, "demo", "The gateway listens on port 8080")
	put(t, w, "demo", "سد کوهستانی در پاییز باز می‌شود")
	b := backUp(t, w, "demo", "first")
	if b.Workspace != "demo" || b.Name != "first" || b.Facts != 2 || b.SchemaVersion != len(migrations) || b.Bytes == 0 || len(b.SHA256) != 64 || b.MadeAt.IsZero() {
		t.Errorf("%+v", b)
	}
	put(t, w, "demo", "Written after the backup")
	if again := backUp(t, w, "demo", "first"); again != b {
		t.Errorf("a second backup of that name says %+v, the first %+v", again, b)
	}
	backUp(t, w, "demo", "second")
	if names, err := w.Backups("demo"); err != nil || !slices.Equal(names, []string{"first", "second"}) {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := w.Backups("nobody"); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	info, err := os.Stat(w.backupPath("demo", "first"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info, err)
	}

	restore := record.RestoreBackup{Caller: in("demo", "k1"), Name: "first"}
	_, err = w.Restore(t.Context(), restore)
	wantCode(t, err, record.InvalidArgument)
	if got := contents(t, w, "demo"); len(got) != 3 {
		t.Errorf("a refused restore left %v", got)
	}
	restore.Overwrite = true
	if _, err := w.Restore(t.Context(), restore); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, w, "demo"); len(got) != 2 || !strings.Contains(got[1], "کوهستانی") {
		t.Errorf("restored: %v", got)
	}
	put(t, w, "demo", "Written after the restore")
	// The same request again, as after a lost answer, takes nothing back.
	if _, err := w.Restore(t.Context(), restore); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, w, "demo"); len(got) != 3 {
		t.Errorf("the same restore again left %v", got)
	}
	// Into another workspace, which is not there.
	if _, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in("copy", "k2"), Of: "demo", Name: "second"}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, w, "copy"); len(got) != 3 {
		t.Errorf("the copy holds %v", got)
	}
	err = w.Use(t.Context(), "copy", func(s *Store) error {
		r, err := s.Doctor(t.Context(), record.Doctor{Caller: in("copy", "")})
		if !r.OK {
			t.Errorf("%+v", r)
		}
		var mode string
		return errors.Join(err, s.View(t.Context(), func(v *View) error {
			err := v.row("SELECT journal_mode FROM pragma_journal_mode").Scan(&mode)
			if mode != "wal" {
				t.Errorf("a restored file is in mode %s", mode)
			}
			return err
		}))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWorkspaces_BackUp_live copies while eight callers write. Each copy holds
// for every caller exactly the first of its facts up to some one: what was
// committed before, nothing after.
func TestWorkspaces_BackUp_live(t *testing.T) {
	t.Parallel()
	w := openAll(t, t.TempDir())
	put(t, w, "busy", "The first fact")
	const callers, each = 8, 60
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for n := range each {
				err := w.Use(t.Context(), "busy", func(s *Store) error {
					_, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: in("busy", fmt.Sprintf("%d-%d", c, n)), Domain: "load", Topic: fmt.Sprintf("caller %d item %d", c, n), Content: fmt.Sprintf("Caller %d wrote item %d", c, n)})
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var copies []string
	for i := range 6 {
		copies = append(copies, backUp(t, w, "busy", fmt.Sprint("copy-", i)).Name)
	}
	wg.Wait()
	copies = append(copies, backUp(t, w, "busy", "last").Name)
	for i, name := range copies {
		as := fmt.Sprint("as-", i)
		if _, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in(as, ""), Of: "busy", Name: name}); err != nil {
			t.Fatal(err)
		}
		got := contents(t, w, as)
		total := 1
		for c := range callers {
			n := 0
			for slices.Contains(got, fmt.Sprintf("Caller %d wrote item %d", c, n)) {
				n++
			}
			total += n
		}
		if total != len(got) {
			t.Errorf("%s holds %d facts, of which %d come without a gap", name, len(got), total)
		}
		if name == "last" && len(got) != 1+callers*each {
			t.Errorf("the last copy holds %d facts", len(got))
		}
		err := w.Use(t.Context(), as, func(s *Store) error {
			r, err := s.Doctor(t.Context(), record.Doctor{Caller: in(as, "")})
			if !r.OK {
				t.Errorf("%s: %+v", name, r)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestWorkspaces_Restore_live restores while callers write and read: each is
// answered or told to come back, and what it is answered is of one file.
func TestWorkspaces_Restore_live(t *testing.T) {
	t.Parallel()
	w := openAll(t, t.TempDir())
	put(t, w, "busy", "The one fact")
	backUp(t, w, "busy", "one")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				err := w.Use(ctx, "busy", func(s *Store) error {
					_, err := s.ProposeFact(ctx, record.ProposeFact{Caller: in("busy", ""), Domain: "load", Topic: fmt.Sprint(c, n), Content: fmt.Sprintf("Caller %d wrote item %d", c, n)})
					return err
				})
				if err != nil && record.ErrorCode(err) != record.Unavailable {
					t.Errorf("%v", err)
				}
			}
		})
	}
	for i := range 10 {
		if _, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in("busy", fmt.Sprint(i)), Name: "one", Overwrite: true}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	wg.Wait()
	if _, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in("busy", "last"), Name: "one", Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, w, "busy"); !slices.Equal(got, []string{"The one fact"}) {
		t.Errorf("%v", got)
	}
}

func TestWorkspaces_Restore_refuses(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := openAll(t, data)
	put(t, w, "demo", "The one fact")
	backUp(t, w, "demo", "good")
	folder := filepath.Join(data, "backups", "demo")
	whole, err := os.ReadFile(filepath.Join(folder, "good.db"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, raw []byte) {
		if err := os.WriteFile(filepath.Join(folder, name+".db"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("empty", nil)
	write("text", []byte(strings.Repeat("not a database ", 500)))
	damaged := slices.Clone(whole)
	for at := 8192; at+512 < len(damaged); at += 4096 {
		copy(damaged[at:], strings.Repeat("\xa5", 512))
	}
	write("damaged", damaged)
	write("short", whole[:len(whole)/2])
	write("newer", whole)
	raw(t, filepath.Join(folder, "newer.db"), fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
	write("foreign", nil)
	raw(t, filepath.Join(folder, "foreign.db"), "CREATE TABLE theirs (x)", "PRAGMA application_id = 77")
	for name, want := range map[string]record.Code{
		"nothing": record.NotFound, "empty": record.StoreCorrupt, "text": record.StoreCorrupt, "damaged": record.StoreCorrupt, "short": record.StoreCorrupt,
		"newer": record.StoreNewer, "foreign": record.StoreCorrupt, "../good": record.InvalidArgument, "": record.InvalidArgument, ".partial-x": record.InvalidArgument,
	} {
		_, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in("demo", name), Name: name, Overwrite: true})
		if record.ErrorCode(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if got := contents(t, w, "demo"); !slices.Equal(got, []string{"The one fact"}) {
		t.Errorf("what was refused left %v", got)
	}
	for name, caller := range map[string]record.Caller{"nobody": in("nobody", ""), "../demo": in("../demo", "")} {
		if _, err := w.BackUp(t.Context(), record.BackUp{Caller: caller, Name: "x"}); err == nil {
			t.Errorf("a backup of %s", name)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "workspaces", "nobody")); err == nil {
		t.Error("a backup made the workspace")
	}
	// The caller gave up: nothing is left of it.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.BackUp(ctx, record.BackUp{Caller: in("demo", ""), Name: "late"})
	wantCode(t, err, record.Unavailable)
	if names, err := w.Backups("demo"); err != nil || slices.Contains(names, "late") {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(folder, ".partial-late")); err == nil {
		t.Error("a backup that was given up left its folder")
	}
}

// TestWorkspaces_Restore_damaged takes the place of a file that cannot be
// opened any more, with the log that a crash left beside it.
func TestWorkspaces_Restore_damaged(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w := openAll(t, data)
	put(t, w, "demo", "The one fact")
	backUp(t, w, "demo", "one")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "workspaces", "demo", FileName)
	for end, text := range map[string]string{"": "not a database ", "-wal": "an old log ", "-shm": "x"} {
		if err := os.WriteFile(path+end, []byte(strings.Repeat(text, 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w = openAll(t, data)
	err := w.Use(t.Context(), "demo", func(*Store) error { return nil })
	wantCode(t, err, record.StoreCorrupt)
	if _, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in("demo", "k"), Name: "one", Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, w, "demo"); !slices.Equal(got, []string{"The one fact"}) {
		t.Errorf("%v", got)
	}
}

// TestWorkspaces_Restore_waits restores only once who uses the file has left.
func TestWorkspaces_Restore_waits(t *testing.T) {
	t.Parallel()
	w := openAll(t, t.TempDir())
	put(t, w, "demo", "The one fact")
	backUp(t, w, "demo", "one")
	inside, leave := make(chan struct{}), make(chan struct{})
	left := make(chan error)
	go func() {
		left <- w.Use(context.Background(), "demo", func(*Store) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := w.Restore(ctx, record.RestoreBackup{Caller: in("demo", "k"), Name: "one", Overwrite: true})
	wantCode(t, err, record.Unavailable)
	close(leave)
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if _, err := w.Restore(t.Context(), record.RestoreBackup{Caller: in("demo", "k"), Name: "one", Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, w, "demo"); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
