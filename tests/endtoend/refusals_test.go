package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// refusal is a call that must fail with a name and leave the file as it was.
type refusal struct {
	name  string
	code  record.Code
	field string
	call  func(context.Context, *workflows.Client) error
	// detail checks what else the error says.
	detail func(testing.TB, *record.Error)
}

func proposing(in record.ProposeFact) func(context.Context, *workflows.Client) error {
	return func(ctx context.Context, c *workflows.Client) error {
		_, err := c.ProposeFact(ctx, in)
		return err
	}
}

// TestRefusals provokes every error that a client can meet.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	c := p.client()
	const ws = "refusals"
	who := caller(ws)
	fact := func(topic, content string) string {
		t.Helper()
		return must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: who, Domain: "infra", Topic: topic, Content: content})).FactID
	}
	oldest, middle, newest := fact("lamp", "The lamp is oil"), fact("lantern", "The lantern is gas"), fact("light", "The light is electric")
	must[record.SupersedeFactResult](t)(c.SupersedeFact(timed(t), record.SupersedeFact{Caller: who, Old: oldest, New: middle}))
	must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: keyed(who, "taken"), Domain: "infra", Topic: "buoy", Content: "The buoy is red"}))
	policy := must[record.PolicyResult](t)(c.ProposePolicy(timed(t), record.ProposePolicy{Caller: who, Domain: "safety", Rule: "Wear a vest on the quay."})).PolicyID
	gone := must[record.PolicyResult](t)(c.ProposePolicy(timed(t), record.ProposePolicy{Caller: who, Domain: "safety", Rule: "Carry a whistle."})).PolicyID
	must[record.PolicyResult](t)(c.SupersedePolicy(timed(t), record.SupersedePolicy{Caller: who, PolicyID: gone}))
	must[record.UpdateNotesResult](t)(c.UpdateNotes(timed(t), record.UpdateNotes{Caller: who, Text: "At the east pier."}))
	for _, grant := range []record.SetGrant{{ForRole: "qa", Level: "none"}, {ForRole: "pm", Level: "read"}} {
		grant.Caller, grant.Domain = who, "safety"
		must[record.SetGrantResult](t)(c.SetGrant(timed(t), grant))
	}
	as := func(role string) record.Caller {
		w := who
		w.Role = role
		return w
	}
	denied := func(role, actual string) func(testing.TB, *record.Error) {
		return func(t testing.TB, e *record.Error) {
			if e.Role != role || e.Domain != "safety" || e.Required != "write" || e.Actual != actual {
				t.Errorf("role %q, domain %q, required %q, actual %q; want %s, safety, write, %s", e.Role, e.Domain, e.Required, e.Actual, role, actual)
			}
		}
	}
	half, over := 0.5, 1.5
	version := int64(7)
	base := record.ProposeFact{Caller: who, Domain: "infra", Topic: "buoy", Content: "The buoy is green"}
	with := func(change func(*record.ProposeFact)) func(context.Context, *workflows.Client) error {
		in := base
		change(&in)
		return proposing(in)
	}
	all := []refusal{
		{name: "no domain", code: record.InvalidArgument, field: "domain", call: with(func(f *record.ProposeFact) { f.Domain = "" })},
		{name: "domain of punctuation", code: record.InvalidArgument, field: "domain", call: with(func(f *record.ProposeFact) { f.Domain = "../.." })},
		{name: "no topic", code: record.InvalidArgument, field: "topic", call: with(func(f *record.ProposeFact) { f.Topic = " " })},
		{name: "topic of two lines", code: record.InvalidArgument, field: "topic", call: with(func(f *record.ProposeFact) { f.Topic = "a\nb" })},
		{name: "unknown veracity", code: record.InvalidArgument, field: "veracity", call: with(func(f *record.ProposeFact) { f.Veracity = "rumoured" })},
		{name: "unknown memory type", code: record.InvalidArgument, field: "memory_type", call: with(func(f *record.ProposeFact) { f.MemoryType = "dream" })},
		{name: "confidence over one", code: record.InvalidArgument, field: "confidence", call: with(func(f *record.ProposeFact) { f.Confidence = &over })},
		{name: "unknown role", code: record.InvalidArgument, field: "role", call: with(func(f *record.ProposeFact) { f.Role = "captain" })},
		{name: "key with a space", code: record.InvalidArgument, field: "key", call: with(func(f *record.ProposeFact) { f.Key = "a b" })},
		{name: "key too long", code: record.InvalidArgument, field: "key", call: with(func(f *record.ProposeFact) { f.Key = strings.Repeat("k", 129) })},
		{name: "no content", code: record.ContentEmpty, field: "content", call: with(func(f *record.ProposeFact) { f.Content = "" })},
		{name: "blank content", code: record.ContentEmpty, field: "content", call: with(func(f *record.ProposeFact) { f.Content = " \t\n" })},
		{name: "zero-width content", code: record.ContentEmpty, field: "content", call: with(func(f *record.ProposeFact) { f.Content = "\u200b\u200d\ufeff" })},
		{name: "content a byte too long", code: record.ContentTooLarge, field: "content", call: with(func(f *record.ProposeFact) { f.Content = strings.Repeat("x", record.MaxContentBytes+1) })},
		{name: "content with NUL", code: record.InvalidUTF8, field: "content", call: with(func(f *record.ProposeFact) { f.Content = "a\x00b" })},
		// An encoder that replaces the bad byte would store what nobody said.
		{name: "content of invalid UTF-8", code: record.InvalidUTF8, field: "content", call: with(func(f *record.ProposeFact) { f.Content = "The buoy is \xff\xfe" })},
		{name: "topic of invalid UTF-8", code: record.InvalidUTF8, field: "topic", call: with(func(f *record.ProposeFact) { f.Topic = "buoy \xc3" })},
		{name: "request over the limit", code: record.PayloadTooLarge, call: with(func(f *record.ProposeFact) { f.Content = strings.Repeat("x", record.MaxRequestBytes) })},
		{name: "key used before", code: record.IdempotencyKeyReused, field: "key", call: with(func(f *record.ProposeFact) { f.Key = "taken" })},
		{name: "policy without rule", code: record.ContentEmpty, field: "rule", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.ProposePolicy(ctx, record.ProposePolicy{Caller: who, Domain: "safety", Rule: " "})
			return err
		}},
		{name: "rule of invalid UTF-8", code: record.InvalidUTF8, field: "rule", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.ProposePolicy(ctx, record.ProposePolicy{Caller: who, Domain: "safety", Rule: "Mind the gap\xff"})
			return err
		}},
		{name: "policy without grant", code: record.InsufficientMemoryPermission, detail: denied("qa", "none"), call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.ProposePolicy(ctx, record.ProposePolicy{Caller: as("qa"), Domain: "safety", Rule: "Run on the quay."})
			return err
		}},
		{name: "policy with a grant to read", code: record.InsufficientMemoryPermission, detail: denied("pm", "read"), call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.ProposePolicy(ctx, record.ProposePolicy{Caller: as("pm"), Domain: "safety", Rule: "Run on the quay."})
			return err
		}},
		{name: "policy superseded without grant", code: record.InsufficientMemoryPermission, detail: denied("qa", "none"), call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedePolicy(ctx, record.SupersedePolicy{Caller: as("qa"), PolicyID: policy})
			return err
		}},
		{name: "unknown policy", code: record.NotFound, field: "policy_id", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedePolicy(ctx, record.SupersedePolicy{Caller: who, PolicyID: oldest})
			return err
		}},
		{name: "policy superseded before", code: record.SupersedeInvalid, field: "policy_id", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedePolicy(ctx, record.SupersedePolicy{Caller: who, PolicyID: gone})
			return err
		}},
		{name: "policy superseded by itself", code: record.SupersedeInvalid, field: "rule", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedePolicy(ctx, record.SupersedePolicy{Caller: who, PolicyID: policy, Rule: "wear a vest on the quay"})
			return err
		}},
		{name: "grant in an unknown domain", code: record.NotFound, field: "domain", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SetGrant(ctx, record.SetGrant{Caller: who, ForRole: "qa", Domain: "nowhere", Level: "read"})
			return err
		}},
		{name: "grant of an unknown level", code: record.InvalidArgument, field: "level", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SetGrant(ctx, record.SetGrant{Caller: who, ForRole: "qa", Domain: "safety", Level: "admin"})
			return err
		}},
		{name: "unknown fact superseded", code: record.NotFound, field: "old", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedeFact(ctx, record.SupersedeFact{Caller: who, Old: "nothing", New: newest})
			return err
		}},
		{name: "superseded by itself", code: record.SupersedeInvalid, field: "new", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedeFact(ctx, record.SupersedeFact{Caller: who, Old: newest, New: newest})
			return err
		}},
		{name: "superseded before", code: record.SupersedeInvalid, field: "old", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedeFact(ctx, record.SupersedeFact{Caller: who, Old: oldest, New: newest})
			return err
		}},
		{name: "superseded in a circle", code: record.SupersedeInvalid, field: "new", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SupersedeFact(ctx, record.SupersedeFact{Caller: who, Old: middle, New: oldest})
			return err
		}},
		{name: "restored while current", code: record.SupersedeInvalid, field: "fact_id", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.RestoreFact(ctx, record.RestoreFact{Caller: who, FactID: newest})
			return err
		}},
		{name: "unknown fact restored", code: record.NotFound, field: "fact_id", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.RestoreFact(ctx, record.RestoreFact{Caller: who, FactID: "nothing"})
			return err
		}},
		{name: "unknown conflict", code: record.NotFound, field: "conflict_id", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.ResolveConflict(ctx, record.ResolveConflict{Caller: who, ConflictID: "nothing", Winner: "both"})
			return err
		}},
		{name: "notes of another version", code: record.VersionConflict, call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.UpdateNotes(ctx, record.UpdateNotes{Caller: who, Text: "At the west pier.", ExpectedVersion: &version})
			return err
		}},
		{name: "notes too long", code: record.ContentTooLarge, field: "text", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.UpdateNotes(ctx, record.UpdateNotes{Caller: who, Text: strings.Repeat("x", record.MaxContentBytes+1)})
			return err
		}},
		{name: "notes of invalid UTF-8", code: record.InvalidUTF8, field: "text", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.UpdateNotes(ctx, record.UpdateNotes{Caller: who, Text: "At the \xff pier."})
			return err
		}},
		{name: "notes of nobody", code: record.InvalidArgument, field: "agent", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.UpdateNotes(ctx, record.UpdateNotes{Caller: record.Caller{Workspace: ws}, Text: "Somewhere."})
			return err
		}},
		{name: "empty observation", code: record.ContentEmpty, field: "text", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.RecordObservation(ctx, record.RecordObservation{Caller: who, Text: ""})
			return err
		}},
		{name: "empty session item", code: record.ContentEmpty, field: "content", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.Remember(ctx, record.Remember{Caller: who, SessionID: "monday", Content: " "})
			return err
		}},
		{name: "session item with an importance over one", code: record.InvalidArgument, field: "importance", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.Remember(ctx, record.Remember{Caller: who, SessionID: "monday", Content: "Ropes", Importance: &over})
			return err
		}},
		{name: "session item with a negative life", code: record.InvalidArgument, field: "ttl_seconds", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.Remember(ctx, record.Remember{Caller: who, SessionID: "monday", Content: "Ropes", Importance: &half, TTLSeconds: -1})
			return err
		}},
		{name: "meeting without id", code: record.InvalidArgument, field: "meeting_id", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.CaptureMeetingDecisions(ctx, record.CaptureMeeting{Caller: who, Revision: 1})
			return err
		}},
		{name: "meeting at revision 0", code: record.InvalidArgument, field: "revision", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.CaptureMeetingDecisions(ctx, record.CaptureMeeting{Caller: who, MeetingID: "m"})
			return err
		}},
		{name: "meeting of too many decisions", code: record.PayloadTooLarge, call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.CaptureMeetingDecisions(ctx, meeting(ws, "crowded", record.MaxDecisions+1))
			return err
		}},
		{name: "meeting of too many bytes", code: record.PayloadTooLarge, call: func(ctx context.Context, c *workflows.Client) error {
			m := meeting(ws, "wordy", 100)
			for i := range m.Decisions {
				m.Decisions[i].Text = strings.Repeat("word ", 5000)
			}
			_, err := c.CaptureMeetingDecisions(ctx, m)
			return err
		}},
		{name: "import page of too many items", code: record.PayloadTooLarge, call: func(ctx context.Context, c *workflows.Client) error {
			imp, _, err := c.BeginImport(ctx, who, source("many"))
			if err == nil {
				_, err = imp.Page(ctx, importPages(1, 1001)[0])
			}
			return err
		}},
		{name: "negative limit of a search", code: record.InvalidArgument, field: "limit", call: func(ctx context.Context, c *workflows.Client) error {
			limit := -1
			_, err := c.SearchMemory(ctx, record.Search{Caller: who, Query: "lamp", Limit: &limit})
			return err
		}},
		{name: "unknown mode of a search", code: record.InvalidArgument, field: "mode", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SearchMemory(ctx, record.Search{Caller: who, Query: "lamp", Mode: "psychic"})
			return err
		}},
		{name: "query of invalid UTF-8", code: record.InvalidUTF8, field: "query", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.SearchMemory(ctx, record.Search{Caller: who, Query: "lamp \xff"})
			return err
		}},
		{name: "task too long", code: record.ContentTooLarge, field: "task", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.AssemblePreamble(ctx, record.Dispatch{Caller: who, Task: strings.Repeat("x", record.MaxTaskBytes+1)})
			return err
		}},
		{name: "history of an unknown fact", code: record.NotFound, call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.History(ctx, who, "nothing")
			return err
		}},
		{name: "unknown read", code: record.InvalidArgument, field: "what", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := workflows.ReadAll[record.Fact](ctx, c, record.ReadMemory{Caller: who, What: "secrets"})
			return err
		}},
		{name: "cursor that is none", code: record.InvalidArgument, field: "cursor", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := workflows.ReadAll[record.Fact](ctx, c, record.ReadMemory{Caller: who, What: record.ReadFacts, Cursor: "x"})
			return err
		}},
		{name: "health of an unknown workspace", code: record.NotFound, field: "workspace", call: func(ctx context.Context, c *workflows.Client) error {
			_, err := c.Health(ctx, caller("unknown"), false)
			return err
		}},
	}
	folders := workspaces(t, p.data)
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			before := dump(t, p.folder(ws))
			defer func() { sameDump(t, r.name, before, dump(t, p.folder(ws))) }()
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			e := wantCode(t, r.call(ctx, c), r.code)
			if r.field != "" && e.Field != r.field {
				t.Errorf("%v is about %q, want %q", e, e.Field, r.field)
			}
			if r.detail != nil {
				r.detail(t, e)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the refusal took %v: it was retried", took)
			}
			for _, secret := range []string{p.data, "buoy is green", "Run on the quay"} {
				if strings.Contains(asJSON(t, e), secret) {
					t.Errorf("%s tells %q", asJSON(t, e), secret)
				}
			}
		})
	}
	if now := workspaces(t, p.data); !slices.Equal(now, folders) {
		t.Errorf("the workspaces are %q after the refusals, and were %q", now, folders)
	}
	t.Logf("%d refusals, the file unchanged after each", len(all))
}

