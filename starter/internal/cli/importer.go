package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

const (
	// pageItems and pageBytes bound one page. Together with what the readers
	// take for a fact they decide which fact is on which page, which a later
	// run of the same import relies on: a change needs another pageLayout.
	pageItems  = 100
	pageBytes  = 1000000
	pageLayout = "1"

	// answerWithin bounds one call of an import, so that a worker that went
	// away is noticed. A call given again joins the one under way.
	answerWithin = 5 * time.Second
	// firstWait and longestWait bound the pauses while a worker is away.
	firstWait, longestWait = time.Second, 10 * time.Second

	// maxFailures bounds the failures that a report lists; all are counted.
	maxFailures = 1000
)

// sourceOf identifies an import: the file, how it is read, and where it goes.
func sourceOf(file [sha256.Size]byte, format, workspace string) string {
	sum := sha256.Sum256([]byte(hex.EncodeToString(file[:]) + "\n" + format + "/" + pageLayout + "\n" + workspace))
	return hex.EncodeToString(sum[:])
}

// counts is what an import did.
type counts struct {
	// Items counts the facts that were given to the worker; each was created,
	// refined, re-mentioned, superseded or refused.
	Items       int `json:"items"`
	Created     int `json:"created"`
	Refined     int `json:"refined"`
	ReMentioned int `json:"re_mentioned"`
	Superseded  int `json:"superseded"`
	// FailedCount counts what the worker refused and what could not be read.
	FailedCount int `json:"failed_count"`
	// Omitted counts what was left out on purpose; Omissions says why.
	Omitted   int            `json:"omitted"`
	Omissions map[string]int `json:"omissions"`
}

func (c *counts) add(o counts) {
	c.Items += o.Items
	c.Created += o.Created
	c.Refined += o.Refined
	c.ReMentioned += o.ReMentioned
	c.Superseded += o.Superseded
	c.FailedCount += o.FailedCount
	for why, n := range o.Omissions {
		c.omit(why, n)
	}
}

func (c *counts) omit(why string, n int) {
	if c.Omissions == nil {
		c.Omissions = map[string]int{}
	}
	c.Omitted += n
	c.Omissions[why] += n
}

// failure is one entry that was not taken.
type failure struct {
	Line    int         `json:"line,omitempty"`
	Item    string      `json:"item,omitempty"`
	Code    record.Code `json:"code"`
	Message string      `json:"message"`
	Field   string      `json:"field,omitempty"`
}

// imported is the report of one workspace's import.
type imported struct {
	Workspace string `json:"workspace"`
	Format    string `json:"format"`
	Source    string `json:"source"`
	// AlreadyImported is true when an earlier run had done all of it.
	AlreadyImported bool `json:"already_imported"`
	counts
	Failed []failure `json:"failed"`
	// NotKept names what stored facts have that an import starts anew.
	NotKept []string `json:"not_kept,omitempty"`

	read, unreadable int
}

func (r *imported) fail(at origin, code record.Code, message, field string) {
	r.FailedCount++
	if len(r.Failed) < maxFailures {
		r.Failed = append(r.Failed, failure{Line: at.line, Item: at.item, Code: code, Message: message, Field: field})
	}
}

// session is the import of one workspace under way.
type session struct {
	a        *app
	caller   record.Caller
	source   string
	patience time.Duration
	bar      *bar
	report   *imported

	importer importer
	state    workflows.ImportState
	// resumedAt is the page that was wanted first, resumedItems how many facts
	// earlier runs had given.
	resumedAt, resumedItems int

	// The page being filled: its facts, where they stand in the file, how many
	// places of it are taken and how big it is.
	items        []record.ProposeFact
	at           []origin
	taken, bytes int
	page         int
	// given counts the facts of the pages before, seen the worker's failures
	// that are in the report; early are those in it of earlier runs.
	given, seen int
	early       []int
}

