package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestChaos kills the worker at random and at named points while a mixed load
// runs, and compares what is left with what was acknowledged and with an
// uninterrupted run of the same seed.
func TestChaos(t *testing.T) {
	s := readSettings(t)
	whole, broken := newRun(t.TempDir(), newPlan(s)), newRun(t.TempDir(), newPlan(s))
	began := time.Now()
	if err := whole.uninterrupted(t.Context()); err != nil {
		t.Fatal(err)
	}
	tookWhole := time.Since(began)
	began = time.Now()
	k, err := broken.interrupted(t.Context(), s.seed, s.kills, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	tookBroken := time.Since(began)
	f, err := broken.audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if g, err := whole.audit(t.Context()); err != nil || len(g.lost)+len(g.doubled)+len(g.problems) > 0 {
		t.Errorf("the uninterrupted run: %v, lost %q, doubled %q, problems %q", err, g.lost, g.doubled, g.problems)
	}
	for what, found := range map[string][]string{"lost": f.lost, "doubled": f.doubled, "unsound": f.problems} {
		for _, one := range found[:min(len(found), 10)] {
			t.Errorf("%s: %s", what, one)
		}
	}
	compared, different := 0, 0
	for _, l := range whole.plan.facts {
		want, err := substance(t.Context(), whole.data, l.of)
		if err != nil {
			t.Fatal(err)
		}
		have, err := substance(t.Context(), broken.data, l.of)
		if err != nil {
			t.Fatal(err)
		}
		compared += len(want)
		for _, line := range differences(want, have) {
			if different++; different <= 20 {
				t.Errorf("%s: %.400s", l.of, line)
			}
		}
	}
	if k.total() != s.kills || f.acknowledged != broken.plan.total() {
		t.Errorf("%d kills and %d answers, want %d and %d", k.total(), f.acknowledged, s.kills, broken.plan.total())
	}
	var points []string
	for _, p := range slices.Sorted(maps.Keys(k.byPoint)) {
		points = append(points, fmt.Sprintf("%s %d", p, k.byPoint[p]))
	}
	t.Logf(`seed %d, %d workspaces, %d lanes of calls, up to %d new calls at once
kills                          %d
  at a random moment           %d
  before the worker was ready  %d
  at a named point             %d (%s)
engine files lost              %d
files looked at after a kill   %d
calls acknowledged             %d, of them with an effect %d
attempts repeated              %d
lost                           %d
doubled                        %d
checks of files                %d, problems %d
rows compared                  %d, different %d
time                           %v, uninterrupted %v`,
		s.seed, s.workspaces, len(broken.plan.lanes), callers,
		k.total(), k.random, k.starting, k.total()-k.random-k.starting, strings.Join(points, ", "),
		k.engines, k.looked, f.acknowledged, f.effects, broken.repeats,
		len(f.lost), len(f.doubled), f.checks, len(f.problems), compared, different,
		tookBroken.Round(time.Second), tookWhole.Round(time.Second))
}

// differences returns the lines that one side has and the other has not.
func differences(want, have []string) (out []string) {
	count := map[string]int{}
	for _, line := range have {
		count[line]++
	}
	for _, line := range want {
		if count[line]--; count[line] < 0 {
			out = append(out, "missing "+line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(count)) {
		for range count[line] {
			out = append(out, "too much "+line)
		}
	}
	return out
}
