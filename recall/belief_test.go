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
	// ahead is how far what two agents hold is ahead of what one says.
	ahead := func() float64 {
		t.Helper()
		best := map[string]float64{}
		for _, h := range hybrid(t, s, "walrus barley", 10) {
			best[h.Content] = max(best[h.Content], h.Score)
		}
		return best[held] - best[lone]
	}
	before := ahead()
	for _, phase := range record.HarmonizationPhases() {
		if _, err := s.HarmonizePage(t.Context(), record.MaintenancePage{Caller: caller, Phase: phase, Limit: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if after := ahead(); after <= max(0, before) {
		t.Errorf("what two agents hold is ahead by %v, and was by %v before anybody harmonized", after, before)
	}
	if got := first("walrus winch barley zinc"); got != better {
		t.Errorf("%q comes first, want the better match", got)
	}
	if found := contents(hybrid(t, s, "walrus barley", 10)); !slices.Contains(found, lone) {
		t.Errorf("%q is gone: %q", lone, found)
	}
}
