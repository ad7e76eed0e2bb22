package borders

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// pkg is one package as the rules see it: Path is relative to the module for ours ("memory/text"; the root is ".") and
// the import path for all others.
type pkg struct {
	Path     string
	Ours     bool
	Standard bool
	Imports  []string // As Path.
}

// graph maps Path to package.
type graph map[string]pkg

// rule forbids packages of ours from importing something.
type rule struct {
	name string
	from match // Which packages of ours it binds.
	not  match // What they may not import.
	// direct looks at the imports of the package alone. Otherwise the whole way is followed, through our own and
	// foreign packages and up to, but not through, the standard library: what that uses inside is its own affair.
	direct bool
	// upTo ends the way at packages that another rule looks into.
	upTo match
}

// match chooses packages.
type match func(p pkg) bool

// room chooses ours in the given top-level folders and below.
func room(names ...string) match {
	return func(p pkg) bool {
		return p.Ours && slices.ContainsFunc(names, func(name string) bool { return within(p.Path, name) })
	}
}

// exactly chooses ours by path.
func exactly(paths ...string) match {
	return func(p pkg) bool { return p.Ours && slices.Contains(paths, p.Path) }
}

// foreign chooses packages that are not ours, with all below them.
func foreign(paths ...string) match {
	return func(p pkg) bool {
		return !p.Ours && slices.ContainsFunc(paths, func(name string) bool { return within(p.Path, name) })
	}
}

func ours(p pkg) bool     { return p.Ours }
func standard(p pkg) bool { return p.Standard }

func either(ms ...match) match {
	return func(p pkg) bool { return slices.ContainsFunc(ms, func(m match) bool { return m(p) }) }
}

func except(m match, but ...match) match {
	return func(p pkg) bool { return m(p) && !either(but...)(p) }
}

func not(m match) match { return func(p pkg) bool { return !m(p) } }

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// Names that several rules use.
var (
	sqliteDrivers = foreign(
		"modernc.org/sqlite", "github.com/mattn/go-sqlite3", "github.com/asg017/sqlite-vec-go-bindings",
		"github.com/ncruces/go-sqlite3", "zombiezen.com/go/sqlite", "github.com/glebarez/sqlite",
	)
	temporal       = foreign("go.temporal.io")
	temporalServer = foreign("go.temporal.io/server", "github.com/temporalio/ui-server")
	fx             = foreign("go.uber.org/fx", "go.uber.org/dig")
	// Not what is below it: database/sql/driver is a few interfaces that types like a UUID implement.
	sql        = func(p pkg) bool { return p.Path == "database/sql" }
	http       = foreign("net/http")
	vocabulary = room("memory/record")
	store      = except(room("memory"), vocabulary)
)

// directions says which rooms each room may import; itself always. Rooms that are not named here may import all.
var directions = map[string][]string{
	"memory":     nil,
	"recall":     {"memory"},
	"dispatch":   {"memory", "recall"},
	"activities": {"memory", "recall", "dispatch"},
	"workflows":  {"memory/record", "activities"},
	"gateway":    {"workflows", "recall", "memory"},
	"starter":    {"workflows", "memory/record"},
}

