// Package tokens keeps the bearer tokens of a data folder: one file, which the
// command line changes and the worker reads. A token names the workspace, the
// agent and the role of whoever shows it.
//
// Only a hash of each token is stored. The secret in a token has 256 random
// bits, so that a plain SHA-256 of it can be neither guessed nor inverted; a
// slow hash would protect no better and make every request slow.
//
// The package must never hold what is served under a token.
package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// fileName is the file's name in the data folder.
	fileName = "tokens.json"
	// prefix starts every token, so that people and secret scanners know one.
	prefix = "plf_"
	// idBytes and secretBytes are the random bytes of a token's two parts.
	idBytes, secretBytes = 6, 32
	// lockPoll is how often a locked file is tried again.
	lockPoll = 5 * time.Millisecond
)

// Token is what is known of a token; the secret is shown once, when it is made.
type Token struct {
	ID string `json:"id"`
	// Hash is the hex SHA-256 of the whole token.
	Hash      string      `json:"hash"`
	Workspace string      `json:"workspace"`
	Agent     string      `json:"agent"`
	Role      string      `json:"role,omitempty"`
	CreatedAt record.Time `json:"created_at"`
	// ExpiresAt is zero for a token without an end.
	ExpiresAt record.Time `json:"expires_at,omitzero"`
	// RevokedAt is set once the token was taken back; the row stays, so that a
	// folder that used tokens never opens itself again.
	RevokedAt record.Time `json:"revoked_at,omitzero"`
}

// State says in a word whether the token is good at now: active, expired or
// revoked.
func (t Token) State(now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}

// File is the tokens of one data folder. Its methods are safe for concurrent
// use, and several processes may have one file open.
type File struct {
	path string
	now  func() time.Time

	mu sync.Mutex
	// seen and tokens are the file as it was last read, by id.
	seen   stamp
	tokens map[string]Token
}

// stamp tells a changed file from the one that was read. Clocks of file systems
// are coarse, but every change of ours makes the file longer.
type stamp struct {
	modified time.Time
	size     int64
}

// Open returns the tokens of a data folder; the file need not exist. now is
// time.Now when nil.
func Open(data string, now func() time.Time) *File {
	if now == nil {
		now = time.Now
	}
	return &File{path: filepath.Join(data, fileName), now: now}
}

// Create makes a token and returns its text, which is stored nowhere. A life of
// 0 has no end.
//
// Errors: InvalidArgument, WorkspaceInvalid, Unavailable.
func (f *File) Create(ctx context.Context, t Token, life time.Duration) (secret string, made Token, err error) {
	if err := (record.Caller{Workspace: t.Workspace, Agent: t.Agent, Role: t.Role}).Check(); err != nil {
		return "", made, err
	}
	if strings.TrimSpace(t.Agent) == "" {
		return "", made, record.Errorf(record.InvalidArgument, "agent", "name the agent that the token is for")
	}
	if life < 0 {
		return "", made, record.Errorf(record.InvalidArgument, "expires", "a life is not negative")
	}
	random := make([]byte, idBytes+secretBytes)
	if _, err := rand.Read(random); err != nil {
		return "", made, record.Wrap(record.Unavailable, err, "no randomness for a token")
	}
	made = t
	made.ID = hex.EncodeToString(random[:idBytes])
	secret = prefix + made.ID + "_" + base64.RawURLEncoding.EncodeToString(random[idBytes:])
	made.Hash = hashOf(secret)
	made.CreatedAt = record.At(f.now())
	if life > 0 {
		made.ExpiresAt = record.At(f.now().Add(life))
	}
	err = f.change(ctx, func(all map[string]Token) error {
		all[made.ID] = made
		return nil
	})
	return secret, made, err
}

// Revoke takes a token back, at once for every worker on the folder. Taking it
// back again changes nothing.
//
// Errors: NotFound, Unavailable.
func (f *File) Revoke(ctx context.Context, id string) (Token, error) {
	var revoked Token
	err := f.change(ctx, func(all map[string]Token) error {
		t, ok := all[id]
		if !ok {
			return record.Errorf(record.NotFound, "id", "there is no token with that id")
		}
		if t.RevokedAt.IsZero() {
			t.RevokedAt = record.At(f.now())
			all[id] = t
		}
		revoked = t
		return nil
	})
	return revoked, err
}

// List returns every token, oldest first.
func (f *File) List() ([]Token, error) {
	all, err := f.current()
	out := make([]Token, 0, len(all))
	for _, t := range all {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Token) int {
		if c := a.CreatedAt.Compare(b.CreatedAt.Time); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, err
}

// Any reports whether the folder ever had a token; then every call needs one.
func (f *File) Any() (bool, error) {
	all, err := f.current()
	return len(all) > 0, err
}

// Verify returns the token that the text is, if it is good now. The time it
// takes does not depend on how much of the text is right.
//
// Errors: Unauthenticated, Unavailable.
func (f *File) Verify(text string) (Token, error) {
	all, err := f.current()
	if err != nil {
		return Token{}, err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(text, prefix), "_")
	t := all[id]
	same := subtle.ConstantTimeCompare([]byte(hashOf(text)), []byte(t.Hash)) == 1
	if !same || t.State(f.now()) != "active" {
		return Token{}, record.Errorf(record.Unauthenticated, "", "the token is not valid")
	}
	return t, nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// current returns the tokens, read again when the file changed. The map must
// not be changed.
func (f *File) current() (map[string]Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.seen, f.tokens = stamp{}, nil
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	now := stamp{info.ModTime(), info.Size()}
	if f.tokens != nil && f.seen == now {
		return f.tokens, nil
	}
	all, err := f.read()
	if err != nil {
		return nil, err
	}
	f.seen, f.tokens = now, all
	return all, nil
}

func unreadable(err error) error {
	return record.Wrap(record.Unavailable, err, "the tokens of the data folder cannot be read")
}

func (f *File) read() (map[string]Token, error) {
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Token{}, nil
	}
	all := map[string]Token{}
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return all, nil
}

// change reads the file, lets edit change what it holds, and replaces the file
// as a whole, all under a lock.
func (f *File) change(ctx context.Context, edit func(map[string]Token) error) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return record.Wrap(record.Unavailable, err, "the data folder cannot be made")
	}
	lock := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, lockPoll); err != nil || !ok {
		return record.Wrap(record.Unavailable, err, "the tokens of the data folder cannot be locked")
	}
	defer func() { _ = lock.Unlock() }()
	all, err := f.read()
	if err != nil {
		return err
	}
	if err := edit(all); err != nil {
		return err
	}
	if err := f.replace(all); err != nil {
		return record.Wrap(record.Unavailable, err, "the tokens of the data folder cannot be written")
	}
	return nil
}

func (f *File) replace(all map[string]Token) error {
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(f.path), fileName+".*")
	if err != nil {
		return err
	}
	_, err = temp.Write(append(raw, '\n'))
	if err := errors.Join(err, temp.Chmod(0o600), temp.Sync(), temp.Close()); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return os.Rename(temp.Name(), f.path)
}
