// Package locate finds the engine that serves a data folder, for the worker
// that announces itself there and for every program that calls it: a cluster
// named by Temporal's own environment variables and profiles, or the embedded
// engine that a worker wrote into <data>/worker.json.
//
// It must never hold what is said to the engine; that is package workflows.
package locate

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/adrg/xdg"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

// Environment variables of ours. Temporal's own (TEMPORAL_ADDRESS,
// TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, TLS and API key) are read by its own
// library.
const (
	// EnvData names the data folder.
	EnvData = "POLYPHONY_DATA"
	// EnvShards is the number of shards of the cluster's workers.
	EnvShards = "POLYPHONY_SHARDS"
	// EnvKeyFile names the file of the keys that seal payloads.
	EnvKeyFile = "POLYPHONY_KEY_FILE"
)

const (
	// fileName is the announcement's name in the data folder.
	fileName = "worker.json"
	// keyFileName is the key file's name there, used when it exists.
	keyFileName = "keys.json"
)

// dialTimeout bounds connecting to an engine.
const dialTimeout = 10 * time.Second

// DataFolder returns the data folder: flag when given, else EnvData, else the
// platform's place for a user's data, with polyphony below it.
func DataFolder(flag string, lookup func(string) (string, bool)) (string, error) {
	dir := flag
	if dir == "" {
		dir, _ = lookup(EnvData)
	}
	if dir == "" {
		dir = filepath.Join(xdg.DataHome, "polyphony")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", record.Wrap(record.InvalidArgument, err, "the data folder is not a path")
	}
	return abs, nil
}

// KeyFile returns the file of the keys that seal payloads: flag when given,
// else EnvKeyFile, else the one in the data folder. found is false when nothing
// names a file and there is none in the data folder; then payloads are not
// sealed.
func KeyFile(flag, data string, lookup func(string) (string, bool)) (path string, found bool) {
	path = flag
	if path == "" {
		path, _ = lookup(EnvKeyFile)
	}
	if path != "" {
		return path, true
	}
	path = filepath.Join(data, keyFileName)
	_, err := os.Stat(path)
	return path, err == nil
}

// Keys opens the key file that KeyFile finds; without one, a ring that seals
// nothing.
//
// Errors: InvalidArgument.
func Keys(flag, data string, lookup func(string) (string, bool)) (*seal.Ring, error) {
	path, found := KeyFile(flag, data, lookup)
	if !found {
		path = ""
	}
	return seal.Open(path, nil)
}

// Worker is what a running worker announces.
type Worker struct {
	// Address and Namespace are the engine's.
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	// UI is the address of Temporal's Web UI, empty without one.
	UI string `json:"ui,omitempty"`
	// HTTP is the address of the gateway, empty without one.
	HTTP string `json:"http,omitempty"`
	// Shards is the number of shards that workspaces are spread over.
	Shards int `json:"shards"`
	// KeyFile is the file of the keys that seal payloads, empty without one.
	KeyFile string `json:"key_file,omitempty"`
	// PID is the worker's process.
	PID       int         `json:"pid"`
	StartedAt record.Time `json:"started_at"`
}

// Announce writes the worker's announcement, readable by its user only. The
// file is replaced as a whole, so that a reader never sees half of it.
func Announce(data string, w Worker) error {
	raw, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(data, fileName+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err := errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), filepath.Join(data, fileName))
}

// Withdraw removes the announcement of the worker with that process id.
func Withdraw(data string, pid int) error {
	w, err := Announced(data)
	if err != nil || w.PID != pid {
		return nil
	}
	return os.Remove(filepath.Join(data, fileName))
}

// Announced reads the announcement.
//
// Errors: Unavailable when no worker announced itself there.
func Announced(data string) (Worker, error) {
	var w Worker
	raw, err := os.ReadFile(filepath.Join(data, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return w, record.Wrap(record.Unavailable, err, "no worker serves this data folder; start one with: go run ./worker")
	}
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	if err != nil {
		return w, record.Wrap(record.Unavailable, err, "the worker's announcement cannot be read")
	}
	return w, nil
}

// External reports whether the environment names a cluster.
func External(lookup func(string) (string, bool)) bool {
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"} {
		if v, ok := lookup(name); ok && v != "" {
			return true
		}
	}
	return false
}

// Options returns the connection options: those of the environment when it
// names a cluster, else those of the worker that announced itself in the data
// folder. shards is what workspaces are spread over.
func Options(data string, lookup func(string) (string, bool)) (opts client.Options, shards int, err error) {
	if External(lookup) {
		opts, err = envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: environment{lookup}})
		if err != nil {
			return opts, 0, record.Wrap(record.InvalidArgument, err, "the Temporal connection settings cannot be read: %v", err)
		}
		shards, err = EnvironmentShards(lookup)
		return opts, shards, err
	}
	w, err := Announced(data)
	return client.Options{HostPort: w.Address, Namespace: w.Namespace}, w.Shards, err
}

// environment adapts a look-up function to Temporal's library.
type environment struct {
	lookup func(string) (string, bool)
}

func (e environment) LookupEnv(name string) (string, bool) { return e.lookup(name) }

func (e environment) Environ() []string { return os.Environ() }

// CallerKeys opens the keys of a caller: those that the environment names, else
// the worker's own.
//
// Errors: InvalidArgument.
func CallerKeys(data string, lookup func(string) (string, bool)) (*seal.Ring, error) {
	if env, _ := lookup(EnvKeyFile); env == "" && !External(lookup) {
		if w, err := Announced(data); err == nil {
			return Keys(w.KeyFile, data, lookup)
		}
	}
	return Keys("", data, lookup)
}

// Connect dials the engine that serves the data folder, with the keys that seal
// what is sent to it.
//
// Errors: Unavailable, InvalidArgument.
func Connect(ctx context.Context, data string, lookup func(string) (string, bool), logger *slog.Logger) (client.Client, int, error) {
	opts, shards, err := Options(data, lookup)
	if err != nil {
		return nil, 0, err
	}
	keys, err := CallerKeys(data, lookup)
	if err != nil {
		return nil, 0, err
	}
	seal.Configure(&opts, keys)
	opts.Logger = log.NewStructuredLogger(logger)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, 0, record.Wrap(record.Unavailable, err, "the engine at %s cannot be reached; is the worker running?", opts.HostPort)
	}
	return c, shards, nil
}
