package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.uber.org/fx"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

func nowUTC() time.Time { return time.Now().UTC() }

// tour plays a short story through the real workflows once everything runs.
type tour struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newTour(lc fx.Lifecycle, c *connection, _ *announcement, cfg Config, stdout io.Writer, log *slog.Logger) *tour {
	t := &tour{done: make(chan struct{})}
	if !cfg.Tour {
		return t
	}
	lc.Append(fx.StartStopHook(func(context.Context) error {
		ctx, cancel := context.WithCancel(context.Background())
		t.cancel = cancel
		go func() {
			defer close(t.done)
			s := &story{out: stdout, client: workflows.NewClient(c.client, cfg.Shards)}
			if err := s.play(ctx); err != nil {
				log.Error("the tour stopped", "error", err)
			}
		}()
		return nil
	}, func(context.Context) error {
		t.cancel()
		<-t.done
		return nil
	}))
	return t
}

// story tells the tour and keeps what its scenes refer to.
type story struct {
	out    io.Writer
	client *workflows.Client
	caller record.Caller
	err    error
}

// say prints a line of the story.
func (s *story) say(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.out, format+"\n", args...)
	}
}

func (s *story) play(ctx context.Context) error {
	s.caller = record.Caller{Workspace: "tour", Agent: "scout", Role: "coder"}
	if err := s.freshWorkspace(ctx); err != nil {
		return err
	}
	s.say("A tour of polyphony, in the workspace %q", s.caller.Workspace)
	for _, scene := range []func(context.Context){s.facts, s.policy, s.notes, s.meeting, s.maintenance, s.preamble} {
		scene(ctx)
		if s.err != nil {
			return s.err
		}
	}
	s.next()
	return s.err
}

// freshWorkspace takes "tour", or "tour-2" and so on when that is there.
func (s *story) freshWorkspace(ctx context.Context) error {
	taken, err := s.client.Workspaces(ctx, s.caller)
	if err != nil {
		return err
	}
	for n := 2; slices.Contains(taken, s.caller.Workspace); n++ {
		s.caller.Workspace = fmt.Sprintf("tour-%d", n)
	}
	return nil
}

func (s *story) propose(ctx context.Context, agent, domain, topic, content, veracity string) {
	if s.err != nil {
		return
	}
	caller := s.caller
	caller.Agent = agent
	var res record.ProposeFactResult
	res, s.err = s.client.ProposeFact(ctx, record.ProposeFact{Caller: caller, Domain: domain, Topic: topic, Content: content, Veracity: veracity})
	if s.err != nil {
		return
	}
	s.say("  %-6s proposes  %q", agent, content)
	s.say("         %s, confidence %.2f", res.Status, res.Confidence)
	for _, c := range res.Conflicts {
		s.say("         %s: %s", c.Kind, c.Reason)
	}
}

func (s *story) facts(ctx context.Context) {
	s.say("\n1. Facts: what is true, with conflicts found when they are written")
	s.propose(ctx, "scout", "infra", "cache", "We use Redis", "")
	s.propose(ctx, "scout", "infra", "cache", "We use Redis 7 for sessions", "")
	s.propose(ctx, "scout", "infra", "deploy target", "The service deploys to prod", "")
	s.propose(ctx, "mason", "infra", "deploy target", "The service deploys to staging", "stated")
	s.propose(ctx, "mason", "infra", "ports", "The gateway listens on port 8080", "")
	s.propose(ctx, "scout", "infra", "ports", "the gateway listens on port 8080.", "stated")
}

func (s *story) policy(ctx context.Context) {
	s.say("\n2. Policies: what agents should do, in every preamble")
	_, s.err = s.client.ProposePolicy(ctx, record.ProposePolicy{Caller: s.caller, Domain: "engineering", Rule: "Run the test suite before you push.", RequiredRole: "coder"})
	s.say("  - [engineering] Run the test suite before you push. (for role coder)")
}

func (s *story) notes(ctx context.Context) {
	if s.err == nil {
		_, s.err = s.client.RecordObservation(ctx, record.RecordObservation{Caller: s.caller, Text: "Halfway through moving the session store; the gateway is next."})
	}
	if s.err == nil {
		_, s.err = s.client.Remember(ctx, record.Remember{Caller: s.caller, SessionID: "monday", Content: "The staging database has a read replica in Dublin", Domain: "infra", Topic: "databases"})
	}
	s.say("\n3. Working memory: what one agent was in the middle of")
	s.say("  scout notes an observation and remembers something for later")
}

func (s *story) meeting(ctx context.Context) {
	s.say("\n4. A meeting, captured twice: the second time nothing is written")
	m := record.CaptureMeeting{Caller: s.caller, MeetingID: "weekly-12", Title: "Weekly", Revision: 1, Decisions: []record.Decision{
		{Text: "Session data moves to the new cluster in March.", Topic: "sessions"},
		{Text: "The gateway keeps its port.", Topic: "gateway"},
	}}
	s.capture(ctx, m, "revision 1")
	s.capture(ctx, m, "revision 1 again, the same answer")
	m.Revision, m.Decisions = 2, m.Decisions[:1]
	s.capture(ctx, m, "revision 2 drops one")
}

func (s *story) capture(ctx context.Context, m record.CaptureMeeting, title string) {
	if s.err != nil {
		return
	}
	var r record.MeetingReport
	r, s.err = s.client.CaptureMeetingDecisions(ctx, m)
	s.say("  %s: %d added, %d confirmed, %d withdrawn; decisions that stand: %d", title, r.Added, r.ReMentioned, r.Withdrawn, len(r.FactIDs))
}

func (s *story) maintenance(ctx context.Context) {
	if s.err != nil {
		return
	}
	s.say("\n5. Consolidation: session items become facts, on demand")
	var r record.ConsolidationReport
	r, s.err = s.client.ConsolidateMemory(ctx, record.Consolidate{Caller: s.caller}, nil)
	s.say("  considered %d, promoted %d, merged %d, archived %d, expired %d", r.Considered, r.Promoted, r.Merged, r.Archived, r.Expired)
}

func (s *story) preamble(ctx context.Context) {
	if s.err != nil {
		return
	}
	s.say("\n6. Dispatch: what scout gets with its next task")
	task := "Move the session store behind the gateway to the staging databases"
	var p record.Preamble
	p, s.err = s.client.AssemblePreamble(ctx, record.Dispatch{Caller: s.caller, Task: task, Context: []string{"The service deploys to prod"}})
	if s.err != nil {
		return
	}
	s.say("  task: %s\n", task)
	for line := range strings.Lines(p.Text) {
		s.say("  | %s", strings.TrimSuffix(line, "\n"))
	}
	for _, stale := range p.Stale {
		s.say("\n  stale in scout's context: %q; now: %q", stale.Statement, stale.Current)
	}
}

func (s *story) next() {
	w := s.caller.Workspace
	s.say("\nThe worker keeps running. Try next, in another terminal:")
	s.say("  go run ./starter -w %s search \"which port does the gateway use\"", w)
	s.say("  go run ./starter -w %s conflicts", w)
	s.say("  go run ./starter -w %s dispatch --agent scout --task \"Move the session store to the new cluster\"", w)
}
