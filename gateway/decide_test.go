package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// The same decision on a conflict, made twice and by whatever surface, is
// answered as the first time; the opposite one is refused in words.
func TestDecidedTwice(t *testing.T) {
	t.Parallel()
	s := open(t)
	agent := s.agent("Polyphony-Workspace", "w", "Polyphony-Agent", "scout")
	mcp := func(conflict, winner string) (record.Conflict, string) {
		out, failed := tried[record.ResolveConflictResult](t, agent, "resolve_conflict", args{"conflict_id": conflict, "winner": winner})
		return out.Conflict, failed
	}
	rpc := func(conflict, winner string) (out record.Conflict, failed string) {
		a := s.rpc("memory_conflict.resolve", args{"workspace": "w", "agent": "mason", "conflict_id": conflict, "winner": winner})
		if a.Error != nil {
			return out, string(a.Error.Data.Code) + ": " + a.Error.Message
		}
		var res record.ResolveConflictResult
		if err := json.Unmarshal(a.Result, &res); err != nil {
			t.Fatal(err)
		}
		return res.Conflict, ""
	}
	// A page answers with the list; what was recorded is read after it.
	browser := func(conflict, winner string) (record.Conflict, string) {
		status, body, _ := s.submit(factsPath+"/conflicts/"+conflict, url.Values{"winner": {winner}})
		if status != http.StatusSeeOther {
			if status != http.StatusConflict || !strings.Contains(body, "decided already") {
				t.Errorf("the page answers %d: %s", status, body)
			}
			return record.Conflict{}, "SupersedeInvalid: " + body
		}
		for _, c := range ask[struct{ Items []record.Conflict }](s, "memory_conflict.list", args{"workspace": "w"}).Items {
			if c.ID == conflict {
				return c, ""
			}
		}
		t.Fatalf("the conflict %s is gone", conflict)
		return record.Conflict{}, ""
	}
	surfaces := map[string]func(conflict, winner string) (record.Conflict, string){"mcp": mcp, "rpc": rpc, "browser": browser}
	for name, decide := range surfaces {
		for _, both := range []bool{false, true} {
			topic := name + map[bool]string{true: " both", false: " one"}[both]
			ids := s.holds(record.ProposeFact{Topic: topic, Content: "Tickets are tracked in Redmine."}, record.ProposeFact{Topic: topic, Content: "We moved our tickets from Redmine to Linear."})
			waiting := ask[struct{ Items []record.Conflict }](s, "memory_conflict.list", args{"workspace": "w", "open_only": true}).Items
			if len(waiting) != 1 {
				t.Fatalf("%d conflicts wait", len(waiting))
			}
			id, winner, opposite := waiting[0].ID, ids[1], ids[0]
			if both {
				winner = "both"
			}
			first, failed := decide(id, winner)
			if failed != "" || first.Open || first.ResolvedBy == "" {
				t.Fatalf("%s: the decision answers %q, %+v", topic, failed, first)
			}
			for again, decide := range surfaces {
				if got, failed := decide(id, winner); failed != "" || got.ID != first.ID || got.Resolution != first.Resolution || got.Winner != first.Winner || got.Loser != first.Loser || got.ResolvedBy != first.ResolvedBy || !got.ClosedAt.Equal(first.ClosedAt.Time) {
					t.Errorf("%s: the same decision by %s answers %q, %+v; want %+v", topic, again, failed, got, first)
				}
				if _, failed := decide(id, opposite); !strings.HasPrefix(failed, string(record.SupersedeInvalid)+": ") || !strings.Contains(failed, "decided already") {
					t.Errorf("%s: the opposite decision by %s answers %q", topic, again, failed)
				}
			}
		}
	}
}

// What was deleted is not there the second time.
func TestDeletedTwice(t *testing.T) {
	t.Parallel()
	s := open(t)
	ids := s.holds(record.ProposeFact{Topic: "a", Content: "Rowing boats are blue."}, record.ProposeFact{Topic: "b", Content: "Ferries are white."})
	del := args{"workspace": "w", "fact_id": ids[0]}
	ask[record.DeleteFactResult](s, "memory_fact.delete", del)
	if a := s.rpc("memory_fact.delete", del); a.Error == nil || a.Error.Data.Code != record.NotFound {
		t.Errorf("deleting again answers %s, %+v", a.Result, a.Error)
	}
	// A call that is only repeated, because its answer was lost, is not another.
	del = args{"workspace": "w", "fact_id": ids[1], "key": "once"}
	for range 2 {
		ask[record.DeleteFactResult](s, "memory_fact.delete", del)
	}
	for _, id := range ids {
		if status, body, _ := s.submit(factsPath+"/facts/"+id+"/delete", url.Values{"key": {"other"}, "expected_version": {"1"}}); status != http.StatusNotFound {
			t.Errorf("the page of a deleted fact answers %d: %s", status, body)
		}
	}
}