// importEntries imports what entries yields into the caller's workspace.
func (a *app) importEntries(ctx context.Context, caller record.Caller, format, source string, patience time.Duration, b *bar, entries iter.Seq2[entry, error]) (*imported, error) {
	caller.Key = ""
	s := &session{a: a, caller: caller, source: source, patience: patience, bar: b, report: &imported{
		Workspace: caller.Workspace, Format: format, Source: source, Failed: []failure{}, counts: counts{Omissions: map[string]int{}},
	}}
	if err := s.run(ctx, entries); err != nil {
		return nil, s.stopped(ctx, err)
	}
	return s.report, nil
}

func (s *session) run(ctx context.Context, entries iter.Seq2[entry, error]) error {
	r := s.report
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r.read++
		if e.whole && r.NotKept == nil {
			r.NotKept = []string{"id", "mention_count", "recall_count", "version", "history"}
		}
		if e.omitted != "" {
			r.omit(e.omitted, 1)
		}
		if e.bad != nil {
			r.unreadable++
			r.fail(e.at, e.bad.Code, e.bad.Message, e.bad.Field)
		}
		if e.fact == nil {
			s.bar.add(1)
			continue
		}
		if err := s.take(ctx, e); err != nil {
			return err
		}
	}
	if s.taken > 0 {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	return s.finish(ctx)
}

// take puts a fact on the page, which is sent first when it is full.
func (s *session) take(ctx context.Context, e entry) error {
	// Measured before the caller's flags go in, which another run may give
	// otherwise.
	raw, err := json.Marshal(e.fact)
	if err != nil {
		s.report.fail(e.at, record.InvalidArgument, "the fact cannot be encoded", "")
		return nil
	}
	if s.taken == pageItems || s.taken > 0 && s.bytes+len(raw) > pageBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.taken++
	s.bytes += len(raw)
	if e.omitted != "" {
		return nil
	}
	fact := *e.fact
	fact.Workspace = s.caller.Workspace
	if fact.Agent == "" {
		fact.Agent = s.caller.Agent
		fact.Role = or(fact.Role, s.caller.Role)
	}
	if fact.Repo == "" && !strings.HasPrefix(fact.Domain, "repo:") {
		fact.Repo = s.caller.Repo
	}
	s.items, s.at = append(s.items, fact), append(s.at, e.at)
	return nil
}

// flush gives the page to the import, unless an earlier run has.
func (s *session) flush(ctx context.Context) error {
	if s.importer == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	if !s.state.Done && s.page >= s.state.NextPage {
		page := workflows.ImportPage{Page: s.page, Items: s.items}
		if page.Items == nil {
			page.Items = []record.ProposeFact{}
		}
		err := s.patiently(ctx, func(ctx context.Context) (workflows.ImportState, error) { return s.importer.Page(ctx, page) })
		if err != nil {
			return err
		}
	}
	if s.page == s.resumedAt && s.page > 0 {
		s.settle()
	}
	s.failures(len(s.items))
	s.given += len(s.items)
	s.bar.add(s.taken)
	s.page++
	s.items, s.at, s.taken, s.bytes = s.items[:0:0], s.at[:0], 0, 0
	return nil
}

// failures reports what the worker refused of the page with its last n facts.
func (s *session) failures(n int) {
	early := s.resumedAt == allPages || s.page < s.resumedAt
	for ; s.seen < len(s.state.Report.Failed); s.seen++ {
		f := s.state.Report.Failed[s.seen]
		if f.Index >= s.given+n {
			return
		}
		var at origin
		if i := f.Index - s.given; i >= 0 && i < len(s.at) {
			at = s.at[i]
		}
		if early && len(s.report.Failed) < maxFailures {
			s.early = append(s.early, len(s.report.Failed))
		}
		s.report.fail(at, f.Code, f.Message, f.Field)
	}
}

// settle ends the part of the file that earlier runs gave. Facts that expired
// since were counted there and are not here: then it is not known any more
// where the refused ones stand.
func (s *session) settle() {
	if s.given != s.resumedItems {
		for _, i := range s.early {
			s.report.Failed[i].Line, s.report.Failed[i].Item = 0, ""
		}
	}
	s.early, s.given = nil, max(s.given, s.resumedItems)
}

