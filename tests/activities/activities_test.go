package activities

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	_ "modernc.org/sqlite"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
	"github.com/polyphony-memory/polyphony/workflows"
)

// bench is one store with the activities on it, and what its workspace holds.
type bench struct {
	t          *testing.T
	data       string
	workspaces *memory.Workspaces
	env        *testsuite.TestActivityEnvironment
	keeper     *keeper

	oil, gas, retired string
	policy, conflict  string
}

const workspace = "bench"

func who(key string) record.Caller {
	return record.Caller{Workspace: workspace, Agent: "scout", Role: "coder", Key: key}
}

func stepOf(step string) record.StepRef { return record.StepRef{TaskID: "cargo 7", Step: step} }

// newBench makes a store whose workspace holds some of everything.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, data: t.TempDir()}
	var err error
	b.keeper = &keeper{}
	if b.workspaces, err = memory.NewWorkspaces(b.data, memory.Options{Embedding: bag{}.ID()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.workspaces.Close(); err != nil {
			t.Error(err)
		}
	})
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	b.env = suite.NewTestActivityEnvironment()
	b.env.RegisterActivity(&activities.Store{Workspaces: b.workspaces})
	b.env.RegisterActivity(&activities.Reader{Workspaces: b.workspaces, Recall: recall.NewEngine(nil), Keeper: b.keeper})
	b.env.RegisterActivity(b.embedding())

	err = b.workspaces.Use(t.Context(), workspace, func(s *memory.Store) error {
		fact := func(topic, content string) record.ProposeFactResult {
			out, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: who(""), Domain: "harbour", Topic: topic, Content: content})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		b.oil, b.gas = fact("lamp", "The lamp of the lighthouse is oil").FactID, fact("lantern", "The lantern of the pilot boat is gas").FactID
		b.retired = fact("deploy target", "The service deploys to prod").FactID
		fact("deploy target", "The service deploys to staging")
		other := fact("queue", "The service consumes from the blue queue").FactID
		newer := fact("queues", "Berth clerks consume from the green queue").FactID
		if _, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: who(""), Old: other, New: newer}); err != nil {
			return err
		}
		restored, err := s.RestoreFact(t.Context(), record.RestoreFact{Caller: who(""), FactID: b.retired})
		if err != nil {
			return err
		}
		if len(restored.ConflictIDs) > 0 {
			b.conflict = restored.ConflictIDs[0]
		}
		b.retired = other
		policy, err := s.ProposePolicy(t.Context(), record.ProposePolicy{Caller: who(""), Domain: "safety", Rule: "Wear a vest on the quay."})
		if err != nil {
			return err
		}
		b.policy = policy.PolicyID
		if _, err := s.RecordObservation(t.Context(), record.RecordObservation{Caller: who(""), Text: "The tide is low."}); err != nil {
			return err
		}
		second := who("")
		second.Agent = "mason"
		if _, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: second, Domain: "harbour", Topic: "lamp", Content: "The lamp of the lighthouse is oil"}); err != nil {
			return err
		}
		for _, in := range []record.OpenObligation{
			{Caller: who(""), StepRef: stepOf("pay")}, {Caller: who(""), StepRef: stepOf("held")}, {Caller: who(""), StepRef: stepOf("ship"), After: []string{"pay", "moor"}},
		} {
			if _, err := s.OpenObligation(t.Context(), in); err != nil {
				return err
			}
		}
		if _, err := s.ClaimObligation(t.Context(), record.ClaimObligation{Caller: second, StepRef: stepOf("held")}); err != nil {
			return err
		}
		for n := range 3 {
			in := record.Remember{Caller: who(""), SessionID: "monday", Domain: "yard", Topic: fmt.Sprintf("shelf %d", n), Content: fmt.Sprintf("Shelf %d holds ropes", n)}
			if _, err := s.Remember(t.Context(), in); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dump returns every row of the workspace's tables.
func (b *bench) dump() []string {
	b.t.Helper()
	q := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(10000)", "query_only(1)"}}
	path := filepath.Join(b.data, "workspaces", workspace, memory.FileName)
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var out []string
	for _, table := range b.rows(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name") {
		for _, row := range b.rows(db, "SELECT * FROM "+table) {
			out = append(out, table+": "+row)
		}
	}
	return out
}

func (b *bench) rows(db *sql.DB, query string) []string {
	b.t.Helper()
	found, err := db.QueryContext(b.t.Context(), query)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for found.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := found.Scan(values...); err != nil {
			b.t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = fmt.Sprintf("%v", *v.(*any))
		}
		out = append(out, strings.Join(row, "|"))
	}
	if err := found.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// run runs one activity and returns its result, or its error, as JSON.
func (b *bench) run(name string, in any) (string, error) {
	v, err := b.env.ExecuteActivity(name, in)
	if err != nil {
		return "", workflows.FromTemporal(err)
	}
	var out json.RawMessage
	if err := v.Get(&out); err != nil {
		b.t.Fatal(err)
	}
	return string(out), nil
}

// call is one activity with an input. Some inputs change the file, some find
// nothing to change, and some are refused.
type call struct {
	name     string
	activity string
	in       func(*bench) any
	// changes says that the first run writes.
	changes bool
	// refused is the error that both runs must give.
	refused record.Code
}

func fixed(in any) func(*bench) any { return func(*bench) any { return in } }

func calls() []call {
	meeting := record.CaptureMeeting{Caller: who("meeting"), MeetingID: "board-7", Revision: 1, Decisions: []record.Decision{
		{Text: "The east quay gets new bollards.", Topic: "bollards"}, {Text: "   "}, {Text: "The crane is painted red."},
	}}
	all := []call{
		{"created", workflows.ActivityProposeFact, fixed(record.ProposeFact{Caller: who("a"), Domain: "harbour", Topic: "buoy", Content: "The buoy is red"}), true, ""},
		{"re-mentioned", workflows.ActivityProposeFact, fixed(record.ProposeFact{Caller: who("b"), Domain: "harbour", Topic: "lamp", Content: "The lamp of the lighthouse is oil"}), true, ""},
		{"refused", workflows.ActivityProposeFact, fixed(record.ProposeFact{Caller: who("c"), Domain: "harbour", Topic: "lamp", Content: " "}), false, record.ContentEmpty},
		{"superseded", workflows.ActivitySupersedeFact, func(b *bench) any {
			return record.SupersedeFact{Caller: who("d"), Old: b.oil, New: b.gas, Reason: "rebuilt"}
		}, true, ""},
		{"refused", workflows.ActivitySupersedeFact, func(b *bench) any { return record.SupersedeFact{Caller: who("e"), Old: b.oil, New: b.oil} }, false, record.SupersedeInvalid},
		{"restored", workflows.ActivityRestoreFact, func(b *bench) any { return record.RestoreFact{Caller: who("f"), FactID: b.retired} }, true, ""},
		{"created", workflows.ActivityProposePolicy, fixed(record.ProposePolicy{Caller: who("g"), Domain: "safety", Rule: "Carry a whistle."}), true, ""},
		{"exists", workflows.ActivityProposePolicy, fixed(record.ProposePolicy{Caller: who("h"), Domain: "safety", Rule: "Wear a vest on the quay."}), true, ""},
		{"replaced", workflows.ActivitySupersedePolicy, func(b *bench) any {
			return record.SupersedePolicy{Caller: who("i"), PolicyID: b.policy, Rule: "Wear a vest and a helmet."}
		}, true, ""},
		{"set", workflows.ActivitySetGrant, fixed(record.SetGrant{Caller: who("j"), ForRole: "qa", Domain: "harbour", Level: "none"}), true, ""},
		{"kept", workflows.ActivityRemember, fixed(record.Remember{Caller: who("k"), SessionID: "monday", Content: "The ropes are wet", TTLSeconds: 60}), true, ""},
		{"noted", workflows.ActivityRecordObservation, fixed(record.RecordObservation{Caller: who("l"), Text: "The tide is high."}), true, ""},
		{"replaced", workflows.ActivityUpdateNotes, fixed(record.UpdateNotes{Caller: who("m"), Text: "At the east pier."}), true, ""},
		{"resolved", workflows.ActivityResolveConflict, func(b *bench) any {
			return record.ResolveConflict{Caller: who("n"), ConflictID: b.conflict, Winner: "both"}
		}, true, ""},
		{"captured", workflows.ActivityCaptureMeeting, fixed(record.MeetingPage{CaptureMeeting: meeting, Last: true}), true, ""},
		{"a page of several", workflows.ActivityCaptureMeeting, fixed(record.MeetingPage{CaptureMeeting: meeting}), true, ""},
		{"page", workflows.ActivityImportFacts, fixed(record.ImportFacts{Caller: who("o"), Source: "made-up", Items: []record.ProposeFact{
			{Domain: "cargo", Topic: "ship 1", Content: "Ship 1 loads barley", Veracity: "imported"},
			{Domain: "cargo", Topic: "ship 1", Content: "Ship 1 loads barley", Veracity: "imported"},
			{Domain: "cargo", Topic: "ship 2", Content: " "},
		}}), true, ""},
		{"opened", workflows.ActivityOpenObligation, fixed(record.OpenObligation{Caller: who("s1"), StepRef: stepOf("mail"), Kind: "mail", After: []string{"ship"}}), true, ""},
		{"exists", workflows.ActivityOpenObligation, fixed(record.OpenObligation{Caller: who("s2"), StepRef: stepOf("ship"), After: []string{"pay", "moor"}}), true, ""},
		{"another definition", workflows.ActivityOpenObligation, fixed(record.OpenObligation{Caller: who("s3"), StepRef: stepOf("ship")}), false, record.IdempotencyKeyReused},
		{"circle", workflows.ActivityOpenObligation, fixed(record.OpenObligation{Caller: who("s4"), StepRef: stepOf("moor"), After: []string{"ship"}}), false, record.InvalidArgument},
		{"claimed", workflows.ActivityClaimObligation, fixed(record.ClaimObligation{Caller: who("s5"), StepRef: stepOf("pay"), LeaseSeconds: 60}), true, ""},
		{"held", workflows.ActivityClaimObligation, fixed(record.ClaimObligation{Caller: who("s6"), StepRef: stepOf("held")}), true, ""},
		{"out of order", workflows.ActivityClaimObligation, fixed(record.ClaimObligation{Caller: who("s7"), StepRef: stepOf("ship")}), false, record.OutOfOrder},
		{"committed", workflows.ActivityCommitObligation, fixed(record.CommitObligation{Caller: who("s8"), StepRef: stepOf("pay"), Result: "receipt 41"}), true, ""},
		{"out of order", workflows.ActivityCommitObligation, fixed(record.CommitObligation{Caller: who("s9"), StepRef: stepOf("ship")}), false, record.OutOfOrder},
		{"failed", workflows.ActivityFailObligation, fixed(record.FailObligation{Caller: who("s10"), StepRef: stepOf("pay"), Reason: "card refused"}), true, ""},
		{"cancelled", workflows.ActivityCancelObligation, fixed(record.CancelObligation{Caller: who("s11"), StepRef: stepOf("ship")}), true, ""},
		{"not opened", workflows.ActivityCancelObligation, fixed(record.CancelObligation{Caller: who("s12"), StepRef: stepOf("sail")}), false, record.NotFound},
		{"waiting", workflows.ActivityObserveObligation, fixed(record.ObserveObligation{Caller: who(""), StepRef: stepOf("ship")}), true, ""},
		{"not opened", workflows.ActivityObserveObligation, fixed(record.ObserveObligation{Caller: who(""), StepRef: stepOf("sail")}), false, record.NotFound},
		{"said", workflows.ActivityAppendEpisode, fixed(record.AppendEpisode{Caller: who("s13"), TaskID: "cargo 7", EpisodeRole: "user", Content: "Load the barley first"}), true, ""},
		{"empty", workflows.ActivityAppendEpisode, fixed(record.AppendEpisode{Caller: who("s14"), TaskID: "cargo 7", Content: " "}), false, record.ContentEmpty},
		{"checked", workflows.ActivityRead, fixed(record.ReadMemory{Caller: who(""), What: record.ReadCheck, Context: []string{"The service consumes from the blue queue", "The moon is full"}}), false, ""},
		{"subject", workflows.ActivityRead, fixed(record.ReadMemory{Caller: who(""), What: record.ReadSubject, Subject: "lighthouse"}), false, ""},
		{"full", workflows.ActivityAssemble, fixed(record.Dispatch{Caller: who("p"), Task: "Repair the lamp of the lighthouse", Context: []string{"The service consumes from the blue queue"}}), false, ""},
		{"found", workflows.ActivitySearch, fixed(record.Search{Caller: who(""), Query: "lighthouse lamp", Mode: "keyword"}), false, ""},
		{"refused", workflows.ActivitySearch, fixed(record.Search{Caller: who(""), Query: "lamp", Mode: "psychic"}), false, record.InvalidArgument},
		{"told", workflows.ActivityBackfill, fixed(record.BackfillPage{Caller: who("q"), Limit: 100}), false, ""},
		{"embedded", workflows.ActivityBackfill, fixed(record.BackfillPage{Caller: who("q"), Model: bag{}.ID(), Limit: 100}), true, ""},
		{"refused", workflows.ActivityBackfill, fixed(record.BackfillPage{Caller: record.Caller{Workspace: "nowhere", Key: "q"}, Limit: 100}), false, record.NotFound},
		{"installed", workflows.ActivityInstallModel, fixed(record.InstallModel{Caller: who("r"), Source: "somebody/model"}), false, ""},
		{"refused", workflows.ActivityInstallModel, fixed(record.InstallModel{Caller: who("r")}), false, record.InvalidArgument},
		{"none", workflows.ActivityRemoveModel, fixed(record.RemoveModel{Caller: who("s")}), false, record.NotFound},
		{"refused", workflows.ActivityRead, fixed(record.ReadMemory{Caller: who(""), What: "secrets"}), false, record.InvalidArgument},
		{"history", workflows.ActivityRead, func(b *bench) any {
			return record.ReadMemory{Caller: who(""), What: record.ReadHistory, ID: b.retired}
		}, false, ""},
		{"edges", workflows.ActivityRead, func(b *bench) any { return record.ReadMemory{Caller: who(""), What: record.ReadEdges, ID: b.oil} }, false, ""},
	}
	for _, what := range []record.ReadKind{
		record.ReadFacts, record.ReadPolicies, record.ReadDomains, record.ReadGrants, record.ReadNotes, record.ReadConflicts,
		record.ReadBeliefs, record.ReadHealth, record.ReadItems, record.ReadObservation, record.ReadWorkspaces, record.ReadModel,
		record.ReadObligations, record.ReadEpisodes,
	} {
		all = append(all, call{string(what), workflows.ActivityRead, fixed(record.ReadMemory{Caller: who(""), What: what, All: true}), false, ""})
	}
	for _, phase := range record.ConsolidationPhases() {
		changes := phase == record.PhasePromote || phase == record.PhaseFinish
		all = append(all, call{phase, workflows.ActivityConsolidate, fixed(record.MaintenancePage{Caller: who("consolidate/" + phase), Phase: phase, Limit: 200}), changes, ""})
	}
	for _, phase := range record.HarmonizationPhases() {
		changes := phase == record.PhaseBeliefs || phase == record.PhaseFinish
		all = append(all, call{phase, workflows.ActivityHarmonize, fixed(record.MaintenancePage{Caller: who("harmonize/" + phase), Phase: phase, Limit: 200}), changes, ""})
	}
	return all
}

// TestTwice runs every activity twice with one input.
func TestTwice(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, c := range calls() {
		covered[c.activity] = true
		t.Run(c.activity+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			in := c.in(b)
			before := b.dump()
			first, errFirst := b.run(c.activity, in)
			between := b.dump()
			second, errSecond := b.run(c.activity, in)
			after := b.dump()
			for _, err := range []error{errFirst, errSecond} {
				if record.ErrorCode(err) != c.refused {
					t.Errorf("%v, want code %q", err, c.refused)
				}
			}
			if c.refused != "" && (errFirst == nil || errSecond == nil || errFirst.Error() != errSecond.Error()) {
				t.Errorf("the first run says %v, the second %v", errFirst, errSecond)
			}
			if first != second {
				t.Errorf("the first run gives\n%s\nthe second\n%s", first, second)
			}
			if changed := !slices.Equal(before, between); changed != c.changes {
				t.Errorf("the first run changed the file: %v, want %v", changed, c.changes)
			}
			if !slices.Equal(between, after) {
				for i, line := range after {
					if i >= len(between) || between[i] != line {
						t.Errorf("the second run changed the file: %.200s", line)
						break
					}
				}
			}
		})
	}
	for _, name := range names() {
		if !covered[name] {
			t.Errorf("activity %s is not run here", name)
		}
	}
}

