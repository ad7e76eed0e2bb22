package recall

import (
	"slices"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// What several agents hold comes before what one says, of equal matches; it
// never comes before a better match.
func TestHybrid_beliefsFirst(t *testing.T) {
	t.Parallel()
	s := mustStore(t)
	say := func(agent, topic, content string) {
		t.Helper()
		who := caller
		who.Agent = agent
		if _, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: who, Domain: "harbour", Topic: topic, Content: content, MemoryType: "fact", OccurredAt: record.At(now)}); err != nil {
			t.Fatal(err)
		}
	}
	const held, lone, better = "The walrus crane lifts barley.", "The walrus winch lifts barley.", "The walrus winch lifts barley and zinc."
	say("a", "one", held)
	say("b", "two", held)
	say("a", "three", lone)
	say("a", "four", better)
	first := func(query string) string {
		t.Helper()
		found := contents(hybrid(t, s, query, 10))
		if len(found) == 0 {
			t.Fatalf("%q finds nothing", query)
		}
		return found[0]
	}
	if got := first("walrus barley"); got == held {
		t.Fatalf("%q comes first before anybody harmonized", got)
	}
	for _, phase := range record.HarmonizationPhases() {
		if _, err := s.HarmonizePage(t.Context(), record.MaintenancePage{Caller: caller, Phase: phase, Limit: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if got := first("walrus barley"); got != held {
		t.Errorf("%q comes first, want what two agents hold", got)
	}
	if got := first("walrus winch barley zinc"); got != better {
		t.Errorf("%q comes first, want the better match", got)
	}
	if found := contents(hybrid(t, s, "walrus barley", 10)); !slices.Contains(found, lone) {
		t.Errorf("%q is gone: %q", lone, found)
	}
}
