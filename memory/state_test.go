package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func readAll(tb testing.TB, s *Store, req record.ReadMemory) []string {
	tb.Helper()
	req.Workspace = "w"
	var out []string
	for {
		page, err := s.Read(tb.Context(), req)
		if err != nil {
			tb.Fatal(err)
		}
		for _, raw := range page.Items {
			out = append(out, string(raw))
		}
		if page.Next == "" {
			return out
		}
		req.Cursor = page.Next
	}
}

func TestStore_Episodes(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	add := func(task, role, content string) record.AppendEpisodeResult {
		t.Helper()
		res, err := s.AppendEpisode(t.Context(), record.AppendEpisode{Caller: agent("a"), TaskID: task, EpisodeRole: role, Content: content})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := add("order-7", "user", "Please order two crates of Ελιές for the quay café")
	add("order-7", "", "I will order the crates of olives")
	add("order-8", "user", "سفارش دو جعبه زیتون")
	again := add("order-8", "tool", "Please order two crates of Ελιές for the quay café")
	for n := range 12 {
		// Words that others say too tell less.
		add("small talk", "user", fmt.Sprintf("The weather on day %d is fine", n))
	}
	if first.ContentRef != again.ContentRef || first.EpisodeID == again.EpisodeID || !strings.HasPrefix(first.ContentRef, "sha256:") {
		t.Errorf("the same words twice: %+v and %+v", first, again)
	}
	search := func(task, query string) []string {
		t.Helper()
		var out []string
		mustView(t, s, func(v *View) error {
			rows, err := v.SearchEpisodes(task, query, 0, 10)
			for _, r := range rows {
				out = append(out, r.Value.TaskID+" "+r.Value.Role)
			}
			return err
		})
		return out
	}
	for _, tc := range []struct {
		task, query string
		want        []string
	}{
		{"", "crates", []string{"order-7 agent", "order-8 tool", "order-7 user"}},
		{"order-7", "ελιες crate", []string{"order-7 user", "order-7 agent"}},
		{"", "زيتون", []string{"order-8 user"}},
		{"order", "crates", nil}, {"", "the of", nil}, {"", `" OR *`, nil}, {"", "nothing", nil},
	} {
		if got := search(tc.task, tc.query); !slices.Equal(got, tc.want) {
			t.Errorf("%q in %q finds %q, want %q", tc.query, tc.task, got, tc.want)
		}
	}
	// Facts and episodes are apart.
	mustView(t, s, func(v *View) error {
		if n, err := v.Frequencies([]string{"crates"}); err != nil || len(n) != 0 {
			t.Errorf("the facts' index knows episodes: %v, %v", n, err)
		}
		h, err := v.Health(true)
		if h.Episodes != 16 || !h.OK {
			t.Errorf("health %+v", h)
		}
		return err
	})
	for _, limit := range []int{1, 2, 500} {
		all := readAll(t, s, record.ReadMemory{What: record.ReadEpisodes, Limit: limit})
		ranked := readAll(t, s, record.ReadMemory{What: record.ReadEpisodes, Query: "crates", Limit: limit})
		task := readAll(t, s, record.ReadMemory{What: record.ReadEpisodes, TaskID: "order-8", Limit: limit})
		if len(all) != 16 || len(ranked) != 3 || len(task) != 2 || ranked[0] == ranked[1] {
			t.Errorf("in pages of %d: %d, %d and %d episodes", limit, len(all), len(ranked), len(task))
		}
	}
	_, err := s.AppendEpisode(t.Context(), record.AppendEpisode{Caller: agent("a"), TaskID: "order-7", Content: " \u200b"})
	wantCode(t, err, record.ContentEmpty)
	_, err = s.AppendEpisode(t.Context(), record.AppendEpisode{Caller: agent("a"), Content: "x"})
	wantCode(t, err, record.InvalidArgument)
}

func TestView_FactsBySubject(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	mustPropose(t, s, req("gateway", "It listens on port 8080"))
	mustPropose(t, s, req("ports", "The API gateway answers on 8443"))
	mustPropose(t, s, req("billing", "Gateways are not billed"))
	mustPropose(t, s, req("🚀", "We launch on Mondays"))
	mustPropose(t, s, req("پورت ۸۰", "باز است"))
	mustPropose(t, s, req("cache", "The cache sits before the gateway"))
	mustPropose(t, s, req("gateway", "It listens on port 9090"))
	expiring := req("gateway owner", "Ada owns the gateway until spring")
	expiring.ValidUntil = record.At(clock.Now().Add(time.Hour))
	mustPropose(t, s, expiring)
	other := req("gateway", "The gateway of the web shop is nginx")
	other.Domain = "secret"
	mustPropose(t, s, other)
	clock.Advance(2 * time.Hour)
	if _, err := s.SetGrant(t.Context(), record.SetGrant{Caller: agent("a"), ForRole: "qa", Domain: "secret", Level: "none"}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, subject string
		req           record.ReadMemory
		want          []string
	}{
		{"topic and mentions", "Gateway", record.ReadMemory{}, []string{"The API gateway answers on 8443", "The cache sits before the gateway", "It listens on port 9090", "The gateway of the web shop is nginx"}},
		{"all", "gateway", record.ReadMemory{All: true, Domain: "infra"}, []string{"It listens on port 8080", "The API gateway answers on 8443", "The cache sits before the gateway", "It listens on port 9090", "Ada owns the gateway until spring"}},
		{"hidden", "gateway", record.ReadMemory{Caller: record.Caller{Role: "qa"}}, []string{"The API gateway answers on 8443", "The cache sits before the gateway", "It listens on port 9090"}},
		{"phrase", "api gateway", record.ReadMemory{}, []string{"The API gateway answers on 8443"}},
		{"a symbol", "🚀", record.ReadMemory{}, []string{"We launch on Mondays"}},
		{"a stop word", "on", record.ReadMemory{Domain: "infra"}, []string{"The API gateway answers on 8443", "We launch on Mondays", "It listens on port 9090"}},
		{"Persian", "پورت 80", record.ReadMemory{}, []string{"باز است"}},
		{"nothing", "lighthouse", record.ReadMemory{}, nil},
		{"syntax", `gateway" OR "cache`, record.ReadMemory{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, limit := range []int{1, 500} {
				r := tc.req
				r.What, r.Subject, r.Limit = record.ReadSubject, tc.subject, limit
				var got []string
				for _, raw := range readAll(t, s, r) {
					got = append(got, raw[strings.Index(raw, `"content":"`)+11:strings.Index(raw, `","confidence`)])
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("pages of %d: %q, want %q", limit, got, tc.want)
				}
			}
		})
	}
	_, err := s.Read(t.Context(), record.ReadMemory{Caller: caller, What: record.ReadSubject})
	wantCode(t, err, record.InvalidArgument)
}

func TestView_CheckStatements(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	mustPropose(t, s, req("deploy target", "The service deploys to prod"))
	now := mustPropose(t, s, req("deploy target", "The service deploys to staging"))
	mustPropose(t, s, req("gateway", "The gateway listens on port 9090"))
	mustPropose(t, s, req("queue", "Berth clerks consume from the green queue"))
	expiring := req("owner", "Ada owns the billing service")
	expiring.ValidUntil = record.At(clock.Now().Add(time.Hour))
	mustPropose(t, s, expiring)
	meet := meeting(1, record.Decision{Text: "The crane is painted red in June", Topic: "crane"})
	meet.Last = true
	if _, err := s.CaptureMeetingPage(t.Context(), meet); err != nil {
		t.Fatal(err)
	}
	meet.Revision, meet.Decisions = 2, nil
	if _, err := s.CaptureMeetingPage(t.Context(), meet); err != nil {
		t.Fatal(err)
	}
	secret := req("vault", "The vault opens with the code 4711")
	secret.Domain = "secret"
	mustPropose(t, s, secret)
	if _, err := s.SetGrant(t.Context(), record.SetGrant{Caller: agent("a"), ForRole: "qa", Domain: "secret", Level: "none"}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Hour)
	for _, tc := range []struct {
		statement string
		standing  record.Standing
		now       []string
	}{
		{"The service deploys to prod", record.StandingStale, []string{"The service deploys to staging"}},
		{"the service deploys to PROD.", record.StandingStale, []string{"The service deploys to staging"}},
		{"- [infra/deploy target] The service deploys to prod (confidence 0.7)", record.StandingStale, []string{"The service deploys to staging"}},
		{"The service deploys to staging", record.StandingCurrent, []string{"The service deploys to staging"}},
		{"The gateway listens on port 8080", record.StandingContradicted, []string{"The gateway listens on port 9090"}},
		{"The gateway does not listen on port 9090", record.StandingContradicted, []string{"The gateway listens on port 9090"}},
		{"The lighthouse is white", record.StandingUnknown, nil},
		{"Ada owns the billing service", record.StandingStale, nil},
		{"The crane is painted red in June", record.StandingStale, nil},
		{"The vault opens with the code 4711", record.StandingUnknown, nil},
		{"The vault opens with the code 4712", record.StandingUnknown, nil},
		{"", record.StandingUnknown, nil},
	} {
		var got record.CheckedStatement
		mustView(t, s, func(v *View) error {
			scope, err := v.Scope("", "", "qa")
			if err != nil {
				return err
			}
			rows, err := v.CheckStatements(scope, []string{tc.statement})
			if err == nil {
				got = rows[0]
			}
			return err
		})
		var says []string
		for _, n := range got.Now {
			says = append(says, n.Content)
		}
		if got.Standing != tc.standing || !slices.Equal(says, tc.now) || got.Statement != tc.statement {
			t.Errorf("%q is %s, now %q; want %s, %q", tc.statement, got.Standing, says, tc.standing, tc.now)
		}
	}
	rows := readAll(t, s, record.ReadMemory{What: record.ReadCheck, Context: []string{"The service deploys to prod", "The vault opens with the code 4711"}})
	if len(rows) != 2 || !strings.Contains(rows[0], now.FactID) || !strings.Contains(rows[1], `"current"`) {
		t.Errorf("read: %q", rows)
	}
	_, err := s.Read(t.Context(), record.ReadMemory{Caller: caller, What: record.ReadCheck, Context: make([]string, record.MaxContextStatements+1)})
	wantCode(t, err, record.InvalidArgument)
}

func TestStore_Read_obligations(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	for n := range 5 {
		open(t, s, fmt.Sprintf("step-%d", n))
	}
	commit(t, s, "a", "step-1", "")
	claim(t, s, "a", "step-2")
	if _, err := s.OpenObligation(t.Context(), record.OpenObligation{Caller: agent("a"), StepRef: record.StepRef{TaskID: "other", Step: "x"}, Deadline: record.At(clock.Now().Add(time.Hour))}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Hour)
	count := func(r record.ReadMemory) int {
		r.What, r.Limit = record.ReadObligations, 2
		return len(readAll(t, s, r))
	}
	if all, task, live, other := count(record.ReadMemory{}), count(record.ReadMemory{TaskID: "order-7"}), count(record.ReadMemory{OpenOnly: true}), count(record.ReadMemory{TaskID: "other", OpenOnly: true}); all != 6 || task != 5 || live != 4 || other != 0 {
		t.Errorf("%d in all, %d of the task, %d open, %d of the other", all, task, live, other)
	}
	mustView(t, s, func(v *View) error {
		h, err := v.Health(false)
		if h.Obligations != 4 || h.InDoubt != 1 {
			t.Errorf("health counts %d obligations, %d in doubt", h.Obligations, h.InDoubt)
		}
		return err
	})
}