// rules is the whole law.
func rules() []rule {
	law := []rule{
		{name: "memory/record is a leaf: the standard library only",
			from: vocabulary, not: except(not(standard), vocabulary), direct: true},
		{name: "memory/record holds no SQL, files, network or clockwork of its own",
			from: vocabulary, not: either(sql, foreign("net/http", "os", "io/fs")), direct: true},
		{name: "memory/text and memory/conflict are pure: no SQL, no network",
			from: room("memory/text", "memory/conflict"), not: either(sql, foreign("net"))},
		{name: "memory/text and memory/conflict are pure: no files",
			from: room("memory/text", "memory/conflict"), not: foreign("os", "io/ioutil"), direct: true},
		{name: "memory/text and memory/conflict know nothing of the store",
			from: room("memory/text", "memory/conflict"), not: exactly("memory")},

		{name: "workflows and starter reach the vocabulary, never the store or what reads it",
			from: room("workflows", "starter"), not: either(store, room("recall", "dispatch"))},
		{name: "workflows and starter reach no SQL",
			from: room("workflows", "starter"), not: either(sql, sqliteDrivers)},
		{name: "memory, recall and dispatch know no Temporal",
			from: room("memory", "recall", "dispatch"), not: temporal},
		{name: "memory, recall and dispatch know no HTTP",
			from: room("memory", "recall", "dispatch"), not: http, upTo: room("recall/embedding")},
		// A library for inference may bring a downloader along; our own code there may not use one.
		{name: "recall/embedding knows no HTTP",
			from: room("recall/embedding"), not: http, direct: true},
		{name: "dispatch reaches no embeddings",
			from: room("dispatch"), not: either(room("recall/embedding"), foreign("github.com/knights-analytics/hugot"))},
		{name: "activities reach neither workflows nor worker",
			from: room("activities"), not: room("workflows", "worker")},
		{name: "gateway holds no SQL",
			from: room("gateway"), not: sql, direct: true},

		{name: "only worker is wired with Fx",
			from: except(ours, room("worker", "tests")), not: fx},
		{name: "only worker/engine imports the Temporal server",
			from: except(ours, room("worker/engine", "tests")), not: temporalServer, direct: true},
		{name: "only worker reaches the Temporal server",
			from: except(ours, room("worker", "tests")), not: temporalServer},
		{name: "only memory imports SQLite drivers",
			from: except(ours, room("memory", "tests")), not: sqliteDrivers, direct: true},
		{name: "nothing imports a program",
			from: ours, not: exactly("worker", "starter"), direct: true},
		{name: "nothing outside the tests imports them",
			from: except(ours, room("tests")), not: room("tests"), direct: true},
	}
	for _, name := range slices.Sorted(maps.Keys(directions)) {
		law = append(law, rule{
			name:   fmt.Sprintf("%s imports of ours only %s", name, strings.Join(append([]string{"itself"}, directions[name]...), ", ")),
			from:   room(name),
			not:    except(ours, room(name), room(directions[name]...)),
			direct: true,
		})
	}
	return law
}

// violations lists what breaks the rules, each with the way from the package to what it may not import.
func violations(g graph, law []rule) []string {
	var found []string
	for _, r := range law {
		for _, from := range slices.Sorted(maps.Keys(g)) {
			if !g[from].Ours || !r.from(g[from]) {
				continue
			}
			if way := g.way(from, r); way != nil {
				found = append(found, fmt.Sprintf("%s: %s", r.name, strings.Join(way, " -> ")))
			}
		}
	}
	return found
}

// way returns a shortest chain of imports from a package to one that r forbids it, or nil.
func (g graph) way(from string, r rule) []string {
	before := map[string]string{from: ""}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if g[at].Standard || r.upTo != nil && r.upTo(g.lookup(at)) {
			continue
		}
		for _, to := range g[at].Imports {
			if _, seen := before[to]; seen {
				continue
			}
			before[to] = at
			if r.not(g.lookup(to)) {
				way := []string{to}
				for step := at; step != ""; step = before[step] {
					way = append(way, step)
				}
				slices.Reverse(way)
				return way
			}
			if !r.direct {
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// lookup also knows packages that nobody listed, as an import of a file that is built elsewhere only.
func (g graph) lookup(p string) pkg {
	if found, ok := g[p]; ok {
		return found
	}
	first, _, _ := strings.Cut(p, "/")
	return pkg{Path: p, Standard: !strings.Contains(first, ".")}
}

// topLevel is the fixed list of what lies at the root; folders end in a slash.
var topLevel = []string{
	"go.mod", "go.sum", "workflows/", "activities/", "worker/", "starter/", "memory/", "recall/", "dispatch/", "gateway/",
	"tests/", "docs/", "docker-compose.yml", "Dockerfile", "README.md", "LICENSE",
	// Settings of the tools that check us.
	"workflowcheck.config.yaml", "staticcheck.conf",
}

// strayed lists entries of the root that are not on the list and are no dotfiles.
func strayed(entries []string) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(name string) bool {
		return strings.HasPrefix(path.Base(name), ".") || slices.Contains(topLevel, name)
	})
}
