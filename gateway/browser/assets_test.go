package browser

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestVendored checks that what is embedded is what vendor.sh took from the
// pinned packages, with their licences, and nothing else.
func TestVendored(t *testing.T) {
	sums, err := assetFiles.ReadFile("assets/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"SHA256SUMS": true}
	for line := range strings.Lines(string(sums)) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		raw, err := assetFiles.ReadFile("assets/vendor/" + name)
		if !found || err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if got := sha256.Sum256(raw); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s is not what was vendored; run vendor.sh", name)
		}
		listed[name] = true
	}
	files, err := assetFiles.ReadDir("assets/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !listed[f.Name()] {
			t.Errorf("%s has no hash", f.Name())
		}
		if lib, is := strings.CutSuffix(f.Name(), ".min.js"); is && !listed[lib+".LICENSE"] {
			t.Errorf("%s has no licence beside it", f.Name())
		}
	}
}

// TestVendoredVersions checks that the files are of the versions that
// package-lock.json pins, by the integrity that it holds for each.
func TestVendoredVersions(t *testing.T) {
	raw, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		t.Fatal(err)
	}
	for pkg, file := range map[string]string{"htmx.org": "htmx.min.js", "cytoscape": "cytoscape.min.js"} {
		p := lock.Packages["node_modules/"+pkg]
		if p.Version == "" || !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Fatalf("%s is not pinned", pkg)
		}
		content, err := assetFiles.ReadFile("assets/vendor/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte(`"`+p.Version+`"`)) {
			t.Errorf("%s is not of version %s; run vendor.sh", file, p.Version)
		}
	}
}

func TestPagesHaveNothingInline(t *testing.T) {
	names, err := pageFiles.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		raw, err := pageFiles.ReadFile("pages/" + n.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"<style", " style=", "<script>", " onclick=", " onload=", "javascript:", "http://", "https://"} {
			if bytes.Contains(raw, []byte(bad)) {
				t.Errorf("%s holds %q", n.Name(), bad)
			}
		}
	}
}
