package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// refusedWithin bounds a call that cannot succeed while a disturbance lasts:
// the store is asked again and again until then.
const refusedWithin = 3 * time.Second

func who(workspace, key string) record.Caller {
	return record.Caller{Workspace: workspace, Agent: "scout", Role: "coder", Key: key}
}

// large is a proposal of sixty kilobytes, so that few fill a small disk.
func large(workspace string, n int) record.ProposeFact {
	return record.ProposeFact{
		Caller: who(workspace, fmt.Sprintf("large-%d", n)), Domain: "yard", Topic: fmt.Sprintf("log %d", n),
		Content: fmt.Sprintf("Log %d: %s", n, strings.Repeat("rope and timber ", 3800)),
	}
}

func propose(ctx context.Context, l *life, in record.ProposeFact, within time.Duration) (record.ProposeFactResult, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return l.client.ProposeFact(ctx, in)
}

// factIDs reads the ids of all facts of a workspace through the worker.
func factIDs(t testing.TB, l *life, workspace string) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callPatience)
	defer cancel()
	all, err := workflows.ReadAll[record.Fact](ctx, l.client, record.ReadMemory{Caller: who(workspace, ""), What: record.ReadFacts, All: true})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, f := range all {
		ids[f.ID] = true
	}
	return ids
}

// wantAll checks that acknowledged facts, and no others, are there.
func wantAll(t testing.TB, l *life, workspace string, acknowledged []string) {
	t.Helper()
	have := factIDs(t, l, workspace)
	for _, id := range acknowledged {
		if !have[id] {
			t.Errorf("acknowledged fact %s is lost", id)
		}
	}
	if len(have) != len(acknowledged) {
		t.Errorf("%d facts, %d acknowledged", len(have), len(acknowledged))
	}
}

// wantSound checks a workspace's file, which no worker serves.
func wantSound(t testing.TB, data, workspace string) {
	t.Helper()
	db, err := open(folder(data, workspace))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, problems, err := soundness(t.Context(), db); err != nil || len(problems) > 0 {
		t.Errorf("%s is not sound: %q, %v", workspace, problems, err)
	}
}

// fill takes what room a disk has left and returns the file that holds it.
func fill(t testing.TB, dir string) string {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return ballast
}

// TestFullDisk fills the disk under the worker. Calls wait, reads go on, and
// once there is room the same calls are taken; nothing acknowledged is lost.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		name, under string
		megabytes   int
	}{
		{"the workspaces' disk", "workspaces", 8},
		{"the one disk of all", ".", 48},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := t.TempDir()
			disk := filepath.Join(data, c.under)
			smallDisk(t, disk, c.megabytes)
			l := start(t, data)
			var acknowledged []string
			n := 0
			take := func(within time.Duration) error {
				out, err := propose(t.Context(), l, large("full", n), within)
				if err == nil {
					acknowledged = append(acknowledged, out.FactID)
					n++
				}
				return err
			}
			for range 3 {
				if err := take(callPatience); err != nil {
					t.Fatal(err)
				}
			}
			ballast := fill(t, disk)
			// What SQLite's log has room for it may still take.
			var err error
			for err == nil && n < 500 {
				err = take(refusedWithin)
			}
			if record.ErrorCode(err) != record.Unavailable {
				t.Fatalf("on a full disk the call is answered with %v, want Unavailable", err)
			}
			t.Logf("full after %d calls: %v", n, err)
			if c.under == "workspaces" {
				wantAll(t, l, "full", acknowledged)
				ctx, cancel := context.WithTimeout(t.Context(), callPatience)
				defer cancel()
				if h, err := l.client.Health(ctx, who("full", ""), false); err != nil || h.OK || !strings.Contains(strings.Join(h.Problems, "\n"), "the disk is full") {
					t.Errorf("health says %v, %q, %v", h.OK, h.Problems, err)
				}
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			if l.ctx.Err() != nil {
				t.Logf("the worker ended with code %d, and is started again", l.cmd.ProcessState.ExitCode())
				l = start(t, data)
			}
			if err := take(callPatience); err != nil {
				t.Fatalf("with room again the same call is answered with %v\n%s", err, l.log.end(10))
			}
			wantAll(t, l, "full", acknowledged)
			if err := stopped(l); err != nil {
				t.Error(err)
			}
			wantSound(t, data, "full")
		})
	}
}

// TestReadOnlyFolder serves a folder that cannot be written: a write says so
// and is not acknowledged, and no read answers as if memory were empty.
func TestReadOnlyFolder(t *testing.T) {
	const workspace = "sealed"
	data := t.TempDir()
	seal := smallDisk(t, filepath.Join(data, "workspaces"), 8)
	l := start(t, data)
	out, err := propose(t.Context(), l, large(workspace, 1), callPatience)
	if err != nil {
		t.Fatal(err)
	}
	if err := stopped(l); err != nil {
		t.Fatal(err)
	}
	seal(true)
	l = start(t, data)
	if _, err := propose(t.Context(), l, large(workspace, 2), refusedWithin); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("a write to a read-only folder is answered with %v, want Unavailable", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), refusedWithin)
	defer cancel()
	facts, err := workflows.ReadAll[record.Fact](ctx, l.client, record.ReadMemory{Caller: who(workspace, ""), What: record.ReadFacts})
	if err == nil && (len(facts) != 1 || facts[0].ID != out.FactID) {
		t.Errorf("a read of a read-only folder says %d facts", len(facts))
	} else if err != nil && record.ErrorCode(err) != record.Unavailable {
		t.Errorf("a read of a read-only folder says %v", err)
	}
	l.kill()
	seal(false)
	l = start(t, data)
	second, err := propose(t.Context(), l, large(workspace, 2), callPatience)
	if err != nil {
		t.Fatal(err)
	}
	wantAll(t, l, workspace, []string{out.FactID, second.FactID})
}