// TestDryRun is a trial: nothing is written, and it says the same each time
// except for the id of a fact that never was.
func TestDryRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := record.ProposeFact{Caller: who("trial"), Domain: "wharf", Topic: "buoy", Content: "The buoy is red", DryRun: true}
	before := b.dump()
	var answers [2]record.ProposeFactResult
	for i := range answers {
		raw, err := b.run(workflows.ActivityProposeFact, in)
		if err == nil {
			err = json.Unmarshal([]byte(raw), &answers[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		answers[i].FactID = ""
	}
	if !reflect.DeepEqual(answers[0], answers[1]) || answers[0].Status != record.StatusCreated || !answers[0].DryRun {
		t.Errorf("the trials say %+v and %+v", answers[0], answers[1])
	}
	if !slices.Equal(before, b.dump()) {
		t.Error("the trial changed the file")
	}
}

// methods names the exported methods of an activity struct.
func methods(of any) []string {
	var out []string
	for m := range reflect.TypeOf(of).Methods() {
		out = append(out, m.Name)
	}
	return out
}

// names are those of all activities.
func names() []string {
	return slices.Concat(methods(&activities.Store{}), methods(&activities.Reader{}), methods(&activities.Embedding{}))
}

// TestNames holds the names that workflows call activities by to the methods
// there are, both ways.
func TestNames(t *testing.T) {
	t.Parallel()
	have := names()
	file, err := parser.ParseFile(token.NewFileSet(), "../../workflows/contract.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Activity") {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Errorf("%s is no plain string", spec.Names[0].Name)
			return true
		}
		name, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		named = append(named, name)
		return true
	})
	slices.Sort(have)
	slices.Sort(named)
	if !slices.Equal(have, named) {
		t.Errorf("the constants name\n%q, the methods are\n%q", named, have)
	}
	t.Logf("%d activities", len(have))
}
