package memory

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func openWorkspaces(t *testing.T, data string, owns func(string) bool) *Workspaces {
	t.Helper()
	w, err := NewWorkspaces(data, Options{Owns: owns})
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

func touch(t *testing.T, w *Workspaces, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := w.Use(t.Context(), id, func(*Store) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkspaces_Owns keeps workspaces of other shards closed, so that none is
// ever written by two workers.
func TestWorkspaces_Owns(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	touch(t, openWorkspaces(t, data, nil), "a-1", "a-2", "b-1")
	w := openWorkspaces(t, data, func(id string) bool { return strings.HasPrefix(id, "a-") })
	nothing := func(*Store) error { return nil }
	for name, err := range map[string]error{
		"check": w.Check("b-1"), "use": w.Use(t.Context(), "b-1", nothing), "make": w.Use(t.Context(), "b-2", nothing),
		"trial": w.Trial(t.Context(), "b-3", nothing),
	} {
		if record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "workspaces", "b-2")); !os.IsNotExist(err) {
		t.Errorf("the workspace of another shard was made: %v", err)
	}
	if got, err := w.List(); err != nil || !slices.Equal(got, []string{"a-1", "a-2"}) {
		t.Errorf("List = %v, %v", got, err)
	}
	if got, err := w.Strays(); err != nil || !slices.Equal(got, []string{"b-1"}) {
		t.Errorf("Strays = %v, %v", got, err)
	}
	touch(t, w, "a-1", "a-3")
	if err := w.Check("../a-1"); record.ErrorCode(err) != record.WorkspaceInvalid {
		t.Errorf("a path is %v", err)
	}
}

func TestWorkspaces_ReadList(t *testing.T) {
	t.Parallel()
	w := openWorkspaces(t, t.TempDir(), nil)
	read := func(cursor string, limit int) (ids []string, next string) {
		t.Helper()
		page, err := w.ReadList(record.ReadMemory{Caller: record.Caller{Workspace: "any"}, Cursor: cursor, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range page.Items {
			var id string
			if err := json.Unmarshal(raw, &id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids, page.Next
	}
	if ids, next := read("", 0); len(ids) != 0 || next != "" {
		t.Errorf("an empty folder gives %v, %q", ids, next)
	}
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("w-%d", i))
	}
	touch(t, w, want...)
	var got []string
	for cursor, pages := "", 0; ; pages++ {
		ids, next := read(cursor, 3)
		got = append(got, ids...)
		if next == "" {
			if pages != 2 {
				t.Errorf("%d pages before the last, want 2", pages)
			}
			break
		}
		cursor = next
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages give %v", got)
	}
	// A workspace that is gone still says where to go on.
	if ids, _ := read("w-3x", 100); !slices.Equal(ids, want[4:]) {
		t.Errorf("after w-3x come %v", ids)
	}
	for _, in := range []record.ReadMemory{{Caller: record.Caller{Workspace: "Not An Id"}}, {Caller: record.Caller{Workspace: "any"}, Limit: -1}, {Caller: record.Caller{Workspace: "any"}, Limit: 1001}} {
		if _, err := w.ReadList(in); err == nil {
			t.Errorf("%+v is taken", in)
		}
	}
}
