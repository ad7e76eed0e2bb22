package endtoend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// This file holds the four proofs of behaviour.md 11 over the real process, and
// what belongs to them.

func stepOf(task, step string) record.StepRef { return record.StepRef{TaskID: task, Step: step} }

func as(workspace, agent string) record.Caller {
	return record.Caller{Workspace: workspace, Agent: agent}
}

func obligations(t testing.TB, c *workflows.Client, workspace string) []record.Obligation {
	t.Helper()
	return must[[]record.Obligation](t)(c.Obligations(timed(t), caller(workspace), "", false))
}

// taskState is what a task has come to, without ids and times.
func taskState(t testing.TB, folder, workspace string) []string {
	t.Helper()
	s := opened(t, folder, workspace)
	defer func() { _ = s.Close() }()
	var out []string
	err := s.View(t.Context(), func(v *memory.View) error {
		rows, err := v.Obligations("", false, 0, 1000)
		for _, r := range rows {
			o := r.Value
			out = append(out, fmt.Sprintf("%s %s after %q: %s, claim %d by %s, closed by %s with %q, in doubt %v", o.TaskID, o.Step, o.After, o.State, o.Claim, o.ClaimedBy, o.ClosedBy, o.Result, o.InDoubt))
		}
		if err != nil {
			return err
		}
		episodes, err := v.Episodes("", 0, 1000)
		for _, e := range episodes {
			out = append(out, fmt.Sprintf("episode of %s: %q", e.Value.TaskID, e.Value.Content))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// taskCalls are the calls of a task of some steps, each after the one before,
// in order. A call carries its own key, so that it can be made again.
func taskCalls(workspace string, steps int) []func(context.Context, *workflows.Client) error {
	const task = "voyage"
	var calls []func(context.Context, *workflows.Client) error
	add := func(f func(context.Context, *workflows.Client) error) { calls = append(calls, f) }
	name := func(n int) string { return fmt.Sprintf("leg-%d", n) }
	for n := range steps {
		key := func(verb string) record.Caller { return keyed(as(workspace, "scout"), fmt.Sprintf("%s-%d", verb, n)) }
		var after []string
		if n > 0 {
			after = []string{name(n - 1)}
		}
		add(func(ctx context.Context, c *workflows.Client) error {
			_, err := c.StateOpen(ctx, record.OpenObligation{Caller: key("open"), StepRef: stepOf(task, name(n)), After: after})
			return err
		})
		add(func(ctx context.Context, c *workflows.Client) error {
			_, err := c.StateClaim(ctx, record.ClaimObligation{Caller: key("claim"), StepRef: stepOf(task, name(n)), LeaseSeconds: 3600})
			return err
		})
		add(func(ctx context.Context, c *workflows.Client) error {
			_, err := c.AppendEpisode(ctx, record.AppendEpisode{Caller: key("say"), TaskID: task, Content: "Sailed " + name(n)})
			return err
		})
		add(func(ctx context.Context, c *workflows.Client) error {
			in := record.CommitObligation{Caller: key("commit"), StepRef: stepOf(task, name(n)), Result: "moored at " + name(n)}
			if n%2 == 0 {
				_, err := c.CommitObligation(ctx, in)
				return err
			}
			_, err := c.StateCommit(ctx, in)
			return err
		})
	}
	return calls
}

// TestState_killAndResume is the first proof: the worker is killed in the
// middle of calls, which are made again after its restart, and the end is that
// of a run without a kill.
func TestState_killAndResume(t *testing.T) {
	t.Parallel()
	const steps, kills, seed = 12, 6, 11
	p := start(t, t.TempDir())
	for _, call := range taskCalls("whole", steps) {
		if err := call(timed(t), p.client()); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(seed, 1))
	calls := taskCalls("broken", steps)
	points := random.Perm(len(calls))[:kills]
	for i, call := range calls {
		if slices.Contains(points, i) {
			ctx, cancel := context.WithCancel(timed(t))
			answer := make(chan error, 1)
			go func() { answer <- call(ctx, p.client()) }()
			after := time.Duration(random.IntN(25)) * time.Millisecond
			select {
			case err := <-answer:
				answer <- err
			case <-time.After(after):
			}
			p.kill()
			cancel()
			err := <-answer
			t.Logf("killed %v into call %d; it says %v", after, i, record.ErrorCode(err))
			p = start(t, p.data)
		}
		// Acknowledged or not: the same call again is the same call.
		if err := call(timed(t), p.client()); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if code, _ := p.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	whole, broken := taskState(t, p.folder("whole"), "whole"), taskState(t, p.folder("broken"), "broken")
	sameDump(t, "the killed run against the whole one", whole, broken)
	if len(whole) != 2*steps {
		t.Errorf("%d obligations and episodes, want %d", len(whole), 2*steps)
	}
	wantSound(t, p.folder("broken"), "broken")
}

// TestState_sameCallTwice is the second proof: one effect for one key, another
// for another, also after a restart.
func TestState_sameCallTwice(t *testing.T) {
	t.Parallel()
	const workspace = "twice"
	p := start(t, t.TempDir())
	type call struct {
		name string
		run  func(*workflows.Client, string) (record.ObligationResult, error)
		// first is the outcome of the call, other that of the same under another
		// key.
		first, other record.ObligationOutcome
	}
	who := func(key string) record.Caller { return keyed(as(workspace, "scout"), key) }
	pay := stepOf("order-7", "pay")
	calls := []call{
		{"open", func(c *workflows.Client, key string) (record.ObligationResult, error) {
			return c.StateOpen(timed(t), record.OpenObligation{Caller: who("open" + key), StepRef: pay})
		}, record.OutcomeOpened, record.OutcomeExists},
		{"claim", func(c *workflows.Client, key string) (record.ObligationResult, error) {
			return c.StateClaim(timed(t), record.ClaimObligation{Caller: who("claim" + key), StepRef: pay, LeaseSeconds: 3600})
		}, record.OutcomeClaimed, record.OutcomeHeld},
		{"commit", func(c *workflows.Client, key string) (record.ObligationResult, error) {
			return c.StateCommit(timed(t), record.CommitObligation{Caller: who("commit" + key), StepRef: pay, Result: "receipt 41"})
		}, record.OutcomeCommitted, record.OutcomeClosed},
	}
	firsts := make([]record.ObligationResult, len(calls))
	for i, c := range calls {
		firsts[i] = must[record.ObligationResult](t)(c.run(p.client(), ""))
		if firsts[i].Outcome != c.first {
			t.Errorf("%s: %s, want %s", c.name, firsts[i].Outcome, c.first)
		}
		if other := must[record.ObligationResult](t)(c.run(p.client(), "-other")); other.Outcome != c.other {
			t.Errorf("%s under another key: %s, want %s", c.name, other.Outcome, c.other)
		}
	}
	before := dump(t, p.folder(workspace))
	p.kill()
	p = start(t, p.data)
	for i, c := range calls {
		again := must[record.ObligationResult](t)(c.run(p.client(), ""))
		if got, want := asJSON(t, again), asJSON(t, firsts[i]); got != want {
			t.Errorf("%s again says\n%s, first\n%s", c.name, got, want)
		}
	}
	sameDump(t, "after every call again", before, dump(t, p.folder(workspace)))
	_, err := p.client().StateCommit(timed(t), record.CommitObligation{Caller: who("commit"), StepRef: pay, Result: "receipt 42"})
	wantCode(t, err, record.IdempotencyKeyReused)

	// Another step has another key and is another effect.
	other := must[record.ObligationResult](t)(p.client().StateOpen(timed(t), record.OpenObligation{Caller: who(""), StepRef: stepOf("order-7", "refund")}))
	if other.Outcome != record.OutcomeOpened || other.Obligation.Key == firsts[0].Obligation.Key {
		t.Errorf("another step: %+v", other)
	}
}

// TestState_staleFact is the third proof: an agent whose context holds only the
// old version is told, and reconciled to the record.
func TestState_staleFact(t *testing.T) {
	t.Parallel()
	const workspace = "stale"
	p := start(t, t.TempDir())
	c := p.client()
	propose := func(topic, content string) {
		t.Helper()
		must[record.ProposeFactResult](t)(c.ProposeFact(timed(t), record.ProposeFact{Caller: caller(workspace), Domain: "infra", Topic: topic, Content: content, Veracity: "stated"}))
	}
	check := func(held ...string) []record.CheckedStatement {
		t.Helper()
		return must[[]record.CheckedStatement](t)(c.CheckState(timed(t), caller(workspace), held))
	}
	context := []string{"The service deploys to prod", "The gateway listens on port 8080", "The moon is full"}
	for _, s := range check(context...) {
		if s.Standing != record.StandingUnknown {
			t.Errorf("an empty record says of %q: %s", s.Statement, s.Standing)
		}
	}
	propose("deploy target", context[0])
	propose("deploy target", "The service deploys to staging")
	propose("gateway", "The gateway listens on port 9090")

	checked := check(context...)
	want := []record.Standing{record.StandingStale, record.StandingContradicted, record.StandingUnknown}
	for i, s := range checked {
		if s.Standing != want[i] || s.Statement != context[i] {
			t.Errorf("%q is %s, want %s", s.Statement, s.Standing, want[i])
		}
		if len(s.Now) > 0 {
			// The agent takes over what the record says.
			context[i] = s.Now[0].Content
		}
	}
	if !slices.Equal(context, []string{"The service deploys to staging", "The gateway listens on port 9090", "The moon is full"}) {
		t.Errorf("reconciled to %q", context)
	}
	for i, s := range check(context...)[:2] {
		if s.Standing != record.StandingCurrent {
			t.Errorf("after it statement %d is %s: %+v", i, s.Standing, s)
		}
	}
	facts := must[[]record.Fact](t)(c.FactsBySubject(timed(t), caller(workspace), "service"))
	if len(facts) != 1 || facts[0].Content != context[0] {
		t.Errorf("the record on the service: %+v", facts)
	}
}

// TestState_manyAgents is the fourth proof, with 64 agents: one proceeds, the
// others observe its result.
func TestState_manyAgents(t *testing.T) {
	t.Parallel()
	const workspace, agents = "crowd", 64
	p := start(t, t.TempDir())
	c := p.client()
	pay := stepOf("order-7", "pay")
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: pay}))
	results := make([]record.ObligationResult, agents)
	var acted sync.Map
	var all sync.WaitGroup
	began := time.Now()
	for i := range agents {
		all.Go(func() {
			me := as(workspace, fmt.Sprintf("agent-%d", i))
			claim, err := c.StateClaim(timed(t), record.ClaimObligation{Caller: me, StepRef: pay, LeaseSeconds: 3600})
			if err == nil && claim.Outcome == record.OutcomeClaimed {
				acted.Store(me.Agent, true)
				results[i], err = c.StateCommit(timed(t), record.CommitObligation{Caller: me, StepRef: pay, Claim: claim.Obligation.Claim, Result: "paid by " + me.Agent})
			} else if err == nil {
				results[i], err = c.AwaitObligation(timed(t), me, pay)
			}
			if err != nil {
				t.Errorf("%s: %v", me.Agent, err)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	proceeded := 0
	for i, r := range results {
		me := fmt.Sprintf("agent-%d", i)
		_, did := acted.Load(me)
		if did {
			proceeded++
		}
		if (r.Outcome == record.OutcomeCommitted) != did || r.Obligation.State != record.ObligationDone || r.Obligation.Result != results[0].Obligation.Result {
			t.Errorf("%s, who acted: %v, was told %s: %+v", me, did, r.Outcome, r.Obligation)
		}
	}
	if proceeded != 1 {
		t.Errorf("%d agents acted", proceeded)
	}
	t.Logf("%d agents: 1 proceeds, %d observe %q, in %v", agents, agents-1, results[0].Obligation.Result, took.Round(time.Millisecond))
}

// TestState_offersAtOnce: 64 agents commit one obligation without a claim, all
// of them waiting for the step before it.
func TestState_offersAtOnce(t *testing.T) {
	t.Parallel()
	const workspace, agents = "offers", 64
	p := start(t, t.TempDir())
	c := p.client()
	pay, ship := stepOf("order-7", "pay"), stepOf("order-7", "ship")
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: pay}))
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: ship, After: []string{"pay"}}))
	results := make([]record.ObligationResult, agents)
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() {
			me := as(workspace, fmt.Sprintf("agent-%d", i))
			var err error
			if results[i], err = c.CommitObligation(timed(t), record.CommitObligation{Caller: me, StepRef: ship, Result: "sent by " + me.Agent}); err != nil {
				t.Errorf("%s: %v", me.Agent, err)
			}
		})
	}
	eventually(t, callTimeout, "the offers wait", func() bool {
		return one(t, p.folder(workspace), "SELECT sum(awaited) FROM obligations") == "1"
	})
	must[record.ObligationResult](t)(c.StateCommit(timed(t), record.CommitObligation{Caller: as(workspace, "planner"), StepRef: pay}))
	all.Wait()
	won := 0
	for i, r := range results {
		if r.Outcome == record.OutcomeCommitted {
			won++
		}
		if (r.Outcome == record.OutcomeCommitted) != (r.Obligation.ClosedBy == fmt.Sprintf("agent-%d", i)) || r.Obligation.Result != "sent by "+r.Obligation.ClosedBy || r.Obligation.ClosedBy != results[0].Obligation.ClosedBy {
			t.Errorf("agent-%d was told %s: %+v", i, r.Outcome, r.Obligation)
		}
	}
	if won != 1 {
		t.Errorf("%d offers were taken", won)
	}
}

