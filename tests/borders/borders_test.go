package borders

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestBorders(t *testing.T) {
	t.Parallel()
	m := module(t)
	g := listed(t, m)
	addFiles(t, m, g)
	for _, v := range violations(g, rules()) {
		t.Error(v)
	}
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	commented := map[string]bool{}
	for _, f := range files(t, module(t).Dir) {
		dir := path.Dir(f.path)
		commented[dir] = commented[dir] || strings.TrimSpace(f.comment) != ""
	}
	for dir, ok := range commented {
		if !ok {
			t.Errorf("package %s has no comment", dir)
		}
	}
}

func TestTopLevel(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(module(t).Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	for _, name := range strayed(names) {
		t.Errorf("%s does not belong at the top level", name)
	}
}

// TestLibc holds modernc.org/libc to the version that modernc.org/sqlite was generated with: the two are one program
// in two modules, and another libc has broken it before.
func TestLibc(t *testing.T) {
	t.Parallel()
	sqliteMod := goCommand(t, "list", "-m", "-f", "{{.GoMod}}", "modernc.org/sqlite")
	libc := strings.TrimSpace(string(goCommand(t, "list", "-m", "-f", "{{.Version}}", "modernc.org/libc")))
	var mod struct {
		Require []struct{ Path, Version string }
	}
	out := goCommand(t, "mod", "edit", "-json", strings.TrimSpace(string(sqliteMod)))
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		if r.Path == "modernc.org/libc" {
			if r.Version != libc {
				t.Errorf("modernc.org/libc is %s in go.mod, and modernc.org/sqlite wants exactly %s", libc, r.Version)
			}
			return
		}
	}
	t.Error("modernc.org/sqlite no longer says which modernc.org/libc it wants")
}

