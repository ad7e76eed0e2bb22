package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// histories is where the recorded ones lie: <workflow>/<case>.json, or .json.gz
// for a long one.
const histories = "testdata/histories"

// files returns the recorded histories, by workflow.
func files(t testing.TB) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, pattern := range []string{"*.json", "*.json.gz"} {
		found, err := filepath.Glob(filepath.Join(histories, "*", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name := filepath.Base(filepath.Dir(path))
			out[name] = append(out[name], path)
		}
	}
	return out
}

// contents returns a history's JSON.
func contents(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(raw)); err == nil {
			raw, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func history(t testing.TB, path string) *historypb.History {
	t.Helper()
	h, err := client.HistoryFromJSON(bytes.NewReader(contents(t, path)), client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// registered collects the names of what workflows.Register registers.
type registered struct {
	worker.WorkflowRegistry
	names []string
}

func (r *registered) RegisterWorkflow(w any) {
	name, err := workflowName(w)
	if err != nil {
		panic(err)
	}
	r.names = append(r.names, name)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	var all registered
	workflows.Register(&all)
	found := files(t)
	for _, name := range all.names {
		if len(found[name]) == 0 {
			t.Errorf("workflow %s has no recorded history; record one with: go test ./tests/replay -update", name)
		}
	}
	for name, paths := range found {
		if !slices.Contains(all.names, name) {
			t.Errorf("there are histories of %s, which is no longer registered: runs of it could not go on", name)
			continue
		}
		for _, path := range paths {
			t.Run(name+"/"+strings.SplitN(filepath.Base(path), ".", 2)[0], func(t *testing.T) {
				t.Parallel()
				replayer := worker.NewWorkflowReplayer()
				workflows.Register(replayer)
				h := history(t, path)
				began := time.Now()
				if err := replayer.ReplayWorkflowHistory(quiet(), h); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d events in %v", len(h.GetEvents()), time.Since(began).Round(time.Millisecond))
			})
		}
	}
}

// TestReplay_changed shows that the replay notices a changed workflow.
func TestReplay_changed(t *testing.T) {
	t.Parallel()
	paths := files(t)["ProposeFact"]
	if len(paths) == 0 {
		t.Fatal("there is no history of ProposeFact")
	}
	h := history(t, filepath.Join(histories, "ProposeFact", "created.json"))

	// The same calls, with a timer that was not there when the history was made.
	waits := func(ctx workflow.Context, in record.ProposeFact) (record.ProposeFactResult, error) {
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return record.ProposeFactResult{}, err
		}
		return workflows.ProposeFact(ctx, in)
	}
	// An activity of the server's instead of a local one.
	remote := func(ctx workflow.Context, in record.ProposeFact) (out record.ProposeFactResult, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return out, workflow.ExecuteActivity(ctx, workflows.ActivityProposeFact, in).Get(ctx, &out)
	}
	// Nothing is called at all.
	forgets := func(workflow.Context, record.ProposeFact) (out record.ProposeFactResult, err error) { return out, nil }
	for name, changed := range map[string]any{"waits": waits, "remote": remote, "forgets": forgets} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflowWithOptions(changed, workflow.RegisterOptions{Name: "ProposeFact"})
			err := replayer.ReplayWorkflowHistory(quiet(), h)
			if err == nil || !strings.Contains(err.Error(), "TMPRL1100") {
				t.Errorf("the replay of a changed workflow says %v, want TMPRL1100", err)
			}
		})
	}
}

// private is what a recorded history must not tell of the machine that
// recorded it: paths and addresses.
var private = regexp.MustCompile(`(?i)/(home|root|tmp|var|work|users|private)/|localhost|127\.0\.0\.1|[0-9]+@[a-z0-9.-]+@`)

// payload is base64 in a history's JSON; what is in it may not tell either.
var payload = regexp.MustCompile(`"data":\s*"([A-Za-z0-9+/=]+)"`)

func TestHistories_private(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// A very short name, as containers have them, would be found by accident.
	byName := len(host) >= 6
	var sum, count int
	for _, paths := range files(t) {
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				sum += int(info.Size())
				count++
				if info.Size() > 256<<10 {
					t.Errorf("%s has %d bytes; keep histories small", path, info.Size())
				}
			}
			raw := contents(t, path)
			texts := []string{string(raw)}
			for _, m := range payload.FindAllSubmatch(raw, -1) {
				if decoded, err := base64.StdEncoding.DecodeString(string(m[1])); err == nil {
					texts = append(texts, string(decoded))
				}
			}
			for _, text := range texts {
				if found := private.FindString(text); found != "" {
					t.Errorf("%s tells %q", path, found)
				}
				if byName && strings.Contains(text, host) {
					t.Errorf("%s tells the name of the machine", path)
				}
			}
			for _, e := range history(t, path).GetEvents() {
				if e.GetEventType().String() == "WorkflowTaskScheduled" {
					if q := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue().GetName(); q != workflows.ShardQueue(0) {
						t.Errorf("%s: task queue %q, which is named after the machine", path, q)
						break
					}
				}
			}
		}
	}
	t.Logf("%d histories, %d kB", count, sum>>10)
}

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
