package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// starterBinary builds the command line, once.
var starterBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "starter")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/polyphony-memory/polyphony/starter").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// starter runs the command line against a data folder.
func starter(t *testing.T, data string, args ...string) (stdout string, exit int) {
	t.Helper()
	path, err := starterBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--data", data}, args...)...)
	cmd.Env = environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Logf("starter %s: %s", strings.Join(args, " "), errs.String())
		return out.String(), code
	}
	return out.String(), 0
}

// TestUpkeep_restoreAfterKill backs up a workspace that is written, kills the
// worker, and puts the backup back after the next start: it holds what was
// acknowledged before the backup began.
func TestUpkeep_restoreAfterKill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data)
	c := p.client()
	propose := func(who record.Caller, n int) error {
		_, err := c.ProposeFact(timed(t), record.ProposeFact{Caller: who, Domain: "birds", Topic: fmt.Sprint("bird ", n), Content: fmt.Sprintf("Bird %d sings on pole %d", n, n)})
		return err
	}
	for n := range 20 {
		if err := propose(caller("aviary"), n); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range 40 {
			if err := propose(caller("aviary"), 100+n); err != nil {
				t.Error(err)
				return
			}
		}
	})
	b := must[record.Backup](t)(c.BackUp(timed(t), record.BackUp{Caller: caller("aviary"), Name: "weekly"}))
	wg.Wait()
	if b.Facts < 20 || b.Facts > 60 {
		t.Errorf("the backup holds %d facts", b.Facts)
	}
	if again := must[record.Backup](t)(c.BackUp(timed(t), record.BackUp{Caller: caller("aviary"), Name: "weekly"})); again.SHA256 != b.SHA256 {
		t.Error("a backup of the same name is another one")
	}
	p.kill()

	p = start(t, data)
	c = p.client()
	_, err := c.RestoreBackup(timed(t), record.RestoreBackup{Caller: caller("aviary"), Name: "weekly"})
	wantCode(t, err, record.InvalidArgument)
	must[record.Backup](t)(c.RestoreBackup(timed(t), record.RestoreBackup{Caller: caller("aviary"), Name: "weekly", Overwrite: true}))
	if got := one(t, p.folder("aviary"), "SELECT count(*) FROM facts"); got != fmt.Sprint(b.Facts) {
		t.Errorf("restored %s of %d facts", got, b.Facts)
	}
	if err := propose(caller("aviary"), 500); err != nil {
		t.Errorf("a write after the restore: %v", err)
	}
	r := must[record.DoctorReport](t)(c.Doctor(timed(t), record.Doctor{Caller: caller("aviary")}))
	if !r.OK || r.Facts != b.Facts+1 {
		t.Errorf("%s", asJSON(t, r))
	}
}

