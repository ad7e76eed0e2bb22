package cli

import (
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestRun_usage holds that wrong calls are refused by name before anything is
// dialled.
func TestRun_usage(t *testing.T) {
	t.Parallel()
	meeting := func(text string) string { return write(t, "m.json", text) }
	fact := []string{"propose-fact", "--domain", "d", "--topic", "t", "--content", "c"}
	for name, tc := range map[string]struct {
		args  []string
		code  record.Code
		field string
		try   string
	}{
		"unknown command":         {[]string{"propse-fact", "--domain", "d"}, record.InvalidArgument, "command", "starter propose-fact"},
		"after a flag":            {[]string{"-w", "x", "serch", "q"}, record.InvalidArgument, "command", "starter search"},
		"nothing like it":         {[]string{"zzzzzzzz"}, record.InvalidArgument, "command", "starter --help"},
		"help of unknown":         {[]string{"help", "polices"}, record.InvalidArgument, "command", "starter policies"},
		"unknown in group":        {[]string{"notes", "gets", "--what"}, record.InvalidArgument, "command", "starter notes get"},
		"group alone":             {[]string{"grants"}, record.InvalidArgument, "", "starter grants --help"},
		"unknown flag":            {[]string{"policies", "--colour"}, record.InvalidArgument, "colour", "starter policies --help"},
		"flag without value":      {[]string{"facts", "--domain"}, record.InvalidArgument, "domain", "starter facts --help"},
		"flag of another kind":    {append(fact, "--confidence", "much"), record.InvalidArgument, "confidence", "starter propose-fact --help"},
		"missing argument":        {[]string{"supersede", "a"}, record.InvalidArgument, "new", "starter supersede OLD NEW"},
		"too many arguments":      {[]string{"observe", "the", "build"}, record.InvalidArgument, "text", "starter observe TEXT"},
		"argument for none":       {[]string{"policies", "x"}, record.InvalidArgument, "", "starter policies"},
		"missing flag":            {[]string{"propose-fact", "--domain", "d", "--topic", "t"}, record.InvalidArgument, "content", "starter propose-fact --help"},
		"missing task":            {[]string{"dispatch"}, record.InvalidArgument, "task", ""},
		"missing winner":          {[]string{"resolve", "x"}, record.InvalidArgument, "winner", ""},
		"missing format":          {[]string{"import", "x"}, record.InvalidArgument, "format", ""},
		"unknown format":          {[]string{"import", "--format", "csv", "x"}, record.InvalidArgument, "format", ""},
		"unknown export":          {[]string{"export", "--format", "csv"}, record.InvalidArgument, "format", ""},
		"workspace":               {append(fact, "-w", "../x"), record.WorkspaceInvalid, "workspace", ""},
		"workspace of import":     {[]string{"import", "--format", "jsonl", "-w", "", "-"}, record.WorkspaceInvalid, "workspace", ""},
		"role":                    {append(fact, "--role", "king"), record.InvalidArgument, "role", ""},
		"key":                     {append(fact, "--key", "a b"), record.InvalidArgument, "key", ""},
		"timeout":                 {append(fact, "--timeout", "-1s"), record.InvalidArgument, "timeout", ""},
		"veracity":                {append(fact, "--veracity", "sure"), record.InvalidArgument, "veracity", ""},
		"type":                    {append(fact, "--type", "rumour"), record.InvalidArgument, "memory_type", ""},
		"confidence":              {append(fact, "--confidence", "1.1"), record.InvalidArgument, "confidence", ""},
		"confidence no number":    {append(fact, "--confidence", "NaN"), record.InvalidArgument, "confidence", ""},
		"valid until":             {append(fact, "--valid-until", "soon"), record.InvalidArgument, "valid_until", ""},
		"not UTF-8":               {[]string{"observe", "a\xff"}, record.InvalidUTF8, "", ""},
		"flag not UTF-8":          {append(fact, "--source-observation", "a\xff"), record.InvalidUTF8, "source_observation_ids", ""},
		"ttl":                     {[]string{"remember", "x", "--ttl", "soon"}, record.InvalidArgument, "ttl_seconds", ""},
		"ttl none":                {[]string{"remember", "x", "--ttl", "0s"}, record.InvalidArgument, "ttl_seconds", ""},
		"importance":              {[]string{"remember", "x", "--importance", "2"}, record.InvalidArgument, "importance", ""},
		"mode":                    {[]string{"search", "x", "--mode", "psychic"}, record.InvalidArgument, "mode", ""},
		"as of":                   {[]string{"search", "x", "--as-of", "1066-10-14"}, record.InvalidArgument, "as_of", ""},
		"level":                   {[]string{"grants", "set", "--for-role", "qa", "--domain", "d", "admin"}, record.InvalidArgument, "level", ""},
		"grant for role":          {[]string{"grants", "set", "--for-role", "king", "--domain", "d", "read"}, record.InvalidArgument, "for_role", ""},
		"grant for nobody":        {[]string{"grants", "set", "--for-role", "", "--domain", "d", "read"}, record.InvalidArgument, "for_role", ""},
		"required role":           {[]string{"propose-policy", "--domain", "d", "--rule", "r", "--required-role", "king"}, record.InvalidArgument, "required_role", ""},
		"role without rule":       {[]string{"supersede-policy", "x", "--required-role", "qa"}, record.InvalidArgument, "required_role", ""},
		"empty rule":              {[]string{"supersede-policy", "x", "--rule", ""}, record.ContentEmpty, "rule", ""},
		"no such file":            {[]string{"notes", "set", "/nowhere/notes.md"}, record.InvalidArgument, "file", ""},
		"a folder":                {[]string{"meeting", t.TempDir()}, record.InvalidArgument, "file", ""},
		"notes too large":         {[]string{"notes", "set", write(t, "big", strings.Repeat("x", record.MaxContentBytes+1))}, record.ContentTooLarge, "text", ""},
		"notes not UTF-8":         {[]string{"notes", "set", write(t, "bin", "\xff\xfe")}, record.InvalidUTF8, "text", ""},
		"notes with NUL":          {[]string{"notes", "set", write(t, "nul", "a\x00b")}, record.InvalidUTF8, "text", ""},
		"meeting empty":           {[]string{"meeting", meeting("")}, record.InvalidArgument, "", ""},
		"meeting no JSON":         {[]string{"meeting", meeting("{")}, record.InvalidArgument, "", ""},
		"meeting unknown field":   {[]string{"meeting", meeting(`{"meeting_id":"m","rev":1,"decisions":[]}`)}, record.InvalidArgument, "rev", ""},
		"decision unknown field":  {[]string{"meeting", meeting(`{"meeting_id":"m","revision":1,"decisions":[{"txt":"x"}]}`)}, record.InvalidArgument, "txt", ""},
		"meeting no decisions":    {[]string{"meeting", meeting(`{"meeting_id":"m","revision":1}`)}, record.InvalidArgument, "decisions", `"decisions": []`},
		"meeting wrong kind":      {[]string{"meeting", meeting(`{"meeting_id":"m","revision":"one","decisions":[]}`)}, record.InvalidArgument, "revision", ""},
		"meeting time":            {[]string{"meeting", meeting(`{"meeting_id":"m","revision":1,"held_at":"noon","decisions":[]}`)}, record.InvalidArgument, "held_at", ""},
		"meeting two documents":   {[]string{"meeting", meeting(`{"meeting_id":"m","revision":1,"decisions":[]} {}`)}, record.InvalidArgument, "", ""},
		"context no strings":      {[]string{"dispatch", "--task", "x", "--context", write(t, "c", `["a", 1]`)}, record.InvalidArgument, "context", ""},
		"locomo no list":          {[]string{"import", "--format", "locomo", write(t, "l", `{"sample_id":"x"}`)}, record.InvalidArgument, "file", ""},
		"patience":                {[]string{"import", "--format", "jsonl", "--patience", "-1s", "x"}, record.InvalidArgument, "patience", ""},
		"model alone":             {[]string{"model"}, record.InvalidArgument, "", "starter model --help"},
		"model of nothing":        {[]string{"model", "install", " "}, record.InvalidArgument, "source", ""},
		"model of NUL":            {[]string{"model", "install", "a/\x00b"}, record.InvalidUTF8, "", ""},
		"model too long":          {[]string{"model", "install", strings.Repeat("m", 4097)}, record.ContentTooLarge, "source", ""},
		"backfill of something":   {[]string{"backfill", "x"}, record.InvalidArgument, "", ""},
		"consolidate for control": {[]string{"consolidate", "--for-agent", "a\nb"}, record.InvalidArgument, "for_agent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			got := cmd(t, f, "", tc.args...)
			if got.exit != record.ExitUsage {
				t.Errorf("exit = %d, want %d", got.exit, record.ExitUsage)
			}
			if got.out != "" {
				t.Errorf("stdout = %q", got.out)
			}
			first, rest, _ := strings.Cut(got.err, "\n")
			if !strings.HasPrefix(first, string(tc.code)+": ") || tc.field != "" && !strings.HasSuffix(first, "("+tc.field+")") {
				t.Errorf("stderr = %q, want %s about %q", first, tc.code, tc.field)
			}
			if tc.try != "" && !strings.HasPrefix(rest, "Try: "+tc.try) {
				t.Errorf("advice = %q, want %q", rest, tc.try)
			}
			if f.dials != 0 {
				t.Error("it was dialled")
			}

			// The same for programs.
			got = cmd(t, newFake(), "", append([]string{"--json"}, tc.args...)...)
			e := decode[map[string]record.Error](t, got.err)["error"]
			if e.Code != tc.code || e.Field != tc.field && tc.field != "" || e.Message == "" || got.exit != record.ExitUsage || got.out != "" {
				t.Errorf("with --json: %+v, exit %d, stdout %q", e, got.exit, got.out)
			}
		})
	}
}

