package embedding

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// places lists where in a model's folder one of our files may lie, best first:
// exports keep the graph in a folder of its own.
func places(name string) []string {
	if name == weightsFile {
		return []string{weightsFile, "onnx/" + weightsFile}
	}
	return []string{name}
}

// folderSource is a folder with the model's files.
type folderSource struct {
	dir   string
	where map[string]string
	bytes int64
}

func newFolderSource(dir string) (*folderSource, error) {
	s := &folderSource{dir: dir, where: map[string]string{}}
	for _, name := range []string{weightsFile, tokenizerFile} {
		for _, place := range places(name) {
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(place)))
			if err == nil && info.Mode().IsRegular() {
				s.where[name] = place
				s.bytes += info.Size()
				break
			}
		}
		if s.where[name] == "" {
			return nil, missing(name, "folder")
		}
	}
	return s, nil
}

func missing(name, kind string) error {
	return record.Errorf(record.InvalidArgument, "source", "the %s has no %s", kind, name)
}

func (s *folderSource) size() int64 { return s.bytes }

func (s *folderSource) open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	f, err := os.Open(filepath.Join(s.dir, filepath.FromSlash(s.where[name])))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// hubSource is a model on a hub.
type hubSource struct {
	get   Getter
	base  string
	bytes int64
}

func (s *hubSource) size() int64 { return s.bytes }

func (s *hubSource) open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	for _, place := range places(name) {
		body, size, err := s.get(ctx, s.base+place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			away := record.Wrap(record.Unavailable, err, "the hub cannot be reached")
			away.Field = "source"
			return nil, 0, away
		}
		// The whole is known once the weights, which come last, are.
		if name == weightsFile && size > 0 && s.bytes >= 0 {
			s.bytes += size
		} else if name != weightsFile {
			s.bytes = -1
			if size > 0 {
				s.bytes = size
			}
		}
		return body, size, nil
	}
	return nil, 0, record.Errorf(record.NotFound, "source", "the hub has no such model, or no %s for it", name)
}

// Limits on archives. What is skipped is read too.
const (
	maxEntries  = 10_000
	maxUnpacked = 8 << 30
)

// archiveSource is an archive that has been looked through once.
type archiveSource struct {
	file  string
	kind  string
	where map[string]entry
}

type entry struct {
	name string
	size int64
}

// newArchiveSource looks an archive through. One that holds a link, a device
// or a path that leads out of it is refused whole, though nothing is ever
// written by the name an archive gives.
func newArchiveSource(ctx context.Context, file string) (*archiveSource, error) {
	kind, err := archiveKind(file)
	if err != nil {
		return nil, record.Wrap(record.InvalidArgument, err, "the source cannot be read")
	}
	if kind == "" {
		return nil, record.Errorf(record.InvalidArgument, "source", "the source is not a zip, tar or tar.gz archive")
	}
	s := &archiveSource{file: file, kind: kind, where: map[string]entry{}}
	all := map[string]int64{}
	if err := s.walk(ctx, func(name string, size int64, _ io.Reader) error {
		if _, twice := all[name]; twice {
			return unsafe("an entry twice")
		}
		all[name] = size
		return nil
	}); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var e *record.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, record.Wrap(record.InvalidArgument, err, "the archive cannot be read")
	}
	// The model's folder is where its tokenizer lies: the one nearest the top.
	root, found := "", false
	for name := range all {
		dir, base := path.Split(name)
		if base == tokenizerFile && (!found || len(dir) < len(root) || len(dir) == len(root) && dir < root) {
			root, found = dir, true
		}
	}
	for _, name := range []string{tokenizerFile, weightsFile} {
		for _, place := range places(name) {
			if size, ok := all[root+place]; ok && found {
				s.where[name] = entry{root + place, size}
				break
			}
		}
		if s.where[name].name == "" {
			return nil, missing(name, "archive")
		}
	}
	return s, nil
}

func unsafe(what string) error {
	return record.Errorf(record.InvalidArgument, "source", "the archive holds %s: it is refused", what)
}

func (s *archiveSource) size() int64 { return s.where[weightsFile].size + s.where[tokenizerFile].size }

// errFound ends a walk early.
var errFound = errors.New("found")

func (s *archiveSource) open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	want := s.where[name]
	reader, writer := io.Pipe()
	go func() {
		err := s.walk(ctx, func(name string, _ int64, r io.Reader) error {
			if name != want.name {
				return nil
			}
			if _, err := io.Copy(writer, r); err != nil {
				return err
			}
			return errFound
		})
		switch {
		case errors.Is(err, errFound):
			err = nil
		case err == nil:
			err = io.ErrUnexpectedEOF // It was there before.
		}
		writer.CloseWithError(err)
	}()
	return reader, want.size, nil
}

// walk calls fn for each file of the archive.
func (s *archiveSource) walk(ctx context.Context, fn func(name string, size int64, r io.Reader) error) error {
	if s.kind == "zip" {
		return walkZip(ctx, s.file, fn)
	}
	f, err := os.Open(s.file)
	if err != nil {
		return err
	}
	var r io.Reader = bufio.NewReaderSize(f, 1<<20)
	if s.kind == "gzip" {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		r = unzipped
	}
	return errors.Join(walkTar(ctx, r, fn), f.Close())
}

func walkZip(ctx context.Context, file string, fn func(name string, size int64, r io.Reader) error) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }() // Only read.
	if len(z.File) > maxEntries {
		return unsafe("too many entries")
	}
	for _, f := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := safeName(f.Name)
		if err != nil {
			return err
		}
		mode := f.Mode()
		if mode.IsDir() {
			continue
		}
		if !mode.IsRegular() {
			return unsafe("a link or a device")
		}
		if f.UncompressedSize64 > maxUnpacked {
			return unsafe("too much")
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		// The reader gives no more than the size it names, and checks the sum.
		if err := errors.Join(fn(name, int64(f.UncompressedSize64), r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func walkTar(ctx context.Context, r io.Reader, fn func(name string, size int64, r io.Reader) error) error {
	// The limit ends a bomb; what it cuts off reads as an archive that is broken.
	t := tar.NewReader(io.LimitReader(r, maxUnpacked))
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n > maxEntries {
			return unsafe("too many entries")
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, err := safeName(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			if err := fn(name, h.Size, t); err != nil {
				return err
			}
		default:
			return unsafe("a link or a device")
		}
	}
}

// safeName returns a name in an archive, cleaned, if it stays inside.
func safeName(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || strings.ContainsAny(name, "\\:\x00") || path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", unsafe("a path that leads out of it")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", unsafe("a path that leads out of it")
		}
	}
	return clean, nil
}

// archiveKind tells by the first bytes: "zip", "gzip", "tar" or "".
func archiveKind(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "zip", nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip", nil
	case len(head) == 512 && bytes.HasPrefix(head[257:], []byte("ustar")):
		return "tar", nil
	}
	return "", nil
}
