package memory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// openOnDisk opens a store in a folder of its own and returns both.
func openOnDisk(t *testing.T, opts Options) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, "demo", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func proposeFact(t *testing.T, s *Store, req record.ProposeFact) record.ProposeFactResult {
	t.Helper()
	req.Workspace = "demo"
	if req.Agent == "" {
		req.Agent = "scout"
	}
	res, err := s.ProposeFact(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func factOf(t *testing.T, s *Store, id string) (f record.Fact) {
	t.Helper()
	err := s.View(t.Context(), func(v *View) (err error) {
		f, err = v.Fact(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// holding returns the facts that hold a word of the index.
func holding(t *testing.T, s *Store, term string) (ids []string) {
	t.Helper()
	err := s.View(t.Context(), func(v *View) error {
		seqs, err := v.Postings(term, 0, 100)
		if err != nil {
			return err
		}
		facts, err := v.FactsAt(seqs, Scope{})
		for _, f := range facts {
			ids = append(ids, f.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

var someone = record.Caller{Workspace: "demo", Agent: "ada", Role: "general"}

func TestStore_UpdateFact(t *testing.T) {
	t.Parallel()
	s, _ := openOnDisk(t, Options{Embedding: "model-a"})
	p := proposeFact(t, s, record.ProposeFact{Domain: "infra", Topic: "ports", Content: "The gateway listens on port 8080"})
	twin := proposeFact(t, s, record.ProposeFact{Domain: "infra", Topic: "ports", Content: "The broker speaks AMQP"})
	proposeFact(t, s, record.ProposeFact{Domain: "infra", Topic: "ports", Content: "the gateway listens on port 8080."})
	before := factOf(t, s, p.FactID)
	vector := make([]float32, Dimensions)
	vector[3] = 1
	if _, err := s.StoreVectors(t.Context(), []Embedded{{ToEmbed{1, before.Content}, vector}}); err != nil {
		t.Fatal(err)
	}
	nearest := func() (n int) {
		err := s.View(t.Context(), func(v *View) error {
			near, err := v.Nearest(vector, Scope{}, 5)
			n = len(near)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if nearest() != 1 {
		t.Fatal("the fact has no vector to begin with")
	}

	text, topic := "پورت دروازه ۹۰۹۰ است", "gateway port"
	edit := record.UpdateFact{Caller: someone, FactID: p.FactID, ExpectedVersion: before.Version, Content: &text, Topic: &topic, Reason: "moved"}
	edit.Key = "edit-1"
	res, err := s.UpdateFact(t.Context(), edit)
	if err != nil {
		t.Fatal(err)
	}
	after := factOf(t, s, p.FactID)
	if after.Content != text || after.Topic != topic || after.Version != before.Version+1 || res.Version != after.Version {
		t.Errorf("after the edit: %+v", after)
	}
	if after.MentionCount != before.MentionCount || after.Confidence != before.Confidence || after.AuthoredByAgent != "scout" || !after.CreatedAt.Equal(before.CreatedAt.Time) {
		t.Errorf("the edit reset something: %+v, before %+v", after, before)
	}
	if got := holding(t, s, "8080"); len(got) != 0 {
		t.Errorf("the old words still find %v", got)
	}
	if got := holding(t, s, "9090"); !slices.Equal(got, []string{p.FactID}) {
		t.Errorf("the new words find %v", got)
	}
	if nearest() != 0 {
		t.Error("the old text's vector still answers")
	}
	queued, err := s.QueuedForEmbedding(t.Context(), 10)
	if err != nil || !slices.ContainsFunc(queued, func(e ToEmbed) bool { return e.Content == text }) {
		t.Errorf("the new text waits for no vector: %v, %v", queued, err)
	}
	err = s.View(t.Context(), func(v *View) error {
		h, err := v.History(p.FactID)
		if err == nil && (len(h.Versions) != 1 || h.Versions[0].Content != before.Content || h.Versions[0].Agent != "ada" || h.Versions[0].Reason != "moved") {
			t.Errorf("the version before is %+v", h.Versions)
		}
		if err == nil && !slices.ContainsFunc(h.Events, func(e record.FactEvent) bool { return e.Kind == "edited" && e.Agent == "ada" }) {
			t.Errorf("the history does not tell of the edit: %+v", h.Events)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	// Twice is once, and a second editor of the same version is refused.
	if again, err := s.UpdateFact(t.Context(), edit); err != nil || again != res {
		t.Errorf("the same call again: %+v, %v", again, err)
	}
	for name, tc := range map[string]struct {
		change func(*record.UpdateFact)
		code   record.Code
	}{
		"an old version": {func(u *record.UpdateFact) { u.ExpectedVersion = before.Version }, record.VersionConflict},
		"no version":     {func(u *record.UpdateFact) { u.ExpectedVersion = 0 }, record.InvalidArgument},
		"unknown":        {func(u *record.UpdateFact) { u.FactID = "nothing" }, record.NotFound},
		"a twin":         {func(u *record.UpdateFact) { c, tp := "the broker speaks AMQP.", "ports"; u.Content, u.Topic = &c, &tp }, record.SupersedeInvalid},
		"blank":          {func(u *record.UpdateFact) { c := "\u200b"; u.Content = &c }, record.ContentEmpty},
		"too large":      {func(u *record.UpdateFact) { c := strings.Repeat("x", record.MaxContentBytes+1); u.Content = &c }, record.ContentTooLarge},
		"no share":       {func(u *record.UpdateFact) { c := 1.5; u.Confidence = &c }, record.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			req := record.UpdateFact{Caller: someone, FactID: p.FactID, ExpectedVersion: res.Version}
			tc.change(&req)
			if _, err := s.UpdateFact(t.Context(), req); record.ErrorCode(err) != tc.code {
				t.Errorf("%v, want %s", err, tc.code)
			}
		})
	}
	if factOf(t, s, p.FactID).Version != res.Version || factOf(t, s, twin.FactID).Version != 1 {
		t.Error("a refused edit changed something")
	}
}

// TestStore_DeleteFact follows a secret word through everything that is made of
// a fact, and looks for it in the bytes of the files afterwards (situation E5).
func TestStore_DeleteFact(t *testing.T) {
	t.Parallel()
	const secret = "zanzibarquux"
	s, dir := openOnDisk(t, Options{Embedding: "model-a"})
	ctx := t.Context()
	for i := range 300 {
		proposeFact(t, s, record.ProposeFact{Domain: "infra", Topic: fmt.Sprintf("host %d", i), Content: fmt.Sprintf("Host number%d stands in rack %d", i, i%7)})
	}
	// A session item becomes the fact, a second agent agrees, a belief quotes it.
	if _, err := s.Remember(ctx, record.Remember{Caller: record.Caller{Workspace: "demo", Agent: "scout"}, Content: "The vault key is " + secret, Domain: "infra", Topic: "vault"}); err != nil {
		t.Fatal(err)
	}
	maintain := func() {
		t.Helper()
		for _, phase := range record.ConsolidationPhases() {
			if _, err := s.ConsolidatePage(ctx, record.MaintenancePage{Caller: someone, Phase: phase, Limit: 1000}); err != nil {
				t.Fatal(err)
			}
		}
		for _, phase := range record.HarmonizationPhases() {
			if _, err := s.HarmonizePage(ctx, record.MaintenancePage{Caller: someone, Phase: phase, Limit: 1000}); err != nil {
				t.Fatal(err)
			}
		}
	}
	maintain()
	keyed := record.ProposeFact{Caller: record.Caller{Workspace: "demo", Agent: "mason", Key: "k1"}, Domain: "infra", Topic: "vault", Content: "The vault key is " + secret}
	p, err := s.ProposeFact(ctx, keyed)
	if err != nil || p.Status != record.StatusReMentioned {
		t.Fatalf("%+v, %v", p, err)
	}
	maintain()
	// It loses against one and wins over another, which quote it in reasons.
	rival := proposeFact(t, s, record.ProposeFact{Domain: "infra", Topic: "vault", Content: "The vault key is not " + secret, Veracity: "stated"})
	if _, err := s.RestoreFact(ctx, record.RestoreFact{Caller: someone, FactID: p.FactID}); err != nil && record.ErrorCode(err) != record.SupersedeInvalid {
		t.Fatal(err)
	}
	f := factOf(t, s, p.FactID)
	text := f.Content + " since Monday"
	if f.Active(s.Now()) {
		if _, err := s.UpdateFact(ctx, record.UpdateFact{Caller: someone, FactID: f.ID, ExpectedVersion: f.Version, Content: &text}); err != nil {
			t.Fatal(err)
		}
	}
	if !onDisk(t, dir, secret) {
		t.Fatal("the word is not in the files to begin with")
	}

	for _, id := range []string{rival.FactID, p.FactID} {
		del := record.DeleteFact{Caller: someone, FactID: id}
		del.Key = "delete-" + id
		if _, err := s.DeleteFact(ctx, del); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteFact(ctx, del); err != nil {
			t.Errorf("the same call again: %v", err)
		}
	}
	gone := func(when string) {
		t.Helper()
		if got := holding(t, s, secret); len(got) != 0 {
			t.Errorf("%s the index finds %v", when, got)
		}
		err := s.View(ctx, func(v *View) error {
			if n, err := v.Frequencies([]string{secret}); err != nil || len(n) != 0 {
				t.Errorf("%s the word counts %v, %v", when, n, err)
			}
			if _, err := v.Fact(p.FactID); record.ErrorCode(err) != record.NotFound {
				t.Errorf("%s the fact is there: %v", when, err)
			}
			h, err := v.Health(true)
			if err == nil && !h.OK {
				t.Errorf("%s the file is not well: %v", when, h.Problems)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	gone("at once")
	if onDisk(t, dir, secret) {
		t.Error("the word is still in the files")
	}

	// Nothing brings it back.
	maintain()
	gone("after maintenance")
	if again, err := s.ProposeFact(ctx, keyed); err != nil || again.FactID != p.FactID {
		t.Errorf("a late retry answers %+v, %v", again, err)
	}
	gone("after a late retry")
	for name, req := range map[string]record.ProposeFact{
		"an old backup": {Veracity: "imported", Content: f.Content},
		"an echo":       {Content: "- [infra/vault] " + f.Content + " (confidence 0.7)"},
	} {
		req.Caller, req.Domain, req.Topic = record.Caller{Workspace: "demo", Agent: "scout"}, "infra", "vault"
		if _, err := s.ProposeFact(ctx, req); record.ErrorCode(err) != record.SupersedeInvalid && err == nil {
			gone("after " + name)
		}
	}
	if _, err := s.RestoreFact(ctx, record.RestoreFact{Caller: someone, FactID: p.FactID}); record.ErrorCode(err) != record.NotFound {
		t.Errorf("restoring says %v", err)
	}
}

// A read that began before the deletion keeps the words in the log. The caller
// learns it, and the same call again takes them out.
func TestStore_DeleteFact_whileRead(t *testing.T) {
	t.Parallel()
	const secret = "zanzibarquux"
	s, dir := openOnDisk(t, Options{})
	p := proposeFact(t, s, record.ProposeFact{Domain: "infra", Topic: "vault", Content: "The vault key is " + secret})
	reading, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.View(t.Context(), func(v *View) error {
			_, err := v.Fact(p.FactID)
			close(reading)
			<-done
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-reading
	del := record.DeleteFact{Caller: someone, FactID: p.FactID}
	del.Key = "delete"
	_, err := s.DeleteFact(t.Context(), del)
	wantCode(t, err, record.Unavailable)
	close(done)
	wg.Wait()
	if _, err := s.DeleteFact(t.Context(), del); err != nil {
		t.Fatal(err)
	}
	if onDisk(t, dir, secret) {
		t.Error("the word is still in the files")
	}
}

// The minutes of a meeting do not bring a deleted decision back, unless they are
// of a later day.
func TestStore_DeleteFact_meeting(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	s, _ := openOnDisk(t, Options{Now: func() time.Time { return now }})
	capture := func(revision int64, held time.Time) record.MeetingReport {
		t.Helper()
		m := record.CaptureMeeting{Caller: someone, MeetingID: "weekly", Revision: revision, HeldAt: record.At(held), Decisions: []record.Decision{
			{Text: "The gateway moves to Dublin.", Topic: "place"}, {Text: "The broker stays.", Topic: "broker"},
		}}
		r, err := s.CaptureMeetingPage(t.Context(), record.MeetingPage{CaptureMeeting: m, Last: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	held := now.Add(-time.Hour)
	first := capture(1, held)
	for _, id := range first.FactIDs {
		if f := factOf(t, s, id); f.Topic == "place" {
			if _, err := s.DeleteFact(t.Context(), record.DeleteFact{Caller: someone, FactID: id}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := capture(2, held); len(r.Failed) != 1 || r.Failed[0].Code != record.SupersedeInvalid || len(r.FactIDs) != 1 {
		t.Errorf("the next revision gives %+v", r)
	}
	now = now.Add(48 * time.Hour)
	if r := capture(3, now.Add(-time.Hour)); len(r.Failed) != 0 || len(r.FactIDs) != 2 {
		t.Errorf("a meeting of a later day gives %+v", r)
	}
}

// onDisk reports whether the word is in the bytes of the workspace's files.
func onDisk(t *testing.T, dir, word string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, FileName+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(raw, []byte(word)); at >= 0 {
			t.Logf("%s holds it at %d: %q", filepath.Base(name), at, raw[max(0, at-40):min(len(raw), at+60)])
			return true
		}
	}
	return false
}

func TestStore_policiesByHand(t *testing.T) {
	t.Parallel()
	s, _ := openOnDisk(t, Options{})
	ctx := context.Background()
	p, err := s.ProposePolicy(ctx, record.ProposePolicy{Caller: someone, Domain: "safety", Rule: "Wear a vest."})
	if err != nil {
		t.Fatal(err)
	}
	rule := "Wear a vest and a helmet."
	res, err := s.UpdatePolicy(ctx, record.UpdatePolicy{Caller: someone, PolicyID: p.PolicyID, ExpectedVersion: 1, Rule: &rule})
	if err != nil || res.Version != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := s.UpdatePolicy(ctx, record.UpdatePolicy{Caller: someone, PolicyID: p.PolicyID, ExpectedVersion: 1, Rule: &rule}); record.ErrorCode(err) != record.VersionConflict {
		t.Errorf("an old version: %v", err)
	}
	err = s.View(ctx, func(v *View) error {
		r, err := v.PolicyRecord(p.PolicyID, Scope{})
		if err == nil && (r.Rule != rule || len(r.Versions) != 1 || r.Versions[0].Rule != "Wear a vest.") {
			t.Errorf("the record is %+v", r)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.SetGrant(ctx, record.SetGrant{Caller: someone, ForRole: "qa", Domain: "safety", Level: "none"}); err != nil {
		t.Fatal(err)
	}
	qa := someone
	qa.Role = "qa"
	if _, err := s.DeletePolicy(ctx, record.DeletePolicy{Caller: qa, PolicyID: p.PolicyID}); record.ErrorCode(err) != record.InsufficientMemoryPermission {
		t.Errorf("without write: %v", err)
	}
	g, err := s.DeleteGrant(ctx, record.DeleteGrant{Caller: someone, ForRole: "qa", Domain: "safety"})
	if err != nil || g.Grant.Level != record.Read {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := s.DeletePolicy(ctx, record.DeletePolicy{Caller: someone, PolicyID: p.PolicyID}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeletePolicy(ctx, record.DeletePolicy{Caller: someone, PolicyID: p.PolicyID}); record.ErrorCode(err) != record.NotFound {
		t.Errorf("twice: %v", err)
	}
}
