package embedding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Getter opens what lies at a URL, following redirections. The size is -1 if
// unknown. Its error wraps fs.ErrNotExist if there is nothing.
type Getter func(ctx context.Context, url string) (body io.ReadCloser, size int64, err error)

// DefaultHub is where hub names are looked up.
const DefaultHub = "https://huggingface.co"

// Installer installs models. The zero value installs from folders and archives.
type Installer struct {
	// Get downloads; without it hub names are refused.
	Get Getter
	// Hub is the base URL of the hub; empty means DefaultHub.
	Hub string
}

// Install puts a model from a folder or an archive in place, as Installer's
// Install does.
func Install(ctx context.Context, source, dest string, progress func(done, total int64)) error {
	return Installer{}.Install(ctx, source, dest, progress)
}

// Install puts a model in the folder dest. The source is a folder, an archive
// (zip, tar or gzipped tar, by its content) or, if it is neither, a name on the
// hub such as sentence-transformers/all-MiniLM-L6-v2.
//
// Only the two files of the model are taken. They are tried out before they
// replace, in one step, what was installed; until then, and if anything fails,
// that stays as it is. progress, which may be nil, hears of bytes; total is 0
// while it is unknown.
func (in Installer) Install(ctx context.Context, source, dest string, progress func(done, total int64)) error {
	src, err := in.source(ctx, source)
	if err != nil {
		return err
	}
	return install(ctx, src, dest, progress)
}

// download is Install from a name on the hub alone.
func (in Installer) download(ctx context.Context, name, dest string, progress func(done, total int64)) error {
	src, err := in.onHub(name)
	if err != nil {
		return err
	}
	return install(ctx, src, dest, progress)
}

func install(ctx context.Context, src source, dest string, progress func(done, total int64)) error {
	dest = filepath.Clean(dest)
	if err := onlyModel(dest); err != nil {
		return err
	}
	parent := filepath.Dir(dest)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return record.Wrap(record.Unavailable, err, "the folder of models cannot be made")
	}
	prefix := "." + filepath.Base(dest) + ".new-"
	sweep(parent, prefix)
	temp, err := os.MkdirTemp(parent, prefix+"*")
	if err != nil {
		return record.Wrap(record.Unavailable, err, "the folder of models cannot be written")
	}
	// After a success it holds what was there before.
	defer func() { _ = os.RemoveAll(temp) }()

	if err := fill(ctx, src, temp, progress); err != nil {
		return typed(ctx, err, "the embedding model cannot be copied")
	}
	if err := tryOut(ctx, temp); err != nil {
		return typed(ctx, err, "the embedding model does not work")
	}
	if err := replace(temp, dest); err != nil {
		return record.Wrap(record.Unavailable, err, "the embedding model cannot be put in place")
	}
	return nil
}

// typed gives an error without a name one; a stop the caller asked for stays
// what it is.
func typed(ctx context.Context, err error, message string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *record.Error
	if errors.As(err, &e) {
		return err
	}
	return record.Wrap(record.Unavailable, err, "%s", message)
}

// source is where a model comes from. Open may be called once per file.
type source interface {
	// open returns a file of the model and its size, -1 if unknown.
	open(ctx context.Context, name string) (io.ReadCloser, int64, error)
	// size returns the size of both files, 0 if unknown.
	size() int64
}

var (
	hubName     = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)
	archiveName = regexp.MustCompile(`(?i)\.(zip|tar|tar\.gz|tgz|onnx|json)$`)
)

func (in Installer) source(ctx context.Context, name string) (source, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return newFolderSource(name)
	case err == nil && info.Mode().IsRegular():
		return newArchiveSource(ctx, name)
	case err == nil:
		return nil, record.Errorf(record.InvalidArgument, "source", "the source is neither a folder nor an archive")
	case !errors.Is(err, fs.ErrNotExist):
		return nil, record.Wrap(record.InvalidArgument, err, "the source cannot be read")
	}
	return in.onHub(name)
}

