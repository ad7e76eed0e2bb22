package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

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
