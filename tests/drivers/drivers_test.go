//go:build native

package drivers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// builds are the two programs, by the name of their driver.
var builds = map[string]struct{ cgo, tags string }{
	"pure Go": {"0", ""},
	"C":       {"1", "native sqlite_fts5"},
}

func build(tb testing.TB, name string) (binary string) {
	tb.Helper()
	b := builds[name]
	binary = filepath.Join(tb.TempDir(), "probe")
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-tags", b.tags, "-o", binary, "./probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+b.cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build with SQLite in %s: %v\n%s", name, err, out)
	}
	return binary
}

func run(tb testing.TB, binary string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), binary, args...)
	out, err := cmd.Output()
	if err != nil {
		tb.Errorf("%v: %v", cmd, err)
	}
	return string(out)
}

func TestSameFileSameAnswers(t *testing.T) {
	t.Parallel()
	pure, native := build(t, "pure Go"), build(t, "C")
	dir := filepath.Join(t.TempDir(), "both")
	wrote := 0
	write := func(binary string, n int) {
		run(t, binary, "write", dir, fmt.Sprint(wrote), fmt.Sprint(wrote+n))
		wrote += n
	}
	same := func(after string) {
		t.Helper()
		a, b := run(t, pure, "ask", dir), run(t, native, "ask", dir)
		if a != b {
			t.Errorf("after %s the answers differ:\n%s\n%s", after, a, b)
		}
		var got struct {
			Facts    []any               `json:"facts"`
			Near     [][]string          `json:"near"`
			Lexical  map[string][]string `json:"lexical"`
			Problems []string            `json:"problems"`
			Indexed  int                 `json:"vectors_indexed"`
		}
		if err := json.Unmarshal([]byte(a), &got); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		if len(got.Facts) != wrote || len(got.Near) != 12 || len(got.Near[0]) != 25 || got.Indexed != wrote || len(got.Problems) != 0 {
			t.Errorf("after %s: %d facts, %d near, %d vectors indexed, problems %q", after, len(got.Facts), len(got.Near[0]), got.Indexed, got.Problems)
		}
		for _, q := range []string{"درگاه پرداخت", "缓存服务器", "поиск записей"} {
			if len(got.Lexical[q]) == 0 {
				t.Errorf("after %s: %q finds nothing", after, q)
			}
		}
	}
	write(pure, 60)
	same("writing in pure Go")
	write(native, 60)
	same("writing in C")
	write(pure, 45)
	same("writing in pure Go again")
	var wg sync.WaitGroup
	for i, binary := range []string{pure, native, pure, native} {
		from := wrote + 30*i
		wg.Go(func() { run(t, binary, "write", dir, fmt.Sprint(from), fmt.Sprint(from+30)) })
	}
	wg.Wait()
	wrote += 120
	same("both writing at once")
	// A retry by the other driver finds what is done in the ledger.
	run(t, native, "write", dir, "0", "60")
	same("a retry")
}