// TestDamagedFile damages one workspace's file: every call on it names the
// damage, the others are served, and a copy put back is served again.
func TestDamagedFile(t *testing.T) {
	data := t.TempDir()
	l := start(t, data)
	made := map[string]string{}
	for _, workspace := range []string{"damaged", "sound"} {
		for n := range 4 {
			out, err := propose(t.Context(), l, large(workspace, n), callPatience)
			if err != nil {
				t.Fatal(err)
			}
			made[workspace] = out.FactID
		}
	}
	if err := stopped(l); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder(data, "damaged"), memory.FileName)
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hurt := bytes.Clone(backup)
	// Every page but the first loses its head.
	for at := 4096; at < len(hurt); at += 4096 {
		copy(hurt[at:], bytes.Repeat([]byte{0xa5}, 64))
	}
	if err := os.WriteFile(path, hurt, 0o600); err != nil {
		t.Fatal(err)
	}
	l = start(t, data)
	_, err = propose(t.Context(), l, large("damaged", 9), callPatience)
	ctx, cancel := context.WithTimeout(t.Context(), callPatience)
	defer cancel()
	_, read := l.client.SearchMemory(ctx, record.Search{Caller: who("damaged", ""), Query: "rope"})
	_, healthErr := l.client.Health(ctx, who("damaged", ""), true)
	for what, err := range map[string]error{"a write": err, "a search": read, "the health": healthErr} {
		if record.ErrorCode(err) != record.StoreCorrupt {
			t.Errorf("%s of a damaged file says %v, want StoreCorrupt", what, err)
		}
	}
	if !factIDs(t, l, "sound")[made["sound"]] {
		t.Error("the workspace beside it lost a fact")
	}
	if err := stopped(l); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	l = start(t, data)
	if !factIDs(t, l, "damaged")[made["damaged"]] {
		t.Error("the copy that was put back lacks a fact")
	}
}

// TestEngineLost removes the engine's file. Every call that was acknowledged
// before is made again under its key: the ledger alone gives the answer, and
// nothing is done twice.
func TestEngineLost(t *testing.T) {
	s := settings{seed: 7, calls: 240, workspaces: 2}
	r := newRun(t.TempDir(), newPlan(s))
	if err := r.uninterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(r.data, "engine")); err != nil {
		t.Fatal(err)
	}
	l := start(t, r.data)
	again := 0
	for _, a := range r.log {
		if a.code != "" || a.call.ledger == "" {
			continue
		}
		answer, err := attemptCall(l, a.call, false)
		if err != nil {
			t.Fatalf("%s again: %v", a.call.ledger, err)
		}
		again++
		raw := asJSON(t, a.answer)
		if same, err := sameAnswer(raw, acknowledged{call: a.call, answer: answer}); err != nil || !same {
			t.Errorf("%s again says %s, and said %s", a.call.ledger, asJSON(t, answer), raw)
		}
	}
	if again < s.calls/2 {
		t.Errorf("only %d calls were made again", again)
	}
	if err := stopped(l); err != nil {
		t.Error(err)
	}
	f, err := r.audit(t.Context())
	if err != nil || len(f.lost)+len(f.doubled)+len(f.problems) > 0 {
		t.Errorf("%v, lost %q, doubled %q, problems %q", err, f.lost, f.doubled, f.problems)
	}
	t.Logf("%d calls answered again by the ledger alone", again)
}

// TestEngineRestarted kills the engine under a worker that lives on. The
// embedded engine lives and dies with its process, so this is about a worker
// that joined an engine elsewhere: here that of another worker, which serves
// the other shard.
func TestEngineRestarted(t *testing.T) {
	port := freePort(t)
	var mine string
	for n := 0; ; n++ {
		if mine = fmt.Sprintf("joined-%d", n); workflows.Shard(mine, 2) == 1 {
			break
		}
	}
	holder := t.TempDir()
	serve := []string{"--port", fmt.Sprint(port), "--shards", "2", "--own", "0"}
	first := start(t, holder, serve...)
	joined, err := spawn(t.Context(), t.TempDir(), []string{fmt.Sprintf("TEMPORAL_ADDRESS=127.0.0.1:%d", port), "POLYPHONY_SHARDS=2"}, "--own", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(joined.kill)
	var acknowledged []string
	take := func(l *life, n int) {
		t.Helper()
		out, err := propose(t.Context(), l, large(mine, n), callPatience)
		if err != nil {
			t.Fatalf("call %d: %v\n%s", n, err, joined.log.end(20))
		}
		acknowledged = append(acknowledged, out.FactID)
	}
	take(first, 0)
	for n := range 3 {
		// One call is under way when the engine goes.
		underWay := make(chan struct{})
		go func() {
			defer close(underWay)
			_, _ = propose(first.ctx, first, large(mine, n+1), callPatience)
		}()
		first.kill()
		<-underWay
		first = start(t, holder, serve...)
		take(first, n+1)
	}
	if joined.ctx.Err() != nil {
		t.Fatalf("the worker ended with its engine\n%s", joined.log.end(20))
	}
	wantAll(t, first, mine, acknowledged)
	if err := stopped(joined); err != nil {
		t.Error(err)
	}
	wantSound(t, joined.data, mine)
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
