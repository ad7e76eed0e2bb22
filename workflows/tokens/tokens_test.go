package tokens

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// clock is time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

var scout = Token{Workspace: "demo", Agent: "پیشاهنگ", Role: "coder"}

func TestFile(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)}
	data := filepath.Join(t.TempDir(), "not", "there", "yet")
	f, other := Open(data, c.now), Open(data, c.now)
	if some, err := f.Any(); err != nil || some {
		t.Fatalf("an empty folder has tokens: %v, %v", some, err)
	}
	secret, made, err := f.Create(t.Context(), scout, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	// Another process sees it at once.
	got, err := other.Verify(secret)
	if err != nil || got != made || got.Agent != scout.Agent {
		t.Fatalf("%+v, %v, want %+v", got, err, made)
	}
	for _, wrong := range []string{"", "plf_", "plf_" + made.ID, secret + "x", secret[:len(secret)-1], strings.ToUpper(secret), made.Hash, "plf_" + made.ID + "_"} {
		if _, err := f.Verify(wrong); record.ErrorCode(err) != record.Unauthenticated {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(data, fileName))
	if err != nil || strings.Contains(string(raw), secret) {
		t.Errorf("the file holds the token: %v", err)
	}
	if info, err := os.Stat(filepath.Join(data, fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	c.pass(time.Hour)
	if _, err := other.Verify(secret); record.ErrorCode(err) != record.Unauthenticated {
		t.Errorf("an expired token: %v", err)
	}

	endless, second, err := f.Create(t.Context(), scout, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(1000 * time.Hour)
	if _, err := other.Verify(endless); err != nil {
		t.Errorf("a token without an end: %v", err)
	}
	first, err := f.Revoke(t.Context(), second.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Verify(endless); record.ErrorCode(err) != record.Unauthenticated {
		t.Errorf("a revoked token: %v", err)
	}
	c.pass(time.Minute)
	if again, err := f.Revoke(t.Context(), second.ID); err != nil || again != first {
		t.Errorf("taking it back twice gives %+v, %v", again, err)
	}
	if _, err := f.Revoke(t.Context(), "nothing"); record.ErrorCode(err) != record.NotFound {
		t.Errorf("an unknown id: %v", err)
	}
	all, err := other.List()
	if err != nil || len(all) != 2 || all[0].ID != made.ID || all[0].State(c.now()) != "expired" || all[1].State(c.now()) != "revoked" {
		t.Errorf("the list is %+v, %v", all, err)
	}
	// A folder that had tokens stays closed.
	if some, err := other.Any(); err != nil || !some {
		t.Errorf("without a good token left the folder is open: %v", err)
	}
}

func TestFile_refuses(t *testing.T) {
	t.Parallel()
	f := Open(t.TempDir(), nil)
	for name, tc := range map[string]struct {
		token Token
		life  time.Duration
		code  record.Code
	}{
		"workspace": {Token{Workspace: "../x", Agent: "a"}, 0, record.WorkspaceInvalid},
		"no agent":  {Token{Workspace: "x", Agent: " "}, 0, record.InvalidArgument},
		"role":      {Token{Workspace: "x", Agent: "a", Role: "king"}, 0, record.InvalidArgument},
		"life":      {Token{Workspace: "x", Agent: "a"}, -1, record.InvalidArgument},
	} {
		if _, _, err := f.Create(t.Context(), tc.token, tc.life); record.ErrorCode(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if some, _ := f.Any(); some {
		t.Error("a refused token was made")
	}
}

// A file that cannot be read lets nobody in.
func TestFile_damaged(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	f := Open(data, nil)
	secret, _, err := f.Create(t.Context(), scout, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, fileName), []byte(`{"half":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Verify(secret); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("verifying says %v", err)
	}
	if _, err := f.Any(); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("asking for any says %v", err)
	}
	if _, _, err := f.Create(t.Context(), scout, 0); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("making one says %v, and would overwrite the rest", err)
	}
}

func TestFile_atOnce(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			f := Open(data, nil)
			secret, made, err := f.Create(t.Context(), scout, 0)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := f.Verify(secret); err != nil {
				t.Error(err)
			}
			if _, err := f.Revoke(t.Context(), made.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := Open(data, nil).List(); err != nil || len(list) != 16 {
		t.Errorf("%d tokens are left, %v", len(list), err)
	}
}