// TestState_chain offers the commits of a chain in any order, a hundred at a
// time; each waits for the one before it. The long form has 1,000 steps.
func TestState_chain(t *testing.T) {
	t.Parallel()
	const workspace, seed = "chain", 3
	length := 100
	if os.Getenv(envLong) != "" {
		length = 1000
	}
	p := start(t, t.TempDir())
	c := p.client()
	name := func(n int) string { return fmt.Sprintf("link-%04d", n) }
	random := rand.New(rand.NewPCG(seed, 1))
	turns := make(chan struct{}, 16)
	var opening, all sync.WaitGroup
	for _, n := range random.Perm(length) {
		opening.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			in := record.OpenObligation{Caller: as(workspace, "planner"), StepRef: stepOf("chain", name(n))}
			if n > 0 {
				in.After = []string{name(n - 1)}
			}
			if _, err := c.StateOpen(timed(t), in); err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	began := time.Now()
	for first := 0; first < length; first += 100 {
		for _, n := range random.Perm(100) {
			all.Go(func() {
				ref := stepOf("chain", name(first+n))
				out, err := c.CommitObligation(timed(t), record.CommitObligation{Caller: as(workspace, "scout"), StepRef: ref, Result: ref.Step})
				if err != nil || out.Outcome != record.OutcomeCommitted {
					t.Errorf("%s: %s, %v", ref.Step, out.Outcome, err)
				}
			})
		}
		all.Wait()
	}
	t.Logf("a chain of %d, offered in any order, a hundred at a time, in %v", length, time.Since(began).Round(time.Millisecond))
	steps := rows(t, p.folder(workspace), "SELECT step FROM obligations WHERE state = 'done' ORDER BY closed_at, step")
	want := make([]string, length)
	for n := range want {
		want[n] = name(n)
	}
	if !slices.Equal(steps, want) {
		t.Errorf("%d of %d steps are done, in the order %.200q", len(steps), length, steps)
	}
}

// TestState_deadlineWhileDown: a deadline passes while no worker is there; the
// run that waits says so on its return, before anybody asks.
func TestState_deadlineWhileDown(t *testing.T) {
	t.Parallel()
	const workspace = "late"
	p := start(t, t.TempDir())
	pay, ship := stepOf("order-7", "pay"), stepOf("order-7", "ship")
	due := record.At(time.Now().Add(4 * time.Second))
	must[record.ObligationResult](t)(p.client().StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: pay, Deadline: due}))
	must[record.ObligationResult](t)(p.client().StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: ship, After: []string{"pay"}}))
	ctx, cancel := context.WithCancel(timed(t))
	gone := make(chan error, 2)
	go func() {
		_, err := p.client().AwaitObligation(ctx, as(workspace, "scout"), pay)
		gone <- err
	}()
	go func() {
		_, err := p.client().CommitObligation(ctx, record.CommitObligation{Caller: as(workspace, "scout"), StepRef: ship})
		gone <- err
	}()
	folder := p.folder(workspace)
	eventually(t, callTimeout, "both wait", func() bool { return one(t, folder, "SELECT sum(awaited) FROM obligations") == "2" })
	p.kill()
	cancel()
	for range 2 {
		wantCode(t, <-gone, record.Unavailable)
	}
	eventually(t, time.Minute, "the deadline passes", func() bool { return time.Now().After(due.Time) })
	if state := one(t, folder, "SELECT state FROM obligations WHERE step = 'pay'"); state != "open" {
		t.Fatalf("while the worker was down the step became %s", state)
	}
	p = start(t, p.data)
	eventually(t, callTimeout, "it is expired on return", func() bool {
		return one(t, folder, "SELECT state FROM obligations WHERE step = 'pay'") == "expired"
	})
	out := must[record.ObligationResult](t)(p.client().AwaitObligation(timed(t), as(workspace, "mason"), pay))
	if out.Obligation.State != record.ObligationExpired || out.Obligation.ClosedAt != due || out.Outcome != record.OutcomeClosed {
		t.Errorf("%+v", out)
	}
	late := must[record.ObligationResult](t)(p.client().StateCommit(timed(t), record.CommitObligation{Caller: as(workspace, "scout"), StepRef: pay, Result: "late"}))
	if late.Outcome != record.OutcomeClosed || late.Obligation.State != record.ObligationExpired {
		t.Errorf("a late commit: %+v", late)
	}
	_, err := p.client().CommitObligation(timed(t), record.CommitObligation{Caller: as(workspace, "scout"), StepRef: ship})
	if e := wantCode(t, err, record.OutOfOrder); !slices.Equal(e.Missing, []string{"pay"}) {
		t.Errorf("what comes after it: %+v", e)
	}
}