// TestRules shows that every rule can fail, on graphs made up to break one each, and that a lawful graph passes.
func TestRules(t *testing.T) {
	t.Parallel()
	lawful := map[string][]string{
		"memory/record":      {"errors", "time"},
		"memory/text":        {"golang.org/x/text/width", "strings"},
		"memory/conflict":    {"memory/text", "memory/record"},
		"memory":             {"memory/record", "memory/text", "memory/conflict", "database/sql", "modernc.org/sqlite"},
		"recall":             {"memory", "memory/record", "recall/embedding"},
		"recall/lexical":     {"memory"},
		"recall/embedding":   {"memory/record", "github.com/knights-analytics/hugot"},
		"dispatch":           {"memory", "recall/lexical"},
		"activities":         {"memory", "recall", "dispatch", "go.temporal.io/sdk/activity"},
		"workflows":          {"memory/record", "go.temporal.io/sdk/workflow", "github.com/google/uuid"},
		"gateway/rpc":        {"workflows", "memory", "net/http"},
		"worker":             {"worker/engine", "go.uber.org/fx", "activities", "workflows", "gateway/rpc", "memory"},
		"worker/engine":      {"go.temporal.io/server/temporal", "github.com/temporalio/ui-server/v2/ui", "database/sql"},
		"starter":            {"workflows", "github.com/spf13/cobra", "net/http"},
		"tests/endtoend":     {"go.temporal.io/server/common/log", "worker/engine", "modernc.org/sqlite"},
		"modernc.org/sqlite": {"database/sql", "net/url"},
		"database/sql":       {"os", "net"},

		"github.com/google/uuid": {"database/sql/driver"},
		"errors":                 {"net/http"}, // What the standard library uses inside is no reach of ours.
		"go.temporal.io/sdk":     {"net/http"},
		"golang.org/x/text/w":    {"fmt"},

		"github.com/knights-analytics/hugot": {"net/http"},
		"go.temporal.io/server/temporal":     {"go.uber.org/fx", "modernc.org/sqlite"},
	}
	if found := violations(made(lawful), rules()); len(found) > 0 {
		t.Errorf("the lawful graph breaks:\n%s", strings.Join(found, "\n"))
	}

	for _, tc := range []struct {
		name string // Of the rule that must be reported.
		add  map[string][]string
		way  string
	}{
		{"memory/record is a leaf", map[string][]string{"memory/record": {"golang.org/x/text/width"}}, "memory/record -> golang.org/x/text/width"},
		{"memory/record is a leaf", map[string][]string{"memory/record": {"memory/text"}}, ""},
		{"memory/record holds no SQL", map[string][]string{"memory/record": {"database/sql"}}, ""},
		{"memory/text and memory/conflict are pure: no SQL", map[string][]string{"memory/text": {"net"}}, ""},
		{"memory/text and memory/conflict are pure: no SQL",
			map[string][]string{"memory/conflict": {"x.org/a"}, "x.org/a": {"x.org/b"}, "x.org/b": {"database/sql"}},
			"memory/conflict -> x.org/a -> x.org/b -> database/sql"},
		{"memory/text and memory/conflict are pure: no files", map[string][]string{"memory/text": {"os"}}, ""},
		{"memory/text and memory/conflict know nothing", map[string][]string{"memory/conflict": {"memory"}}, ""},
		{"workflows and starter reach the vocabulary", map[string][]string{"workflows": {"activities"}}, "workflows -> activities -> memory"},
		{"workflows and starter reach the vocabulary", map[string][]string{"starter": {"memory"}}, ""},
		{"workflows and starter reach the vocabulary", map[string][]string{"workflows": {"memory/text"}}, ""},
		{"workflows and starter reach no SQL", map[string][]string{"starter": {"database/sql"}}, ""},
		{"workflows and starter reach no SQL", map[string][]string{"workflows": {"x.org/a"}, "x.org/a": {"modernc.org/sqlite/vec"}}, ""},
		{"memory, recall and dispatch know no Temporal", map[string][]string{"memory": {"go.temporal.io/api/enums/v1"}}, ""},
		{"memory, recall and dispatch know no HTTP", map[string][]string{"memory": {"net/http/pprof"}}, ""},
		{"memory, recall and dispatch know no HTTP", map[string][]string{"dispatch": {"x.org/a"}, "x.org/a": {"net/http"}}, ""},
		{"recall/embedding knows no HTTP", map[string][]string{"recall/embedding": {"net/http"}}, ""},
		{"dispatch reaches no embeddings", map[string][]string{"dispatch": {"recall"}}, "dispatch -> recall -> recall/embedding"},
		{"activities reach neither", map[string][]string{"activities": {"workflows"}}, ""},
		{"gateway holds no SQL", map[string][]string{"gateway/rpc": {"database/sql"}}, ""},
		{"only worker is wired with Fx", map[string][]string{"gateway/mcp": {"go.uber.org/fx/fxevent"}}, ""},
		{"only worker/engine imports the Temporal server", map[string][]string{"worker": {"go.temporal.io/server/common/log"}}, ""},
		{"only worker reaches the Temporal server", map[string][]string{"gateway/rpc": {"worker/engine"}}, ""},
		{"only memory imports SQLite drivers", map[string][]string{"recall": {"github.com/mattn/go-sqlite3"}}, ""},
		{"nothing imports a program", map[string][]string{"gateway/rpc": {"starter"}}, ""},
		{"nothing outside the tests imports them", map[string][]string{"worker": {"tests/endtoend"}}, ""},
		{"recall imports of ours only", map[string][]string{"recall": {"dispatch"}}, ""},
		{"memory imports of ours only", map[string][]string{"memory": {"recall"}}, ""},
		{"gateway imports of ours only", map[string][]string{"gateway/rpc": {"activities"}}, ""},
		{"starter imports of ours only", map[string][]string{"starter": {"gateway/rpc"}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broken := map[string][]string{}
			for p, imports := range lawful {
				broken[p] = imports
			}
			for p, imports := range tc.add {
				broken[p] = append(slices.Clone(broken[p]), imports...)
			}
			found := violations(made(broken), rules())
			if !slices.ContainsFunc(found, func(v string) bool {
				return strings.HasPrefix(v, tc.name) && strings.HasSuffix(v, tc.way)
			}) {
				t.Errorf("%v is not reported, but %q", tc.add, found)
			}
		})
	}

	got := strayed([]string{"go.mod", ".ci/", ".gitignore", "memory/", "internal/", "README.md", "readme/", "main.go"})
	if want := []string{"internal/", "readme/", "main.go"}; !slices.Equal(got, want) {
		t.Errorf("strayed = %v, want %v", got, want)
	}
}

