package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

var caller = record.Caller{Workspace: "w", Agent: "a"}

// dump returns every row of every table but the ledger and the maintenance
// times, in a fixed order.
func dump(tb testing.TB, s *Store) string {
	tb.Helper()
	var b strings.Builder
	mustView(tb, s, func(v *View) error {
		rows, err := v.query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('operations', 'meta') ORDER BY name")
		names, err := collect(rows, err, scanOne[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			rows, err := v.query("SELECT * FROM " + name + " ORDER BY 1, 2")
			if err != nil {
				rows, err = v.query("SELECT * FROM " + name + " ORDER BY 1")
			}
			if err != nil {
				return err
			}
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			for rows.Next() {
				values := make([]any, len(columns))
				dest := make([]any, len(columns))
				for i := range values {
					dest[i] = &values[i]
				}
				if err := rows.Scan(dest...); err != nil {
					return err
				}
				fmt.Fprintf(&b, "%s %v\n", name, values)
			}
			if err := rows.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return b.String()
}

func TestStore_DryRun(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	mustPropose(t, s, req("port", "port is 8080"))
	before := dump(t, s)
	for content, want := range map[string]record.ProposalStatus{"Port is 8080.": record.StatusReMentioned, "the sky is blue": record.StatusCreated} {
		r := req("port", content)
		r.DryRun, r.Key = true, "dry"
		if res := mustPropose(t, s, r); res.Status != want || !res.DryRun {
			t.Errorf("dry run of %q = %+v, want %s", content, res, want)
		}
	}
	r := req("port", "a new domain")
	r.Domain, r.DryRun = "nowhere", true
	mustPropose(t, s, r)
	if after := dump(t, s); after != before {
		t.Errorf("a dry run changed the file:\n%s\n%s", before, after)
	}
}

func TestStore_SupersedeAndRestore(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	a := mustPropose(t, s, req("a", "the first statement")).FactID
	b := mustPropose(t, s, req("b", "the second statement")).FactID
	c := mustPropose(t, s, req("c", "the third statement")).FactID
	supersede := func(old, successor string) error {
		clock.Advance(time.Minute)
		_, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: old, New: successor, Reason: "it changed"})
		return err
	}
	before := dump(t, s)
	wantCode(t, supersede(a, a), record.SupersedeInvalid)
	wantCode(t, supersede(a, "nobody"), record.NotFound)
	wantCode(t, supersede("nobody", a), record.NotFound)
	wantCode(t, supersede("", a), record.NotFound)
	if dump(t, s) != before {
		t.Error("a refused supersession changed the file")
	}
	for _, pair := range [][2]string{{a, b}, {b, c}} {
		if err := supersede(pair[0], pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, supersede(a, c), record.SupersedeInvalid)
	wantCode(t, supersede(c, a), record.SupersedeInvalid)
	mustView(t, s, func(v *View) error {
		h, err := v.History(b)
		if err != nil {
			return err
		}
		var chain []string
		for _, f := range h.Chain {
			chain = append(chain, f.ID)
		}
		if fmt.Sprint(chain) != fmt.Sprint([]string{a, b, c}) {
			t.Errorf("chain = %v, want a, b, c", chain)
		}
		for _, e := range h.Events {
			if e.At.IsZero() || e.Agent != "a" || e.Kind == "superseded" && e.Reason != "it changed" {
				t.Errorf("event without who, when or why: %+v", e)
			}
		}
		return nil
	})
	if _, err := s.RestoreFact(t.Context(), record.RestoreFact{Caller: caller, FactID: a}); err != nil {
		t.Fatal(err)
	}
	_, err := s.RestoreFact(t.Context(), record.RestoreFact{Caller: caller, FactID: a})
	wantCode(t, err, record.SupersedeInvalid)
	if got := activeContents(t, s); len(got) != 2 {
		t.Errorf("active after the restoration: %q", got)
	}
	// A twin that became active meanwhile keeps its place.
	if err := supersede(a, c); err != nil {
		t.Fatal(err)
	}
	mustPropose(t, s, req("a", "the first statement"))
	_, err = s.RestoreFact(t.Context(), record.RestoreFact{Caller: caller, FactID: a})
	wantCode(t, err, record.SupersedeInvalid)
}

// An old value out of an old backup stays retired; one that is stated again is a
// change back (situation E9).
func TestStore_oldValueRestated(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	old := mustPropose(t, s, req("deploy", "deploys to prod"))
	clock.Advance(time.Hour)
	current := mustPropose(t, s, req("deploy", "deploys to staging"))
	if current.Status != record.StatusCreated || len(activeContents(t, s)) != 1 {
		t.Fatalf("the change = %+v", current)
	}
	// An import of an old backup repeats the old value: it stays retired.
	clock.Advance(time.Hour)
	backup := req("deploy", "deploys to prod")
	backup.Veracity = "imported"
	if res := mustPropose(t, s, backup); res.Status != record.StatusSupersededBy || res.FactID != old.FactID {
		t.Errorf("the backup = %+v", res)
	}
	// So does our own preamble, read back.
	echo := req("deploy", "- [infra/deploy] deploys to prod (confidence 0.7)")
	if res := mustPropose(t, s, echo); res.Status != record.StatusSupersededBy || res.FactID != old.FactID {
		t.Errorf("the echo = %+v", res)
	}
	if got := activeContents(t, s); len(got) != 1 || got[0] != "deploys to staging" {
		t.Errorf("active = %q", got)
	}
	// Saying so is a change back.
	back := req("deploy", "deploys to prod")
	back.Veracity = "stated"
	if res := mustPropose(t, s, back); res.Status != record.StatusCreated || res.FactID == old.FactID {
		t.Errorf("the change back = %+v", res)
	}
	if got := activeContents(t, s); len(got) != 1 || got[0] != "deploys to prod" {
		t.Errorf("active = %q", got)
	}
}

// An old value that is quoted retires nobody (situation E9).
func TestStore_oldValueQuoted(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	mustPropose(t, s, req("deploy", "deploys to prod"))
	clock.Advance(time.Hour)
	mustPropose(t, s, req("deploy", "deploys to staging"))
	clock.Advance(time.Hour)
	const quotation = `The old runbook says "deploys to prod".`
	mustPropose(t, s, req("deploy", quotation))
	got := activeContents(t, s)
	slices.Sort(got)
	if want := []string{quotation, "deploys to staging"}; !slices.Equal(got, want) {
		t.Errorf("active = %q, want %q", got, want)
	}
}

func TestStore_echoRaisesNothing(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	first := mustPropose(t, s, req("port", "port is 8080"))
	res := mustPropose(t, s, req("port", "- [infra/port] port is 8080 (confidence 0.7)"))
	if res.Status != record.StatusReMentioned || res.FactID != first.FactID || res.Confidence != first.Confidence || res.MentionCount != 1 {
		t.Errorf("text of our own preamble = %+v", res)
	}
}

func TestStore_nearTwinsStayApart(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"port is 8080", "port is 8081"}, {"deploys on Monday", "never deploys on Monday"}, {"timeout 30s", "timeout 30m"},
		{"the flag is --force", "the flag is --no-force"}, {"written in C", "written in C++"}, {"runs v1.2", "runs v12"},
	} {
		s, _ := mustOpen(t)
		first := mustPropose(t, s, req("t", pair[0]))
		if res := mustPropose(t, s, req("t", pair[1])); res.FactID == first.FactID || res.Status == record.StatusReMentioned {
			t.Errorf("%q and %q became one: %+v", pair[0], pair[1], res)
		}
	}
}

// Statements of one topic that can both be true stay, and at most a person is
// asked about them (situation E1).
func TestStore_compatibleStay(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"Sara works at Acme", "Sara administers Acme's GitHub org"}, {"service A uses Redis for cache", "service A uses Postgres for orders"},
		{"prod is in Frankfurt", "staging is in Dublin"}, {"Alice is CEO", "Bob is co-CEO"},
	} {
		s, _ := mustOpen(t)
		mustPropose(t, s, req("t", pair[0]))
		res := mustPropose(t, s, req("t", pair[1]))
		if got := activeContents(t, s); len(got) != 2 {
			t.Errorf("%q and %q: %q stay, %+v", pair[0], pair[1], got, res)
		}
		for _, c := range res.Conflicts {
			if c.Kind != record.ConflictSuspected {
				t.Errorf("%q and %q: a row of kind %s", pair[0], pair[1], c.Kind)
			}
		}
	}
}

