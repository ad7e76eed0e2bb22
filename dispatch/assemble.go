package dispatch

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
	"github.com/polyphony-memory/polyphony/recall"
)

const (
	// minTask is how many characters a trimmed task needs for a shortlist.
	minTask = 20
	// maxFacts, maxFactChars and maxContent bound the shortlist: its lines, the
	// characters of all of them, and the characters of one content.
	maxFacts, maxFactChars, maxContent = 5, 1200, 200
	// candidates is how many facts are looked at to fill the shortlist.
	candidates = 100
	// distinct is how many of them, copies left out, the lines are taken from.
	distinct = 4 * maxFacts
	// maxStaleBytes bounds the stale statements and what holds instead, past the
	// first: all of them together may be larger than an answer can be.
	maxStaleBytes = 48 << 10
	// relevance is the share of the best match's score that a shortlisted fact
	// must reach.
	relevance = 0.35
	// nearCopy is the share of terms in common from which two statements with
	// the same identifiers and numbers count as one.
	nearCopy = 0.9
)

// shortFact is a fact of the shortlist.
type shortFact struct {
	*memory.FactRow
	disputed bool
}

// parts is what a preamble is made of.
type parts struct {
	policies []record.Policy
	notes    string
	// facts are the shortlist's candidates, best first.
	facts []shortFact
	terms []text.Term
	// stale are as many as fit, cutStale says that there are more.
	stale    []record.Stale
	cutStale bool
	// missing names the parts that could not be read.
	missing []string
}

// The names of the parts, as missing lists them.
const (
	partPolicies = "policies"
	partNotes    = "notes"
	partFacts    = "facts"
	partStale    = "stale"
)

// Assemble reads the parts from one snapshot of the workspace and renders the
// preamble. A part that cannot be read is left out and named as missing; it is
// an error only when no part can be.
//
// Errors: InvalidArgument, ContentTooLarge, InvalidUTF8, PayloadTooLarge,
// Unavailable.
func Assemble(ctx context.Context, s *memory.Store, req record.Dispatch) (record.Preamble, error) {
	if err := check(req); err != nil {
		return record.Preamble{}, err
	}
	var p parts
	err := s.View(ctx, func(v *memory.View) error {
		p = gather(ctx, v, recall.Lexical{}, req)
		return nil
	})
	if err != nil {
		return record.Preamble{}, err
	}
	out := render(p)
	if len(out.Text) > record.MaxRequestBytes {
		return record.Preamble{}, record.Errorf(record.PayloadTooLarge, "", "the preamble would have %d bytes, over the limit of %d; supersede policies", len(out.Text), record.MaxRequestBytes)
	}
	s.CountRecall(out.FactIDs)
	return out, nil
}

func check(req record.Dispatch) error {
	if err := req.Check(); err != nil {
		return err
	}
	if err := record.CheckText("task", req.Task, record.MaxTaskBytes); err != nil {
		return err
	}
	if len(req.Context) > record.MaxContextStatements {
		return record.Errorf(record.InvalidArgument, "context", "at most %d statements", record.MaxContextStatements)
	}
	for _, c := range req.Context {
		if err := record.CheckText("context", c, record.MaxContentBytes); err != nil {
			return err
		}
	}
	return nil
}

func gather(ctx context.Context, v *memory.View, voice recall.Voice, req record.Dispatch) parts {
	var p parts
	read := func(part string, f func() error) {
		if err := f(); err != nil {
			p.missing = append(p.missing, part)
		}
	}
	read(partPolicies, func() (err error) {
		p.policies, err = v.Policies(req.Repo, memory.Scope{}, false)
		return err
	})
	read(partNotes, func() error {
		if req.Agent == "" {
			return nil
		}
		n, err := v.Notes(req.Agent)
		p.notes = n.Text
		return err
	})
	read(partFacts, func() (err error) {
		p.facts, p.terms, err = shortlist(ctx, v, voice, req)
		return err
	})
	read(partStale, func() (err error) {
		p.stale, p.cutStale, err = staleStatements(v, req.Context)
		return err
	})
	return p
}