// made turns a made-up graph into one for the rules. Ours are those of known rooms.
func made(imports map[string][]string) graph {
	rooms := []string{"memory", "recall", "dispatch", "activities", "workflows", "gateway", "worker", "starter", "tests"}
	g := graph{}
	add := func(p string) {
		first, _, _ := strings.Cut(p, "/")
		isOurs := slices.Contains(rooms, first)
		g[p] = pkg{Path: p, Ours: isOurs, Standard: !isOurs && !strings.Contains(first, "."), Imports: imports[p]}
	}
	for p, list := range imports {
		add(p)
		for _, i := range list {
			add(i)
		}
	}
	return g
}

type moduleInfo struct{ Path, Dir string }

func module(t *testing.T) moduleInfo {
	t.Helper()
	var m moduleInfo
	if err := json.Unmarshal(goCommand(t, "list", "-m", "-json"), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// relative gives an import path of ours the form of the rules.
func (m moduleInfo) relative(importPath string) (p string, isOurs bool) {
	if importPath == m.Path {
		return ".", true
	}
	if rest, ok := strings.CutPrefix(importPath, m.Path+"/"); ok {
		return rest, true
	}
	return importPath, false
}

// listed asks the go command for all packages of the module and what they need, as built here.
func listed(t *testing.T, m moduleInfo) graph {
	t.Helper()
	out := goCommand(t, "list", "-C", m.Dir, "-e", "-deps", "-json=ImportPath,Imports,ImportMap,Standard,Error", "./...")
	g := graph{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath string
			Imports    []string
			ImportMap  map[string]string
			Standard   bool
			Error      *struct{ Err string }
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g
		}
		if err != nil {
			t.Fatal(err)
		}
		name, isOurs := m.relative(p.ImportPath)
		// A folder that holds tests alone, or files of another system, is no fault.
		if p.Error != nil && !strings.Contains(p.Error.Err, "no non-test Go files") && !strings.Contains(p.Error.Err, "build constraints exclude") {
			t.Errorf("%s: %s", name, p.Error.Err)
		}
		node := pkg{Path: name, Ours: isOurs, Standard: p.Standard}
		for _, i := range p.Imports {
			if mapped, ok := p.ImportMap[i]; ok {
				i = mapped
			}
			if i == "C" {
				continue
			}
			to, _ := m.relative(i)
			node.Imports = append(node.Imports, to)
		}
		g[name] = node
	}
}

// addFiles adds what the files of the module import that are not built here, for another system or behind a tag, so
// that a border holds in every build.
func addFiles(t *testing.T, m moduleInfo, g graph) {
	t.Helper()
	for _, f := range files(t, m.Dir) {
		if f.test {
			continue
		}
		dir := path.Dir(f.path)
		node := g[dir]
		node.Path, node.Ours = dir, true
		for _, i := range f.imports {
			to, _ := m.relative(i)
			if to != "C" && !slices.Contains(node.Imports, to) {
				node.Imports = append(node.Imports, to)
			}
		}
		g[dir] = node
	}
}

type file struct {
	path    string // Below the root, with slashes.
	test    bool
	comment string // Of the package.
	imports []string
}

// files reads the head of every Go file of the module.
func files(t *testing.T, root string) []file {
	t.Helper()
	var found []file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			skip := strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" || d.Name() == "vendor"
			if name != root && skip {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := file{path: filepath.ToSlash(rel), test: strings.HasSuffix(name, "_test.go"), comment: parsed.Doc.Text()}
		for _, spec := range parsed.Imports {
			i, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", rel, err)
			}
			f.imports = append(f.imports, i)
		}
		found = append(found, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return out
}
