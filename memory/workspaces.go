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
// one is closed when another is needed. Three file handles each, eleven with
// all of its readers.
const maxOpen = 256

// Workspaces opens workspace files below one data folder on demand and keeps
// the recently used ones open.
type Workspaces struct {
	root string
	// backups is the folder of copies, beside root.
	backups string
	opts    Options

	mu     sync.Mutex
	open   *simplelru.LRU[string, *openStore]
	closed bool
	// closing collects evicted stores that nobody uses any more.
	closing []*openStore
	// live are the stores of a workspace that are not closed yet, replaced the
	// workspaces whose file is being replaced.
	live     map[string][]*openStore
	replaced map[string]bool
}

// openStore is one entry: its store is opened once, by the first who asks.
type openStore struct {
	workspace string
	once      sync.Once
	opts      Options
	store     *Store
	err       error
	users     int
	evicted   bool
	// ready is closed once the store is open, closed once it is closed.
	ready, closed chan struct{}
}

// NewWorkspaces serves the workspaces below <data>/workspaces.
func NewWorkspaces(data string, opts Options) (*Workspaces, error) {
	w := &Workspaces{
		root: filepath.Join(data, "workspaces"), backups: filepath.Join(data, "backups"), opts: opts,
		live: map[string][]*openStore{}, replaced: map[string]bool{},
	}
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

// Check refuses a workspace whose id is not well formed, and one that another
// process serves: opening its file here would give the workspace two.
//
// Errors: WorkspaceInvalid, InvalidArgument.
func (w *Workspaces) Check(workspace string) error {
	if err := record.CheckWorkspace(workspace); err != nil {
		return err
	}
	if !w.owns(workspace) {
		return record.Errorf(record.InvalidArgument, "workspace", "workspace %s is of a shard that this worker does not serve; do caller and workers agree on the number of shards?", workspace)
	}
	return nil
}

func (w *Workspaces) owns(workspace string) bool { return w.opts.Owns == nil || w.opts.Owns(workspace) }

// Use opens the workspace, or takes the open one, and runs f on it; the store
// stays open at least until f returns.
func (w *Workspaces) Use(ctx context.Context, workspace string, f func(*Store) error) error {
	if err := w.Check(workspace); err != nil {
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
		if e.err == nil {
			close(e.ready)
		}
	})
	if e.err != nil {
		w.forget(workspace, e)
		return e.err
	}
	return f(e.store)
}

// ifOpen runs f on the workspace's store if it is open and ready; NotFound when
// it is not. It does not count as a use that keeps it open.
func (w *Workspaces) ifOpen(workspace string, f func(*Store) error) error {
	w.mu.Lock()
	e, ok := w.open.Peek(workspace)
	if ok {
		e.users++
	}
	w.mu.Unlock()
	if !ok {
		return record.Errorf(record.NotFound, "workspace", "workspace %s is not open", workspace)
	}
	defer w.release(e)
	select {
	case <-e.ready:
	default:
		return record.Errorf(record.NotFound, "workspace", "workspace %s is being opened", workspace)
	}
	return f(e.store)
}

// Trial runs f on an empty workspace that is gone afterwards: what a trial
// proposal in a workspace that does not exist is judged by.
func (w *Workspaces) Trial(ctx context.Context, workspace string, f func(*Store) error) error {
	if err := w.Check(workspace); err != nil {
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
	if w.replaced[workspace] {
		w.mu.Unlock()
		return nil, record.Errorf(record.Unavailable, "", "workspace %s is being restored", workspace)
	}
	e, ok := w.open.Get(workspace)
	if !ok {
		e = &openStore{workspace: workspace, opts: w.opts, ready: make(chan struct{}), closed: make(chan struct{})}
		w.open.Add(workspace, e)
		w.live[workspace] = append(w.live[workspace], e)
	}
	e.users++
	idle := w.takeClosing()
	w.mu.Unlock()
	_ = w.closeAll(idle)
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
	_ = w.closeAll(idle)
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

func (w *Workspaces) closeAll(stores []*openStore) error {
	var err error
	for _, e := range stores {
		if e.store != nil {
			err = errors.Join(err, e.store.Close())
		}
		w.mu.Lock()
		w.live[e.workspace] = slices.DeleteFunc(w.live[e.workspace], func(o *openStore) bool { return o == e })
		if len(w.live[e.workspace]) == 0 {
			delete(w.live, e.workspace)
		}
		w.mu.Unlock()
		close(e.closed)
	}
	return err
}

// replace runs f with the workspace's folder while nobody has its file open in
// this process. It waits for those who use it to leave.
func (w *Workspaces) replace(ctx context.Context, workspace string, f func(dir string) error) error {
	w.mu.Lock()
	if w.closed || w.replaced[workspace] {
		w.mu.Unlock()
		return record.Errorf(record.Unavailable, "", "workspace %s is being restored, or the store is closing", workspace)
	}
	w.replaced[workspace] = true
	w.open.Remove(workspace)
	leaving := slices.Clone(w.live[workspace])
	idle := w.takeClosing()
	w.mu.Unlock()
	err := w.closeAll(idle)
	defer func() {
		w.mu.Lock()
		delete(w.replaced, workspace)
		w.mu.Unlock()
	}()
	if err != nil {
		return storeError(err)
	}
	for _, e := range leaving {
		select {
		case <-e.closed:
		case <-ctx.Done():
			return record.Wrap(record.Unavailable, ctx.Err(), "the workspace is in use")
		}
	}
	return f(filepath.Join(w.root, workspace))
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
	return w.closeAll(idle)
}

// List returns the ids of the workspaces that exist and are served here, in
// order.
func (w *Workspaces) List() ([]string, error) {
	ids, err := w.folders()
	return slices.DeleteFunc(ids, func(id string) bool { return !w.owns(id) }), err
}

// ReadList answers one page of a read of the workspaces that exist and are
// served here, by id.
//
// Errors: InvalidArgument, Unavailable.
func (w *Workspaces) ReadList(req record.ReadMemory) (record.Page[json.RawMessage], error) {
	p, err := newPager(req)
	if err != nil {
		return p.page, err
	}
	ids, err := w.List()
	if err != nil {
		return p.page, err
	}
	first, found := slices.BinarySearch(ids, req.Cursor)
	if found {
		first++
	}
	ids = ids[first:min(len(ids), first+p.limit)]
	for _, id := range ids {
		if err == nil {
			err = p.add(id, id)
		}
	}
	err = p.end(len(ids), err)
	return p.page, err
}

// Strays returns the ids of the workspaces that lie here and are of shards that
// this process does not serve, in order.
func (w *Workspaces) Strays() ([]string, error) {
	ids, err := w.folders()
	return slices.DeleteFunc(ids, w.owns), err
}

// folders returns the ids of the workspaces that have a file here, in order.
func (w *Workspaces) folders() ([]string, error) {
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
		return w.ReadList(req)
	}
	p, err := newPager(req)
	if err != nil {
		return page, err
	}
	if err := w.Check(req.Workspace); err != nil {
		return page, err
	}
	if req.What == record.ReadBackups {
		names, err := w.Backups(req.Workspace)
		for _, name := range names {
			page.Items = append(page.Items, json.RawMessage(`"`+name+`"`))
		}
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
	return w.closeAll(idle)
}
