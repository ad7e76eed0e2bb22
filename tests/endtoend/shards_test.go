package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

func proposal(workspace, key string) record.ProposeFact {
	return record.ProposeFact{Caller: keyed(caller(workspace), key), Domain: "infra", Topic: "lamp " + key, Content: "The lighthouse has lamp " + key}
}

// TestStandBy starts a second worker on the folder of a running one: it waits,
// says so, and goes on with the same memory when the first ends.
func TestStandBy(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*process){
		"stopped": func(p *process) {
			if code, _ := p.terminate(); code != 0 {
				t.Errorf("the first worker ends with %d", code)
			}
		},
		"killed": (*process).kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := start(t, t.TempDir())
			second := spawn(t, first.data)
			eventually(t, time.Minute, "the second worker stands by", func() bool {
				return strings.Contains(second.stderr.String(), "standing by: another worker serves this shard")
			})
			before := must[record.ProposeFactResult](t)(first.client().ProposeFact(timed(t), proposal("first", "1")))
			if w, err := os.ReadFile(filepath.Join(first.data, "worker.json")); err != nil || !strings.Contains(string(w), strconv.Itoa(first.cmd.Process.Pid)) {
				t.Errorf("the first worker's announcement is gone: %s, %v", w, err)
			}
			end(first)
			eventually(t, time.Minute, "the second worker announces itself", func() bool {
				w, err := locate.Announced(first.data)
				return err == nil && w.PID == second.cmd.Process.Pid
			})
			second.connect()
			after := must[record.ProposeFactResult](t)(second.client().ProposeFact(timed(t), proposal("first", "1")))
			if after.FactID != before.FactID {
				t.Errorf("the same call gives %s before and %s after", before.FactID, after.FactID)
			}
		})
	}

	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		first := start(t, t.TempDir())
		second := spawn(t, first.data)
		eventually(t, time.Minute, "the second worker stands by", func() bool { return strings.Contains(second.stderr.String(), "standing by") })
		if code, _ := second.terminate(); code != 0 {
			t.Errorf("a worker that stands by ends with %d when it is told to stop", code)
		}
		must[record.ProposeFactResult](t)(first.client().ProposeFact(timed(t), proposal("first", "1")))
	})
}

// TestShards_oneWorker has one worker serve several shards of one data folder.
func TestShards_oneWorker(t *testing.T) {
	t.Parallel()
	const shards = 4
	p := start(t, t.TempDir(), "--shards", strconv.Itoa(shards))
	c := p.client()
	var made []string
	used := map[int]bool{}
	for i := range 8 {
		w := fmt.Sprintf("fleet-%d", i)
		must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), proposal(w, "1")))
		made, used[workflows.Shard(w, shards)] = append(made, w), true
	}
	if len(used) != shards {
		t.Fatalf("the workspaces lie on %d shards, want %d", len(used), shards)
	}
	if got := must[[]string](t)(c.Workspaces(timed(t), caller("nobody"))); !slices.Equal(got, made) {
		t.Errorf("the workspaces of all shards are %v, want %v", got, made)
	}

	// The answer of a shard costs the engine nothing that stays.
	run := func(shard int) string {
		t.Helper()
		d, err := p.temporal.DescribeWorkflowExecution(timed(t), workflows.ShardID(shard), "")
		if err != nil {
			t.Fatal(err)
		}
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	var first []string
	for round := range 3 {
		if err := c.CheckShards(timed(t), nil); err != nil {
			t.Fatal(err)
		}
		for shard := range shards {
			if round == 0 {
				first = append(first, run(shard))
			} else if got := run(shard); got != first[shard] {
				t.Errorf("round %d of shard %d made another run", round, shard)
			}
		}
	}

	// Maintenance has a queue of its own.
	must[record.ConsolidationReport](t)(c.ConsolidateMemory(timed(t), record.Consolidate{Caller: caller(made[0])}, nil))
	d, err := p.temporal.DescribeWorkflowExecution(timed(t), workflows.MaintenanceID(record.KindConsolidate, made[0]), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.GetExecutionConfig().GetTaskQueue().GetName(), workflows.MaintenanceQueue(workflows.Shard(made[0], shards)); got != want {
		t.Errorf("consolidation runs on %q, want %q", got, want)
	}
}

// TestShards_unserved names the shards that nobody serves, and refuses a
// workspace that came to the wrong worker.
func TestShards_unserved(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--shards", "4", "--own", "0,2")
	c := p.client()
	if err := c.CheckShards(timed(t), []int{0, 2}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if e := wantCode(t, c.CheckShards(ctx, nil), record.Unavailable); !strings.Contains(e.Message, "2 of 4 shards, [1 3]") {
		t.Errorf("the message is %q", e.Message)
	}
	stray := ""
	for i := 0; stray == ""; i++ {
		if w := fmt.Sprintf("stray-%d", i); workflows.Shard(w, 4)%2 == 1 {
			stray = w
		}
	}
	wrong := workflows.NewClient(p.temporal, 1)
	_, err := wrong.ProposeFact(timed(t), proposal(stray, "1"))
	wantCode(t, err, record.InvalidArgument)
	_, err = wrong.SearchMemory(timed(t), record.Search{Caller: caller(stray), Query: "lamp"})
	wantCode(t, err, record.InvalidArgument)
	_, err = wrong.Health(timed(t), caller(stray), false)
	wantCode(t, err, record.InvalidArgument)
	if _, err := os.Stat(p.folder(stray)); !os.IsNotExist(err) {
		t.Errorf("the workspace of another shard was made: %v", err)
	}
}