func TestStore_unicodeIdentity(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	for nfc, nfd := range map[string]string{"le café ouvre": "le cafe\u0301 ouvre", "Đà Nẵng": "Đa\u0300 Na\u0306\u0303ng", "감": "\u1100\u1161\u11b7"} {
		first := mustPropose(t, s, req("u"+nfc, nfc))
		again := mustPropose(t, s, req("u"+nfd, nfd))
		if again.FactID != first.FactID {
			t.Errorf("%q in two normal forms is two facts", nfc)
		}
		mustView(t, s, func(v *View) error {
			f, err := v.Fact(first.FactID)
			if f.Content != nfc {
				t.Errorf("content = %q, want the bytes given, %q", f.Content, nfc)
			}
			return err
		})
	}
}

func TestStore_validation(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	mustPropose(t, s, req("t", "something"))
	before := dump(t, s)
	nan, over := math.NaN(), 7.0
	change := func(f func(*record.ProposeFact)) record.ProposeFact {
		r := req("t", "content")
		f(&r)
		return r
	}
	for name, c := range map[string]struct {
		r    record.ProposeFact
		want record.Code
	}{
		"empty":          {req("t", ""), record.ContentEmpty},
		"blank":          {req("t", " \t\n"), record.ContentEmpty},
		"zero width":     {req("t", "\u200b\u200d\ufeff"), record.ContentEmpty},
		"nul":            {req("t", "a\x00b"), record.InvalidUTF8},
		"bad utf8":       {req("t", "a\xffb"), record.InvalidUTF8},
		"too large":      {req("t", strings.Repeat("x", 65537)), record.ContentTooLarge},
		"no topic":       {req(" ", "x"), record.InvalidArgument},
		"topic break":    {req("a\nb", "x"), record.InvalidArgument},
		"no domain":      {change(func(r *record.ProposeFact) { r.Domain = "" }), record.InvalidArgument},
		"empty domain":   {change(func(r *record.ProposeFact) { r.Domain = "--//--" }), record.InvalidArgument},
		"half repo":      {change(func(r *record.ProposeFact) { r.Domain = "repo:x" }), record.InvalidArgument},
		"two repos":      {change(func(r *record.ProposeFact) { r.Domain, r.Repo = "repo:x/y", "z" }), record.InvalidArgument},
		"veracity":       {change(func(r *record.ProposeFact) { r.Veracity = "bogus" }), record.InvalidArgument},
		"veracity case":  {change(func(r *record.ProposeFact) { r.Veracity = "STATED " }), record.InvalidArgument},
		"type":           {change(func(r *record.ProposeFact) { r.MemoryType = "dream" }), record.InvalidArgument},
		"confidence nan": {change(func(r *record.ProposeFact) { r.Confidence = &nan }), record.InvalidArgument},
		"confidence 7":   {change(func(r *record.ProposeFact) { r.Confidence = &over }), record.InvalidArgument},
		"role":           {change(func(r *record.ProposeFact) { r.Role = "king" }), record.InvalidArgument},
		"key":            {change(func(r *record.ProposeFact) { r.Key = "with space" }), record.InvalidArgument},
		"workspace":      {change(func(r *record.ProposeFact) { r.Workspace = "../w" }), record.WorkspaceInvalid},
		"sources":        {change(func(r *record.ProposeFact) { r.SourceObservationIDs = make([]string, 257) }), record.InvalidArgument},
	} {
		_, err := s.ProposeFact(t.Context(), c.r)
		if record.ErrorCode(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if dump(t, s) != before {
		t.Error("a refused proposal changed the file")
	}
	// The edges are inside.
	mustPropose(t, s, req("t", strings.Repeat("x", 65536)))
	mustPropose(t, s, req("t", "x"))
}

func TestParseDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ domain, repo, want string }{
		{"architecture", "", "architecture"}, {"Architecture", "", "Architecture"}, {"API  design!", "", "API-design"},
		{"architecture", "My App", "repo:my-app/architecture"}, {"repo:my-app/architecture", "", "repo:my-app/architecture"},
		{"repo:My App/x", "my-app", "repo:my-app/x"}, {"معماری سیستم", "", "معماری-سیستم"}, {"架构 设计", "", "架构-设计"}, {"%", "", ""}, {"../x", "", "x"}, {"a_b", "", "a-b"},
	} {
		d, err := parseDomain(c.domain, c.repo)
		if got := d.String(); got != c.want && !(c.want == "" && err != nil) {
			t.Errorf("parseDomain(%q, %q) = %q, %v; want %q", c.domain, c.repo, got, err, c.want)
		}
	}
}

