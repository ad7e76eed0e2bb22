package topology

import (
	"os"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/tests/bench/load"
)

// envLoad names how long each measurement of TestLoad lasts.
const envLoad = "POLYPHONY_LOAD"

// TestLoad measures what `go run ./tests/bench load` measures, with two workers
// and the engine on PostgreSQL, and prints the table of docs/benchmarks.md.
func TestLoad(t *testing.T) {
	v := os.Getenv(envLoad)
	if v == "" {
		t.Skipf("set %s to how long each measurement lasts, such as 10s", envLoad)
	}
	window, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("%s: %v", envLoad, err)
	}
	c := startCluster(t)
	c.startWorker(t, "worker-a", "0-7")
	c.startWorker(t, "worker-b", "8-15")
	rows, err := load.Run(t.Context(), c.client(), window)
	if err != nil {
		t.Fatal(err)
	}
	if err := load.Print(t.Output(), rows); err != nil {
		t.Fatal(err)
	}
}
