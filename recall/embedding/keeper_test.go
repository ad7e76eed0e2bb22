package embedding

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// changes records what a keeper says about the model in use.
type changes struct {
	mu  sync.Mutex
	ids []string
}

func (c *changes) add(m *Model) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := ""
	if m != nil {
		id = m.ID()
	}
	c.ids = append(c.ids, id)
	return nil
}

func keep(t *testing.T, data, given string) (*Keeper, *changes) {
	t.Helper()
	k, c := NewKeeper(data, given, Installer{}), &changes{}
	k.OnChange(c.add)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k, c
}

func status(t *testing.T, k *Keeper) record.EmbeddingModel {
	t.Helper()
	s, err := k.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	one, two := write(t, made(t, Dimensions, 1)), write(t, made(t, Dimensions, 2))
	k, c := keep(t, data, "")
	if err := k.Load(); err != nil || k.Model() != nil {
		t.Fatalf("without a model: %v, %v", k.Model(), err)
	}
	if err := k.Remove(t.Context()); record.ErrorCode(err) != record.NotFound {
		t.Errorf("remove without a model: %v", err)
	}
	if s := status(t, k); s != (record.EmbeddingModel{}) {
		t.Errorf("without a model: %+v", s)
	}
	if err := k.Install(t.Context(), one, nil); err != nil {
		t.Fatal(err)
	}
	first := k.Model()
	if s := status(t, k); !s.Installed || !s.InUse || s.ID != first.ID() || s.Dimensions != Dimensions || s.Bytes == 0 {
		t.Errorf("installed: %+v", s)
	}
	if err := k.Install(t.Context(), two, nil); err != nil {
		t.Fatal(err)
	}
	second := k.Model()
	if first.ID() == second.ID() {
		t.Fatal("the second is not in use")
	}
	if _, err := first.Embed(t.Context(), []string{"the team"}); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("the former model is still open: %v", err)
	}

	// What cannot be installed leaves what is in use.
	broken := filepath.Join(t.TempDir(), "model.zip")
	if err := os.WriteFile(broken, []byte("PK\x03\x04 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]record.Code{
		broken: record.InvalidArgument, filepath.Join(data, "nothing"): record.InvalidArgument,
		// Not an absolute path: a name on the hub, and nothing is downloaded here.
		"sentence-transformers/" + ModelName: record.InvalidArgument, ".": record.InvalidArgument, "keeper_test.go": record.InvalidArgument,
	} {
		if err := k.Install(t.Context(), source, nil); record.ErrorCode(err) != want {
			t.Errorf("from %q: %v, want %s", source, err, want)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := k.Install(stopped, one, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an installation that is stopped: %v", err)
	}
	if k.Model() != second || !status(t, k).InUse {
		t.Error("a failure changed the model in use")
	}

	// Another process finds it.
	other, _ := keep(t, data, "")
	if err := other.Load(); err != nil || other.Model().ID() != second.ID() {
		t.Errorf("after a restart: %v", err)
	}
	if err := k.Remove(t.Context()); err != nil || k.Model() != nil || status(t, k).Installed {
		t.Errorf("removed: %v", err)
	}
	if want := []string{first.ID(), second.ID(), ""}; !slices.Equal(c.ids, want) {
		t.Errorf("it was said that %q are in use, want %q", c.ids, want)
	}
}

func TestKeeper_atOnce(t *testing.T) {
	t.Parallel()
	sources := []string{write(t, made(t, Dimensions, 1)), write(t, made(t, Dimensions, 2))}
	data := t.TempDir()
	k, c := keep(t, data, "")
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			if err := k.Install(t.Context(), sources[i%2], nil); err != nil {
				t.Error(err)
			}
			status(t, k)
		})
	}
	all.Wait()
	installed(t, ModelDir(data))
	if s := status(t, k); !s.InUse || s.ID != k.Model().ID() || s.ID != c.ids[len(c.ids)-1] || len(c.ids) != 6 {
		t.Errorf("%+v after %q", s, c.ids)
	}
}

// TestKeeper_given: a folder that the operator named is used and left alone.
func TestKeeper_given(t *testing.T) {
	t.Parallel()
	dir := write(t, made(t, Dimensions, 1))
	k, _ := keep(t, t.TempDir(), dir)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"install": k.Install(t.Context(), write(t, made(t, Dimensions, 2)), nil), "remove": k.Remove(t.Context())} {
		if record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := status(t, k); !s.Given || !s.InUse || s.ID != k.Model().ID() {
		t.Errorf("%+v", s)
	}
	empty, _ := keep(t, t.TempDir(), t.TempDir())
	if err := empty.Load(); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("an empty folder that was named: %v", err)
	}
}

// TestKeeper_broken: what is half there is told, does not load, and can be
// removed.
func TestKeeper_broken(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	files := made(t, Dimensions, 1)
	if err := os.MkdirAll(ModelDir(data), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ModelDir(data), tokenizerFile), files[tokenizerFile], 0o600); err != nil {
		t.Fatal(err)
	}
	k, _ := keep(t, data, "")
	if err := k.Load(); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("loading half a model: %v", err)
	}
	if s := status(t, k); s.Installed || s.InUse || s.Problem == "" {
		t.Errorf("%+v", s)
	}
	if err := k.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if s := status(t, k); s.Problem != "" {
		t.Errorf("%+v", s)
	}
}

// TestKeeper_stopping: what was installed while the worker stops is not left
// open.
func TestKeeper_stopping(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	k, c := keep(t, data, "")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.Install(t.Context(), write(t, made(t, Dimensions, 1)), nil); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("%v", err)
	}
	if k.Model() != nil || len(c.ids) != 0 || !status(t, k).Installed {
		t.Errorf("%v is in use, %q was said", k.Model(), c.ids)
	}
}
