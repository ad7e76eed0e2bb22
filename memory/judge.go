package memory

import (
	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// verdicts is how a proposal relates to the facts of its topic.
type verdicts struct {
	duplicate       *fact
	duplicateReason string
	refined         []related
	contradicted    []related
	suspected       []related
	// loses is the strongest fact that the proposal contradicts and does not
	// beat; then it retires nobody.
	loses *related
}

type related struct {
	fact    *fact
	verdict conflict.Verdict
}

// weigh settles who wins, given how each fact relates to the proposal.
func weigh(p *proposal, facts []*fact, relation func(*fact) conflict.Verdict) verdicts {
	var v verdicts
	mine := strength(p.confidence, p.veracity)
	for _, f := range facts {
		if p.siblings[f.ID] {
			continue
		}
		verdict := relation(f)
		r := related{f, verdict}
		switch verdict.Relation {
		case conflict.Duplicate:
			if v.duplicate == nil || strength(f.Confidence, f.Veracity) > strength(v.duplicate.Confidence, v.duplicate.Veracity) {
				v.duplicate, v.duplicateReason = f, verdict.Reason
			}
		case conflict.Refinement:
			v.refined = append(v.refined, r)
		case conflict.Contradiction:
			v.contradicted = append(v.contradicted, r)
			theirs := strength(f.Confidence, f.Veracity)
			// What is said now is newer, whatever the clock has done since.
			older := p.dated && p.at.Before(f.CreatedAt.Time)
			if lost := !beats(mine, theirs) || older && beats(theirs, mine); lost {
				if v.loses == nil || theirs > strength(v.loses.fact.Confidence, v.loses.fact.Veracity) {
					v.loses = &r
				}
			}
		case conflict.Uncertain:
			v.suspected = append(v.suspected, r)
		}
	}
	return v
}

// status is what becomes of the proposal.
func (v *verdicts) status() record.ProposalStatus {
	switch {
	case v.duplicate != nil:
		return record.StatusReMentioned
	case v.loses != nil:
		return record.StatusSupersededBy
	case len(v.refined) > 0:
		return record.StatusRefined
	}
	return record.StatusCreated
}

// Judgement is what a new statement does to the ones it meets.
type Judgement struct {
	Status record.ProposalStatus
	// Retired are the indexes of the statements that it supersedes, ascending.
	Retired []int
	// Verdicts are how the statements relate to it, in their order.
	Verdicts []conflict.Verdict
}

// Judge tells, without a store, what happens when the candidate is proposed
// beside the existing facts. Confidence is the stored value of each. A nil
// relation compares the texts; otherwise it says how the fact of an index
// relates to the candidate.
func Judge(existing []record.Fact, candidate record.Fact, relation func(i int) conflict.Verdict) Judgement {
	p := &proposal{
		confidence: candidate.Confidence, veracity: candidate.Veracity, at: candidate.CreatedAt,
		parsed: conflict.Parse(conflict.Statement{Content: candidate.Content, Topic: candidate.Topic, Domain: candidate.Domain}),
	}
	out := Judgement{Verdicts: make([]conflict.Verdict, len(existing))}
	facts := make([]*fact, len(existing))
	for i, f := range existing {
		facts[i] = &fact{Fact: f, seq: int64(i)}
		if relation != nil {
			out.Verdicts[i] = relation(i)
		} else {
			out.Verdicts[i] = conflict.Compare(facts[i].statement(), p.parsed)
		}
	}
	v := weigh(p, facts, func(f *fact) conflict.Verdict { return out.Verdicts[f.seq] })
	out.Status = v.status()
	if v.duplicate != nil || v.loses != nil {
		return out
	}
	for i, verdict := range out.Verdicts {
		if verdict.Relation == conflict.Refinement || verdict.Relation == conflict.Contradiction {
			out.Retired = append(out.Retired, i)
		}
	}
	return out
}
