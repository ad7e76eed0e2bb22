package conflict

import "fmt"

// Compare tells how the newer statement relates to the older one.
//
// The rules go from the certain to the doubtful: equal texts; denials; what
// sets two statements apart (a past that ended, a report, a plan); then the two
// are aligned word by word, and what is left over on either side decides.
func Compare(old, new *Parsed) Verdict {
	if old.repo != new.repo && old.domain != new.domain {
		return Verdict{Compatible, "other-repository", "the statements belong to different repositories"}
	}
	sameTopic := old.topic == new.topic && old.domain == new.domain
	if old.key == new.key {
		if !sameTopic && len(new.tokens) < ownSubject {
			return Verdict{Compatible, "other-topic", "the words are the same but the topics differ, and the statement leans on its topic"}
		}
		return Verdict{Duplicate, "same-text", "both statements have the same words"}
	}
	if len(old.tokens) == 0 || len(new.tokens) == 0 {
		return none()
	}
	if !sameTopic && (len(old.tokens) < ownSubject || len(new.tokens) < ownSubject) {
		return Verdict{Compatible, "other-topic", "the topics differ, and a statement this short leans on its topic"}
	}
	if v, ok := denial(old, new); ok {
		return v
	}
	if v, ok := apart(old, new); ok {
		return v
	}
	v := none()
	if shared := common(old.tokens, new.tokens); shared > 0 && shared*3 >= len(old.tokens) {
		c := comparison{old: old, new: new, shared: shared, al: align(old.tokens, new.tokens)}
		v = c.judge()
	}
	if v.Relation == Compatible || v.Relation == Uncertain {
		if s, ok := sameInAnyOrder(old, new); ok {
			v = s
		} else if s, ok := member(old, new); ok && sameTopic {
			v = s
		}
	}
	if _, open := unsettled[v.Rule]; open && v.Relation == Compatible && sameTopic {
		if s, ok := suspect(old, new); ok {
			v = s
		}
	}
	if old.capped || new.capped {
		switch v.Relation {
		case Duplicate, Refinement, Contradiction:
			return Verdict{Uncertain, "too-long", "the statements are too long to be compared to the end; as far as they were read: " + v.Reason}
		}
	}
	return v
}

// unsettled are the rules that call statements compatible for want of evidence
// and not by evidence: a sign of opposition outweighs them.
var unsettled = set("different-matters other-subject less-specific other-scope narrower-subject")

// ownSubject is how many content words a statement needs to be understood
// without its topic.
const ownSubject = 3

func none() Verdict {
	return Verdict{Compatible, "different-matters", "the statements share too little to bear on each other"}
}

// denial handles "it is not true that F" against F.
func denial(old, new *Parsed) (Verdict, bool) {
	d, f := new.denied, old
	if d == nil {
		d, f = old.denied, new
	}
	if d == nil || (old.denied != nil && new.denied != nil) {
		return Verdict{}, false
	}
	if f.key == d.key {
		return Verdict{Contradiction, "denial", "one statement says that the other is not true"}, true
	}
	if len(d.tokens) == 0 || len(f.tokens) == 0 {
		return Verdict{}, false
	}
	al := align(f.tokens, d.tokens)
	if len(al.pairs) == len(f.tokens) && len(f.tokens) > 1 && !f.capped {
		return Verdict{Contradiction, "denial", fmt.Sprintf("one statement says that %s is not true", phrase(f.tokens))}, true
	}
	return Verdict{}, false
}

// apart finds what keeps two statements from touching whatever else they say.
func apart(old, new *Parsed) (Verdict, bool) {
	switch {
	case old.ended != new.ended:
		return Verdict{Compatible, "succession", fmt.Sprintf("%q says that one statement is about the past", old.ended+new.ended)}, true
	case old.report != new.report:
		return Verdict{Compatible, "report", fmt.Sprintf("one statement reports what somebody said (%s) and asserts nothing", old.report+new.report)}, true
	case old.modal != new.modal:
		return Verdict{Compatible, "modality", fmt.Sprintf("%q makes one statement a plan or a guess", old.modal+new.modal)}, true
	case old.question != new.question:
		return Verdict{Compatible, "question", "one of the two is a question"}, true
	case new.reversal == "" && (old.past && !old.present && new.present && !new.past || new.past && !new.present && old.present && !old.past):
		return Verdict{Compatible, "tense", "one statement speaks of the past, the other of the present"}, true
	}
	return Verdict{}, false
}

// comparison is two statements side by side.
type comparison struct {
	old, new *Parsed
	shared   int
	al       alignment
}

func (c *comparison) judge() Verdict {
	if len(c.old.tokens) == len(c.new.tokens) && c.shared == len(c.old.tokens) && len(c.al.hunks) > 0 {
		return c.reordered()
	}
	t := c.sort()
	if v, ok := c.reorderedValue(); ok {
		return v
	}
	switch {
	case len(c.al.hunks) == 0:
		return c.sameWords(t)
	case len(t.words) == 0 && len(t.values) == 0 && len(t.opposites) == 0 && t.deletions == 0:
		return c.extended(t)
	case len(t.words) == 0 && len(t.values) > 0 && len(t.opposites) == 0:
		return c.otherValue(t)
	case len(t.words) == 0 && len(t.opposites) == 1 && len(t.values) == 0 && t.deletions == 0:
		return c.opposite(t)
	case len(t.words) == 1 && len(t.values) == 0 && len(t.opposites) == 0 && t.deletions == 0 && len(t.flips) == 0:
		return c.otherWord(t)
	case len(t.words) == 0 && t.deletions > 0 && t.insertions == 0 && len(t.flips) == 0 && len(t.opposites) == 0:
		return Verdict{Compatible, "less-specific", "the newer statement says less than the older one"}
	}
	if v, ok := c.widerDenial(t); ok {
		return v
	}
	return c.doubtful(t)
}
