package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// factLane is everything that touches a workspace's facts: proposals of several
// agents, repeats, changes of mind, meetings, session items and maintenance.
// The order of these decides what they come to, so they are one lane.
type factLane struct {
	of     string
	random *rand.Rand
	made   int
	held   held
	// told are the statements made, in order, with the fact that each became.
	told []statement
	// retired are the facts that a supersession retired.
	retired  []string
	meetings int
	// minutes are the decisions of the meeting that goes on.
	minutes  []record.Decision
	revision int64
}

type statement struct {
	topic, content, fact string
	thing                int
}

func (l *factLane) name() string      { return l.of + "/facts" }
func (l *factLane) workspace() string { return l.of }

// caller is one of the agents, with the next key.
func (l *factLane) caller() record.Caller {
	l.made++
	return record.Caller{Workspace: l.of, Agent: fmt.Sprintf("scout-%d", l.random.IntN(3)), Role: "coder", Key: fmt.Sprintf("facts-%d", l.made)}
}

// say words a statement about a thing, every fifth in Persian.
func say(thing, number int) (topic, content string) {
	goods := []string{"barley", "copper", "dates", "felt", "glass", "honey", "indigo", "linen", "olives", "pepper", "salt", "timber"}
	switch {
	case thing%5 == 4:
		return fmt.Sprintf("دروازه %d", thing), fmt.Sprintf("دروازه %d ساعت %d باز می‌شود", thing, number)
	case thing%5 == 3:
		return fmt.Sprintf("store %d", thing), fmt.Sprintf("Store %d keeps %s", thing, goods[number%len(goods)])
	}
	return fmt.Sprintf("gate %d", thing), fmt.Sprintf("Gate %d listens on port %d", thing, 8000+number)
}

func (l *factLane) next() call {
	dice := l.random.IntN(100)
	// Some verbs need what earlier ones made.
	if len(l.told) < 4 {
		dice = 0
	}
	switch {
	case dice < 32:
		topic, content := say(len(l.told), l.random.IntN(50))
		return l.propose(statement{topic: topic, content: content, thing: len(l.told)})
	case dice < 54:
		// The same again, in another spelling.
		s := l.told[l.random.IntN(len(l.told))]
		if l.random.IntN(2) == 0 {
			s.content = strings.ToLower(s.content) + "."
		}
		return l.propose(s)
	case dice < 66:
		s := l.told[l.random.IntN(len(l.told))]
		s.topic, s.content = say(s.thing, l.random.IntN(50))
		return l.propose(s)
	case dice < 71:
		s := l.told[l.random.IntN(len(l.told))]
		s.content += " for the night shift"
		return l.propose(s)
	case dice < 79:
		return l.remember()
	case dice < 83:
		return l.supersede()
	case dice < 86 && len(l.retired) > 0:
		return l.restore()
	case dice < 93:
		return l.meet()
	case dice < 97:
		return l.maintain(record.KindConsolidate, func(ctx context.Context, c *workflows.Client, caller record.Caller) (any, error) {
			return c.ConsolidateMemory(ctx, record.Consolidate{Caller: caller}, nil)
		})
	}
	return l.maintain(record.KindHarmonize, func(ctx context.Context, c *workflows.Client, caller record.Caller) (any, error) {
		return c.HarmonizeMemory(ctx, record.Harmonize{Caller: caller}, nil)
	})
}

func (l *factLane) propose(s statement) call {
	in := record.ProposeFact{Caller: l.caller(), Domain: "yard", Topic: s.topic, Content: s.content}
	if l.random.IntN(4) == 0 {
		in.Veracity = string(record.Stated)
	}
	return asked(record.KindProposeFact, in.Caller, in, (*workflows.Client).ProposeFact, func(out record.ProposeFactResult) {
		l.held.facts[out.FactID] = true
		if out.Status == record.StatusReMentioned {
			l.held.mentions++
		}
		s.fact = out.FactID
		l.told = append(l.told, s)
	})
}

// remember keeps a session item of its own topic, so that its promotion is a
// new fact whatever else was said.
func (l *factLane) remember() call {
	n := len(l.held.items)
	in := record.Remember{Caller: l.caller(), Content: fmt.Sprintf("Crane %d lifts %d tons", n, l.random.IntN(50)), Domain: "cranes", Topic: fmt.Sprintf("crane %d", n)}
	return asked(record.KindRemember, in.Caller, in, (*workflows.Client).Remember, func(out record.RememberResult) {
		l.held.items[out.ItemID] = true
	})
}

func (l *factLane) supersede() call {
	a, b := l.told[l.random.IntN(len(l.told))], l.told[l.random.IntN(len(l.told))]
	in := record.SupersedeFact{Caller: l.caller(), Old: a.fact, New: b.fact, Reason: "the yard was rebuilt"}
	c := asked(record.KindSupersedeFact, in.Caller, in, (*workflows.Client).SupersedeFact, func(out record.SupersedeFactResult) {
		l.retired = append(l.retired, out.Old)
	})
	c.mayRefuse = record.SupersedeInvalid
	return c
}

func (l *factLane) restore() call {
	in := record.RestoreFact{Caller: l.caller(), FactID: l.retired[l.random.IntN(len(l.retired))], Reason: "it was right after all"}
	c := asked(record.KindRestoreFact, in.Caller, in, (*workflows.Client).RestoreFact, func(record.RestoreFactResult) {})
	c.mayRefuse = record.SupersedeInvalid
	return c
}

// meet captures the next revision of a meeting: some decisions stay, one goes,
// one is new. After three revisions another meeting begins.
func (l *factLane) meet() call {
	if l.revision == 3 || l.meetings == 0 {
		l.meetings++
		l.revision, l.minutes = 0, nil
	}
	l.revision++
	if len(l.minutes) > 1 {
		l.minutes = l.minutes[1:]
	}
	for len(l.minutes) < 4 {
		n := int(l.revision)*10 + len(l.minutes)
		l.minutes = append(l.minutes, record.Decision{Topic: fmt.Sprintf("quay %d of meeting %d", n, l.meetings), Text: fmt.Sprintf("Quay %d gets %d bollards", n, l.random.IntN(30)), DecidedBy: "the board"})
	}
	caller := l.caller()
	in := record.CaptureMeeting{
		Caller: caller, MeetingID: fmt.Sprintf("board-%d", l.meetings), Title: "The harbour board", Revision: l.revision,
		HeldAt: record.At(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)), Decisions: append([]record.Decision{}, l.minutes...),
	}
	return call{
		kind: record.KindCaptureMeeting,
		make: func(ctx context.Context, c *workflows.Client) (any, error) { return c.CaptureMeetingDecisions(ctx, in) },
		took: func(answer any) {
			out := answer.(record.MeetingReport)
			l.held.mentions += out.ReMentioned
			for _, id := range out.FactIDs {
				l.held.facts[id] = true
			}
		},
	}
}

func (l *factLane) maintain(kind string, run func(context.Context, *workflows.Client, record.Caller) (any, error)) call {
	caller := l.caller()
	return call{
		kind: kind, reports: true,
		make: func(ctx context.Context, c *workflows.Client) (any, error) { return run(ctx, c, caller) },
		took: func(any) {},
	}
}
