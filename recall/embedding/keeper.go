package embedding

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Keeper keeps the model that a worker uses: it installs and removes the files
// in a data folder and has the worker change over without a restart. Its
// methods are safe for concurrent use.
type Keeper struct {
	dir       string
	given     bool
	installer Installer
	// turn holds a token while nobody changes the files.
	turn chan struct{}

	mu      sync.Mutex
	model   *Model
	changed func(*Model) error
	closed  bool
}

// NewKeeper makes a keeper of the model in data, or, when given is not empty,
// of the one in that folder, which then is somebody else's: it is used and
// never changed. Load opens it.
func NewKeeper(data, given string, installer Installer) *Keeper {
	k := &Keeper{dir: ModelDir(data), installer: installer, turn: make(chan struct{}, 1), changed: func(*Model) error { return nil }}
	if given != "" {
		k.dir, k.given = given, true
	}
	k.turn <- struct{}{}
	return k
}

// Load opens the model; without one installed it does nothing. A given folder
// must hold one.
func (k *Keeper) Load() error {
	if !k.given {
		info, err := Status(k.dir)
		if err == nil && info.Problem != "" {
			err = record.Errorf(record.InvalidArgument, "", "what is installed is no embedding model: %s", info.Problem)
		}
		if err != nil || !info.Installed {
			return err
		}
	}
	return k.open()
}

// open has the worker use what lies in the folder.
func (k *Keeper) open() error {
	m, err := Open(k.dir, Options{})
	if err != nil {
		return err
	}
	return k.use(m)
}

// OnChange sets who is told which model is used from now on, nil for none. The
// former one is closed after that.
func (k *Keeper) OnChange(changed func(*Model) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = changed
}

// Model returns the model in use, nil for none.
func (k *Keeper) Model() *Model {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.model
}

// use puts next in use and closes what was.
func (k *Keeper) use(next *Model) error {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		err := error(record.Errorf(record.Unavailable, "", "the worker is stopping"))
		if next != nil {
			err = errors.Join(err, next.Close())
		}
		return err
	}
	old, changed := k.model, k.changed
	k.model = next
	k.mu.Unlock()
	err := changed(next)
	if old != nil {
		err = errors.Join(err, old.Close())
	}
	return err
}

// begin waits for the turn to change the files.
func (k *Keeper) begin(ctx context.Context) (end func(), err error) {
	if k.given {
		return nil, record.Errorf(record.InvalidArgument, "", "the worker was started with a model folder of its own, which is not changed from here")
	}
	select {
	case <-k.turn:
		return func() { k.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Install installs a model as Installer does and has the worker use it. Only an
// absolute path is looked for on this machine: any other source is a name on
// the hub.
//
// Errors: InvalidArgument, NotFound (the hub has none of that name),
// Unavailable.
func (k *Keeper) Install(ctx context.Context, source string, progress func(done, total int64)) error {
	end, err := k.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if filepath.IsAbs(source) {
		err = k.installer.Install(ctx, source, k.dir, progress)
	} else {
		err = k.installer.download(ctx, source, k.dir, progress)
	}
	if err != nil {
		return err
	}
	return k.open()
}

// Remove deletes the files of the model and has the worker do without.
//
// Errors: NotFound when none is installed, InvalidArgument, Unavailable.
func (k *Keeper) Remove(ctx context.Context) error {
	end, err := k.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := Remove(k.dir); err != nil {
		return err
	}
	return k.use(nil)
}

// Status tells what is installed and whether it is in use.
func (k *Keeper) Status() (record.EmbeddingModel, error) {
	info, err := Status(k.dir)
	if err != nil {
		return record.EmbeddingModel{}, err
	}
	m := k.Model()
	return record.EmbeddingModel{
		Installed: info.Installed, InUse: m != nil && m.ID() == info.ID, Given: k.given,
		ID: info.ID, Dimensions: info.Dimensions, Bytes: info.Bytes, Problem: info.Problem,
	}, nil
}

// Close frees the model, which nobody may use any more.
func (k *Keeper) Close() error {
	k.mu.Lock()
	m := k.model
	k.model, k.closed = nil, true
	k.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.Close()
}
