package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestMCP_state claims, acts and commits: others are told whose a step is and
// what came of it, and an agent that was started again of its own doubt.
func TestMCP_state(t *testing.T) {
	t.Parallel()
	s := open(t)
	scout := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	mason := s.agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "mason")
	step := func(name string, more args) args {
		in := args{"task_id": "سفارش ۷", "step": name}
		for k, v := range more {
			in[k] = v
		}
		return in
	}
	outcome := func(c *sdk.ClientSession, tool string, in args, want record.ObligationOutcome) record.ObligationResult {
		t.Helper()
		got := called[record.ObligationResult](t, c, tool, in)
		if got.Outcome != want {
			t.Errorf("%s %v is %s, want %s: %+v", tool, in, got.Outcome, want, got.Obligation)
		}
		return got
	}
	outcome(scout, "state_open", step("pay", args{"kind": "payment"}), record.OutcomeOpened)
	outcome(scout, "state_open", step("ship", args{"after": []string{"pay"}, "deadline": "2099-01-01"}), record.OutcomeOpened)
	outcome(mason, "state_open", step("pay", args{"kind": "payment", "after": nil, "deadline": ""}), record.OutcomeExists)
	refused(t, mason, "state_open", step("pay", args{"kind": "refund"}), record.IdempotencyKeyReused)

	early, err := mason.CallTool(t.Context(), &sdk.CallToolParams{Name: "state_claim", Arguments: step("ship", nil)})
	if err != nil || !early.IsError || text(early) != "OutOfOrder: not done yet: pay (step)" {
		t.Errorf("a claim too early answers %v, %v", early, err)
	}
	var named struct {
		E record.Error `json:"polyphony/error"`
	}
	if raw, err := json.Marshal(early.Meta); err != nil || json.Unmarshal(raw, &named) != nil || !slices.Equal(named.E.Missing, []string{"pay"}) {
		t.Errorf("what is missing is told as %v", early.Meta)
	}

	first := outcome(scout, "state_claim", step("pay", args{"lease_seconds": 60, "key": "run-1"}), record.OutcomeClaimed)
	if held := outcome(mason, "state_claim", step("pay", nil), record.OutcomeHeld); held.Obligation.ClaimedBy != "scout" {
		t.Errorf("the step is held by %q", held.Obligation.ClaimedBy)
	}
	outcome(mason, "state_commit", step("pay", args{"result": "receipt 13"}), record.OutcomeHeld)
	outcome(scout, "state_claim", step("pay", args{"lease_seconds": 60, "claim": 1}), record.OutcomeExtended)

	s.ahead.Store(int64(2 * time.Minute))
	if again := outcome(scout, "state_claim", step("pay", args{"lease_seconds": 60, "key": "run-1"}), record.OutcomeClaimed); again.Doubt != nil || again.Obligation.LeaseUntil != first.Obligation.LeaseUntil {
		t.Errorf("the same key answers %+v", again)
	}
	second := outcome(scout, "state_claim", step("pay", args{"key": "run-2"}), record.OutcomeClaimed)
	if d := second.Doubt; d == nil || d.ClaimedBy != "scout" || d.Claim != 1 || d.Key != first.Obligation.Key {
		t.Errorf("a new key is told the doubt %+v", d)
	}
	outcome(scout, "state_commit", step("pay", args{"claim": 1, "result": "receipt 41"}), record.OutcomeHeld)
	outcome(scout, "state_commit", step("pay", args{"claim": 2, "result": "receipt 42"}), record.OutcomeCommitted)
	for _, tool := range []string{"state_claim", "state_commit"} {
		if closed := outcome(mason, tool, step("pay", nil), record.OutcomeClosed).Obligation; closed.Result != "receipt 42" || closed.ClosedBy != "scout" || closed.State != record.ObligationDone {
			t.Errorf("%s is told %+v", tool, closed)
		}
	}
	outcome(mason, "state_claim", step("ship", nil), record.OutcomeClaimed)

	type list struct {
		Items []record.Obligation `json:"items"`
	}
	all := called[list](t, mason, "state_list", args{"task_id": "سفارش ۷"}).Items
	if len(all) != 2 || all[0].Step != "pay" || all[0].Result != "receipt 42" || all[1].ClaimedBy != "mason" {
		t.Errorf("the steps are %+v", all)
	}
	if left := called[list](t, mason, "state_list", args{"task_id": "سفارش ۷", "open_only": true}).Items; len(left) != 1 || left[0].Step != "ship" {
		t.Errorf("open are %+v", left)
	}
	if none := called[list](t, mason, "state_list", args{"task_id": "سفارش 7"}).Items; len(none) != 0 {
		t.Errorf("another spelling is another task: %+v", none)
	}
}