// workspaces lists the folders below workspaces.
func workspaces(t testing.TB, data string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "workspaces"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestRefusals_fresh gives wrong first calls to workspaces that do not exist:
// they must not be made by it, nor by reads and trials.
func TestRefusals_fresh(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	c := p.client()
	for i, tc := range []struct {
		name string
		code record.Code
		call func(context.Context, record.Caller) error
	}{
		{"empty fact", record.ContentEmpty, func(ctx context.Context, w record.Caller) error {
			_, err := c.ProposeFact(ctx, record.ProposeFact{Caller: w, Domain: "infra", Topic: "t", Content: ""})
			return err
		}},
		{"policy without rule", record.ContentEmpty, func(ctx context.Context, w record.Caller) error {
			_, err := c.ProposePolicy(ctx, record.ProposePolicy{Caller: w, Domain: "infra"})
			return err
		}},
		{"grant", record.NotFound, func(ctx context.Context, w record.Caller) error {
			_, err := c.SetGrant(ctx, record.SetGrant{Caller: w, ForRole: "qa", Domain: "infra", Level: "read"})
			return err
		}},
		{"supersede", record.NotFound, func(ctx context.Context, w record.Caller) error {
			_, err := c.SupersedeFact(ctx, record.SupersedeFact{Caller: w, Old: "a", New: "b"})
			return err
		}},
		{"meeting at revision 0", record.InvalidArgument, func(ctx context.Context, w record.Caller) error {
			_, err := c.CaptureMeetingDecisions(ctx, record.CaptureMeeting{Caller: w, MeetingID: "m"})
			return err
		}},
		{"import page of too many items", record.PayloadTooLarge, func(ctx context.Context, w record.Caller) error {
			imp, _, err := c.BeginImport(ctx, w, source("many"))
			if err == nil {
				_, err = imp.Page(ctx, importPages(1, 1001)[0])
			}
			return err
		}},
		{"consolidation", record.NotFound, func(ctx context.Context, w record.Caller) error {
			_, err := c.ConsolidateMemory(ctx, record.Consolidate{Caller: w}, nil)
			return err
		}},
		{"search", "", func(ctx context.Context, w record.Caller) error {
			_, err := c.SearchMemory(ctx, record.Search{Caller: w, Query: "lamp"})
			return err
		}},
		{"preamble", "", func(ctx context.Context, w record.Caller) error {
			_, err := c.AssemblePreamble(ctx, record.Dispatch{Caller: w, Task: "Repair the lamp of the lighthouse"})
			return err
		}},
		{"notes", "", func(ctx context.Context, w record.Caller) error {
			_, err := c.Notes(ctx, w)
			return err
		}},
		{"facts", "", func(ctx context.Context, w record.Caller) error {
			_, err := workflows.ReadAll[record.Fact](ctx, c, record.ReadMemory{Caller: w, What: record.ReadFacts})
			return err
		}},
		{"trial proposal", "", func(ctx context.Context, w record.Caller) error {
			_, err := c.ProposeFact(ctx, record.ProposeFact{Caller: w, Domain: "infra", Topic: "lamp", Content: "The lamp is oil", DryRun: true})
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			workspace := fmt.Sprintf("fresh-%d", i)
			err := tc.call(timed(t), caller(workspace))
			if tc.code != "" {
				wantCode(t, err, tc.code)
			} else if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(p.folder(workspace)); !os.IsNotExist(err) {
				t.Errorf("the call made the workspace: %v", err)
			}
		})
	}
}

// TestForeignFiles serves files that are of a later version, of another
// program, or no database.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	seed := func(workspace string) string {
		t.Helper()
		s, err := memory.Open(t.Context(), workspaceFolder(data, workspace), workspace, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller(workspace), Domain: "infra", Topic: "lamp", Content: "The lamp is oil"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(workspaceFolder(data, workspace), memory.FileName)
	}
	seed("newer")
	db := database(t, workspaceFolder(data, "newer"))
	for _, pragma := range []string{"PRAGMA query_only = 0", "PRAGMA user_version = 99"} {
		if _, err := db.ExecContext(t.Context(), pragma); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(seed("noise"), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(workspaceFolder(data, "newer"), workspaceFolder(data, "linked")); err != nil {
		t.Fatal(err)
	}
	p := start(t, data)
	for workspace, code := range map[string]record.Code{"newer": record.StoreNewer, "noise": record.StoreCorrupt, "linked": record.WorkspaceInvalid} {
		began := time.Now()
		_, err := p.client().ProposeFact(timed(t), record.ProposeFact{Caller: caller(workspace), Domain: "infra", Topic: "buoy", Content: "The buoy is red"})
		wantCode(t, err, code)
		_, err = p.client().SearchMemory(timed(t), record.Search{Caller: caller(workspace), Query: "lamp"})
		wantCode(t, err, code)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v: it was retried", code, took)
		}
	}
	if err := proposing(record.ProposeFact{Caller: caller("sound"), Domain: "infra", Topic: "lamp", Content: "The lamp is oil"})(timed(t), p.client()); err != nil {
		t.Errorf("a sound workspace beside them: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(workspaceFolder(data, "noise"), memory.FileName)); err != nil || !strings.HasPrefix(string(got), "not a database") {
		t.Errorf("the foreign file was changed: %.40q, %v", got, err)
	}
}

// TestWorkspaceIDs tries to leave the data folder, or to hide in it
// (situation I1).
func TestWorkspaceIDs(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	p := start(t, filepath.Join(parent, "data"))
	c := p.client()
	must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller("good"), Domain: "infra", Topic: "lamp", Content: "The lamp is oil"}))
	before := names(t, parent)
	bad := []string{
		"../x", "..", ".", "", "/etc/passwd", "a/../../b", "a/b", `a\b`, "%2e%2e/", "%2e%2e", "..%2fx", strings.Repeat("a", 65), strings.Repeat("a", 5000),
		"a\x00b", "con", "nul", "com1", "lpt9.txt", "GOOD", "Good", "a b", "-a", "_a", ".a", "a.", "a..b", "gööd", "good\n", "\u202egood", "~root", "c:", "*",
	}
	for _, id := range bad {
		w := caller(id)
		for name, call := range map[string]func(context.Context) error{
			"propose": func(ctx context.Context) error {
				_, err := c.ProposeFact(ctx, record.ProposeFact{Caller: w, Domain: "infra", Topic: "lamp", Content: "The lamp is gas"})
				return err
			},
			"meeting": func(ctx context.Context) error {
				_, err := c.CaptureMeetingDecisions(ctx, record.CaptureMeeting{Caller: w, MeetingID: "m", Revision: 1})
				return err
			},
			"import": func(ctx context.Context) error { _, _, err := c.BeginImport(ctx, w, source("s")); return err },
			"consolidate": func(ctx context.Context) error {
				_, err := c.ConsolidateMemory(ctx, record.Consolidate{Caller: w}, nil)
				return err
			},
			"harmonize": func(ctx context.Context) error {
				_, err := c.HarmonizeMemory(ctx, record.Harmonize{Caller: w}, nil)
				return err
			},
			"search": func(ctx context.Context) error {
				_, err := c.SearchMemory(ctx, record.Search{Caller: w, Query: "lamp"})
				return err
			},
			"dispatch": func(ctx context.Context) error {
				_, err := c.AssemblePreamble(ctx, record.Dispatch{Caller: w, Task: "t"})
				return err
			},
			"notes":      func(ctx context.Context) error { _, err := c.Notes(ctx, w); return err },
			"health":     func(ctx context.Context) error { _, err := c.Health(ctx, w, true); return err },
			"workspaces": func(ctx context.Context) error { _, err := c.Workspaces(ctx, w); return err },
			// Past the typed client: the worker must not trust it.
			"raw propose": func(ctx context.Context) error {
				return raw(ctx, p, workflows.ProposeFact, record.ProposeFact{Caller: w, Domain: "infra", Topic: "lamp", Content: "The lamp is gas"})
			},
			"raw read": func(ctx context.Context) error {
				return raw(ctx, p, workflows.ReadMemory, record.ReadMemory{Caller: w, What: record.ReadFacts})
			},
		} {
			t.Run(fmt.Sprintf("%.20q/%s", id, name), func(t *testing.T) {
				e := wantCode(t, call(timed(t)), record.WorkspaceInvalid)
				if e.Field != "workspace" {
					t.Errorf("%v is about %q, want workspace", e, e.Field)
				}
			})
		}
	}
	if after := names(t, parent); !slices.Equal(after, before) {
		t.Errorf("the folder holds\n%q, and held\n%q", after, before)
	}
	t.Logf("%d ids refused by every call", len(bad))
}