// TestState_circle: a circle of steps is refused by name, and the steps there
// were stay.
func TestState_circle(t *testing.T) {
	t.Parallel()
	const workspace = "circle"
	p := start(t, t.TempDir())
	c := p.client()
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: stepOf("order-7", "ship"), After: []string{"pay"}}))
	_, err := c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: stepOf("order-7", "pay"), After: []string{"ship"}})
	if e := wantCode(t, err, record.InvalidArgument); e.Field != "after" {
		t.Errorf("%+v", e)
	}
	_, err = c.StateClaim(timed(t), record.ClaimObligation{Caller: as(workspace, "scout"), StepRef: stepOf("order-7", "ship")})
	if e := wantCode(t, err, record.OutOfOrder); !slices.Equal(e.Missing, []string{"pay"}) {
		t.Errorf("%+v", e)
	}
	if all := obligations(t, c, workspace); len(all) != 1 {
		t.Errorf("%d obligations, want 1", len(all))
	}
}

// TestState_cancelledRun: an operator cancels the run that waits. Nothing is
// claimed by it, whoever waited is told, and the next caller starts it anew.
func TestState_cancelledRun(t *testing.T) {
	t.Parallel()
	const workspace = "stopped"
	p := start(t, t.TempDir())
	c := p.client()
	pay := stepOf("order-7", "pay")
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: pay, After: []string{"quote"}}))
	waits := func() chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := c.CommitObligation(timed(t), record.CommitObligation{Caller: as(workspace, "scout"), StepRef: pay, Result: "receipt 41"})
			answer <- err
		}()
		return answer
	}
	first := waits()
	eventually(t, callTimeout, "the run waits", func() bool {
		return one(t, p.folder(workspace), "SELECT awaited FROM obligations") == "1"
	})
	if err := p.temporal.CancelWorkflow(timed(t), workflows.ObligationID(workspace, pay), ""); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-first, record.Unavailable)
	if o := obligations(t, c, workspace)[0]; o.State != record.ObligationOpen || o.Claim != 0 {
		t.Errorf("after the cancellation: %+v", o)
	}
	second := waits()
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: stepOf("order-7", "quote")}))
	must[record.ObligationResult](t)(c.StateCommit(timed(t), record.CommitObligation{Caller: as(workspace, "planner"), StepRef: stepOf("order-7", "quote")}))
	if err := <-second; err != nil {
		t.Error(err)
	}
	if o := obligations(t, c, workspace)[0]; o.State != record.ObligationDone || o.Result != "receipt 41" {
		t.Errorf("after the second wait: %+v", o)
	}
}