// TestMCP_stateReads reads the record on a subject and holds statements against
// it.
func TestMCP_stateReads(t *testing.T) {
	t.Parallel()
	c := open(t).agent("Polyphony-Workspace", "demo", "Polyphony-Agent", "scout")
	old := called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "deploy target", "content": "The service deploys to prod"})
	now := called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "deploy target", "content": "The service deploys to staging", "veracity": "stated"})
	called[record.ProposeFactResult](t, c, "propose_fact", args{"domain": "infra", "topic": "servicing", "content": "Lifts are serviced in May"})
	type facts struct {
		Items []record.Fact `json:"items"`
	}
	if got := called[facts](t, c, "state_read_facts", args{"subject": "service"}).Items; len(got) != 1 || got[0].ID != now.FactID {
		t.Errorf("the record on the subject is %+v", got)
	}
	if got := called[facts](t, c, "state_read_facts", args{"subject": "Deploy  target", "all": true}).Items; len(got) != 2 || got[0].ID != old.FactID || got[0].SupersededBy != now.FactID {
		t.Errorf("with what was superseded it is %+v", got)
	}
	type checked struct {
		Items []record.CheckedStatement `json:"items"`
	}
	got := called[checked](t, c, "state_check", args{"context": []string{"The service deploys to prod", "Trains run on Sundays", "The service deploys to staging."}}).Items
	want := []record.Standing{record.StandingStale, record.StandingUnknown, record.StandingCurrent}
	if len(got) != len(want) {
		t.Fatalf("%d statements are answered: %+v", len(got), got)
	}
	for i, s := range got {
		if s.Standing != want[i] {
			t.Errorf("%q is %s, want %s", s.Statement, s.Standing, want[i])
		}
	}
	if len(got[0].Now) == 0 || got[0].Now[0].FactID != now.FactID {
		t.Errorf("the record now says %+v", got[0].Now)
	}

	said := called[record.AppendEpisodeResult](t, c, "state_append_episode", args{"task_id": "move", "content": "The service deploys to the moon", "episode_role": "user"})
	if !strings.HasPrefix(said.ContentRef, "sha256:") || said.EpisodeID == "" {
		t.Errorf("what was said is kept as %+v", said)
	}
	// What was said decides nothing.
	if got := called[checked](t, c, "state_check", args{"context": []string{"The service deploys to the moon"}}).Items; got[0].Standing == record.StandingCurrent || got[0].Standing == record.StandingStale {
		t.Errorf("an episode is taken for the record: %+v", got)
	}
}

// TestMCP_stateNothing reads where nothing was ever written: the answers are
// those of an empty record, as long as they get.
func TestMCP_stateNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.agent("Polyphony-Workspace", "fresh", "Polyphony-Agent", "scout")
	type page struct {
		Items []record.CheckedStatement `json:"items"`
		Next  string                    `json:"next"`
	}
	in := args{"context": []string{strings.Repeat("a", 60_000), strings.Repeat("b", 60_000)}}
	first := called[page](t, c, "state_check", in)
	in["cursor"] = first.Next
	second := called[page](t, c, "state_check", in)
	if len(first.Items) != 1 || len(second.Items) != 1 || second.Next != "" || first.Items[0].Standing != record.StandingUnknown || second.Items[0].Statement != strings.Repeat("b", 60_000) {
		t.Errorf("%d and %d statements are answered, next %q and %q", len(first.Items), len(second.Items), first.Next, second.Next)
	}
	refused(t, c, "state_check", args{"context": []string{strings.Repeat("a", record.MaxContentBytes+1)}}, record.ContentTooLarge)
	refused(t, c, "state_claim", args{"task_id": "t", "step": "s"}, record.NotFound)
	if s.memory.Workspaces.Exists("fresh") {
		t.Error("reading made a workspace")
	}
}
