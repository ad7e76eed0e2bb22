package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// The environment sets how long the harness runs. Without it the run is a
// short one.
const (
	envSeed  = "POLYPHONY_CHAOS_SEED"
	envKills = "POLYPHONY_CHAOS_KILLS"
	envCalls = "POLYPHONY_CHAOS_CALLS"
)

// settings are those of one run.
type settings struct {
	seed                     uint64
	kills, calls, workspaces int
}

func readSettings(t testing.TB) settings {
	t.Helper()
	number := func(name string, otherwise int) int {
		v := os.Getenv(name)
		if v == "" {
			return otherwise
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, want a number of 1 or more", name, v)
		}
		return n
	}
	s := settings{seed: uint64(number(envSeed, 1)), kills: number(envKills, 5), calls: number(envCalls, 500)}
	// A workspace for each 500 calls or so, and never less than three.
	s.workspaces = max(3, s.calls/500)
	return s
}

// binary is the worker, built with the tag "faults".
var binary string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "polyphony-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "worker")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "faults", "-o", binary, "github.com/polyphony-memory/polyphony/worker")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the worker:", err)
		return 1
	}
	return m.Run()
}