// TestState_large: the longest names, the most steps before one, and the
// largest result cross the engine whole.
func TestState_large(t *testing.T) {
	t.Parallel()
	const workspace = "large"
	p := start(t, t.TempDir())
	c := p.client()
	name := func(n int) string {
		tag := fmt.Sprintf("گام %03d ", n)
		return tag + strings.Repeat("x", record.MaxNameBytes-len(tag))
	}
	after := make([]string, record.MaxAfter)
	for n := range after {
		after[n] = name(n)
	}
	task := strings.Repeat("t", record.MaxNameBytes)
	last := stepOf(task, name(record.MaxAfter))
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: last, After: after}))
	_, err := c.StateClaim(timed(t), record.ClaimObligation{Caller: as(workspace, "scout"), StepRef: last})
	if e := wantCode(t, err, record.OutOfOrder); !slices.Equal(e.Missing, after) {
		t.Errorf("%d steps are named, want %d", len(e.Missing), len(after))
	}
	first := stepOf(task, name(0))
	must[record.ObligationResult](t)(c.StateOpen(timed(t), record.OpenObligation{Caller: as(workspace, "planner"), StepRef: first}))
	result := strings.Repeat("ر", record.MaxContentBytes/len("ر"))
	out := must[record.ObligationResult](t)(c.CommitObligation(timed(t), record.CommitObligation{Caller: as(workspace, "scout"), StepRef: first, Result: result}))
	if out.Outcome != record.OutcomeCommitted || out.Obligation.Result != result {
		t.Errorf("%s with %d bytes, want %d", out.Outcome, len(out.Obligation.Result), len(result))
	}
	_, err = c.CommitObligation(timed(t), record.CommitObligation{Caller: as(workspace, "scout"), StepRef: first, Result: result + "x"})
	wantCode(t, err, record.ContentTooLarge)
}
