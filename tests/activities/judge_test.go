package activities

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/polyphony-memory/polyphony/activities"
	"github.com/polyphony-memory/polyphony/activities/judge"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// court is the judge's activities in front of a stub endpoint.
type court struct {
	*bench
	asked int
}

// newCourt answers every question with what say makes of its id.
func newCourt(t *testing.T, say func(b *bench, id string) string) *court {
	t.Helper()
	c := &court{bench: newBench(t)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked++
		var body struct{ Messages []struct{ Content string } }
		var q judge.Question
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) != 2 {
			t.Errorf("%v: %+v", err, body)
			return
		}
		if err := json.Unmarshal([]byte(body.Messages[1].Content), &q); err != nil {
			t.Error(err)
		}
		raw, err := json.Marshal(say(c.bench, q.ID))
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%s}}]}`, raw)
	}))
	t.Cleanup(server.Close)
	client, err := judge.New(judge.Config{URL: server.URL, Model: "small"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	c.env = suite.NewTestActivityEnvironment()
	c.env.RegisterActivity(&activities.Store{Workspaces: c.workspaces})
	c.env.RegisterActivity(&activities.Judge{Workspaces: c.workspaces, Client: client})
	return c
}

// suspected leaves a suspected pair and returns its row.
func (b *bench) suspected() string {
	b.t.Helper()
	var id string
	err := b.workspaces.Use(b.t.Context(), workspace, func(s *memory.Store) error {
		for _, content := range []string{"Tickets are tracked in Redmine.", "We moved our tickets from Redmine to Linear."} {
			out, err := s.ProposeFact(b.t.Context(), record.ProposeFact{Caller: who(""), Domain: "harbour", Topic: "tickets", Content: content})
			if err != nil {
				return err
			}
			for _, c := range out.Conflicts {
				id = c.ID
			}
		}
		return nil
	})
	if err != nil || id == "" {
		b.t.Fatalf("no suspected pair: %v", err)
	}
	return id
}

func (c *court) ask(id string) (record.Judgement, error) {
	c.t.Helper()
	raw, err := c.run(workflows.ActivityAskJudge, record.AskJudge{Caller: who(""), ConflictID: id})
	var out record.Judgement
	if err == nil {
		err = json.Unmarshal([]byte(raw), &out)
	}
	return out, err
}

func TestAskJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		say      func(id string) string
		relation string
	}{
		{"a verdict", func(id string) string { return `{"id":"` + id + `","relation":"contradiction","reason":"moved"}` }, "contradiction"},
		{"prose", func(string) string { return "It is hard to tell." }, ""},
		{"another pair", func(string) string { return `{"id":"019a0000","relation":"contradiction"}` }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// A proposal passes while the judge thinks: nobody holds the file.
			court := newCourt(t, func(b *bench, id string) string {
				if _, err := b.run(workflows.ActivityProposeFact, record.ProposeFact{Caller: who(""), Domain: "harbour", Topic: "cranes", Content: "Crane 4 is green."}); err != nil {
					t.Errorf("a proposal waits for the judge: %v", err)
				}
				return c.say(id)
			})
			id := court.suspected()
			got, err := court.ask(id)
			if err != nil || got.Relation != c.relation || got.Judge != "small" || got.Words == "" || got.ConflictID != id {
				t.Errorf("%+v %v, want the relation %q", got, err, c.relation)
			}
			if c.relation == "" {
				return
			}
			if _, err := court.run(workflows.ActivityRecordJudgement, record.RecordJudgement{Caller: who("k"), Judgement: got}); err != nil {
				t.Error(err)
			}
			if _, err := court.ask(id); record.ErrorCode(workflows.FromTemporal(err)) != record.SupersedeInvalid {
				t.Errorf("a settled pair: %v, want SupersedeInvalid", err)
			}
		})
	}
}

// A judge that always says contradiction is not even asked about statements
// that have nothing in common, and rows of other kinds are none of its business
// (situation E13).
func TestAskJudge_notAsked(t *testing.T) {
	t.Parallel()
	court := newCourt(t, func(_ *bench, id string) string { return `{"id":"` + id + `","relation":"contradiction"}` })
	id := court.suspected()
	path := filepath.Join(court.data, "workspaces", workspace, memory.FileName)
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=busy_timeout(10000)"}).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "UPDATE facts SET content = 'The lobby has a piano.' WHERE content LIKE 'We moved%'"); err != nil {
		t.Fatal(err)
	}
	if got, err := court.ask(id); err != nil || got.Relation != "" || got.Words == "" {
		t.Errorf("%+v %v, want no relation", got, err)
	}
	for _, other := range []string{court.conflict, "nowhere"} {
		if _, err := court.ask(other); err == nil {
			t.Errorf("the judge was asked about %s", other)
		}
	}
	if court.asked > 0 {
		t.Errorf("%d questions", court.asked)
	}
}

// A judge that cannot be reached is asked again, three times, and then the pair
// stays open.
func TestAskJudge_unreachable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	client, err := judge.New(judge.Config{URL: server.URL, Model: "small"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	b.env.RegisterActivity(&activities.Judge{Workspaces: b.workspaces, Client: client})
	id := b.suspected()
	_, err = b.run(workflows.ActivityAskJudge, record.AskJudge{Caller: who(""), ConflictID: id})
	if record.ErrorCode(workflows.FromTemporal(err)) != record.Unavailable {
		t.Errorf("%v, want Unavailable, so that it is asked again", err)
	}
}

func TestListSuspicions_withoutJudge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env.RegisterActivity(&activities.Judge{Workspaces: b.workspaces})
	b.suspected()
	raw, err := b.run(workflows.ActivityListSuspicions, record.ListSuspicions{Caller: who(""), Limit: 10})
	if err != nil || raw != `{"conflict_ids":[]}` {
		t.Errorf("%s %v, want none", raw, err)
	}
}
