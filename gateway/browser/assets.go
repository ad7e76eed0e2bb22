package browser

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets serves the embedded files under names that hold their hash, so that a
// browser may keep them for good.
type assets struct {
	// paths are the public paths by name, files the contents by public path.
	paths map[string]string
	files map[string][]byte
}

func loadAssets() (*assets, error) {
	a := &assets{paths: map[string]string{}, files: map[string][]byte{}}
	return a, fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := assetFiles.ReadFile(name)
		sum := sha256.Sum256(raw)
		name = strings.TrimPrefix(name, "assets/")
		public := "/assets/" + hex.EncodeToString(sum[:6]) + "/" + name
		a.paths[name], a.files[public] = public, raw
		return err
	})
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, found := a.files[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	kind := mime.TypeByExtension(path.Ext(r.URL.Path))
	if kind == "" {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	// The reader may be gone; there is nobody else to tell.
	_, _ = w.Write(raw)
}