func TestStore_domainsMatchByKey(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	for i, d := range []string{"API Design", "api design", "Api-Design", " API\u00a0DESIGN "} {
		r := req(fmt.Sprint(i), fmt.Sprintf("statement %d about nothing", i))
		r.Domain = d
		if res := mustPropose(t, s, r); res.Domain != "API-Design" {
			t.Errorf("domain %q is shown as %q", d, res.Domain)
		}
	}
	repo := req("x", "another store")
	repo.Domain, repo.Repo = "api design", "web"
	mustPropose(t, s, repo)
	mustView(t, s, func(v *View) error {
		domains, err := v.Domains("general")
		if len(domains) != 2 || domains[0].Facts != 4 || domains[1].Name != "repo:web/api-design" {
			t.Errorf("domains = %+v", domains)
		}
		return err
	})
}

func TestStore_Grants(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	policy := func(role, domain string) error {
		c := caller
		c.Role = role
		_, err := s.ProposePolicy(t.Context(), record.ProposePolicy{Caller: c, Domain: domain, Rule: "rule of " + role})
		return err
	}
	if err := policy("coder", "api"); err != nil {
		t.Fatalf("a domain just created: %v", err)
	}
	set := func(role, domain, level string) error {
		_, err := s.SetGrant(t.Context(), record.SetGrant{Caller: caller, ForRole: role, Domain: domain, Level: level})
		return err
	}
	wantCode(t, set("coder", "nowhere", "read"), record.NotFound)
	wantCode(t, set("king", "api", "read"), record.InvalidArgument)
	wantCode(t, set("coder", "api", "all"), record.InvalidArgument)
	wantCode(t, set("", "api", "read"), record.InvalidArgument)
	for _, level := range []string{"read", "none"} {
		if err := set("coder", "api", level); err != nil {
			t.Fatal(err)
		}
		err := policy("coder", "api")
		wantCode(t, err, record.InsufficientMemoryPermission)
		e := err.(*record.Error)
		if e.Role != "coder" || e.Domain != "api" || e.Required != "write" || e.Actual != level {
			t.Errorf("refusal = %+v", e)
		}
	}
	if err := policy("qa", "api"); err != nil {
		t.Errorf("another role: %v", err)
	}
	// A fact write asks for no grant, and an existing domain is not seeded again.
	r := req("t", "facts are free")
	r.Domain, r.Role = "api", "coder"
	mustPropose(t, s, r)
	mustView(t, s, func(v *View) error {
		grants, err := v.Grants()
		for _, g := range grants {
			if g.Role == "coder" && g.Level != "none" {
				t.Errorf("the grant came back: %+v", g)
			}
		}
		if len(grants) != 9 {
			t.Errorf("%d grants, want one for each role", len(grants))
		}
		domains, err2 := v.Domains("coder")
		if len(domains) != 0 || err2 != nil {
			t.Errorf("a hidden domain is listed: %+v, %v", domains, err2)
		}
		scope, err2 := v.Scope("", "", "coder")
		policies, err3 := v.Policies("", scope, false)
		if len(policies) != 0 || err2 != nil || err3 != nil {
			t.Errorf("hidden policies are listed: %+v", policies)
		}
		return err
	})
}

