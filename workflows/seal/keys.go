package seal

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
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
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// keyBytes is the size of an AES-256 key.
	keyBytes = 32
	// idBytes is how many random bytes name a key or a reader.
	idBytes = 6
	// readerPrefix starts every reader's token, so that people and secret
	// scanners know one.
	readerPrefix = "plk_"
	// lockPoll is how often a locked file is tried again.
	lockPoll = 5 * time.Millisecond
)

// Key is one key of the file, without its secret.
type Key struct {
	ID string `json:"id"`
	// From is when it starts to seal; it opens from the moment that it is in
	// the file.
	From record.Time `json:"from"`
}

// Reader is who may have payloads opened over HTTP. The token is shown once,
// when it is made; the file holds a hash of its 256 random bits.
type Reader struct {
	ID        string      `json:"id"`
	CreatedAt record.Time `json:"created_at"`
}

// document is the file.
type document struct {
	Keys    []storedKey    `json:"keys"`
	Readers []storedReader `json:"readers"`
}

type storedKey struct {
	Key
	// Secret is the key itself, 32 bytes.
	Secret []byte `json:"secret"`

	aead cipher.AEAD
}

type storedReader struct {
	Reader
	// Hash is the hex SHA-256 of the token.
	Hash string `json:"hash"`
}

// Ring is the keys of one file. Its methods are safe for concurrent use. A
// change of the file is seen at the next use; a file that cannot be read any
// more leaves the keys that were read last.
type Ring struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	seen fs.FileInfo
	doc  document
}

// Open returns the keys of a file; now is time.Now when nil. An empty path is a
// ring without keys, which seals nothing.
//
// Errors: InvalidArgument (the file is not there, holds no key or is not a key
// file).
func Open(path string, now func() time.Time) (*Ring, error) {
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, record.Wrap(record.InvalidArgument, err, "the key file is not a path")
		}
		path = abs
	}
	r := Edit(path, now)
	if path == "" {
		return r, nil
	}
	doc, info, err := r.read()
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(doc.Keys) == 0 {
		return nil, record.Wrap(record.InvalidArgument, err, "there is no key in the key file; make one with: starter key rotate")
	}
	if err != nil {
		return nil, err
	}
	r.doc, r.seen = doc, info
	return r, nil
}

// Edit returns the keys of a file that need not be there yet.
func Edit(path string, now func() time.Time) *Ring {
	if now == nil {
		now = time.Now
	}
	return &Ring{path: path, now: now}
}

// Seals reports whether the ring encrypts.
func (r *Ring) Seals() bool { return r.path != "" }

// Path is the file's absolute path; empty for a ring without keys.
func (r *Ring) Path() string { return r.path }

// read reads the file as it is now.
func (r *Ring) read() (document, fs.FileInfo, error) {
	var doc document
	info, err := os.Stat(r.path)
	if err != nil {
		return doc, nil, err
	}
	raw, err := os.ReadFile(r.path)
	if err != nil {
		return doc, nil, record.Wrap(record.InvalidArgument, err, "the key file cannot be read")
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return doc, nil, record.Wrap(record.InvalidArgument, err, "the file is not a key file")
	}
	for i := range doc.Keys {
		k := &doc.Keys[i]
		if len(k.Secret) != keyBytes || k.ID == "" {
			return doc, nil, record.Errorf(record.InvalidArgument, "", "key %d of the key file is not a named key of %d bytes", i+1, keyBytes)
		}
		block, err := aes.NewCipher(k.Secret)
		if err == nil {
			k.aead, err = cipher.NewGCMWithRandomNonce(block)
		}
		if err != nil {
			return doc, nil, record.Wrap(record.InvalidArgument, err, "key %d of the key file cannot be used", i+1)
		}
	}
	slices.SortStableFunc(doc.Keys, func(a, b storedKey) int { return cmp.Compare(a.From.Micros(), b.From.Micros()) })
	return doc, info, nil
}

