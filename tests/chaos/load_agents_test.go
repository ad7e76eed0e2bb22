package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// agentLane is what one agent of a workspace does for itself: notes, policies
// of its own domain, tasks with obligations, and what was said in them.
type agentLane struct {
	of, agent string
	random    *rand.Rand
	made      int
	held      held
	// notes and version are the agent's page as it must be.
	notes   string
	version int64
	// policy is the policy that stands, rules counts those made.
	policy string
	rules  int
	// task is the number of the task under way, step what comes next in it.
	task, step int
	// steps are the obligations as they must be, by task and step.
	steps map[record.StepRef]stepState
	said  int
	// misread is the first page that was read and was not what was written.
	misread string
}

// stepState is how an obligation stands.
type stepState struct {
	State  record.ObligationState
	Claim  int64
	Result string
}

func (l *agentLane) name() string      { return l.of + "/" + l.agent }
func (l *agentLane) workspace() string { return l.of }

func (l *agentLane) caller() record.Caller {
	l.made++
	return record.Caller{Workspace: l.of, Agent: l.agent, Role: "coder", Key: fmt.Sprintf("%s-%d", l.agent, l.made)}
}

func (l *agentLane) next() call {
	// The domain of the agent's rules is made first, before lanes interleave.
	if l.made == 0 {
		return l.propose()
	}
	switch dice := l.random.IntN(100); {
	case dice < 24:
		return l.observe()
	case dice < 30:
		return l.write()
	case dice < 33:
		return l.read()
	case dice < 40:
		return l.propose()
	case dice < 44:
		return l.retire()
	case dice < 54:
		return l.speak()
	}
	return l.obligation()
}

func (l *agentLane) observe() call {
	in := record.RecordObservation{Caller: l.caller()}
	in.Text = fmt.Sprintf("Observation %d of %s: the crane swings %d degrees", l.made, l.agent, l.random.IntN(360))
	return asked(record.KindRecordObservation, in.Caller, in, (*workflows.Client).RecordObservation, func(out record.RecordObservationResult) {
		l.held.observations[out.ObservationID] = true
		if l.notes != "" && !strings.HasSuffix(l.notes, "\n") {
			l.notes += "\n"
		}
		l.notes += in.Text + "\n"
		l.version++
	})
}

// write replaces the page at the version that it must have. One time in four
// it names another version, and is refused.
func (l *agentLane) write() call {
	version := l.version
	wrong := l.random.IntN(4) == 0
	if wrong {
		version += 7
	}
	in := record.UpdateNotes{Caller: l.caller(), ExpectedVersion: &version}
	in.Text = fmt.Sprintf("Page %d of %s\nیادداشت %d", l.made, l.agent, l.random.IntN(1000))
	c := asked(record.KindUpdateNotes, in.Caller, in, (*workflows.Client).UpdateNotes, func(record.UpdateNotesResult) {
		l.notes = in.Text
		l.version++
	})
	if wrong {
		c.refusal = record.VersionConflict
	}
	return c
}

// read reads the page, which must be what was written.
func (l *agentLane) read() call {
	caller := record.Caller{Workspace: l.of, Agent: l.agent, Role: "coder"}
	return call{
		kind: record.KindRead,
		make: func(ctx context.Context, c *workflows.Client) (any, error) { return c.Notes(ctx, caller) },
		took: func(answer any) {
			n := answer.(record.Notes)
			if l.misread == "" && (n.Text != l.notes || n.Version != l.version) {
				l.misread = fmt.Sprintf("%s read its page at version %d with %d bytes, and had written version %d with %d", l.name(), n.Version, len(n.Text), l.version, len(l.notes))
			}
		},
	}
}

func (l *agentLane) domain() string { return "rules of " + l.agent }

func (l *agentLane) propose() call {
	l.rules++
	in := record.ProposePolicy{Caller: l.caller(), Domain: l.domain(), Rule: fmt.Sprintf("Check rope %d before lifting.", l.rules)}
	return asked(record.KindProposePolicy, in.Caller, in, (*workflows.Client).ProposePolicy, func(out record.PolicyResult) {
		l.held.policies[out.PolicyID] = true
		l.policy = out.PolicyID
	})
}

// retire puts another rule in the place of the one that stands.
func (l *agentLane) retire() call {
	l.rules++
	in := record.SupersedePolicy{Caller: l.caller(), PolicyID: l.policy, Rule: fmt.Sprintf("Check rope %d twice.", l.rules), Reason: "a rope broke"}
	return asked(record.KindSupersedePolicy, in.Caller, in, (*workflows.Client).SupersedePolicy, func(out record.PolicyResult) {
		l.held.policies[out.ReplacementID] = true
		l.policy = out.ReplacementID
	})
}