// TestUpkeep_commands goes through the operator's commands, with a file that
// was doctored while the worker was down.
func TestUpkeep_commands(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data)
	for n := range 3 {
		must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), record.ProposeFact{Caller: caller("aviary"), Domain: "birds", Topic: fmt.Sprint("bird ", n), Content: fmt.Sprintf("Bird %d sings", n)}))
	}
	if code, _ := p.terminate(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	db := database(t, workspaceFolder(data, "aviary"))
	db.SetMaxOpenConns(1)
	for _, damage := range []string{"PRAGMA query_only = 0", "DELETE FROM fact_index WHERE rowid = 2", "UPDATE terms SET df = 9"} {
		if _, err := db.ExecContext(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, data)
	w := []string{"-w", "aviary"}
	run := func(exit int, args ...string) string {
		t.Helper()
		out, code := starter(t, data, append(slices.Clone(w), args...)...)
		if code != exit {
			t.Fatalf("starter %v: exit %d, want %d\n%s", args, code, exit, out)
		}
		return out
	}
	if out := run(record.ExitUnavailable, "doctor"); !strings.Contains(out, "found index rows: 1") || !strings.Contains(out, "found term frequencies") {
		t.Errorf("doctor says:\n%s", out)
	}
	if out := run(0, "doctor", "--repair"); !strings.Contains(out, "mended index rows: 1") || !strings.Contains(out, "is well") {
		t.Errorf("doctor --repair says:\n%s", out)
	}
	run(0, "doctor")
	run(0, "backup", "create", "--name", "good")
	if out := run(0, "backup", "list"); strings.TrimSpace(out) != "good" {
		t.Errorf("backups:\n%s", out)
	}
	run(record.ExitUsage, "backup", "restore", "good")
	run(0, "backup", "restore", "good", "--overwrite")
	w = []string{"-w", "look"}
	run(record.ExitRefused, "backup", "restore", "nothing", "--of", "aviary")
	run(0, "backup", "restore", "good", "--of", "aviary")
	if out := run(0, "search", "bird"); !strings.Contains(out, "Bird 2 sings") {
		t.Errorf("the restored copy finds:\n%s", out)
	}
	if out := run(0, "prune"); !strings.Contains(out, "0 rows of 0") {
		t.Errorf("prune says:\n%s", out)
	}
	run(record.ExitUsage, "prune", "--older-than", "1h")
}

// TestUpkeep_exportImport exports, imports into an empty workspace twice, and
// exports again: the same data, and the second import adds none (situation J5).
func TestUpkeep_exportImport(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data)
	c := p.client()
	until := record.At(time.Now().Add(1000 * time.Hour))
	for n, content := range []string{"Bird 0 sings", "پرنده بر شاخه می‌خواند", "鳥が歌う <b>&amp;</b>", "It says \"quoted\"\nand goes on\ton", "Bird 4 has 🙂"} {
		in := record.ProposeFact{Caller: caller("from"), Domain: []string{"birds", "repo:web/birds"}[n%2], Topic: fmt.Sprint("bird ", n), Content: content, Veracity: []string{"stated", "inferred"}[n%2], MemoryType: "decision"}
		if n == 3 {
			in.ValidUntil = until
		}
		must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), in))
	}
	must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller("from"), Domain: "birds", Topic: "deploy", Content: "The service deploys to prod", Veracity: "inferred"}))
	must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller("from"), Domain: "birds", Topic: "deploy", Content: "The service deploys to staging", Veracity: "stated"}))
	must[record.PolicyResult](t)(c.ProposePolicy(timed(t), record.ProposePolicy{Caller: caller("from"), Domain: "safety", Rule: "Keep quiet."}))

	first, code := starter(t, data, "-w", "from", "export")
	if code != 0 || strings.Count(first, "\n") != 6 {
		t.Fatalf("exit %d:\n%s", code, first)
	}
	file := filepath.Join(t.TempDir(), "from.jsonl")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := func() string { return one(t, p.folder("to"), "SELECT count(*) FROM facts") }
	for range 2 {
		if out, code := starter(t, data, "-w", "to", "import", "--format", "jsonl", file); code != 0 {
			t.Fatalf("exit %d:\n%s", code, out)
		}
		if facts() != "6" {
			t.Fatalf("%s facts after an import of 6", facts())
		}
	}
	// The same facts in another file: known, and none is added.
	if err := os.WriteFile(file, []byte(first+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := starter(t, data, "-w", "to", "import", "--format", "jsonl", file); code != 0 || facts() != "6" {
		t.Errorf("exit %d, %s facts:\n%s", code, facts(), out)
	}
	same := func(export string) string {
		var out strings.Builder
		for line := range strings.Lines(export) {
			var f record.Fact
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&out, f.Domain, f.Topic, f.Content, f.MemoryType, f.Veracity, f.ValidUntil, f.CreatedAt, f.AuthoredByAgent, f.AuthoredByRole)
		}
		return out.String()
	}
	second, code := starter(t, data, "-w", "to", "export")
	if code != 0 || same(second) != same(first) {
		t.Errorf("exit %d; exported\n%s\nand after the import\n%s", code, same(first), same(second))
	}
}
