//go:build unix

package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// envReadOnly names the folder that TestReader opens.
const envReadOnly = "POLYPHONY_TEST_READ_ONLY"

// nobody is a user without rights, which root becomes in the test: root may
// write everywhere.
const nobody = 65534

// TestReader is what TestOpen_readOnly runs in a process of another user.
func TestReader(t *testing.T) {
	dir := os.Getenv(envReadOnly)
	if dir == "" {
		t.Skip("runs in a process of TestOpen_readOnly")
	}
	s := mustOpenVectors(t, dir, "m", VectorIndex(os.Getenv(envReadOnly+"_INDEX")))
	if got := len(activeContents(t, s)); got != 30 {
		t.Errorf("%d facts", got)
	}
	query := randomVector(rand.New(rand.NewPCG(1, 2)))
	if got := mustNear(t, s, query, Scope{}, 5); len(got) != 5 {
		t.Errorf("near: %q", got)
	}
	mustView(t, s, func(v *View) error {
		seqs, err := v.Postings("statement", 0, 100)
		if len(seqs) != 30 {
			t.Errorf("%d facts by a word", len(seqs))
		}
		return err
	})
	s.CountRecall([]string{"a"})
	_, err := s.ProposeFact(t.Context(), req("t", "not on a read-only file"))
	wantCode(t, err, record.Unavailable)
	if _, err := s.StoreVectors(t.Context(), nil); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("storing vectors: %v", err)
	}
	if h, _ := vectorHealth(t, s); h.OK {
		t.Error("a read-only file is well")
	}
	mustClose(t, s)
}

// contentsOf hashes every file of a folder except SQLite's shared memory, which
// holds locks and no content.
func contentsOf(tb testing.TB, dir string) string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var out strings.Builder
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %x\n", e.Name(), sha256.Sum256(b))
	}
	return out.String()
}

func TestOpen_readOnlyChanges(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "w")
	s := mustOpenVectors(t, dir, "m", VectorsInMemory)
	mustPropose(t, s, req("t", "the first statement"))
	mustClose(t, s)
	frozen := &Store{path: filepath.Join(dir, FileName)}
	if err := frozen.freeze(); err != nil || frozen.thawed() {
		t.Fatalf("a file that nobody has open: %v, thawed %v", err, frozen.thawed())
	}
	s = mustOpenVectors(t, dir, "m", VectorsInMemory)
	mustPropose(t, s, req("t", "another statement"))
	if !frozen.thawed() {
		t.Error("a writer was not noticed")
	}
	mustClose(t, s)
	if !frozen.thawed() {
		t.Error("what a writer left was not noticed")
	}
}

func copyFile(tb testing.TB, from, to string, mode os.FileMode) {
	tb.Helper()
	in, err := os.Open(from)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err == nil {
		_, err = io.Copy(out, in)
		_ = out.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// asNobody takes root's rights away from a command; others have none to lose.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// TestOpen_readOnly reads a workspace in a folder that cannot be written, after
// a clean end and beside a store that is still open: everything is found, and
// no byte changes.
func TestOpen_readOnly(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(base, "reader")
	copyFile(t, self, binary, 0o755)
	for _, state := range []string{"closed", "open"} {
		t.Run(state, func(t *testing.T) {
			dir := filepath.Join(base, state)
			s := mustOpenVectors(t, dir, "m", VectorsInMemory)
			for i := range 30 {
				mustPropose(t, s, req(fmt.Sprint(i), fmt.Sprintf("statement number %d", i)))
			}
			mustEmbed(t, s, rand.New(rand.NewPCG(7, 7)))
			if state == "closed" {
				mustClose(t, s)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if err := os.Chmod(filepath.Join(dir, e.Name()), 0o444); err != nil {
					t.Fatal(err)
				}
			}
			for path := dir; path != filepath.Dir(filepath.Dir(base)) && len(path) > len(os.TempDir()); path = filepath.Dir(path) {
				mode := os.FileMode(0o755)
				if path == dir {
					mode = 0o555
				}
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			before := contentsOf(t, dir)
			for _, index := range []VectorIndex{VectorsInMemory, VectorsInFile} {
				cmd := exec.CommandContext(context.Background(), binary, "-test.run", "^TestReader$", "-test.v")
				cmd.Dir = base
				cmd.Env = append(os.Environ(), envReadOnly+"="+dir, envReadOnly+"_INDEX="+string(index))
				asNobody(cmd)
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestReader") {
					t.Errorf("with the index in %s: %v\n%s", index, err, out)
				}
			}
			if after := contentsOf(t, dir); after != before {
				t.Errorf("reading changed the files:\n%s\n%s", before, after)
			}
		})
	}
}