func (l *agentLane) taskID() string { return fmt.Sprintf("%s-voyage-%d", l.agent, l.task) }

func (l *agentLane) speak() call {
	l.said++
	in := record.AppendEpisode{Caller: l.caller(), TaskID: l.taskID(), EpisodeRole: "user", Content: fmt.Sprintf("Word %d: bring %d ropes", l.said, l.random.IntN(9))}
	return asked(record.KindAppendEpisode, in.Caller, in, (*workflows.Client).AppendEpisode, func(out record.AppendEpisodeResult) {
		l.held.episodes[out.EpisodeID] = true
	})
}

// The steps of a task, in the order in which its calls are made: each is
// opened, one is claimed too early, and they end in four ways.
const (
	stepLoad  = "load"
	stepSail  = "sail"
	stepMoor  = "moor"
	stepDance = "dance"
)

// obligation makes the next call of the agent's task.
func (l *agentLane) obligation() call {
	ref := func(step string) record.StepRef { return record.StepRef{TaskID: l.taskID(), Step: step} }
	at := l.step
	if l.step++; l.step == 12 {
		l.step = 0
	}
	switch at {
	case 0:
		return l.open(ref(stepLoad))
	case 1:
		return l.open(ref(stepSail), stepLoad)
	case 2:
		return l.open(ref(stepMoor), stepSail, stepLoad)
	case 3:
		c := l.claim(ref(stepMoor))
		c.refusal = record.OutOfOrder
		return c
	case 4:
		return l.claim(ref(stepLoad))
	case 5:
		return l.commit(ref(stepLoad))
	case 6:
		return l.claim(ref(stepSail))
	case 7:
		return l.commitWaiting(ref(stepSail))
	case 8:
		return l.commit(ref(stepMoor))
	case 9:
		return l.open(ref(stepDance), stepMoor)
	case 10:
		return l.claim(ref(stepDance))
	}
	c := l.end(ref(stepDance))
	l.task++
	return c
}

// took records how an obligation stands after an answer.
func (l *agentLane) took(out record.ObligationResult) {
	if l.steps == nil {
		l.steps = map[record.StepRef]stepState{}
	}
	o := out.Obligation
	l.held.obligations[o.ID] = true
	l.steps[o.StepRef] = stepState{o.State, o.Claim, o.Result}
}

func (l *agentLane) open(ref record.StepRef, after ...string) call {
	in := record.OpenObligation{Caller: l.caller(), StepRef: ref, Kind: "voyage", After: after}
	return asked(record.KindOpenObligation, in.Caller, in, (*workflows.Client).StateOpen, l.took)
}

// claim takes a step for a day, longer than any run.
func (l *agentLane) claim(ref record.StepRef) call {
	in := record.ClaimObligation{Caller: l.caller(), StepRef: ref, LeaseSeconds: record.MaxLeaseSeconds}
	return asked(record.KindClaimObligation, in.Caller, in, (*workflows.Client).StateClaim, l.took)
}

func (l *agentLane) commit(ref record.StepRef) call {
	in := record.CommitObligation{Caller: l.caller(), StepRef: ref, Result: fmt.Sprintf("receipt %d", l.random.IntN(10_000))}
	return asked(record.KindCommitObligation, in.Caller, in, (*workflows.Client).StateCommit, l.took)
}

// commitWaiting commits through the run that waits for the step's turn.
func (l *agentLane) commitWaiting(ref record.StepRef) call {
	in := record.CommitObligation{Caller: l.caller(), StepRef: ref, Result: fmt.Sprintf("receipt %d", l.random.IntN(10_000))}
	c := asked(record.KindObligation, in.Caller, in, (*workflows.Client).CommitObligation, l.took)
	c.ledger = workflows.LedgerKey(workflows.ObligationID(l.of, ref), in.Key)
	return c
}

func (l *agentLane) end(ref record.StepRef) call {
	if l.task%2 == 0 {
		in := record.FailObligation{Caller: l.caller(), StepRef: ref, Reason: "the band is ill"}
		return asked(record.KindFailObligation, in.Caller, in, (*workflows.Client).StateFail, l.took)
	}
	in := record.CancelObligation{Caller: l.caller(), StepRef: ref, Reason: "no time"}
	return asked(record.KindCancelObligation, in.Caller, in, (*workflows.Client).StateCancel, l.took)
}
