package embedding

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// item is an entry of an archive made here.
type item struct {
	name    string
	content []byte
	kind    byte // tar.TypeReg and so on; 0 means a file.
}

func items(files map[string][]byte, under string) []item {
	var out []item
	for name, content := range files {
		out = append(out, item{name: under + name, content: content})
	}
	slices.SortFunc(out, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return out
}

func madeTar(tb testing.TB, list []item) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range list {
		h := &tar.Header{Name: i.name, Mode: 0o644, Size: int64(len(i.content)), Typeflag: tar.TypeReg}
		if i.kind != 0 {
			h.Typeflag, h.Size, h.Linkname = i.kind, 0, "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write(i.content); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func madeGzip(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func madeZip(tb testing.TB, list []item) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, i := range list {
		h := &zip.FileHeader{Name: i.name, Method: zip.Deflate}
		switch i.kind {
		case tar.TypeSymlink:
			h.SetMode(fs.ModeSymlink | 0o777)
		case tar.TypeFifo:
			h.SetMode(fs.ModeNamedPipe | 0o644)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			tb.Fatal(err)
		}
		if !strings.HasSuffix(i.name, "/") {
			if _, err := f.Write(i.content); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// saved writes content to a file of its own.
func saved(tb testing.TB, name string, content []byte) string {
	tb.Helper()
	return filepath.Join(write(tb, map[string][]byte{name: content}), name)
}

// installed returns the status of dest, and fails on leftovers beside it.
func installed(tb testing.TB, dest string) Info {
	tb.Helper()
	info, err := Status(dest)
	if err != nil {
		tb.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(dest))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(dest) {
			tb.Errorf("%s is left behind", e.Name())
		}
	}
	return info
}

func TestInstall(t *testing.T) {
	t.Parallel()
	files := made(t, Dimensions, 1)
	nested := map[string][]byte{
		"onnx/" + weightsFile: files[weightsFile], tokenizerFile: files[tokenizerFile],
		"README.md": []byte("# hello"), "onnx/model_quint8.onnx": []byte("another"),
	}
	folders := append([]item{{name: "m/", kind: tar.TypeDir}, {name: "m/onnx/", kind: tar.TypeDir}}, items(nested, "m/")...)
	for _, tc := range []struct{ name, source string }{
		{"folder", write(t, files)},
		{"folder_of_an_export", write(t, nested)},
		{"zip", saved(t, "model.zip", madeZip(t, items(files, "")))},
		{"zip_nested", saved(t, "model.zip", madeZip(t, items(nested, "all-MiniLM-L6-v2/")))},
		{"tar", saved(t, "model.tar", madeTar(t, folders))},
		{"tar_gz", saved(t, "model.tar.gz", madeGzip(t, madeTar(t, items(nested, "./"))))},
		{"name_does_not_matter", saved(t, "download", madeGzip(t, madeTar(t, items(files, "a/b/"))))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dest := ModelDir(t.TempDir())
			var last, total int64
			err := Install(t.Context(), tc.source, dest, func(done, of int64) {
				if done < last || of > 0 && done > of {
					t.Errorf("progress from %d to %d of %d", last, done, of)
				}
				last, total = done, of
			})
			if err != nil {
				t.Fatal(err)
			}
			info := installed(t, dest)
			want := int64(len(files[weightsFile]) + len(files[tokenizerFile]))
			if !info.Installed || info.Bytes != want || last != want || total != want {
				t.Errorf("%+v, progress %d of %d, want %d", info, last, total, want)
			}
			m, err := Open(dest, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if m.ID() != info.ID {
				t.Errorf("the model is %s, its status says %s", m.ID(), info.ID)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInstall_replace(t *testing.T) {
	t.Parallel()
	dest := ModelDir(t.TempDir())
	install := func(source string) error { return Install(t.Context(), source, dest, nil) }
	if err := install(write(t, made(t, Dimensions, 1))); err != nil {
		t.Fatal(err)
	}
	first := installed(t, dest).ID
	old, err := Open(dest, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()

	// What does not work leaves what does in place.
	if err := install(write(t, made(t, 256, 1))); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("another size: %v", err)
	}
	broken := made(t, Dimensions, 3)
	broken[weightsFile] = broken[weightsFile][:5000]
	if err := install(write(t, broken)); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("broken: %v", err)
	}
	if got := installed(t, dest).ID; got != first {
		t.Fatalf("%s has become %s", first, got)
	}

	if err := install(write(t, made(t, Dimensions, 2))); err != nil {
		t.Fatal(err)
	}
	second := installed(t, dest).ID
	if second == first {
		t.Error("the second is not in place")
	}
	if err := install(dest); err != nil || installed(t, dest).ID != second {
		t.Errorf("onto itself: %v", err)
	}
	if _, err := old.Embed(t.Context(), []string{"the team"}); err != nil {
		t.Errorf("the model that was open: %v", err)
	}

	// A folder with other things in it is nobody's to replace or remove.
	if err := os.WriteFile(filepath.Join(dest, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := install(write(t, made(t, Dimensions, 1))); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("over other things: %v", err)
	}
	if err := Remove(dest); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("remove with other things: %v", err)
	}
	if err := os.Remove(filepath.Join(dest, "thesis.txt")); err != nil {
		t.Fatal(err)
	}
	if installed(t, dest).ID != second {
		t.Error("the refused calls changed something")
	}
	if err := Remove(dest); err != nil {
		t.Fatal(err)
	}
	if installed(t, dest).Installed {
		t.Error("still installed")
	}
	if err := Remove(dest); record.ErrorCode(err) != record.NotFound {
		t.Errorf("twice: %v", err)
	}
}

func TestInstall_cancelled(t *testing.T) {
	t.Parallel()
	dest := ModelDir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	source := saved(t, "model.tar.gz", madeGzip(t, madeTar(t, items(made(t, Dimensions, 1), ""))))
	err := Install(ctx, source, dest, func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) || installed(t, dest).Installed {
		t.Errorf("got %v", err)
	}
}

func TestInstall_refused(t *testing.T) {
	t.Parallel()
	good := items(made(t, Dimensions, 1), "")
	with := func(more ...item) []item { return append(slices.Clone(good), more...) }
	sources := map[string]string{}
	for name, list := range map[string][]item{
		"parent":        with(item{name: "../evil", content: []byte("x")}),
		"parent_inside": with(item{name: "a/../../evil", content: []byte("x")}),
		"parent_hidden": with(item{name: "a/../b", content: []byte("x")}),
		"absolute":      with(item{name: "/tmp/evil", content: []byte("x")}),
		"backslash":     with(item{name: `..\evil`, content: []byte("x")}),
		"drive":         with(item{name: `C:evil`, content: []byte("x")}),
		"symlink":       with(item{name: "link", kind: tar.TypeSymlink, content: []byte("/etc/passwd")}),
		"symlink_model": {good[1], {name: weightsFile, kind: tar.TypeSymlink, content: []byte("/etc/passwd")}},
		"fifo":          with(item{name: "pipe", kind: tar.TypeFifo}),
		"twice":         with(good[0]),
		"no_weights":    {good[1]},
		"no_tokenizer":  {good[0]},
		"nothing":       nil,
	} {
		sources["zip_"+name] = saved(t, name+".zip", madeZip(t, list))
		sources["tar_"+name] = saved(t, name+".tar", madeTar(t, list))
	}
	var many []item
	for n := range maxEntries {
		many = append(many, item{name: fmt.Sprintf("f%d", n)})
	}
	whole := madeGzip(t, madeTar(t, good))
	sources["tar_many"] = saved(t, "many.tar", madeTar(t, append(many, good...)))
	sources["zip_many"] = saved(t, "many.zip", madeZip(t, append(many, good...)))
	sources["tar_hardlink"] = saved(t, "hard.tar", madeTar(t, with(item{name: "link", kind: tar.TypeLink})))
	sources["tar_device"] = saved(t, "device.tar", madeTar(t, with(item{name: "null", kind: tar.TypeChar})))
	sources["large_tokenizer"] = saved(t, "large.tar.gz", madeGzip(t, madeTar(t, []item{
		good[0], {name: tokenizerFile, content: make([]byte, maxTokenizer+1)}})))
	sources["cut"] = saved(t, "cut.tar.gz", whole[:len(whole)/2])
	sources["no_archive"] = saved(t, "model.zip", []byte("hello"))
	sources["empty"] = saved(t, "empty.zip", nil)
	sources["folder_without"] = write(t, map[string][]byte{tokenizerFile: good[1].content})
	sources["not_there"] = filepath.Join(t.TempDir(), "nothing")
	sources["not_there.zip"] = "models/all-MiniLM-L6-v2.zip"
	sources["hub_without_means"] = "sentence-transformers/" + ModelName
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dest := ModelDir(t.TempDir())
			err := Install(t.Context(), source, dest, nil)
			var e *record.Error
			if !errors.As(err, &e) || e.Code != record.InvalidArgument || e.Field != "source" && e.Err == nil || strings.Contains(e.Error(), "/tmp") {
				t.Errorf("got %v", err)
			}
			if installed(t, dest).Installed {
				t.Error("it is installed")
			}
		})
	}
}

// httpGet is a Getter over HTTP, as a program that allows downloads has one.
func httpGet(client *http.Client) Getter {
	return func(ctx context.Context, url string) (io.ReadCloser, int64, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, 0, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, 0, err
		}
		if response.StatusCode == http.StatusOK {
			return response.Body, response.ContentLength, nil
		}
		err = fmt.Errorf("status %d", response.StatusCode)
		if response.StatusCode == http.StatusNotFound {
			err = fmt.Errorf("%w: %w", err, fs.ErrNotExist)
		}
		return nil, 0, errors.Join(err, response.Body.Close())
	}
}

func TestInstaller_hub(t *testing.T) {
	t.Parallel()
	files := made(t, Dimensions, 1)
	const base = "/sentence-transformers/" + ModelName + "/resolve/main/"
	serve := func(t *testing.T, change func(w http.ResponseWriter, r *http.Request) bool) Installer {
		mux := http.NewServeMux()
		send := func(content []byte) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if change == nil || !change(w, r) {
					w.Header().Set("Content-Length", fmt.Sprint(len(content)))
					_, _ = w.Write(content)
				}
			}
		}
		mux.HandleFunc("GET "+base+tokenizerFile, send(files[tokenizerFile]))
		mux.HandleFunc("GET "+base+"onnx/"+weightsFile, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/blobs/1", http.StatusFound)
		})
		mux.HandleFunc("GET /blobs/1", send(files[weightsFile]))
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		return Installer{Get: httpGet(server.Client()), Hub: server.URL + "/"}
	}
	for _, name := range []string{"sentence-transformers/" + ModelName, ModelName} {
		t.Run("installed_by_name", func(t *testing.T) {
			t.Parallel()
			dest := ModelDir(t.TempDir())
			var done, total int64
			if err := serve(t, nil).Install(t.Context(), name, dest, func(d, of int64) { done, total = d, of }); err != nil {
				t.Fatal(err)
			}
			if info := installed(t, dest); !info.Installed || done != info.Bytes || total != done {
				t.Errorf("%+v, progress %d of %d", info, done, total)
			}
		})
	}
	for _, tc := range []struct {
		name, source string
		change       func(w http.ResponseWriter, r *http.Request) bool
		want         record.Code
	}{
		{"unknown", "somebody/else", nil, record.NotFound},
		{"no_name", "https://example.org/a/b", nil, record.InvalidArgument},
		{"leads_out", "a/..", nil, record.InvalidArgument},
		{"cut", ModelName, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write([]byte("short"))
			return true
		}, record.Unavailable},
		{"too_large", ModelName, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", fmt.Sprint(int64(maxWeights)+1))
			w.WriteHeader(http.StatusOK)
			return true
		}, record.InvalidArgument},
		{"down", ModelName, func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}, record.Unavailable},
		{"login_page", ModelName, func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = w.Write([]byte("<html>"))
			return true
		}, record.InvalidArgument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dest := ModelDir(t.TempDir())
			err := serve(t, tc.change).Install(t.Context(), tc.source, dest, nil)
			if record.ErrorCode(err) != tc.want || installed(t, dest).Installed {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	files := made(t, Dimensions, 1)
	for _, tc := range []struct {
		name    string
		files   map[string][]byte
		problem string
	}{
		{"empty", nil, ""},
		{"half", map[string][]byte{weightsFile: files[weightsFile]}, "tokenizer.json"},
		{"other_half", map[string][]byte{tokenizerFile: files[tokenizerFile]}, "model.onnx"},
		{"broken", map[string][]byte{tokenizerFile: files[tokenizerFile], weightsFile: []byte("hello")}, "not an ONNX"},
	} {
		info, err := Status(write(t, tc.files))
		if err != nil || info.Installed || info.ID != "" || (info.Problem == "") != (tc.problem == "") || !strings.Contains(info.Problem, tc.problem) {
			t.Errorf("%s: %+v, %v", tc.name, info, err)
		}
	}
	if info, err := Status(filepath.Join(t.TempDir(), "nowhere")); err != nil || info.Installed || info.Problem != "" {
		t.Errorf("nowhere: %+v, %v", info, err)
	}
	if info, err := Status(write(t, files)); err != nil || !info.Installed || info.Dimensions != Dimensions {
		t.Errorf("good: %+v, %v", info, err)
	}
}

// TestInstall_real installs the real weights, which checks the encoder against
// the graph.
func TestInstall_real(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("hugot takes a minute under the race detector")
	}
	source, dest := modelDir(t), ModelDir(t.TempDir())
	if err := Install(t.Context(), source, dest, nil); err != nil {
		t.Fatal(err)
	}
	m, err := Open(dest, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Session() != Encoder {
		t.Errorf("session %q", m.Session())
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
