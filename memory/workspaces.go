package memory

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// maxOpen bounds the workspaces that are open at once; the least recently used
// one is closed when another is needed. Six file handles each.
const maxOpen = 256

// Workspaces opens workspace files below one data folder on demand and keeps
// the recently used ones open.
type Workspaces struct {
	root string
	opts Options

	mu     sync.Mutex
	open   *simplelru.LRU[string, *openStore]
	closed bool
	// closing collects evicted stores that nobody uses any more.
	closing []*openStore
}

// openStore is one entry: its store is opened once, by the first who asks.
type openStore struct {
	once    sync.Once
	opts    Options
	store   *Store
	err     error
	users   int
	evicted bool
}

// NewWorkspaces serves the workspaces below <data>/workspaces.
func NewWorkspaces(data string, opts Options) (*Workspaces, error) {
	w := &Workspaces{root: filepath.Join(data, "workspaces"), opts: opts}
	var err error
	w.open, err = simplelru.NewLRU(maxOpen, w.evict)
	if err != nil {
		return nil, record.Wrap(record.Unavailable, err, "the cache of open workspaces cannot be made")
	}
	return w, nil
}

// evict runs with mu held.
func (w *Workspaces) evict(_ string, e *openStore) {
	e.evicted = true
	if e.users == 0 {
		w.closing = append(w.closing, e)
	}
}

// Use opens the workspace, or takes the open one, and runs f on it; the store
// stays open at least until f returns.
func (w *Workspaces) Use(ctx context.Context, workspace string, f func(*Store) error) error {
	if err := record.CheckWorkspace(workspace); err != nil {
		return err
	}
	e, err := w.acquire(workspace)
	if err != nil {
		return err
	}
	defer w.release(e)
	e.once.Do(func() {
		// The first caller opens for all who wait, so its own deadline must
		// not decide for them.
		e.store, e.err = Open(context.WithoutCancel(ctx), filepath.Join(w.root, workspace), workspace, e.opts)
	})
	if e.err != nil {
		w.forget(workspace, e)
		return e.err
	}
	return f(e.store)
}

// Trial runs f on an empty workspace that is gone afterwards: what a trial
// proposal in a workspace that does not exist is judged by.
func (w *Workspaces) Trial(ctx context.Context, workspace string, f func(*Store) error) error {
	if err := record.CheckWorkspace(workspace); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "polyphony-trial-")
	if err != nil {
		return record.Wrap(record.Unavailable, err, "there is no room for a trial")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w.mu.Lock()
	opts := w.opts
	w.mu.Unlock()
	s, err := Open(ctx, dir, workspace, opts)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func (w *Workspaces) acquire(workspace string) (*openStore, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, record.Errorf(record.Unavailable, "", "the store is closing")
	}
	e, ok := w.open.Get(workspace)
	if !ok {
		e = &openStore{opts: w.opts}
		w.open.Add(workspace, e)
	}
	e.users++
	idle := w.takeClosing()
	w.mu.Unlock()
	_ = closeAll(idle)
	return e, nil
}

func (w *Workspaces) release(e *openStore) {
	w.mu.Lock()
	e.users--
	if e.evicted && e.users == 0 {
		w.closing = append(w.closing, e)
	}
	idle := w.takeClosing()
	w.mu.Unlock()
	_ = closeAll(idle)
}

// forget drops an entry whose opening failed, so that the next call tries
// again.
func (w *Workspaces) forget(workspace string, e *openStore) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if current, ok := w.open.Peek(workspace); ok && current == e {
		w.open.Remove(workspace)
	}
}

func (w *Workspaces) takeClosing() []*openStore {
	idle := w.closing
	w.closing = nil
	return idle
}

func closeAll(stores []*openStore) error {
	var err error
	for _, e := range stores {
		if e.store != nil {
			err = errors.Join(err, e.store.Close())
		}
	}
	return err
}

// UseModel makes model the one whose vectors count; "" is none. A store has one
// model for as long as it is open, so that vectors of two never mix in it: the
// open ones are closed once their users leave, and the next who asks gets one
// of the new model.
func (w *Workspaces) UseModel(model string) error {
	w.mu.Lock()
	if w.opts.Embedding == model {
		w.mu.Unlock()
		return nil
	}
	w.opts.Embedding = model
	w.open.Purge()
	idle := w.takeClosing()
	w.mu.Unlock()
	return closeAll(idle)
}

// List returns the ids of the workspaces that exist, in order.
func (w *Workspaces) List() ([]string, error) {
	entries, err := os.ReadDir(w.root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, record.Wrap(record.Unavailable, err, "the workspaces cannot be listed")
	}
	ids := []string{}
	for _, e := range entries {
		if !e.IsDir() || record.CheckWorkspace(e.Name()) != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(w.root, e.Name(), FileName)); err == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Read answers one page of a read operation. Reading makes no workspace: one
// that does not exist holds nothing.
//
// Errors: those of [Store.Read]; NotFound for the health of a workspace that
// does not exist.
func (w *Workspaces) Read(ctx context.Context, req record.ReadMemory) (record.Page[json.RawMessage], error) {
	page := record.Page[json.RawMessage]{Items: []json.RawMessage{}}
	if req.What == record.ReadWorkspaces {
		ids, err := w.List()
		for _, id := range ids {
			page.Items = append(page.Items, json.RawMessage(`"`+id+`"`))
		}
		return page, err
	}
	p, err := newPager(req)
	if err != nil {
		return page, err
	}
	if !w.Exists(req.Workspace) {
		switch req.What {
		case record.ReadHealth:
			return page, record.Errorf(record.NotFound, "workspace", "there is no workspace %s", req.Workspace)
		case record.ReadCheck:
			// A record that holds nothing knows none of the statements.
			rows := make([]record.CheckedStatement, len(req.Context))
			for i, s := range req.Context {
				rows[i] = unknownStatement(s)
			}
			err = addAll(&p, rows, nil)
		}
		return p.page, err
	}
	err = w.Use(ctx, req.Workspace, func(s *Store) (err error) {
		page, err = s.Read(ctx, req)
		return err
	})
	return page, err
}

// Exists reports whether the workspace has a file; reading an unknown
// workspace must not make one.
func (w *Workspaces) Exists(workspace string) bool {
	if record.CheckWorkspace(workspace) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(w.root, workspace, FileName))
	return err == nil
}

// Close closes every open workspace that nobody uses; the ones in use are
// closed by their last user.
func (w *Workspaces) Close() error {
	w.mu.Lock()
	w.closed = true
	w.open.Purge()
	idle := w.takeClosing()
	w.mu.Unlock()
	return closeAll(idle)
}