// current is the file as it was last readable.
func (r *Ring) current() document {
	if r.path == "" {
		return document{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	if err != nil || r.seen != nil && os.SameFile(info, r.seen) && info.ModTime().Equal(r.seen.ModTime()) && info.Size() == r.seen.Size() {
		return r.doc
	}
	if doc, info, err := r.read(); err == nil && len(doc.Keys) > 0 {
		r.doc, r.seen = doc, info
	}
	return r.doc
}

// sealing is the newest key that has started, or the first when none has; nil
// in a ring without keys.
func (r *Ring) sealing() *storedKey {
	keys := r.current().Keys
	now := r.now()
	for i := len(keys) - 1; i >= 0; i-- {
		if i == 0 || !keys[i].From.After(now) {
			return &keys[i]
		}
	}
	return nil
}

// opening is the key with that id, nil when there is none.
func (r *Ring) opening(id string) *storedKey {
	keys := r.current().Keys
	if i := slices.IndexFunc(keys, func(k storedKey) bool { return k.ID == id }); i >= 0 {
		return &keys[i]
	}
	return nil
}

// May reports whether the text is a reader's token.
func (r *Ring) May(token string) bool {
	sum := sha256.Sum256([]byte(token))
	hash := []byte(hex.EncodeToString(sum[:]))
	known := false
	for _, reader := range r.current().Readers {
		// Every one is compared, so that the time tells nothing.
		known = subtle.ConstantTimeCompare([]byte(reader.Hash), hash) == 1 || known
	}
	return known
}

// List returns the keys, oldest first, and the readers in the file's order; a
// file that is not there has none.
//
// Errors: InvalidArgument.
func (r *Ring) List() ([]Key, []Reader, error) {
	doc, _, err := r.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	keys, readers := make([]Key, len(doc.Keys)), make([]Reader, len(doc.Readers))
	for i, k := range doc.Keys {
		keys[i] = k.Key
	}
	for i, reader := range doc.Readers {
		readers[i] = reader.Reader
	}
	return keys, readers, nil
}

// Rotate adds a key that seals once after has passed, and makes the file when
// there is none. Where the file is copied to other machines, after leaves time
// to copy it before anything is sealed with the new key.
//
// Errors: InvalidArgument, Unavailable.
func (r *Ring) Rotate(ctx context.Context, after time.Duration) (Key, error) {
	if after < 0 {
		return Key{}, record.Errorf(record.InvalidArgument, "after", "the time to wait is not negative")
	}
	random, err := randomBytes(idBytes + keyBytes)
	if err != nil {
		return Key{}, err
	}
	key := Key{ID: hex.EncodeToString(random[:idBytes]), From: record.At(r.now().Add(after))}
	return key, r.change(ctx, func(doc *document) error {
		doc.Keys = append(doc.Keys, storedKey{Key: key, Secret: random[idBytes:]})
		return nil
	})
}

// AddReader makes a token with which payloads are opened over HTTP.
//
// Errors: Unavailable.
func (r *Ring) AddReader(ctx context.Context) (token string, made Reader, err error) {
	random, err := randomBytes(idBytes + keyBytes)
	if err != nil {
		return "", made, err
	}
	made = Reader{ID: hex.EncodeToString(random[:idBytes]), CreatedAt: record.At(r.now())}
	token = readerPrefix + base64.RawURLEncoding.EncodeToString(random[idBytes:])
	sum := sha256.Sum256([]byte(token))
	return token, made, r.change(ctx, func(doc *document) error {
		doc.Readers = append(doc.Readers, storedReader{Reader: made, Hash: hex.EncodeToString(sum[:])})
		return nil
	})
}

// Remove takes a key or a reader out of the file. What was sealed with a
// removed key can never be opened again.
//
// Errors: NotFound, InvalidArgument (the last key), Unavailable.
func (r *Ring) Remove(ctx context.Context, id string) error {
	return r.change(ctx, func(doc *document) error {
		before := len(doc.Keys) + len(doc.Readers)
		doc.Keys = slices.DeleteFunc(doc.Keys, func(k storedKey) bool { return k.ID == id })
		doc.Readers = slices.DeleteFunc(doc.Readers, func(reader storedReader) bool { return reader.ID == id })
		switch {
		case len(doc.Keys)+len(doc.Readers) == before:
			return record.Errorf(record.NotFound, "id", "the key file holds neither a key nor a reader with that id")
		case len(doc.Keys) == 0:
			return record.Errorf(record.InvalidArgument, "id", "the last key cannot be removed")
		}
		return nil
	})
}

// change edits the file under a lock that other processes respect, and replaces
// it as a whole, so that a reader never sees half of it.
func (r *Ring) change(ctx context.Context, edit func(*document) error) error {
	dir := filepath.Dir(r.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return record.Wrap(record.Unavailable, err, "the key file's folder cannot be made")
	}
	lock := flock.New(r.path+".lock", flock.SetPermissions(0o600))
	if locked, err := lock.TryLockContext(ctx, lockPoll); err != nil || !locked {
		return record.Wrap(record.Unavailable, err, "the key file cannot be locked")
	}
	defer func() { _ = lock.Unlock() }()
	doc, _, err := r.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := edit(&doc); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return record.Wrap(record.Unavailable, err, "the key file cannot be written")
	}
	f, err := os.CreateTemp(dir, filepath.Base(r.path)+".*")
	if err != nil {
		return record.Wrap(record.Unavailable, err, "the key file cannot be written")
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), r.path)
	}
	if err != nil {
		return record.Wrap(record.Unavailable, errors.Join(err, os.Remove(f.Name())), "the key file cannot be written")
	}
	return nil
}

func randomBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return nil, record.Wrap(record.Unavailable, err, "no randomness for a key")
	}
	return b, nil
}
