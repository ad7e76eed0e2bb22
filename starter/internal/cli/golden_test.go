package cli

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

var update = flag.Bool("update", false, "write the golden files")

// TestRun_golden holds what commands print, for people and for programs.
func TestRun_golden(t *testing.T) {
	t.Parallel()
	then, later := at(t, "2026-02-01T08:30:00Z"), at(t, "2026-02-02T09:00:00Z")
	redis := record.Fact{ID: "f-1", Workspace: "default", Domain: "architecture", Topic: "storage", Content: "We use Redis", Confidence: 0.7, MemoryType: "fact",
		Veracity: "inferred", SourceObservationIDs: []string{}, SupersededBy: "f-2", SupersededKind: "refinement", SupersededAt: later, MentionCount: 1, Version: 2, CreatedAt: then, UpdatedAt: later, AuthoredByAgent: "ada", AuthoredByRole: "coder"}
	redis7 := redis
	redis7.ID, redis7.Content, redis7.SupersededBy, redis7.SupersededKind, redis7.SupersededAt, redis7.CreatedAt = "f-2", "We use Redis 7 for sessions", "", "", record.Time{}, later
	persian := redis7
	persian.ID, persian.Topic, persian.Content = "f-3", "زبان", "سرویس پرداخت با زبان گو نوشته شده است 🙂\n\x1b[31mred\x1b[0m "+strings.Repeat("漢字", 60)
	policy := record.Policy{ID: "p-1", Workspace: "default", Domain: "security", Rule: "Never log secrets\nor tokens", RequiredRole: "coder", Version: 1, CreatedAt: then, UpdatedAt: then}
	old := policy
	old.ID, old.Rule, old.RequiredRole, old.SupersededAt = "p-0", "Log little", "", then
	open := record.Conflict{ID: "c-2", Kind: record.ConflictSuspected, FactA: "f-1", FactB: "f-2", ContentA: "We use Redis", ContentB: "We use Valkey", Open: true, Reason: "cannot tell", CreatedAt: later}
	closed := record.Conflict{ID: "c-1", Kind: record.ConflictRefinement, FactA: "f-1", FactB: "f-2", Winner: "f-2", Loser: "f-1", Resolution: "superseded", ResolvedBy: "ada", ContentA: "We use Redis", ContentB: "We use Redis 7 for sessions", CreatedAt: then}

	pay := record.Obligation{ID: "o-1", Workspace: "default", StepRef: record.StepRef{TaskID: "order-7", Step: "pay"}, Kind: "payment", Key: "order-7/pay", State: record.ObligationOpen, After: []string{}, OpenedBy: "ada", CreatedAt: then}
	claimed := pay
	claimed.State, claimed.Claim, claimed.ClaimedBy, claimed.ClaimedAt, claimed.LeaseUntil = record.ObligationClaimed, 2, "bob", later, later
	doubtful := claimed
	doubtful.InDoubt = true
	done := claimed
	done.State, done.ClosedBy, done.ClosedAt, done.Result = record.ObligationDone, "bob", later, "receipt 41\n\x1b[31m"
	expired := record.Obligation{ID: "o-2", StepRef: record.StepRef{TaskID: "سفارش", Step: "پرداخت"}, Key: "h.0f", State: record.ObligationExpired, After: []string{"pack", "pay"}, CreatedAt: then, Deadline: later, ClosedAt: later}
	said := record.Episode{ID: "e-1", TaskID: "order-7", Role: "user", ContentRef: "sha256:00", Content: "Please order\ntwo crates", CreatedAt: then}

	for name, tc := range map[string]struct {
		args   []string
		method string
		answer any
		rows   map[record.ReadKind][]any
	}{
		"propose-created": {[]string{"propose-fact", "--domain", "d", "--topic", "t", "--content", "c"}, "ProposeFact",
			record.ProposeFactResult{Status: record.StatusCreated, FactID: "f-9", Domain: "architecture", Topic: "deploy", MemoryType: "fact", Confidence: 1, MentionCount: 1,
				Conflicts: []record.ConflictRef{
					{ID: "c-1", Kind: record.ConflictContradiction, Winner: "f-9", Loser: "f-8", Other: "f-8", Reason: `"prod" became "staging"`},
					{ID: "c-2", Kind: record.ConflictSuspected, Other: "f-7"},
				}}, nil},
		"propose-mentioned": {[]string{"propose-fact", "--domain", "d", "--topic", "t", "--content", "c"}, "ProposeFact",
			record.ProposeFactResult{Status: record.StatusReMentioned, FactID: "f-9", Domain: "repo:web/architecture", Topic: "deploy", MemoryType: "fact", Confidence: 0.755, MentionCount: 3}, nil},
		"propose-lost": {[]string{"propose-fact", "--domain", "d", "--topic", "t", "--content", "c"}, "ProposeFact",
			record.ProposeFactResult{Status: record.StatusSupersededBy, FactID: "f-9", Domain: "d", Topic: "t", MemoryType: "fact", Confidence: 0.5, MentionCount: 1,
				Conflicts: []record.ConflictRef{{ID: "c-1", Kind: record.ConflictContradiction, Winner: "f-8", Loser: "f-9", Other: "f-8", Reason: "opposed"}}}, nil},
		"propose-dry": {[]string{"propose-fact", "--domain", "d", "--topic", "t", "--content", "c", "--dry-run"}, "ProposeFact",
			record.ProposeFactResult{Status: record.StatusRefined, FactID: "f-9", Domain: "d", Topic: "t", MemoryType: "fact", Confidence: 0.7, MentionCount: 1, DryRun: true,
				Conflicts: []record.ConflictRef{{ID: "c-1", Kind: record.ConflictRefinement, Winner: "f-9", Loser: "f-8", Other: "f-8"}}}, nil},
		"supersede": {[]string{"supersede", "f-1", "f-2"}, "SupersedeFact", record.SupersedeFactResult{Old: "f-1", New: "f-2", ConflictID: "c-1"}, nil},
		"restore":   {[]string{"restore", "f-1"}, "RestoreFact", record.RestoreFactResult{FactID: "f-1", Was: "superseded", ConflictIDs: []string{"c-1"}}, nil},
		"history": {[]string{"history", "f-1"}, "History", record.FactHistory{FactID: "f-1", Chain: []record.Fact{redis, redis7}, Events: []record.FactEvent{
			{FactID: "f-1", At: then, Kind: "created", Agent: "ada", Role: "coder", Veracity: "inferred", Confidence: 0.7},
			{FactID: "f-1", At: later, Kind: "superseded", Agent: "bob", Other: "f-2", Reason: "more exact"},
			{FactID: "f-2", At: later, Kind: "created", Agent: "bob"},
			{FactID: "f-2", At: later, Kind: "edited", Agent: "ada", Reason: "edited by hand"},
		}, Versions: []record.FactVersion{{FactID: "f-2", Version: 1, Content: "We use Redis 6 for sessions", Until: later, Agent: "ada"}}}, nil},
		"facts":            {[]string{"facts"}, "", nil, map[record.ReadKind][]any{record.ReadFacts: {redis7, persian}}},
		"facts-all":        {[]string{"facts", "--all"}, "", nil, map[record.ReadKind][]any{record.ReadFacts: {redis, redis7}}},
		"facts-none":       {[]string{"facts"}, "", nil, nil},
		"propose-policy":   {[]string{"propose-policy", "--domain", "d", "--rule", "r"}, "ProposePolicy", record.PolicyResult{Status: "created", PolicyID: "p-1", Domain: "security"}, nil},
		"policy-exists":    {[]string{"propose-policy", "--domain", "d", "--rule", "r"}, "ProposePolicy", record.PolicyResult{Status: "exists", PolicyID: "p-1", Domain: "security"}, nil},
		"supersede-policy": {[]string{"supersede-policy", "p-1", "--rule", "r"}, "SupersedePolicy", record.PolicyResult{Status: "superseded", PolicyID: "p-1", Domain: "security", ReplacementID: "p-2"}, nil},
		"policies":         {[]string{"policies", "--all"}, "", nil, map[record.ReadKind][]any{record.ReadPolicies: {policy, old}}},
		"policies-none":    {[]string{"policies"}, "", nil, nil},
		"policies-none-in": {[]string{"policies", "--domain", "security"}, "", nil, nil},
		"domains": {[]string{"domains"}, "", nil, map[record.ReadKind][]any{record.ReadDomains: {
			record.Domain{Name: "architecture", Facts: 12, Policies: 1, CreatedAt: then}, record.Domain{Name: "repo:web/معماری", Repo: "web", Facts: 3, CreatedAt: then}}}},
		"domains-none": {[]string{"domains"}, "", nil, nil},
		"grants":       {[]string{"grants", "list"}, "", nil, map[record.ReadKind][]any{record.ReadGrants: {record.Grant{Role: "qa", Domain: "security", Level: "none", UpdatedAt: then, UpdatedBy: "ada"}}}},
		"grants-none":  {[]string{"grants", "list"}, "", nil, nil},
		"grants-set":   {[]string{"grants", "set", "--for-role", "qa", "--domain", "d", "none"}, "SetGrant", record.SetGrantResult{Grant: record.Grant{Role: "qa", Domain: "security", Level: "none", UpdatedAt: then}}, nil},
		"notes":        {[]string{"notes", "get"}, "Notes", record.Notes{Agent: "cli", Text: "one\r\n\ttwo", Version: 4, UpdatedAt: then}, nil},
		"notes-none":   {[]string{"notes", "get"}, "Notes", record.Notes{Agent: "cli"}, nil},
		"notes-set":    {[]string{"notes", "set", "-"}, "UpdateNotes", record.UpdateNotesResult{Version: 5, Bytes: 2100}, nil},
		"observe":      {[]string{"observe", "x"}, "RecordObservation", record.RecordObservationResult{ObservationID: "o-1", NotesVersion: 2}, nil},
		"remember":     {[]string{"remember", "x"}, "Remember", record.RememberResult{ItemID: "i-1", SessionID: "default", MemoryType: "request", ExpiresAt: later}, nil},
		"dispatch": {[]string{"dispatch", "--task", "x"}, "AssemblePreamble", record.Preamble{Text: "Policies\n- [a] b\n", PolicyIDs: []string{"p-1"}, FactIDs: []string{}, Chars: 17, Tokens: 5,
			Missing: []string{"facts"}, Cut: []string{}, Warnings: []string{"the policies are long"}, Stale: []record.Stale{{Statement: "old", FactID: "f-1", CurrentID: "f-2", Current: "new"}, {Statement: "gone", FactID: "f-3"}}}, nil},
		"dispatch-empty": {[]string{"dispatch", "--task", "x"}, "AssemblePreamble", record.Preamble{PolicyIDs: []string{}, FactIDs: []string{}, Missing: []string{}, Cut: []string{}, Stale: []record.Stale{}}, nil},
		"search": {[]string{"search", "x"}, "SearchMemory", record.SearchResult{
			Facts:    []record.Hit{{Fact: redis7, Score: 1, Voices: map[string]int{"lexical": 1, "graph": 2}, HistoryLength: 2}, {Fact: persian, Score: 0.4, Voices: map[string]int{}, HistoryLength: 1}},
			Policies: []record.PolicyHit{{Policy: policy, Score: 0.5}}, Voices: []string{"lexical", "graph"}, Degraded: []string{"semantic: no embedding model is installed"}}, nil},
		"search-none": {[]string{"search", "x"}, "SearchMemory", record.SearchResult{Facts: []record.Hit{}, Policies: []record.PolicyHit{}, Voices: []string{"lexical"}}, nil},
		"meeting": {[]string{"meeting", "-"}, "CaptureMeetingDecisions", record.MeetingReport{MeetingID: "m", Revision: 2, Added: 1, ReMentioned: 2, Withdrawn: 1,
			Failed: []record.ItemError{{Index: 3, Code: record.ContentEmpty, Message: "the text is empty", Field: "text"}}, FactIDs: []string{"f-1", "f-2", "f-3"}}, nil},
		"meeting-outdated": {[]string{"meeting", "-"}, "CaptureMeetingDecisions", record.MeetingReport{MeetingID: "m", Revision: 1, Outdated: true, Failed: []record.ItemError{}, FactIDs: []string{}}, nil},
		"consolidate":      {[]string{"consolidate"}, "ConsolidateMemory", record.ConsolidationReport{Considered: 20, Promoted: 2, Merged: 1, Archived: 3, Conflicts: 1, Skipped: []string{"item i-1: the text is empty"}}, nil},
		"consolidate-none": {[]string{"consolidate"}, "ConsolidateMemory", record.ConsolidationReport{Considered: 1, Skipped: []string{}}, nil},
		"harmonize":        {[]string{"harmonize"}, "HarmonizeMemory", record.HarmonizationReport{Considered: 20, BeliefsCreated: 2, ConflictsOpened: 1}, nil},
		"conflicts":        {[]string{"conflicts"}, "", nil, map[record.ReadKind][]any{record.ReadConflicts: {open, closed}}},
		"conflicts-none":   {[]string{"conflicts"}, "", nil, nil},
		"conflicts-open":   {[]string{"conflicts", "--open"}, "", nil, nil},
		"resolve":          {[]string{"resolve", "c-2", "--winner", "f-2"}, "ResolveConflict", record.ResolveConflictResult{Conflict: closed}, nil},
		"resolve-both":     {[]string{"resolve", "c-2", "--winner", "both"}, "ResolveConflict", record.ResolveConflictResult{Conflict: record.Conflict{ID: "c-2", Kind: record.ConflictSuspected, Resolution: "both", CreatedAt: then}}, nil},
		"beliefs": {[]string{"beliefs"}, "", nil, map[record.ReadKind][]any{record.ReadBeliefs: {
			record.Belief{ID: "b-1", Domain: "architecture", Topic: "storage", Statement: "We use Redis", Confidence: 0.8, FactIDs: []string{"f-1"}, Agents: []string{"ada", "bob"}, Version: 1, CreatedAt: then, UpdatedAt: then}}}},
		"beliefs-none":        {[]string{"beliefs"}, "", nil, nil},
		"facts-subject-none":  {[]string{"facts", "--subject", "gateway"}, "", nil, nil},
		"facts-subject":       {[]string{"facts", "--subject", "Redis"}, "", nil, map[record.ReadKind][]any{record.ReadSubject: {redis7}}},
		"state-open":          {[]string{"state", "open", "order-7", "pay"}, "StateOpen", record.ObligationResult{Outcome: record.OutcomeOpened, Obligation: pay}, nil},
		"state-claim":         {[]string{"state", "claim", "order-7", "pay"}, "StateClaim", record.ObligationResult{Outcome: record.OutcomeClaimed, Obligation: claimed}, nil},
		"state-claim-held":    {[]string{"state", "claim", "order-7", "pay"}, "StateClaim", record.ObligationResult{Outcome: record.OutcomeHeld, Obligation: claimed}, nil},
		"state-claim-doubt":   {[]string{"state", "claim", "order-7", "pay"}, "StateClaim", record.ObligationResult{Outcome: record.OutcomeClaimed, Obligation: claimed, Doubt: &record.Doubt{Key: "order-7/pay", Claim: 1, ClaimedBy: "ada", ClaimedAt: then, LeaseUntil: later}}, nil},
		"state-commit":        {[]string{"state", "commit", "order-7", "pay"}, "StateCommit", record.ObligationResult{Outcome: record.OutcomeCommitted, Obligation: done}, nil},
		"state-commit-late":   {[]string{"state", "commit", "order-7", "pay"}, "StateCommit", record.ObligationResult{Outcome: record.OutcomeClosed, Obligation: expired}, nil},
		"state-commit-waited": {[]string{"state", "commit", "order-7", "pay", "--wait"}, "CommitObligation", record.ObligationResult{Outcome: record.OutcomeClosed, Obligation: done}, nil},
		"state-list":          {[]string{"state", "list"}, "", nil, map[record.ReadKind][]any{record.ReadObligations: {pay, doubtful, done, expired}}},
		"state-list-none":     {[]string{"state", "list"}, "", nil, nil},
		"state-check": {[]string{"state", "check", "-"}, "", nil, map[record.ReadKind][]any{record.ReadCheck: {
			record.CheckedStatement{Statement: "We use Redis", Standing: record.StandingStale, FactID: "f-1", Now: []record.RecordedNow{{FactID: "f-2", Domain: "architecture", Topic: "storage", Content: "We use Redis 7 for sessions", Reason: "it took the statement's place"}}},
			record.CheckedStatement{Statement: "The crane is red", Standing: record.StandingStale, FactID: "f-4", Now: []record.RecordedNow{}},
			record.CheckedStatement{Statement: "The lighthouse is white", Standing: record.StandingUnknown, Now: []record.RecordedNow{}}}}},
		"episode-add":         {[]string{"episode", "add", "order-7", "x"}, "AppendEpisode", record.AppendEpisodeResult{EpisodeID: "e-1", ContentRef: "sha256:00"}, nil},
		"episode-search":      {[]string{"episode", "search", "crates"}, "", nil, map[record.ReadKind][]any{record.ReadEpisodes: {said}}},
		"episode-search-none": {[]string{"episode", "search", "crates"}, "", nil, nil},
		"health": {[]string{"health"}, "Health", record.Health{Workspace: "default", OK: true, Problems: []string{}, SchemaVersion: 1, FileBytes: 8 << 20, WALBytes: 700, FactsTotal: 5, FactsActive: 3, Indexed: 5,
			Policies: 1, Domains: 2, Edges: 4, Operations: 9, LastConsolidated: then, Warnings: []string{"2 conflicts wait for a decision"}}, nil},
		"model-install": {[]string{"model", "install", "sentence-transformers/all-MiniLM-L6-v2"}, "InstallModel",
			record.EmbeddingModel{Installed: true, InUse: true, ID: "all-MiniLM-L6-v2@0123456789ab", Dimensions: 384, Bytes: 90_752_793}, nil},
		"model-status": {[]string{"model", "status"}, "EmbeddingModel",
			record.EmbeddingModel{Installed: true, Given: true, ID: "all-MiniLM-L6-v2@0123456789ab", Dimensions: 384, Bytes: 90_752_793}, nil},
		"model-none":   {[]string{"model", "status"}, "EmbeddingModel", record.EmbeddingModel{}, nil},
		"model-broken": {[]string{"model", "status"}, "EmbeddingModel", record.EmbeddingModel{Problem: "model.onnx is missing or cannot be read", Bytes: 12}, nil},
		"model-remove": {[]string{"model", "remove"}, "RemoveModel", record.EmbeddingModel{}, nil},
		"backup-create": {[]string{"backup", "create"}, "BackUp",
			record.Backup{Workspace: "default", Name: "20260301t120000.000z", MadeAt: then, Bytes: 8 << 20, SchemaVersion: 1, Facts: 5, SHA256: strings.Repeat("ab", 32)}, nil},
		"backup-list":      {[]string{"backup", "list"}, "", nil, map[record.ReadKind][]any{record.ReadBackups: {"before-upgrade", "weekly"}}},
		"backup-list-none": {[]string{"backup", "list"}, "", nil, nil},
		"backup-restore": {[]string{"backup", "restore", "weekly", "--of", "other"}, "RestoreBackup",
			record.Backup{Workspace: "other", Name: "weekly", MadeAt: then, Bytes: 700, SchemaVersion: 1, Facts: 5, SHA256: strings.Repeat("ab", 32)}, nil},
		"doctor": {[]string{"doctor"}, "Doctor", record.DoctorReport{Workspace: "default", OK: true, Facts: 5, Vectors: 1, Findings: []record.Finding{}}, nil},
		"doctor-mended": {[]string{"doctor", "--repair"}, "Doctor", record.DoctorReport{Workspace: "default", OK: true, Facts: 5, Findings: []record.Finding{
			{What: record.FindingIndexRows, Count: 3, Repaired: true, Detail: "3 missing, 0 of other text, 0 of no fact"}}}, nil},
		"prune":         {[]string{"prune"}, "PruneLedger", record.PruneLedgerReport{Considered: 12, Pruned: 10, Kept: 2}, nil},
		"backfill":      {[]string{"backfill"}, "BackfillEmbeddings", record.BackfillReport{Considered: 1201, Embedded: 1200, Skipped: 1}, nil},
		"backfill-none": {[]string{"backfill"}, "BackfillEmbeddings", record.BackfillReport{}, nil},
		"health-model": {[]string{"health"}, "Health", record.Health{Workspace: "default", OK: true, Problems: []string{}, SchemaVersion: 1, FactsTotal: 5, FactsActive: 3, Indexed: 5,
			Embedded: 2, EmbeddingQueue: 1, Model: "all-MiniLM-L6-v2@0123456789ab", VectorIndex: "memory", VectorsIndexed: 2}, nil},
		"health-bad":      {[]string{"health"}, "Health", record.Health{Workspace: "default", Problems: []string{"page 3 is damaged"}}, nil},
		"health-shards":   {[]string{"health", "--shards", "0,3"}, "CheckShards", []int{0, 3}, nil},
		"workspaces":      {[]string{"workspaces"}, "Workspaces", []string{"default", "shop"}, nil},
		"workspaces-none": {[]string{"workspaces"}, "Workspaces", []string(nil), nil},
		"export":          {[]string{"export"}, "Health", record.Health{FactsTotal: 5, FactsActive: 3, Policies: 1}, map[record.ReadKind][]any{record.ReadFacts: {redis7, persian}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, flags := range [][]string{nil, {"--json"}} {
				f := newFake()
				f.pages = tc.rows
				if tc.method != "" {
					f.answers[tc.method] = tc.answer
				}
				args := append(append([]string{}, tc.args...), flags...)
				got := cmd(t, f, `{"meeting_id":"m","revision":1,"decisions":[]}`, args...)
				b.WriteString("$ starter " + strings.Join(args, " ") + "\n" + got.out)
				if got.out != "" && !strings.HasSuffix(got.out, "\n") {
					b.WriteString("<no line end>\n")
				}
				if got.err != "" {
					b.WriteString("--- stderr\n" + got.err)
				}
				if got.exit != 0 {
					b.WriteString("--- exit " + string(rune('0'+got.exit)) + "\n")
				}
			}
			golden(t, name, b.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestRun_lists holds that lists are read to their last page.
func TestRun_lists(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.perPage = 2
	for i := range 5 {
		f.pages[record.ReadFacts] = append(f.pages[record.ReadFacts], record.Fact{ID: string(rune('a' + i))})
	}
	got := cmd(t, f, "", "facts", "--json")
	list := decode[map[string][]record.Fact](t, got.out)["facts"]
	if len(list) != 5 || list[4].ID != "e" || len(f.requests) != 3 {
		t.Errorf("%d facts in %d reads", len(list), len(f.requests))
	}
}

func TestRun_healthWithoutWorkspace(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.errs["Health"] = record.Errorf(record.NotFound, "workspace", "there is no workspace default")
	if got := cmd(t, f, "", "health"); got.exit != 0 || got.out != "The worker answers; workspace default holds nothing yet.\n" {
		t.Errorf("got %+v", got)
	}
	got := cmd(t, f, "", "health", "--json")
	if h := decode[record.Health](t, got.out); !h.OK || got.exit != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestRun_terminal(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.answers["Notes"] = record.Notes{Agent: "cli", Text: "a\x1b]0;owned\x07b\r\nc"}
	f.answers["SupersedeFact"] = record.SupersedeFactResult{Old: "f-1", New: "f-2"}
	for _, tc := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{[]string{"notes", "get"}, nil, "a]0;ownedb\nc\n"},
		{[]string{"supersede", "f-1", "f-2"}, nil, "\x1b[1mSuperseded\x1b[0m fact f-1"},
		{[]string{"supersede", "f-1", "f-2"}, map[string]string{"NO_COLOR": "1"}, "Superseded fact f-1"},
		{[]string{"supersede", "f-1", "f-2"}, map[string]string{"TERM": "dumb"}, "Superseded fact f-1"},
	} {
		a := testApp(f)
		var out strings.Builder
		a.stdout = &out
		a.terminal = func(w io.Writer) bool { return w == &out }
		a.lookup = func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok }
		if exit := a.run(t.Context(), tc.args); exit != 0 || !strings.HasPrefix(out.String(), tc.want) {
			t.Errorf("%v %v: exit %d, %q", tc.args, tc.env, exit, out.String())
		}
	}
}

func TestRun_help(t *testing.T) {
	t.Parallel()
	f := newFake()
	var everything string
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"help", "grants", "set"}, {"import", "-h"}, {"completion", "bash"}, {"__complete", "grants", ""}} {
		got := cmd(t, f, "", args...)
		if got.exit != 0 || got.out == "" {
			t.Errorf("%v: %+v", args, got)
		}
		everything += got.out
	}
	for _, name := range []string{"propose-fact", "supersede-policy", "harmonize", "workspaces", "--for-role", "--patience"} {
		if !strings.Contains(everything, name) {
			t.Errorf("help does not name %s", name)
		}
	}
	if f.dials != 0 {
		t.Error("help was dialled for")
	}
}

func TestVersionOf(t *testing.T) {
	t.Parallel()
	got := versionOf(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-01T00:00:00Z"}, {Key: "vcs.modified", Value: "true"}}})
	if want := (buildVersion{"v1.2.3", "abc", "2026-01-01T00:00:00Z", true, "go1.26.8"}); got != want {
		t.Errorf("got %+v", got)
	}
	if got := cmd(t, newFake(), "", "version"); got.exit != 0 || !strings.HasPrefix(got.out, "starter ") {
		t.Errorf("got %+v", got)
	}
	decode[buildVersion](t, cmd(t, newFake(), "", "version", "--json").out)
}