// raw starts a workflow without the typed client's own checks.
func raw(ctx context.Context, p *process, workflow, in any) error {
	run, err := p.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: workflows.ShardQueue(0)}, workflow, in)
	if err == nil {
		err = run.Get(ctx, nil)
	}
	return workflows.FromTemporal(err)
}

// TestLargeAnswers asks for more than one payload may hold.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	const facts = 48
	p := start(t, t.TempDir())
	c := p.client()
	var ids []string
	for n := range facts {
		content := fmt.Sprintf("Anchorage %d. %s", n, strings.Repeat(fmt.Sprintf("mooring%d ", n), 60000/len("mooring00 ")))
		ids = append(ids, must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller("large"), Domain: "harbour", Topic: fmt.Sprintf("anchorage %d", n), Content: content})).FactID)
	}
	all, err := workflows.ReadAll[record.Fact](timed(t), c, record.ReadMemory{Caller: caller("large"), What: record.ReadFacts})
	if err != nil || len(all) != facts {
		t.Errorf("a read of %d facts of 60 kB gives %d, %v", facts, len(all), err)
	}
	for n := 1; n < facts; n++ {
		must[record.SupersedeFactResult](t)(c.SupersedeFact(timed(t), record.SupersedeFact{Caller: caller("large"), Old: ids[n-1], New: ids[n]}))
	}
	// Whatever becomes of an answer over the limit, the caller is told soon.
	ctx, cancel := context.WithTimeout(timed(t), 20*time.Second)
	defer cancel()
	h, err := c.History(ctx, caller("large"), ids[0])
	if err != nil {
		t.Errorf("the history of a chain of %d facts of 60 kB: %v", facts, err)
	} else if len(h.Chain) != facts {
		t.Errorf("the history holds %d facts, want %d", len(h.Chain), facts)
	}

	for n := range facts {
		content := fmt.Sprintf("Anchorage %d. %s", n, strings.Repeat(fmt.Sprintf("basin%d ", n), 60000/len("basin00 ")))
		must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller("broad"), Domain: "harbour", Topic: fmt.Sprintf("basin %d", n), Content: content}))
	}
	ctx, cancel = context.WithTimeout(timed(t), 20*time.Second)
	defer cancel()
	limit := 100
	found, err := c.SearchMemory(ctx, record.Search{Caller: caller("broad"), Query: "anchorage", Mode: "keyword", Limit: &limit})
	if err != nil {
		t.Errorf("a search that finds %d facts of 60 kB: %v", facts, err)
	} else if len(found.Facts) == 0 {
		t.Error("the search finds nothing")
	}
}