func TestStore_Policies(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	propose := func(rule string) record.PolicyResult {
		clock.Advance(time.Second)
		res, err := s.ProposePolicy(t.Context(), record.ProposePolicy{Caller: caller, Domain: "api", Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := propose("Version every endpoint.")
	if again := propose("version every endpoint"); again.Status != "exists" || again.PolicyID != first.PolicyID {
		t.Errorf("the same rule again = %+v", again)
	}
	supersede := func(id, rule string) (record.PolicyResult, error) {
		return s.SupersedePolicy(t.Context(), record.SupersedePolicy{Caller: caller, PolicyID: id, Rule: rule, Reason: "why not"})
	}
	_, err := supersede("nobody", "")
	wantCode(t, err, record.NotFound)
	_, err = supersede(first.PolicyID, "VERSION every endpoint")
	wantCode(t, err, record.SupersedeInvalid)
	res, err := supersede(first.PolicyID, "Version every public endpoint.")
	if err != nil || res.ReplacementID == "" {
		t.Fatalf("supersede = %+v, %v", res, err)
	}
	_, err = supersede(first.PolicyID, "")
	wantCode(t, err, record.SupersedeInvalid)
	mustView(t, s, func(v *View) error {
		now, err := v.Policies("", Scope{}, false)
		all, err2 := v.Policies("", Scope{}, true)
		if len(now) != 1 || now[0].ID != res.ReplacementID || len(all) != 2 || err2 != nil {
			t.Errorf("active %+v of %d", now, len(all))
		}
		return err
	})
	if _, err := supersede(res.ReplacementID, ""); err != nil {
		t.Error(err)
	}
}

func TestStore_Notes(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	update := func(text string, expect *int64) (record.UpdateNotesResult, error) {
		return s.UpdateNotes(t.Context(), record.UpdateNotes{Caller: caller, Text: text, ExpectedVersion: expect})
	}
	zero, one := int64(0), int64(1)
	if res, err := update("page", &zero); err != nil || res.Version != 1 {
		t.Fatalf("first write = %+v, %v", res, err)
	}
	_, err := update("late", &zero)
	wantCode(t, err, record.VersionConflict)
	if res, err := update("page\nsecond", &one); err != nil || res.Version != 2 {
		t.Errorf("second write = %+v, %v", res, err)
	}
	obs, err := s.RecordObservation(t.Context(), record.RecordObservation{Caller: caller, Text: "two\nlines"})
	if err != nil || obs.ObservationID == "" || obs.NotesVersion != 3 {
		t.Fatalf("observation = %+v, %v", obs, err)
	}
	mustView(t, s, func(v *View) error {
		n, err := v.Notes("a")
		if n.Text != "page\nsecond\ntwo lines\n" {
			t.Errorf("page = %q", n.Text)
		}
		other, err2 := v.Notes("b")
		if other.Text != "" || other.Version != 0 || err2 != nil {
			t.Errorf("another agent's page = %+v", other)
		}
		return err
	})
	if _, err := update(strings.Repeat("x", 65536), nil); err != nil {
		t.Errorf("a full page: %v", err)
	}
	_, err = update(strings.Repeat("x", 65537), nil)
	wantCode(t, err, record.ContentTooLarge)
	_, err = s.RecordObservation(t.Context(), record.RecordObservation{Caller: caller, Text: "one more"})
	wantCode(t, err, record.ContentTooLarge)
	_, err = s.UpdateNotes(t.Context(), record.UpdateNotes{Caller: record.Caller{Workspace: "w"}, Text: "whose"})
	wantCode(t, err, record.InvalidArgument)
}

func meeting(revision int64, decisions ...record.Decision) record.MeetingPage {
	return record.MeetingPage{CaptureMeeting: record.CaptureMeeting{Caller: caller, MeetingID: "m1", Title: fmt.Sprint("title ", revision), Revision: revision, Decisions: decisions}, Last: true}
}

func TestStore_Meeting(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	capture := func(p record.MeetingPage) record.MeetingReport {
		t.Helper()
		clock.Advance(time.Hour)
		r, err := s.CaptureMeetingPage(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one := record.Decision{Text: "We move to Frankfurt", Topic: "office"}
	two := record.Decision{Text: "We move to Dublin", Topic: "office", DecidedBy: "the board"}
	three := record.Decision{Text: "Lunch is at noon"}
	r := capture(meeting(1, one, two, three, record.Decision{Text: " "}, record.Decision{Text: "bad \xff"}, one))
	if r.Added != 3 || r.ReMentioned != 0 || len(r.FactIDs) != 3 || len(r.Failed) != 2 || r.Failed[0].Index != 3 || r.Failed[0].Code != record.ContentEmpty || r.Failed[1].Index != 4 {
		t.Fatalf("first revision = %+v", r)
	}
	before := dump(t, s)
	if again := capture(meeting(1, one, two, three)); again.Added+again.ReMentioned+again.Withdrawn != 0 {
		t.Errorf("the same revision again = %+v", again)
	}
	r = capture(meeting(3, two, record.Decision{Text: "Dinner is at eight"}))
	if r.Added != 1 || r.ReMentioned != 1 || r.Withdrawn != 2 || len(r.FactIDs) != 2 {
		t.Errorf("third revision = %+v", r)
	}
	if before == dump(t, s) {
		t.Error("the dump does not see a change")
	}
	after := dump(t, s)
	if late := capture(meeting(2, one)); !late.Outdated || dump(t, s) != after {
		t.Errorf("an outdated revision = %+v", late)
	}
	mustView(t, s, func(v *View) error {
		rows, err := v.Facts(Scope{}, true, 0, 100)
		for _, row := range rows {
			f := row.Value
			if f.Domain != "decisions" || f.MemoryType != record.TypeDecision || f.Veracity != record.Stated || f.Confidence != 1 {
				t.Errorf("decision = %+v", f)
			}
			if f.Content == one.Text && (f.SupersededKind != "withdrawn" || f.SupersededBy != "") {
				t.Errorf("a vanished decision = %+v", f)
			}
			if f.Content == two.Text && f.MentionCount != 2 {
				t.Errorf("a kept decision = %+v", f)
			}
		}
		return err
	})
	if r = capture(meeting(4)); r.Withdrawn != 2 || len(activeContents(t, s)) != 0 {
		t.Errorf("an empty list = %+v, %q stay", r, activeContents(t, s))
	}
	for _, bad := range []record.MeetingPage{meeting(0, one), {CaptureMeeting: record.CaptureMeeting{Caller: caller, Revision: 1}}} {
		_, err := s.CaptureMeetingPage(t.Context(), bad)
		wantCode(t, err, record.InvalidArgument)
	}
	_, err := s.CaptureMeetingPage(t.Context(), meeting(9, make([]record.Decision, 1001)...))
	wantCode(t, err, record.PayloadTooLarge)
}

func consolidate(tb testing.TB, s *Store, agent string) record.ConsolidationReport {
	tb.Helper()
	var total record.ConsolidationReport
	for _, phase := range record.ConsolidationPhases() {
		cursor := ""
		for {
			page, err := s.ConsolidatePage(tb.Context(), record.MaintenancePage{Caller: caller, ForAgent: agent, Phase: phase, Cursor: cursor, Limit: 3})
			if err != nil {
				tb.Fatal(err)
			}
			total.Add(page.Report)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return total
}

func TestStore_Consolidate(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	for i := range 7 {
		r := record.Remember{Caller: caller, Content: fmt.Sprintf("remembered thing %c with its own words %d", 'a'+i, i*11), Domain: "infra", Topic: fmt.Sprint("item ", i)}
		if i == 6 {
			r.TTLSeconds = 60
		}
		if _, err := s.Remember(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	other := record.Remember{Caller: record.Caller{Workspace: "w", Agent: "b"}, Content: "somebody else's item"}
	if _, err := s.Remember(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	mustPropose(t, s, req("gateway", "The zebra gateway listens on port 8080"))
	mustPropose(t, s, req("ports", "the zebra gateway listens on port 8080"))
	expiring := req("offer", "the offer holds this week")
	expiring.ValidUntil = record.At(clock.Now().Add(time.Hour))
	mustPropose(t, s, expiring)
	weak := 0.2
	faded := req("rumour", "somebody saw a ghost in the cellar")
	faded.Confidence, faded.MemoryType = &weak, "event"
	mustPropose(t, s, faded)
	kept := req("taste", "somebody likes tea")
	kept.Confidence, kept.MemoryType = &weak, "preference"
	mustPropose(t, s, kept)
	clock.Advance(60 * 24 * time.Hour)
	r := consolidate(t, s, "a")
	if r.Promoted != 6 || r.Expired != 2 || r.Merged != 1 || r.Archived != 1 || len(r.Skipped) != 0 {
		t.Errorf("report = %+v", r)
	}
	after := dump(t, s)
	if again := consolidate(t, s, "a"); again.Promoted+again.Expired+again.Merged+again.Archived+again.ReMentioned+again.Conflicts != 0 || dump(t, s) != after {
		t.Errorf("a second run = %+v", again)
	}
	active := activeContents(t, s)
	if slices.Contains(active, "somebody else's item") || slices.Contains(active, "somebody saw a ghost in the cellar") || !slices.Contains(active, "somebody likes tea") {
		t.Errorf("active = %q", active)
	}
	if r := consolidate(t, s, ""); r.Promoted != 1 {
		t.Errorf("for everybody = %+v", r)
	}
}

func harmonize(tb testing.TB, s *Store) record.HarmonizationReport {
	tb.Helper()
	var total record.HarmonizationReport
	for _, phase := range record.HarmonizationPhases() {
		cursor := ""
		for {
			page, err := s.HarmonizePage(tb.Context(), record.MaintenancePage{Caller: caller, Phase: phase, Cursor: cursor, Limit: 3})
			if err != nil {
				tb.Fatal(err)
			}
			total.Add(page.Report)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return total
}

func TestStore_Harmonize(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	by := func(agent, topic, content string) string {
		r := req(topic, content)
		r.Agent = agent
		return mustPropose(t, s, r).FactID
	}
	by("a", "gateway", "The zebra gateway listens on port 8080")
	by("b", "gateway", "the zebra gateway listens on port 8080")
	by("c", "ports", "The zebra gateway listens on port 8080.")
	lone := by("a", "cache", "the walrus cache deploys to prod")
	foe := by("b", "targets", "the walrus cache deploys to staging")
	r := harmonize(t, s)
	if r.BeliefsCreated != 1 || r.ConflictsOpened != 1 {
		t.Fatalf("report = %+v", r)
	}
	after := dump(t, s)
	if again := harmonize(t, s); again.BeliefsCreated+again.BeliefsUpdated+again.BeliefsRemoved+again.ConflictsOpened != 0 || dump(t, s) != after {
		t.Errorf("a second run = %+v", again)
	}
	var id string
	mustView(t, s, func(v *View) error {
		beliefs, err := v.Beliefs(Scope{})
		if len(beliefs) != 1 || fmt.Sprint(beliefs[0].Agents) != "[a b c]" || len(beliefs[0].FactIDs) != 2 {
			t.Fatalf("beliefs = %+v", beliefs)
		}
		id = beliefs[0].ID
		rows, err2 := v.Conflicts(true, Scope{}, "", 10)
		if len(rows) != 1 || rows[0].Kind != record.ConflictCrossAgent || err2 != nil {
			t.Errorf("conflicts = %+v", rows)
		}
		return err
	})
	by("d", "gateway", "the zebra gateway listens on port 8080")
	if r := harmonize(t, s); r.BeliefsUpdated != 1 {
		t.Errorf("after another agent agreed: %+v", r)
	}
	mustView(t, s, func(v *View) error {
		beliefs, err := v.Beliefs(Scope{})
		if len(beliefs) != 1 || beliefs[0].ID != id || beliefs[0].Version != 2 {
			t.Errorf("the belief was remade: %+v", beliefs)
		}
		return err
	})
	if _, err := s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: lone, New: foe}); err != nil {
		t.Fatal(err)
	}
	mustView(t, s, func(v *View) error {
		rows, err := v.Conflicts(true, Scope{}, "", 10)
		if len(rows) != 0 {
			t.Errorf("a row with one side gone is open: %+v", rows)
		}
		return err
	})
}

func TestStore_ResolveConflict(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	open := func(a, b string) (record.Conflict, string, string) {
		r := req("one "+a, a)
		x := mustPropose(t, s, r).FactID
		r = req("two "+b, b)
		r.Agent = "b"
		y := mustPropose(t, s, r).FactID
		harmonize(t, s)
		var c record.Conflict
		mustView(t, s, func(v *View) error {
			rows, err := v.Conflicts(true, Scope{}, "", 10)
			if len(rows) != 1 {
				t.Fatalf("open conflicts = %+v", rows)
			}
			c = rows[0]
			return err
		})
		return c, x, y
	}
	c, x, y := open("the walrus cache deploys to prod", "the walrus cache deploys to staging")
	resolve := func(id, winner string) error {
		_, err := s.ResolveConflict(t.Context(), record.ResolveConflict{Caller: caller, ConflictID: id, Winner: winner})
		return err
	}
	wantCode(t, resolve("nobody", x), record.NotFound)
	wantCode(t, resolve(c.ID, "nobody"), record.InvalidArgument)
	if err := resolve(c.ID, "both"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, resolve(c.ID, x), record.SupersedeInvalid)
	wantCode(t, resolve(c.ID, "nobody"), record.InvalidArgument)
	if r := harmonize(t, s); r.ConflictsOpened != 0 || len(activeContents(t, s)) != 2 {
		t.Errorf("a resolved pair was raised again: %+v", r)
	}
	_ = y
	c, x, y = open("the otter queue deploys to prod", "the otter queue deploys to staging")
	if err := resolve(c.ID, y); err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	if err := resolve(c.ID, y); err != nil {
		t.Errorf("the same decision again: %v", err)
	}
	wantCode(t, resolve(c.ID, x), record.SupersedeInvalid)
	wantCode(t, resolve(c.ID, "both"), record.SupersedeInvalid)
	if after := dump(t, s); after != before {
		t.Error("deciding again changed something")
	}
	mustView(t, s, func(v *View) error {
		f, err := v.Fact(x)
		if f.SupersededBy != y {
			t.Errorf("the loser = %+v", f)
		}
		return err
	})
}

func TestStore_Edges(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	for i := range 12 {
		mustPropose(t, s, req(fmt.Sprint("t", i), fmt.Sprintf("the quagga subsystem has part %c%d", 'a'+i, i)))
	}
	last := mustPropose(t, s, req("t", "where the quagga subsystem lives"))
	mustView(t, s, func(v *View) error {
		edges, err := v.Edges(last.FactID, Scope{})
		if len(edges) == 0 || len(edges) > 5 {
			t.Errorf("%d edges, want 1 to 5", len(edges))
		}
		for _, e := range edges {
			if e.Source != last.FactID || e.Weight <= 0 || e.Weight > 1 {
				t.Errorf("edge = %+v", e)
			}
		}
		return err
	})
}

func TestStore_precedingFactOfTheTopic(t *testing.T) {
	t.Parallel()
	s, c := mustOpen(t)
	contextual := func(id string) (got []record.Edge) {
		mustView(t, s, func(v *View) error {
			edges, err := v.Edges(id, Scope{})
			for _, e := range edges {
				if e.Kind == "contextual" && e.Source == id {
					got = append(got, e)
				}
			}
			if len(edges) > 5 {
				t.Errorf("%d edges, want 5 at most", len(edges))
			}
			return err
		})
		return got
	}
	for i := range 12 {
		mustPropose(t, s, req(fmt.Sprint("other ", i), fmt.Sprintf("the numbat feeder has part %c%d", 'a'+i, i)))
	}
	first := mustPropose(t, s, req("talk", "Ana: who fills the numbat feeder?"))
	if got := contextual(first.FactID); len(got) != 0 {
		t.Errorf("the first of a topic follows %+v", got)
	}
	c.Advance(59 * time.Minute)
	answer := mustPropose(t, s, req("talk", "Ben: whoever opens the numbat house"))
	if got := contextual(answer.FactID); len(got) != 1 || got[0].Target != first.FactID || got[0].Weight != 1 {
		t.Errorf("within the hour: %+v, want one edge of weight 1 to the question", got)
	}
	c.Advance(2 * time.Hour)
	later := mustPropose(t, s, req("talk", "Cleo: the opening hours changed"))
	if got := contextual(later.FactID); len(got) != 1 || got[0].Target != answer.FactID || got[0].Weight != topicWeight {
		t.Errorf("hours later: %+v, want one faint edge to the answer", got)
	}
}

func TestDecay(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		kind  record.MemoryType
		hours float64
		want  float64
	}{
		{record.TypeFact, 0, 1}, {record.TypeFact, 720, math.Exp(-1)}, {record.TypeProfile, 8760, math.Exp(-1)}, {record.TypeRequest, 72, math.Exp(-1)},
		{record.TypeCommitment, 480, math.Exp(-2)}, {record.TypeFact, -5, 1}, {"nonsense", 168, math.Exp(-1)},
	} {
		got := Decay(c.kind, now.Add(-time.Duration(c.hours*float64(time.Hour))), now)
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("Decay(%s, %v hours) = %v, want %v", c.kind, c.hours, got, c.want)
		}
	}
}