// shortlist returns the facts that match the task's key words, the
// repository's own first, then best first. Neither the clock nor use counts
// order it, so the same state gives the same text.
func shortlist(ctx context.Context, v *memory.View, voice recall.Voice, req record.Dispatch) ([]shortFact, []text.Term, error) {
	task := strings.TrimSpace(req.Task)
	if utf8.RuneCountInString(task) < minTask {
		return nil, nil, nil
	}
	lexicon, err := recall.NewLexicon(v, task)
	if err != nil {
		return nil, nil, err
	}
	found, err := voice.Find(ctx, v, recall.Query{Text: task, Lexicon: lexicon, Limit: candidates})
	if err != nil || len(found) == 0 {
		return nil, nil, err
	}
	floor := found[0].Score * relevance
	found = slices.DeleteFunc(found, func(c recall.Candidate) bool { return c.Score < floor })
	repo, err := v.RepoDomains(req.Repo)
	if err != nil {
		return nil, nil, err
	}
	recall.OwnFirst(found, func(c recall.Candidate) bool { return repo[c.DomainID] })
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ID
	}
	disputed, err := v.Disputed(ids)
	if err != nil {
		return nil, nil, err
	}
	var out []shortFact
	var kept []statement
	for _, c := range found {
		if len(out) == distinct {
			break
		}
		s := newStatement(c.FactRow)
		if slices.ContainsFunc(kept, s.repeats) {
			continue
		}
		kept = append(kept, s)
		out = append(out, shortFact{c.FactRow, disputed[c.ID]})
	}
	return out, lexicon.Terms(), nil
}

// statement is a fact's content prepared for comparing with others.
type statement struct {
	parsed *conflict.Parsed
	terms  map[string]bool
	exact  map[string]bool
}

func newStatement(f *memory.FactRow) statement {
	s := statement{
		parsed: conflict.Parse(conflict.Statement{Content: f.Content, Topic: f.Topic, Domain: f.Domain}),
		terms:  map[string]bool{}, exact: map[string]bool{},
	}
	for _, t := range text.QueryTerms(f.Content) {
		s.terms[t.Text] = true
		if t.Exact {
			s.exact[t.Text] = true
		}
	}
	return s
}

// repeats reports whether o says the same as s, or nearly so with the same
// identifiers and numbers.
func (s statement) repeats(o statement) bool {
	common := 0
	for t := range s.terms {
		if o.terms[t] {
			common++
		}
	}
	if 2*common < min(len(s.terms), len(o.terms)) {
		// Too little in common to be worth a comparison.
		return false
	}
	all := len(s.terms) + len(o.terms) - common
	if all > 0 && float64(common) >= nearCopy*float64(all) && equalSets(s.exact, o.exact) {
		// A word more or less may still be the one that matters.
		r := conflict.Compare(o.parsed, s.parsed).Relation
		return r == conflict.Duplicate || common == all && r != conflict.Contradiction
	}
	return conflict.Compare(o.parsed, s.parsed).Relation == conflict.Duplicate
}

func equalSets(a, b map[string]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

// staleStatements finds the statements that repeat a superseded version, and
// says whether there was no room for all of them.
func staleStatements(v *memory.View, statements []string) (stale []record.Stale, cut bool, err error) {
	stale = []record.Stale{}
	size := 0
	for _, s := range statements {
		if text.Blank(s) {
			continue
		}
		m, err := v.StaleVersion(s)
		if err != nil {
			return stale, false, err
		}
		if m == nil {
			continue
		}
		found := record.Stale{Statement: s, FactID: m.Old.ID}
		if m.Replaced {
			found.CurrentID, found.Current = m.Current.ID, m.Current.Content
		}
		if size += len(found.Statement) + len(found.Current); size > maxStaleBytes && len(stale) > 0 {
			return stale, true, nil
		}
		stale = append(stale, found)
	}
	return stale, false, nil
}