// onHub is the source that a name on the hub stands for.
func (in Installer) onHub(name string) (source, error) {
	hub := name
	if hub == ModelName {
		hub = "sentence-transformers/" + ModelName
	}
	if !hubName.MatchString(hub) || strings.Contains(hub, "..") || archiveName.MatchString(hub) {
		return nil, record.Errorf(record.InvalidArgument, "source", "the source does not exist, and is no name on the hub either")
	}
	if in.Get == nil {
		return nil, record.Errorf(record.InvalidArgument, "source", "the source does not exist, and nothing is downloaded here: give a folder or an archive")
	}
	base := in.Hub
	if base == "" {
		base = DefaultHub
	}
	return &hubSource{get: in.Get, base: strings.TrimRight(base, "/") + "/" + hub + "/resolve/main/"}, nil
}

// fill copies the model's files into dir.
func fill(ctx context.Context, src source, dir string, progress func(done, total int64)) error {
	var done int64
	report := func(n int64) {
		done += n
		if progress != nil {
			progress(done, max(src.size(), 0))
		}
	}
	for _, file := range []struct {
		name  string
		limit int64
	}{{tokenizerFile, maxTokenizer}, {weightsFile, maxWeights}} {
		if err := copyFile(ctx, src, file.name, filepath.Join(dir, file.name), file.limit, report); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

func copyFile(ctx context.Context, src source, name, to string, limit int64, report func(n int64)) (err error) {
	body, size, err := src.open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	tooLarge := record.Errorf(record.InvalidArgument, "source", "%s is larger than %d MiB", name, limit>>20)
	if size > limit {
		return tooLarge
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf := make([]byte, 1<<20)
	var got int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, readErr := body.Read(buf)
		if got += int64(n); got > limit {
			return tooLarge
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return err
		}
		report(int64(n))
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	if size >= 0 && got != size {
		return fmt.Errorf("%s has %d bytes, want %d: %w", name, got, size, io.ErrUnexpectedEOF)
	}
	return out.Sync()
}

// agreement is the least cosine between the two sessions for one text.
const agreement = 0.9999

// tryOut loads a model and embeds with it. What the encoder makes of a graph is
// compared with what the graph itself gives.
func tryOut(ctx context.Context, dir string) error {
	text := "The team decided to keep the release notes in English and Persian."
	embed := func(session Session) ([]float32, Session, error) {
		m, err := Open(dir, Options{Session: session})
		if err != nil {
			return nil, "", err
		}
		vectors, err := m.Embed(ctx, []string{text, "Colourless green ideas sleep."})
		if err = errors.Join(err, m.Close()); err != nil {
			return nil, "", err
		}
		if vectors[0] == nil || vectors[1] == nil || dot(vectors[0], vectors[1]) > agreement {
			return nil, "", record.Errorf(record.InvalidArgument, "source", "the model gives no usable vectors")
		}
		return vectors[0], m.Session(), nil
	}
	fast, session, err := embed(Auto)
	if err != nil || session == Hugot {
		return err
	}
	exact, _, err := embed(Hugot)
	if err != nil {
		return err
	}
	if dot(fast, exact) < agreement {
		return record.Errorf(record.InvalidArgument, "source", "the graph of the model is not that of %s", ModelName)
	}
	return nil
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// replace puts the folder from in the place of to. Where the system can, the
// two change places in one step; what was there is then in from.
func replace(from, to string) error {
	parent := filepath.Dir(to)
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(from, to); err != nil {
			return err
		}
		return syncDir(parent)
	}
	if exchange(from, to) == nil {
		return syncDir(parent)
	}
	old := from + ".old"
	if err := os.Rename(to, old); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(old, to))
	}
	if err := syncDir(parent); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Folders cannot be opened there.
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// sweep removes what an installation that was killed left behind.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), prefix) && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
}