func TestRun_refused(t *testing.T) {
	t.Parallel()
	denied := record.Errorf(record.InsufficientMemoryPermission, "role", "role qa has read")
	denied.Role, denied.Domain, denied.Required, denied.Actual = "qa", "repo:a b/security", "write", "read"
	for name, tc := range map[string]struct {
		method string
		err    error
		args   []string
		exit   int
		want   string
	}{
		"permission": {"ProposePolicy", denied, []string{"propose-policy", "--domain", "d", "--rule", "r"}, 3,
			"InsufficientMemoryPermission: role qa has read (role)\nTry: starter grants set --for-role qa --domain 'repo:a b/security' write\n"},
		"key reused": {"RecordObservation", record.Errorf(record.IdempotencyKeyReused, "key", "used before"), []string{"observe", "x"}, 3,
			"IdempotencyKeyReused: used before (key)\nTry: another --key for another request\n"},
		"not found": {"History", record.Errorf(record.NotFound, "id", "there is no such fact"), []string{"history", "x"}, 3,
			"NotFound: there is no such fact (id)\n"},
		"no model": {"BackfillEmbeddings", record.Errorf(record.Unavailable, "model", "no embedding model is installed"), []string{"backfill"}, 4,
			"Unavailable: no embedding model is installed (model)\nTry: starter model install SOURCE, then the same again\n"},
		"hub away": {"InstallModel", record.Errorf(record.Unavailable, "source", "the hub cannot be reached"), []string{"model", "install", "a/b"}, 4,
			"Unavailable: the hub cannot be reached (source)\nTry: the same again later, or a folder or an archive instead\n"},
		"model being changed": {"InstallModel", record.Errorf(record.Unavailable, "model", "it was being changed"), []string{"model", "install", "a/b"}, 4,
			"Unavailable: it was being changed (model)\nTry: starter model status, then the same again\n"},
		"away": {"Workspaces", record.Errorf(record.Unavailable, "", "no answer"), []string{"workspaces"}, 4,
			"Unavailable: no answer\nTry: see that a worker runs (go run ./worker) on the same data folder (--data), then again\n"},
		"text that drives a terminal": {"Workspaces", record.Errorf(record.NotFound, "", "a\x1b[31mb"), []string{"workspaces"}, 3, "NotFound: a[31mb\n"},
		"workspace named, absent":     {"Health", record.Errorf(record.NotFound, "workspace", "there is no workspace x"), []string{"health", "-w", "x"}, 3, "NotFound: there is no workspace x (workspace)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.errs[tc.method] = tc.err
			got := cmd(t, f, "", tc.args...)
			if got.exit != tc.exit || got.err != tc.want || got.out != "" {
				t.Errorf("got %+v, want exit %d and %q", got, tc.exit, tc.want)
			}
		})
	}
}

func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.errs["ProposeFact"] = record.Errorf(record.Unavailable, "", "the call was cancelled")
	ctx, cancel := contextCancelled(t)
	defer cancel()
	got := cmdEnv(t, ctx, f, nil, "", "propose-fact", "--domain", "d", "--topic", "t", "--content", "c")
	if got.exit != record.ExitUnavailable || !strings.Contains(got.err, "interrupted before the answer came") || !strings.Contains(got.err, "--key") {
		t.Errorf("got %+v", got)
	}
}

func TestRun_unwritableOutput(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"policies"}, {"export"}, {"workspaces", "--json"}} {
		f := newFake()
		f.pages[record.ReadFacts] = []any{record.Fact{ID: "f"}}
		a := testApp(f)
		a.stdout = brokenWriter{}
		if exit := a.run(t.Context(), args); exit != record.ExitUnavailable {
			t.Errorf("%v: exit = %d", args, exit)
		}
	}
}
