package gateway_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const factsPath = "/workspaces/w/settings/memory"

// holds proposes facts straight to the store, in domain general unless said
// otherwise.
func (s *site) holds(facts ...record.ProposeFact) []string {
	s.t.Helper()
	var ids []string
	for _, f := range facts {
		f.Caller = record.Caller{Workspace: "w", Agent: "ada", Role: "coder"}
		if f.Domain == "" {
			f.Domain = "general"
		}
		err := s.memory.Workspaces.Use(s.t.Context(), "w", func(store *memory.Store) error {
			res, err := store.ProposeFact(s.t.Context(), f)
			ids = append(ids, res.FactID)
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return ids
}

// page reads a page that must be there.
func (s *site) page(path string) string {
	s.t.Helper()
	status, body := s.request(http.MethodGet, path, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s answers %d: %s", path, status, body)
	}
	return body
}

func wants(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func lacks(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, no := range all {
		if strings.Contains(body, no) {
			t.Errorf("the page holds %q", no)
		}
	}
}

func TestFactsPages(t *testing.T) {
	s := open(t)
	wants(t, s.page("/"), "No workspace yet")
	var all []record.ProposeFact
	for i := range 120 {
		all = append(all, record.ProposeFact{Topic: fmt.Sprintf("item %03d", i), Content: fmt.Sprintf("shelf %d holds box %d", i, 1000+i)})
	}
	s.holds(all...)
	first := s.page(factsPath + "?sort=topic&dir=asc")
	wants(t, first, "1–50 of 120 facts", "Page 1 of 3", ">item 000<", ">item 049<", `aria-sort="ascending"`, "key words only")
	lacks(t, first, ">item 050<")
	wants(t, s.page(factsPath+"?sort=topic&dir=asc&page=3"), "101–120 of 120 facts", ">item 119<")
	wants(t, s.page(factsPath+"?page=9"), "past the end")
	found := s.page(factsPath + "?q=box+1007")
	wants(t, found, "shelf 7 holds box 1007")
	wants(t, s.page(factsPath+"?q=zeppelin"), "No fact matches")
	wants(t, s.page("/"), `href="/workspaces/w/settings/memory"`)
}

// submit posts a form as the browser would from the same site.
func (s *site) submit(path string, form url.Values, headers ...string) (status int, body, location string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", s.url)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(raw), res.Header.Get("Location")
}

// hidden reads the fields that a form carries unseen.
func hidden(t testing.TB, body string) url.Values {
	t.Helper()
	out := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		out.Set(m[1], m[2])
	}
	if out.Get("expected_version") == "" || out.Get("key") == "" {
		t.Fatalf("the form has no version or key: %v", out)
	}
	return out
}

// edit fills the form that edits a fact.
func (s *site) edit(path string, change url.Values) url.Values {
	s.t.Helper()
	form := hidden(s.t, s.page(path))
	for k, v := range (url.Values{"topic": {"port"}, "content": {"the port is 9090"}, "confidence": {"0.7"}, "memory_type": {"fact"}, "veracity": {"inferred"}, "valid_until": {""}, "reason": {"seen"}}) {
		form[k] = v
	}
	for k, v := range change {
		form[k] = v
	}
	return form
}

func TestBrowserEditsFacts(t *testing.T) {
	s := open(t)
	fact := factsPath + "/facts/" + s.holds(record.ProposeFact{Topic: "port", Content: "the port is 8080"})[0]
	form := s.edit(fact+"/edit", nil)
	stale := s.edit(fact+"/edit", url.Values{"content": {"the port is 7070"}})
	for range 2 { // The second is a double click: the same form, the same answer.
		if status, body, to := s.submit(fact+"/edit", form); status != http.StatusSeeOther || to != fact+"?saved=1" {
			t.Fatalf("an edit answers %d to %q: %s", status, to, body)
		}
	}
	wants(t, s.page(fact+"?saved=1"), "the port is 9090", "<del>8080</del>", "<ins>9090</ins>", "seen", "by <bdi>browser</bdi>", "Saved.")

	status, body, _ := s.submit(fact+"/edit", stale)
	if status != http.StatusConflict {
		t.Errorf("an edit of an old version answers %d", status)
	}
	wants(t, body, "Somebody changed it since you read it", "<del>9090</del>", "<ins>7070</ins>", `value="2"`, "the port is 7070</textarea>")
	lacks(t, s.page(fact), "7070")
	for k, v := range hidden(t, body) {
		stale[k] = v
	}
	if status, body, _ := s.submit(fact+"/edit", stale); status != http.StatusSeeOther {
		t.Errorf("saving again answers %d: %s", status, body)
	}
	wants(t, s.page(fact), "the port is 7070")
}

func TestBrowserRefusesWrongEdits(t *testing.T) {
	s := open(t)
	ids := s.holds(record.ProposeFact{Topic: "port", Content: "the port is 8080"}, record.ProposeFact{Topic: "port", Content: "the proxy listens on 1080"})
	fact := factsPath + "/facts/" + ids[0]
	for _, c := range []struct {
		name   string
		change url.Values
		status int
		says   string
	}{
		{"no number", url.Values{"confidence": {"high"}}, http.StatusUnprocessableEntity, "confidence is a number"},
		{"past one", url.Values{"confidence": {"1.5"}}, http.StatusUnprocessableEntity, "Not saved"},
		{"not a number", url.Values{"confidence": {"NaN"}}, http.StatusUnprocessableEntity, "Not saved"},
		{"empty", url.Values{"content": {" \u200b "}}, http.StatusUnprocessableEntity, "Not saved"},
		{"too long", url.Values{"content": {strings.Repeat("x", record.MaxContentBytes+1)}}, http.StatusUnprocessableEntity, "Not saved"},
		{"not text", url.Values{"content": {"a\xff"}}, http.StatusUnprocessableEntity, "Not saved"},
		{"no such type", url.Values{"memory_type": {"rumour"}}, http.StatusUnprocessableEntity, "Not saved"},
		{"no such date", url.Values{"valid_until": {"tomorrow"}}, http.StatusUnprocessableEntity, "Not saved"},
		{"no version", url.Values{"expected_version": {""}}, http.StatusBadRequest, "which version was read"},
		{"a wrong key", url.Values{"key": {"ключ"}}, http.StatusUnprocessableEntity, "Not saved"},
		{"a twin", url.Values{"content": {"The proxy listens on 1080."}}, http.StatusUnprocessableEntity, "the same statement is active"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, _ := s.submit(fact+"/edit", s.edit(fact+"/edit", c.change))
			if status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("answers %d, want %d with %q", status, c.status, c.says)
			}
		})
	}
	if status, _, _ := s.submit(factsPath+"/facts/none/edit", s.edit(fact+"/edit", nil)); status != http.StatusNotFound {
		t.Errorf("an edit of nothing answers %d", status)
	}
	wants(t, s.page(fact), "the port is 8080")
}

func TestBrowserDeletes(t *testing.T) {
	s := open(t)
	id := s.holds(record.ProposeFact{Topic: "secret word", Content: "the password hint is swordfish"}, record.ProposeFact{Topic: "port", Content: "the port is 8080"})[0]
	fact := factsPath + "/facts/" + id
	form := hidden(t, s.page(fact+"/delete"))
	wants(t, s.page(fact), "swordfish") // Asking deletes nothing.
	if status, _, _ := s.submit(fact+"/delete", form, "Origin", "http://elsewhere.example"); status != http.StatusForbidden {
		t.Errorf("a form of another site answers %d", status)
	}
	if status, _, _ := s.submit(fact+"/delete", form, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("a request from another site answers %d", status)
	}
	old := url.Values{"expected_version": {"9"}, "key": {"k-9"}}
	if status, body, _ := s.submit(fact+"/delete", old); status != http.StatusConflict || !strings.Contains(body, "Nothing was deleted") {
		t.Errorf("deleting an old version answers %d", status)
	}
	for range 2 {
		if status, body, to := s.submit(fact+"/delete", form); status != http.StatusSeeOther || to != factsPath+"?deleted=1" {
			t.Fatalf("deleting answers %d to %q: %s", status, to, body)
		}
	}
	for _, path := range []string{"?deleted=1", "?all=1", "?q=swordfish", "/graph", "/graph.json", "/conflicts?all=1"} {
		body := s.page(factsPath + path)
		if body = strings.ReplaceAll(body, `value="swordfish"`, ""); strings.Contains(body, "swordfish") {
			t.Errorf("%s still has the words", path)
		}
	}
	if status, _ := s.request(http.MethodGet, fact, ""); status != http.StatusNotFound {
		t.Errorf("the page of a deleted fact answers %d", status)
	}
}

func TestBrowserPolicies(t *testing.T) {
	s := open(t)
	var id string
	err := s.memory.Workspaces.Use(t.Context(), "w", func(store *memory.Store) error {
		res, err := store.ProposePolicy(t.Context(), record.ProposePolicy{Caller: record.Caller{Workspace: "w", Agent: "ada"}, Domain: "ops", Rule: "ask before a restart"})
		id = res.PolicyID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	policy := factsPath + "/policies/" + id
	wants(t, s.page(factsPath+"/policies"), "ask before a restart")
	wants(t, s.page(factsPath+"/policies?q=restart"), "ask before a restart")
	wants(t, s.page(factsPath+"/policies?q=zeppelin"), "No policy matches")
	form := hidden(t, s.page(policy+"/edit"))
	form.Set("rule", "ask twice before a restart")
	form.Set("required_role", "devops")
	stale := url.Values{"expected_version": form["expected_version"], "key": {"other"}, "rule": {"never restart"}, "required_role": {""}}
	for range 2 {
		if status, body, _ := s.submit(policy+"/edit", form); status != http.StatusSeeOther {
			t.Fatalf("an edit answers %d: %s", status, body)
		}
	}
	wants(t, s.page(policy), "<ins>twice </ins>", "every role", "devops")
	if status, body, _ := s.submit(policy+"/edit", stale); status != http.StatusConflict || !strings.Contains(body, "Somebody changed it") {
		t.Errorf("an edit of an old version answers %d", status)
	}
	if status, _, to := s.submit(policy+"/delete", hidden(t, s.page(policy+"/delete"))); status != http.StatusSeeOther || to != factsPath+"/policies?deleted=1" {
		t.Errorf("deleting answers %d to %q", status, to)
	}
	wants(t, s.page(factsPath+"/policies?deleted=1"), "No policy stands", "Deleted.")
}

func TestBrowserConflicts(t *testing.T) {
	s := open(t)
	s.holds(record.ProposeFact{Topic: "deploys", Content: "the service deploys to prod", Veracity: "stated"}, record.ProposeFact{Topic: "deploys", Content: "the service deploys to staging", Veracity: "stated"})
	wants(t, s.page(factsPath+"/conflicts"), "Nothing waits for a decision")
	body := s.page(factsPath + "/conflicts?all=1")
	wants(t, body, "the service deploys to prod", "the service deploys to staging", "Why:", "side won", "side lost")
	ids := s.holds(record.ProposeFact{Topic: "tickets", Content: "Tickets are tracked in Redmine."}, record.ProposeFact{Topic: "tickets", Content: "We moved our tickets from Redmine to Linear."})
	waiting := s.page(factsPath + "/conflicts")
	wants(t, waiting, "Tickets are tracked in Redmine.", "We moved our tickets from Redmine to Linear.", "This one holds", "Both hold")
	action := regexp.MustCompile(`action="(/workspaces/w/settings/memory/conflicts/[^"]+)"`).FindStringSubmatch(waiting)
	if action == nil {
		t.Fatal("there is no form to decide with")
	}
	if status, _, _ := s.submit(action[1], url.Values{"winner": {"neither"}}); status != http.StatusBadRequest {
		t.Errorf("a decision for neither answers %d", status)
	}
	if status, _, to := s.submit(action[1], url.Values{"winner": {ids[1]}}); status != http.StatusSeeOther || to != factsPath+"/conflicts?resolved=1" {
		t.Errorf("a decision answers %d to %q", status, to)
	}
	if status, _, _ := s.submit(action[1], url.Values{"winner": {ids[0]}}); status != http.StatusConflict {
		t.Errorf("a second decision answers %d", status)
	}
	wants(t, s.page(factsPath+"/conflicts?resolved=1"), "Decided.", "Nothing waits for a decision")
	loser := factsPath + "/facts/" + ids[0]
	wants(t, s.page(loser), "Another fact took its place", "Restore")
	if status, _, _ := s.submit(loser+"/restore", url.Values{"key": {"again"}}); status != http.StatusSeeOther {
		t.Errorf("restoring answers %d", status)
	}
	wants(t, s.page(loser+"?restored=1"), "Restored.", "Edit")
	if status, _, _ := s.submit(factsPath+"/conflicts/none", url.Values{"winner": {"both"}}); status != http.StatusNotFound {
		t.Errorf("a decision on nothing answers %d", status)
	}
}

// TestBrowserShowsTextAsText puts script-like text into every field that an
// agent may write, and reads every page.
func TestBrowserShowsTextAsText(t *testing.T) {
	s := open(t)
	const nasty = `"><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}' onfocus='alert(3)`
	err := s.memory.Workspaces.Use(t.Context(), "w", func(store *memory.Store) error {
		caller := record.Caller{Workspace: "w", Agent: nasty}
		_, err := store.ProposePolicy(t.Context(), record.ProposePolicy{Caller: caller, Domain: nasty, Rule: nasty})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	id := s.holds(record.ProposeFact{Domain: nasty, Topic: nasty, Content: nasty})[0]
	policies, err := gateway.ReadPage[record.Policy](t.Context(), s.memory, record.ReadMemory{Caller: record.Caller{Workspace: "w"}, What: record.ReadPolicies})
	if err != nil {
		t.Fatal(err)
	}
	fact, policy := "/facts/"+id, "/policies/"+policies.Items[0].ID
	for _, path := range []string{
		"", "?q=" + url.QueryEscape(nasty), "?domain=" + url.QueryEscape(nasty), "?sort=topic&dir=" + url.QueryEscape(nasty), fact, fact + "/edit", fact + "/delete",
		"/policies", "/policies?q=" + url.QueryEscape(nasty), policy, policy + "/edit", policy + "/delete", "/graph", "/conflicts?all=1", "/beliefs",
	} {
		lacks(t, s.page(factsPath+path), "<script>alert", "<img src=x", "' onfocus='")
	}
	for _, path := range []string{"?type=" + url.QueryEscape(nasty), "?sort=" + url.QueryEscape(nasty), "/conflicts?cursor=%00", "/policies?cursor=" + url.QueryEscape(nasty), "/facts/" + url.PathEscape(nasty), "/policies/..%2F..%2Fetc"} {
		status, body := s.request(http.MethodGet, factsPath+path, "")
		if status == http.StatusInternalServerError || status == http.StatusServiceUnavailable {
			t.Errorf("%s answers %d", path, status)
		}
		lacks(t, body, "<script>alert", "<img src=x", "' onfocus='")
	}
	if status, _ := s.request(http.MethodGet, "/workspaces/..%2F..%2Fw/settings/memory", ""); status != http.StatusBadRequest {
		t.Errorf("a path as a workspace answers %d", status)
	}
}

func TestBrowserHeaders(t *testing.T) {
	s := open(t)
	s.holds(record.ProposeFact{Topic: "port", Content: "the port is 8080"})
	get := func(path string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	page := get(factsPath)
	csp := page.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %q", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || page.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the headers are %v", page.Header)
	}
	if again := get(factsPath, "If-None-Match", page.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("an unchanged page answers %d", again.StatusCode)
	}
	s.holds(record.ProposeFact{Topic: "host", Content: "the host is alpha"})
	if again := get(factsPath, "If-None-Match", page.Header.Get("ETag")); again.StatusCode != http.StatusOK {
		t.Errorf("a changed page answers %d", again.StatusCode)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllStringSubmatch(s.page(factsPath+"/graph"), -1) {
		if res := get(m[1]); res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s answers %d, %v", m[1], res.StatusCode, res.Header)
		}
	}
	for path, want := range map[string]int{"/assets/none.js": http.StatusNotFound, "/nowhere": http.StatusNotFound, "/workspaces/unknown/settings/memory": http.StatusNotFound, "/assets/../handler.go": http.StatusNotFound} {
		if res := get(path); res.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, res.StatusCode, want)
		}
	}
}

func TestBrowserAsksForAToken(t *testing.T) {
	s := open(t)
	s.holds(record.ProposeFact{Topic: "port", Content: "the port is 8080"})
	secret, _ := s.token("w", "maria", "pm")
	other, _ := s.token("other", "maria", "pm")
	basic := func(token string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+token))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+factsPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("without a token a page answers %d, %v", res.StatusCode, res.Header)
	}
	for _, c := range []struct {
		token  string
		status int
	}{{secret, http.StatusOK}, {other, http.StatusForbidden}, {"wrong", http.StatusUnauthorized}} {
		if status, _ := s.request(http.MethodGet, factsPath, "", "Authorization", basic(c.token)); status != c.status {
			t.Errorf("a page answers %d, want %d", status, c.status)
		}
	}
	_, list := s.request(http.MethodGet, "/", "", "Authorization", basic(other))
	lacks(t, list, "/workspaces/w/")
	if status, _ := s.request(http.MethodPost, "/rpc", "{}", "Authorization", basic(secret), "Content-Type", "application/json"); status != http.StatusUnauthorized {
		t.Errorf("a program with a person's way in is answered with %d", status)
	}
}
