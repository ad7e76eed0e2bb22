package memory

import (
	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// checkCandidates bounds the facts that one statement is compared with: those
// that share its rarest words.
const checkCandidates = 48

// maxNowBytes bounds what the record says on one statement, past the first
// fact: together its candidates may be larger than an answer can be.
const maxNowBytes = 48 << 10

// CheckStatements holds statements against the record, in order: which of them
// are stale or contradicted, and what the record says now. A line of our own
// preamble is taken for the statement in it. Facts that the scope hides neither
// count nor show.
//
// Errors: InvalidArgument (too many), ContentTooLarge, InvalidUTF8.
func (v *View) CheckStatements(scope Scope, statements []string) ([]record.CheckedStatement, error) {
	if err := checkStatements(statements); err != nil {
		return nil, err
	}
	out := make([]record.CheckedStatement, len(statements))
	for i, s := range statements {
		var err error
		if out[i], err = v.checkStatement(scope, s); err != nil {
			return nil, err
		}
		fitNow(&out[i])
	}
	return out, nil
}

func checkStatements(statements []string) error {
	if len(statements) > record.MaxContextStatements {
		return record.Errorf(record.InvalidArgument, "context", "at most %d statements", record.MaxContextStatements)
	}
	for _, s := range statements {
		if err := record.CheckText("context", s, record.MaxContentBytes); err != nil {
			return err
		}
	}
	return nil
}

func unknownStatement(s string) record.CheckedStatement {
	return record.CheckedStatement{Statement: s, Standing: record.StandingUnknown, Now: []record.RecordedNow{}}
}

func (v *View) checkStatement(scope Scope, statement string) (record.CheckedStatement, error) {
	out := unknownStatement(statement)
	if text.Blank(statement) {
		return out, nil
	}
	place, content, _ := unquote(statement)
	same, opposed, err := v.bearing(scope, place, content)
	if err != nil {
		return out, err
	}
	for _, o := range opposed {
		out.Now = append(out.Now, recordedNow(o.fact.Fact, o.reason))
	}
	var held, old *fact
	for _, f := range same {
		switch {
		case f.Active(v.now):
			held = f
		case old == nil || f.UpdatedAt.After(old.UpdatedAt.Time):
			old = f
		}
	}
	switch {
	case held != nil && len(opposed) > 0:
		out.Standing, out.FactID = record.StandingContradicted, held.ID
	case held != nil:
		out.Standing, out.FactID = record.StandingCurrent, held.ID
		out.Now = append(out.Now, recordedNow(held.Fact, "the record says the same"))
	case old != nil:
		out.Standing, out.FactID = record.StandingStale, old.ID
		successor, ok, err := v.successor(old.Fact)
		if err != nil {
			return out, err
		}
		if ok && !v.hides(scope, successor) {
			out.Now = append([]record.RecordedNow{recordedNow(successor, "it took the statement's place")}, without(out.Now, successor.ID)...)
		}
	case len(opposed) > 0:
		out.Standing = record.StandingContradicted
	}
	return out, nil
}

// fitNow leaves out the last of what the record says when it is too much.
func fitNow(s *record.CheckedStatement) {
	size := 0
	for i, n := range s.Now {
		if size += len(n.Content) + len(n.Reason); size > maxNowBytes && i > 0 {
			s.Now, s.Left = s.Now[:i], len(s.Now)-i
			return
		}
	}
}

func recordedNow(f record.Fact, reason string) record.RecordedNow {
	return record.RecordedNow{FactID: f.ID, Domain: f.Domain, Topic: f.Topic, Content: f.Content, Reason: reason}
}

func without(list []record.RecordedNow, id string) []record.RecordedNow {
	var out []record.RecordedNow
	for _, n := range list {
		if n.FactID != id {
			out = append(out, n)
		}
	}
	return out
}

// opposing is a current fact that cannot be true together with a statement.
type opposing struct {
	fact   *fact
	reason string
}

// bearing finds the facts that say the same as the content, current or not, and
// the current ones that contradict it.
func (v *View) bearing(scope Scope, place, content string) (same []*fact, opposed []opposing, err error) {
	key := text.ContentKey(content)
	rows, err := v.query("SELECT "+factColumns+fromFacts+"WHERE f.content_key = ? ORDER BY f.seq", key[:])
	exact, err := collect(rows, err, scanFact)
	if err != nil {
		return nil, nil, err
	}
	near, err := relatives(v, text.QueryTerms(content), "", checkCandidates)
	if err != nil {
		return nil, nil, err
	}
	seen := map[int64]bool{}
	for _, f := range exact {
		seen[f.seq] = true
		if !scope.Hidden(f.domainID) && filedUnder(f, place) {
			same = append(same, f)
		}
	}
	for _, r := range near {
		if seen[r.seq] {
			continue
		}
		f, err := scanFact(v.row("SELECT "+factColumns+fromFacts+"WHERE f.seq = ?", r.seq))
		if err != nil {
			return nil, nil, err
		}
		if scope.Hidden(f.domainID) {
			continue
		}
		switch verdict := conflict.Compare(f.statement(), statementFor(f, place, content)); verdict.Relation {
		case conflict.Duplicate:
			same = append(same, f)
		case conflict.Contradiction:
			if f.Active(v.now) {
				opposed = append(opposed, opposing{f, verdict.Reason})
			}
		}
	}
	return same, opposed, nil
}

// filedUnder reports whether the fact stands under place, domain/topic as the
// preamble shows it; "" is any.
func filedUnder(f *fact, place string) bool {
	return place == "" || text.Key(place) == text.Key(f.Domain+"/"+f.Topic)
}

// statementFor parses the content for its comparison with f. A statement that
// was taken out of the preamble, or that names the fact's topic, is read as one
// of that topic; any other must make itself clear without one.
func statementFor(f *fact, place, content string) *conflict.Parsed {
	s := conflict.Statement{Content: content, Domain: f.Domain}
	if place != "" && filedUnder(f, place) || place == "" && text.NewPhrase(f.Topic).In(content) {
		s.Topic = f.Topic
	}
	return conflict.Parse(s)
}

// successor follows a fact's supersessions to the one that is current now.
func (v *View) successor(f record.Fact) (record.Fact, bool, error) {
	next := f
	for range maxChain {
		if next.SupersededBy == "" {
			break
		}
		var err error
		if next, err = v.Fact(next.SupersededBy); err != nil {
			return next, false, err
		}
	}
	return next, next.ID != f.ID && next.Active(v.now), nil
}

func (v *View) hides(scope Scope, f record.Fact) bool { return scope.hidesAny(v, []record.Fact{f}) }
