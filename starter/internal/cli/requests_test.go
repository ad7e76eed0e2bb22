package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func contextCancelled(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

func testApp(f *fake) *app {
	return &app{
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, lookup: func(string) (string, bool) { return "", false },
		dial:     func(context.Context, string, func(string) (string, bool)) (backend, error) { return f, nil },
		clock:    clock{now: func() time.Time { return noon }, wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
		terminal: func(io.Writer) bool { return false },
	}
}

func at(t *testing.T, s string) record.Time {
	t.Helper()
	v, err := record.ParseTime("", s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRun_requests holds what each command line asks for.
func TestRun_requests(t *testing.T) {
	t.Parallel()
	cli := record.Caller{Workspace: "default", Agent: "cli"}
	full := record.Caller{Workspace: "shop", Agent: "ada", Role: "coder", Repo: "web", Key: "k1"}
	asFull := []string{"-w", "shop", "--agent", "ada", "--role", "coder", "--repo", "web", "--key", "k1"}
	ship := record.StepRef{TaskID: "order-7", Step: "ship"}
	noKey := full
	noKey.Key = ""
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		want  any
	}{
		"propose": {[]string{"propose-fact", "--domain", "d", "--topic", "t", "--content", "c"}, "", record.ProposeFact{Caller: cli, Domain: "d", Topic: "t", Content: "c"}},
		"propose all": {append([]string{"propose-fact", "--domain", "d", "--topic", "موضوع", "--content", "-v is 🙂", "--veracity", "stated", "--confidence", "0",
			"--type", "decision", "--valid-until", "2027-01-31", "--source-observation", "o,1", "--source-observation", "o2", "--dry-run"}, asFull...), "",
			record.ProposeFact{Caller: full, Domain: "d", Topic: "موضوع", Content: "-v is 🙂", Veracity: "stated", Confidence: new(float64), MemoryType: "decision",
				ValidUntil: at(t, "2027-01-31"), SourceObservationIDs: []string{"o,1", "o2"}, DryRun: true}},
		"supersede":         {[]string{"supersede", "a", "b", "--reason", "new"}, "", record.SupersedeFact{Caller: cli, Old: "a", New: "b", Reason: "new"}},
		"restore":           {[]string{"restore", "a", "--key", "k"}, "", record.RestoreFact{Caller: record.Caller{Workspace: "default", Agent: "cli", Key: "k"}, FactID: "a"}},
		"history":           {append([]string{"history", "a"}, asFull...), "", record.ReadMemory{Caller: noKey, What: record.ReadHistory, ID: "a"}},
		"propose policy":    {[]string{"propose-policy", "--domain", "d", "--rule", "r", "--required-role", "qa"}, "", record.ProposePolicy{Caller: cli, Domain: "d", Rule: "r", RequiredRole: "qa"}},
		"supersede policy":  {[]string{"supersede-policy", "p", "--rule", "r", "--required-role", "qa", "--reason", "why"}, "", record.SupersedePolicy{Caller: cli, PolicyID: "p", Rule: "r", RequiredRole: "qa", Reason: "why"}},
		"policies":          {append([]string{"policies", "--domain", "d", "--all"}, asFull...), "", record.ReadMemory{Caller: noKey, What: record.ReadPolicies, Domain: "d", All: true}},
		"domains":           {[]string{"domains"}, "", record.ReadMemory{Caller: cli, What: record.ReadDomains}},
		"grants list":       {[]string{"grants", "list"}, "", record.ReadMemory{Caller: cli, What: record.ReadGrants}},
		"grants set":        {[]string{"grants", "set", "--for-role", "qa", "--domain", "d", "none"}, "", record.SetGrant{Caller: cli, ForRole: "qa", Domain: "d", Level: "none"}},
		"notes get":         {[]string{"notes", "get"}, "", record.ReadMemory{Caller: cli, What: record.ReadNotes}},
		"notes set":         {[]string{"notes", "set", "-"}, " a\r\n\tb\n\n", record.UpdateNotes{Caller: cli, Text: " a\r\n\tb\n\n"}},
		"notes set version": {[]string{"notes", "set", "-", "--expect-version", "0"}, "", record.UpdateNotes{Caller: cli, ExpectedVersion: new(int64)}},
		"observe":           {[]string{"observe", "--", "--force broke it"}, "", record.RecordObservation{Caller: cli, Text: "--force broke it"}},
		"remember": {[]string{"remember", "x", "--session", "s", "--type", "request", "--importance", "0", "--ttl", "7d12h", "--domain", "d", "--topic", "t"}, "",
			record.Remember{Caller: cli, Content: "x", SessionID: "s", MemoryType: "request", Importance: new(float64), TTLSeconds: 7*86400 + 12*3600, Domain: "d", Topic: "t"}},
		"remember plain": {[]string{"remember", "x"}, "", record.Remember{Caller: cli, Content: "x"}},
		"dispatch lines": {[]string{"dispatch", "--task", "T", "--context", "-"}, "\ufeff[a/b] one\r\n\r\n  two\n", record.Dispatch{Caller: cli, Task: "T", Context: []string{"[a/b] one", "two"}}},
		"dispatch array": {[]string{"dispatch", "--task", "", "--context", "-"}, ` [ "one", "two\nlines" ] `, record.Dispatch{Caller: cli, Context: []string{"one", "two\nlines"}}},
		"search":         {[]string{"search", "q"}, "", record.Search{Caller: cli, Query: "q"}},
		"search all": {append([]string{"search", "q", "--mode", "keyword", "--limit", "0", "--domain", "d", "--as-of", "2026-01-01"}, asFull...), "",
			record.Search{Caller: noKey, Query: "q", Mode: "keyword", Limit: new(int), Domain: "d", AsOf: at(t, "2026-01-01")}},
		"meeting": {[]string{"meeting", "-"}, "\ufeff" + `{"meeting_id":"m","title":"W","held_at":"2026-02-03 09:00","revision":2,"attendees":["Ada"],"decisions":[{"text":"x","topic":"t","decided_by":"Ada"},{"text":""}]}`,
			record.CaptureMeeting{Caller: cli, MeetingID: "m", Title: "W", HeldAt: at(t, "2026-02-03 09:00"), Revision: 2, Attendees: []string{"Ada"},
				Decisions: []record.Decision{{Text: "x", Topic: "t", DecidedBy: "Ada"}, {}}}},
		"meeting withdrawn": {[]string{"meeting", "-"}, `{"meeting_id":"m","revision":3,"held_at":null,"decisions":[]}`, record.CaptureMeeting{Caller: cli, MeetingID: "m", Revision: 3, Decisions: []record.Decision{}}},
		"consolidate":       {[]string{"consolidate", "--for-agent", "ada"}, "", record.Consolidate{Caller: cli, ForAgent: "ada"}},
		"harmonize":         {[]string{"harmonize"}, "", record.Harmonize{Caller: cli}},
		"backfill":          {append([]string{"backfill"}, asFull...), "", record.Backfill{Caller: noKey}},
		"model status":      {append([]string{"model", "status"}, asFull...), "", record.ReadMemory{Caller: noKey, What: record.ReadModel}},
		"model remove":      {append([]string{"model", "remove"}, asFull...), "", record.RemoveModel{Caller: noKey}},
		"model by name":     {[]string{"model", "install", "all-MiniLM-L6-v2"}, "", record.InstallModel{Caller: cli, Source: "all-MiniLM-L6-v2"}},
		"model by hub name": {append([]string{"model", "install", "somebody/مدل"}, asFull...), "", record.InstallModel{Caller: noKey, Source: "somebody/مدل"}},
		"model folder":      {[]string{"model", "install", "testdata"}, "", record.InstallModel{Caller: cli, Source: absolute(t, "testdata")}},
		"model elsewhere":   {[]string{"model", "install", "./not/here"}, "", record.InstallModel{Caller: cli, Source: absolute(t, "not/here")}},
		"model archive":     {[]string{"model", "install", "not-here.TGZ"}, "", record.InstallModel{Caller: cli, Source: absolute(t, "not-here.TGZ")}},
		"conflicts":         {[]string{"conflicts", "--open"}, "", record.ReadMemory{Caller: cli, What: record.ReadConflicts, OpenOnly: true}},
		"resolve":           {[]string{"resolve", "c", "--winner", "both", "--reason", "why"}, "", record.ResolveConflict{Caller: cli, ConflictID: "c", Winner: "both", Reason: "why"}},
		"beliefs":           {[]string{"beliefs"}, "", record.ReadMemory{Caller: cli, What: record.ReadBeliefs}},
		"facts":             {[]string{"facts", "--domain", "d", "--all"}, "", record.ReadMemory{Caller: cli, What: record.ReadFacts, Domain: "d", All: true}},
		"facts by subject":  {[]string{"facts", "--subject", "API gateway", "--domain", "d"}, "", record.ReadMemory{Caller: cli, What: record.ReadSubject, Domain: "d", Subject: "API gateway"}},
		"state open": {append([]string{"state", "open", "order-7", "ship", "--kind", "delivery", "--after", "pay", "--after", "pack", "--deadline", "2027-01-31"}, asFull...), "",
			record.OpenObligation{Caller: full, StepRef: ship, Kind: "delivery", After: []string{"pay", "pack"}, Deadline: at(t, "2027-01-31")}},
		"state claim":       {[]string{"state", "claim", "order-7", "ship"}, "", record.ClaimObligation{Caller: cli, StepRef: ship, LeaseSeconds: 300}},
		"state claim again": {[]string{"state", "claim", "order-7", "ship", "--lease", "2m", "--claim", "3"}, "", record.ClaimObligation{Caller: cli, StepRef: ship, LeaseSeconds: 120, Claim: 3}},
		"state commit":      {[]string{"state", "commit", "order-7", "ship", "--result", "رسید ۴۱", "--claim", "2", "--key", "k"}, "", record.CommitObligation{Caller: record.Caller{Workspace: "default", Agent: "cli", Key: "k"}, StepRef: ship, Claim: 2, Result: "رسید ۴۱"}},
		"state commit wait": {[]string{"state", "commit", "order-7", "ship", "--wait"}, "", record.CommitObligation{Caller: cli, StepRef: ship}},
		"state fail":        {[]string{"state", "fail", "order-7", "ship", "--reason", "why", "--claim", "1"}, "", record.FailObligation{Caller: cli, StepRef: ship, Claim: 1, Reason: "why"}},
		"state cancel":      {[]string{"state", "cancel", "order-7", "ship", "--reason", "why"}, "", record.CancelObligation{Caller: cli, StepRef: ship, Reason: "why"}},
		"state wait":        {append([]string{"state", "wait", "order-7", "ship"}, asFull...), "", record.ObserveObligation{Caller: noKey, StepRef: ship}},
		"state list":        {[]string{"state", "list", "--task", "order-7", "--open"}, "", record.ReadMemory{Caller: cli, What: record.ReadObligations, TaskID: "order-7", OpenOnly: true}},
		"state check":       {[]string{"state", "check", "-"}, "one\n\n two \n", record.ReadMemory{Caller: cli, What: record.ReadCheck, Context: []string{"one", "two"}}},
		"episode add":       {[]string{"episode", "add", "order-7", "We need two crates", "--as", "user"}, "", record.AppendEpisode{Caller: cli, TaskID: "order-7", EpisodeRole: "user", Content: "We need two crates"}},
		"episode search":    {[]string{"episode", "search", "crates", "--task", "order-7", "--limit", "3"}, "", record.ReadMemory{Caller: cli, What: record.ReadEpisodes, TaskID: "order-7", Query: "crates", Limit: 3}},
		"health":            {[]string{"health", "--deep"}, "", record.ReadMemory{Caller: cli, What: record.ReadHealth, All: true}},
		"health of shards":  {[]string{"health", "--shards", "0-7"}, "", "0-7"},
		"health of all":     {[]string{"health", "--shards", ""}, "", ""},
		"workspaces":        {[]string{"workspaces"}, "", record.ReadMemory{Caller: cli, What: record.ReadWorkspaces}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.answers["Health"] = record.Health{OK: true}
			got := cmd(t, f, tc.stdin, tc.args...)
			if got.exit != 0 {
				t.Fatalf("exit = %d: %s", got.exit, got.err)
			}
			if len(f.requests) != 1 || !reflect.DeepEqual(f.requests[0], tc.want) {
				t.Errorf("requests = %+v\nwant %+v", f.requests, tc.want)
			}
			// For programs: the same request, one document and nothing beside.
			f = newFake()
			f.answers["Health"] = record.Health{OK: true}
			got = cmd(t, f, tc.stdin, append([]string{"--json"}, tc.args...)...)
			decode[map[string]any](t, got.out)
			if got.exit != 0 || got.err != "" || len(f.requests) != 1 || !reflect.DeepEqual(f.requests[0], tc.want) {
				t.Errorf("with --json: %+v", got)
			}
		})
	}
}

func TestRun_environment(t *testing.T) {
	t.Parallel()
	env := map[string]string{envWorkspace: "shop", envAgent: "ada", envRole: "qa"}
	f := newFake()
	cmdEnv(t, t.Context(), f, env, "", "observe", "x")
	cmdEnv(t, t.Context(), f, env, "", "observe", "x", "-w", "other", "--agent", "bob", "--role", "pm")
	cmdEnv(t, t.Context(), f, map[string]string{envWorkspace: ""}, "", "observe", "x")
	want := []any{
		record.RecordObservation{Caller: record.Caller{Workspace: "shop", Agent: "ada", Role: "qa"}, Text: "x"},
		record.RecordObservation{Caller: record.Caller{Workspace: "other", Agent: "bob", Role: "pm"}, Text: "x"},
		record.RecordObservation{Caller: record.Caller{Workspace: "default", Agent: "cli"}, Text: "x"},
	}
	if !reflect.DeepEqual(f.requests, want) {
		t.Errorf("requests = %+v", f.requests)
	}
}

func TestRun_timeout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args    []string
		long    bool
		bounded bool
	}{
		{nil, false, true}, {[]string{"--timeout", "0"}, false, false}, {nil, true, false}, {[]string{"--timeout", "1h"}, true, true},
	} {
		a := testApp(newFake())
		root := a.root()
		bounded := false
		probe := func(ctx context.Context, _ backend) (struct{}, error) {
			_, bounded = ctx.Deadline()
			return struct{}{}, nil
		}
		c, _, err := root.Find([]string{"workspaces"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.ParseFlags(tc.args); err != nil {
			t.Fatal(err)
		}
		if err := a.prepare(c, nil); err != nil {
			t.Fatal(err)
		}
		if tc.long {
			_, err = long(t.Context(), a, probe)
		} else {
			_, err = call(t.Context(), a, probe)
		}
		if err != nil || bounded != tc.bounded {
			t.Errorf("%v, long %v: bounded = %v, %v", tc.args, tc.long, bounded, err)
		}
	}
}

func TestParseTTL(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"7d": 604800, "1.5d": 129600, "1d1h": 90000, "90m": 5400, "1s": 1, "36500d": 36500 * 86400,
		"": 0, "d": 0, "-1d": 0, "-5m": 0, "0d": 0, "1ms": 0, "7": 0, "7 days": 0, "36501d": 0, "NaNd": 0, "infd": 0, "1d-2h": 0,
	} {
		got, err := parseTTL(s)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("parseTTL(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
}

func laterThanNoon() time.Time { return noon.Add(time.Minute) }
