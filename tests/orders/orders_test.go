package orders

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// patience bounds one order. After a kill the engine waits ten seconds for the
// lost worker before it hands its step to the next one.
const patience = 2 * time.Minute

var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "polyphony-orders-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "worker")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "github.com/polyphony-memory/polyphony/worker")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the worker:", err)
		return 1
	}
	return m.Run()
}

// process is the worker, which may be killed and started again on its folder
// and its port.
type process struct {
	t    *testing.T
	data string
	port int
	cmd  *exec.Cmd
}

func startWorker(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, data: t.TempDir(), port: freePort(t)}
	p.start()
	t.Cleanup(p.kill)
	return p
}

// freePort is one that nobody listens on now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(binary, "--data", p.data, "--port", strconv.Itoa(p.port))
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TEMPORAL_") && !strings.HasPrefix(v, "POLYPHONY_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Error(err)
		return
	}
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if w, err := locate.Announced(p.data); err == nil && w.PID == p.cmd.Process.Pid {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			p.t.Error("the worker does not announce itself")
			return
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) connect() (client.Client, *workflows.Client) {
	p.t.Helper()
	c, shards, err := locate.Connect(p.t.Context(), p.data, func(string) (string, bool) { return "", false }, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	return c, workflows.NewClient(c, shards)
}

// TestFulfil drives an order whose agents die right after they acted.
func TestFulfil(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		honours, asks bool
		// killed kills the worker too, while an agent has acted and told nobody.
		killed bool
		// want counts the effects of the two steps whose first agent dies.
		want int
	}{
		"the shop honours keys":                                {true, true, false, 1},
		"the shop honours keys and nobody asks":                {true, false, false, 1},
		"the shop ignores keys":                                {false, true, false, 1},
		"the shop ignores keys and the worker is killed":       {false, true, true, 1},
		"the shop ignores keys and nobody asks: the wrong way": {false, false, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startWorker(t)
			conn, state := p.connect()
			shop := &Shop{Honours: tc.honours}
			served := httptest.NewServer(shop.Handler())
			t.Cleanup(served.Close)

			agent := &Agent{State: state, Shop: Counter{URL: served.URL, Client: served.Client()}, Asks: tc.asks}
			agent.Dies = func(step string, attempt int32) bool {
				dies := attempt == 1 && (step == "reserve" || step == "pay")
				if dies && tc.killed && step == "pay" {
					p.kill()
					p.start()
				}
				return dies
			}
			w := worker.New(conn, Queue, worker.Options{})
			w.RegisterWorkflow(Fulfil)
			w.RegisterActivity(agent)
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)

			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			order := Order{Workspace: "shop", Task: "order-7", LeaseSeconds: 2}
			fulfil := func(id string) []string {
				t.Helper()
				r, err := conn.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: Queue}, Fulfil, order)
				if err != nil {
					t.Fatal(err)
				}
				var results []string
				if err := r.Get(ctx, &results); err != nil {
					t.Fatal(err)
				}
				return results
			}
			results := fulfil("first")
			effects := map[string]int{}
			for _, e := range shop.Effects() {
				effects[e.What]++
				if e.Reference != record.ObligationKey("order-7", e.What) {
					t.Errorf("%s came under the key %q", e.What, e.Reference)
				}
			}
			if want := map[string]int{"reserve": tc.want, "pay": tc.want, "ship": 1}; !maps.Equal(effects, want) {
				t.Errorf("the shop did %v, want %v", effects, want)
			}
			steps, err := state.Obligations(ctx, record.Caller{Workspace: "shop"}, "order-7", false)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range steps {
				t.Logf("%-8s %s, claim %d by %q: %s", o.Step, o.State, o.Claim, o.ClaimedBy, o.Result)
				if o.State != record.ObligationDone || o.Result != results[i] || o.InDoubt {
					t.Errorf("%+v, the workflow was told %q", o, results[i])
				}
				if died := o.Step == "reserve" || o.Step == "pay"; died != (o.Claim == 2) {
					t.Errorf("step %s had %d claims", o.Step, o.Claim)
				}
			}
			if len(steps) != 5 || len(results) != 5 {
				t.Errorf("%d steps, %d results", len(steps), len(results))
			}

			// The whole order again finds everything done, and does nothing.
			before := len(shop.Effects())
			if again := fulfil("second"); !slices.Equal(again, results) {
				t.Errorf("again: %q, first %q", again, results)
			}
			if after := len(shop.Effects()); after != before {
				t.Errorf("doing it again had %d more effects", after-before)
			}
		})
	}
}
