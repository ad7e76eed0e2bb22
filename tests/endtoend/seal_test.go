package endtoend

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

// planted are words that stand in every kind of text that a call may carry and
// nowhere else.
var planted = []string{"Quetzalcoatlus", "کوهستانِ‌آبی"}

// plant makes a call of every kind whose text is planted, including refused
// ones.
func plant(t *testing.T, c *workflows.Client, workspace string) {
	t.Helper()
	who := caller(workspace)
	who.Role = ""
	text := func(s string) string { return s + " " + strings.Join(planted, " ") }
	propose := func(topic, content string) record.ProposeFactResult {
		return must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: who, Domain: "infra", Topic: topic, Content: content, Veracity: "stated"}))
	}
	one := propose(text("deploy"), text("The service deploys to prod on"))
	two := propose(text("deploy"), text("The service deploys to staging on"))
	propose("other", text("Nothing like it"))
	_, err := c.SupersedeFact(timed(t), record.SupersedeFact{Caller: who, Old: one.FactID, New: one.FactID, Reason: text("no")})
	wantCode(t, err, record.SupersedeInvalid)
	must[record.SupersedeFactResult](t)(c.SupersedeFact(timed(t), record.SupersedeFact{Caller: who, Old: one.FactID, New: two.FactID, Reason: text("changed")}))
	must[record.RestoreFactResult](t)(c.RestoreFact(timed(t), record.RestoreFact{Caller: who, FactID: one.FactID, Reason: text("back")}))
	must[record.PolicyResult](t)(c.ProposePolicy(timed(t), record.ProposePolicy{Caller: who, Domain: "safety", Rule: text("Wear a vest near")}))
	must[record.RememberResult](t)(c.Remember(timed(t), record.Remember{Caller: who, SessionID: "monday", Content: text("A session item about")}))
	must[record.RecordObservationResult](t)(c.RecordObservation(timed(t), record.RecordObservation{Caller: who, Text: text("Seen:")}))
	must[record.UpdateNotesResult](t)(c.UpdateNotes(timed(t), record.UpdateNotes{Caller: who, Text: text("My notes on")}))
	must[record.MeetingReport](t)(c.CaptureMeetingDecisions(timed(t), record.CaptureMeeting{Caller: who, MeetingID: "m-1", Title: text("Review of"), Revision: 1, Decisions: []record.Decision{{Text: text("We ship"), DecidedBy: "mason"}}}))
	must[record.ConsolidationReport](t)(c.ConsolidateMemory(timed(t), record.Consolidate{Caller: who}, nil))
	must[record.HarmonizationReport](t)(c.HarmonizeMemory(timed(t), record.Harmonize{Caller: who}, nil))
	if p := must[record.Preamble](t)(c.AssemblePreamble(timed(t), record.Dispatch{Caller: who, Task: text("Deploy")})); !strings.Contains(p.Text, planted[0]) {
		t.Errorf("the preamble holds nothing of what was planted:\n%s", p.Text)
	}
	if s := must[record.SearchResult](t)(c.SearchMemory(timed(t), record.Search{Caller: who, Query: text("")})); len(s.Facts) == 0 {
		t.Error("the search finds nothing")
	}
	must[record.FactHistory](t)(c.History(timed(t), who, one.FactID))
}

// found returns the planted words that stand in files of a folder, as they are
// or as JSON escapes them.
func found(t *testing.T, dir string) (words []string, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, w := range planted {
			if bytes.Contains(raw, []byte(w)) {
				words = append(words, filepath.Base(path)+": "+w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return words, files
}

func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := seal.Edit(path, nil).Rotate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSeal_dump reads the engine's database, with its log, for what was
// planted. Without keys it must be found, or the search would show nothing.
func TestSeal_dump(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"without keys": nil, "with keys": {"--key-file", keyFile(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), args...)
			plant(t, p.client(), "dump")
			p.kill()
			words, files := found(t, filepath.Join(p.data, "engine"))
			if sealed := args != nil; (len(words) == 0) != sealed || files == 0 {
				t.Errorf("in %d files of the engine stand %v", files, words)
			}
			if words, _ := found(t, p.folder("dump")); len(words) == 0 {
				t.Error("the workspace does not hold what was planted")
			}
		})
	}
}

// TestSeal_restart keeps a run open over kills, a rotation and a start with
// the wrong keys, which stops it and does not end it.
func TestSeal_restart(t *testing.T) {
	t.Parallel()
	data, keys := t.TempDir(), keyFile(t)
	item := func(n int) workflows.ImportPage {
		return workflows.ImportPage{Page: n, Items: []record.ProposeFact{{Domain: "birds", Topic: planted[n], Content: planted[n] + " flies", Veracity: "imported"}}}
	}
	p := start(t, data, "--key-file", keys)
	imp, _, err := p.client().BeginImport(timed(t), caller("birds"), source("birds"))
	if err != nil {
		t.Fatal(err)
	}
	must[workflows.ImportState](t)(imp.Page(timed(t), item(0)))
	id := workflows.ID(record.KindImportFacts, "birds", source("birds"))
	p.kill()

	p = start(t, data, "--key-file", keyFile(t))
	if err := p.temporal.SignalWorkflow(timed(t), id, "", "nudge", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the run's task fails for want of the key", func() bool {
		d, err := p.temporal.DescribeWorkflowExecution(timed(t), id, "")
		if err != nil {
			t.Fatal(err)
		}
		if s := d.GetWorkflowExecutionInfo().GetStatus(); s != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			t.Fatalf("the run is %v", s)
		}
		return d.GetPendingWorkflowTask().GetAttempt() > 1
	})
	p.kill()

	if _, err := seal.Edit(keys, nil).Rotate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p = start(t, data, "--key-file", keys)
	imp, state, err := p.client().BeginImport(timed(t), caller("birds"), source("birds"))
	if err != nil || state.NextPage != 1 {
		t.Fatalf("after the restart: %+v, %v", state, err)
	}
	must[workflows.ImportState](t)(imp.Page(timed(t), item(1)))
	if report := must[record.ImportReport](t)(imp.Finish(timed(t))); report.Created != 2 {
		t.Errorf("the import made %d of 2", report.Created)
	}
	p.kill()
	if words, _ := found(t, filepath.Join(data, "engine")); len(words) > 0 {
		t.Errorf("in the engine stand %v", words)
	}
}

// TestSeal_refused starts a worker with a key file that cannot be used.
func TestSeal_refused(t *testing.T) {
	t.Parallel()
	p := spawn(t, t.TempDir(), "--key-file", filepath.Join(t.TempDir(), "none.json"))
	if code := p.wait(time.Minute); code != record.ExitUsage || !strings.Contains(p.stderr.String(), "starter key rotate") {
		t.Errorf("exit %d: %s", code, p.stderr)
	}
}