func (s *session) finish(ctx context.Context) error {
	if s.importer == nil {
		// The file holds nothing to give.
		return nil
	}
	if s.state.Done {
		s.report.AlreadyImported = s.resumedAt == allPages
	} else {
		err := s.patiently(ctx, func(ctx context.Context) (workflows.ImportState, error) {
			report, err := s.importer.Finish(ctx)
			return workflows.ImportState{Done: true, Report: report}, err
		})
		if err != nil {
			return err
		}
	}
	if s.resumedAt == allPages || s.page == s.resumedAt {
		s.settle()
	}
	done := s.state.Report
	if done.Items < s.given {
		return hinted(record.Errorf(record.Unavailable, "", "the import was closed after %d of %d facts", done.Items, s.given),
			"import the rest as a file of its own; facts that are known are only re-mentioned")
	}
	for ; s.seen < len(done.Failed); s.seen++ {
		f := done.Failed[s.seen]
		s.report.fail(origin{}, f.Code, f.Message, f.Field)
	}
	r := s.report
	slices.SortStableFunc(r.Failed, func(a, b failure) int { return cmp.Compare(uint(a.Line-1), uint(b.Line-1)) })
	r.Items, r.Created, r.Refined, r.ReMentioned, r.Superseded = done.Items, done.Created, done.Refined, done.ReMentioned, done.Superseded
	return nil
}

// allPages stands for the page wanted first when all were taken.
const allPages = -1

// begin finds where to start. A worker that is away at once is no outage to
// wait for: the caller may have forgotten to start it.
func (s *session) begin(ctx context.Context) error {
	b, err := s.a.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if s.importer, s.state, err = b.BeginImport(ctx, s.caller, s.source); err != nil {
		s.importer = nil
		return err
	}
	s.resumedAt, s.resumedItems = s.state.NextPage, s.state.Report.Items
	switch {
	case s.state.Done:
		s.resumedAt = allPages
	case s.state.NextPage > 0:
		s.a.note("Going on after %s that an earlier run imported into %s.", count(s.resumedItems, "fact", "facts"), s.caller.Workspace)
	}
	return nil
}

// patiently makes one call of the import. While nothing answers it waits, up
// to the session's patience, and looks for the worker anew.
func (s *session) patiently(ctx context.Context, do func(context.Context) (workflows.ImportState, error)) error {
	var away time.Time
	pause := firstWait
	for {
		state, err := s.once(ctx, do)
		if err == nil {
			s.state = state
			return nil
		}
		if record.ErrorCode(err) != record.Unavailable || ctx.Err() != nil {
			return err
		}
		if away.IsZero() {
			away = s.a.clock.now()
			if s.patience > 0 {
				s.a.note("The worker does not answer; waiting up to %s for it.", span(s.patience))
			}
		}
		for {
			if s.a.clock.now().Sub(away) >= s.patience {
				return err
			}
			if s.a.clock.wait(ctx, pause) != nil {
				return err
			}
			pause = min(2*pause, longestWait)
			if again := s.again(ctx); again == nil {
				break
			} else if record.ErrorCode(again) != record.Unavailable {
				return again
			}
		}
		s.a.note("The worker is back.")
		if s.state.Done {
			return nil
		}
	}
}

func (s *session) once(ctx context.Context, do func(context.Context) (workflows.ImportState, error)) (workflows.ImportState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return do(ctx)
}

// again connects anew and finds the import there.
func (s *session) again(ctx context.Context) error {
	b, err := s.a.reconnect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	found, state, err := b.BeginImport(ctx, s.caller, s.source)
	if err == nil {
		s.importer, s.state = found, state
	}
	return err
}

// stopped says what became of an import that did not end.
func (s *session) stopped(ctx context.Context, err error) error {
	again := "the same command again; it goes on from there and imports nothing twice"
	done := s.state.Report.Items
	switch {
	case ctx.Err() != nil:
		return hinted(record.Wrap(record.Unavailable, err, "interrupted after at least %s went into workspace %s", count(done, "fact", "facts"), s.caller.Workspace), again)
	case record.ErrorCode(err) == record.Unavailable && s.importer != nil:
		if h := new(hint); errors.As(err, &h) {
			return err
		}
		return hinted(err, again)
	}
	return err
}
