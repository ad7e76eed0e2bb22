package endtoend

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// tourEnd starts the tour's last paragraph, and tourLast is the number of the
// commands in it.
const (
	tourEnd      = "\nThe worker keeps running. Try next, in another terminal:\n"
	tourCommands = 3
)

// tour runs the worker with --tour and returns what it printed.
func tour(t *testing.T, p *process) string {
	t.Helper()
	eventually(t, time.Minute, "the tour ends", func() bool {
		if p.gone() {
			t.Fatalf("the worker ended: %s", tail(p.stderr.String(), 10))
		}
		_, next, found := strings.Cut(p.stdout.String(), tourEnd)
		return found && strings.Count(next, "\n") == tourCommands
	})
	return p.stdout.String()
}

func TestTour(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--tour")
	out := tour(t, p)
	rest := out
	for _, scene := range []string{"A tour of polyphony", "\n1. Facts: ", "\n2. Policies: ", "\n3. Working memory: ", "\n4. A meeting, ", "\n5. Consolidation: ", "\n6. Dispatch: ", tourEnd} {
		var found bool
		if _, rest, found = strings.Cut(rest, scene); !found {
			t.Fatalf("the tour lacks %q, or has it too early:\n%s", scene, out)
		}
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "  go run ./starter -w tour ") {
			t.Errorf("the next steps hold %q", line)
		}
	}
	for _, want := range []string{"refined, confidence", "re-mentioned, confidence", "revision 2 drops one: 0 added, 1 confirmed, 1 withdrawn", "promoted 1", "Run the test suite before you push."} {
		if !strings.Contains(out, want) {
			t.Errorf("the tour lacks %q:\n%s", want, out)
		}
	}
	// The worker serves on, and what the tour told of is there.
	facts := must[[]record.Fact](t)(workflows.ReadAll[record.Fact](timed(t), p.client(), record.ReadMemory{Caller: caller("tour"), What: record.ReadFacts, All: true}))
	t.Logf("the tour left %d facts, current or not", len(facts))
	if len(facts) == 0 {
		t.Error("the tour's workspace is empty")
	}
	if code, took := p.terminate(); code != 0 {
		t.Errorf("exit code %d after %v", code, took)
	}

	again := start(t, p.data, "--tour")
	if second := tour(t, again); !strings.Contains(second, `in the workspace "tour-2"`) || strings.ReplaceAll(second, "tour-2", "tour") != out {
		t.Errorf("the second tour differs in more than its workspace:\n%s", second)
	}
	if code, _ := again.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestREADMETour compares what README.md shows of the tour with what it
// prints.
func TestREADMETour(t *testing.T) {
	t.Parallel()
	const marker = "<!-- tour -->\n"
	readme, err := os.ReadFile("../../README.md")
	if os.IsNotExist(err) {
		t.Skip("there is no README.md yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), marker)
	if !found {
		t.Skip("README.md does not show the tour yet")
	}
	fence, rest, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n")
	ticks := fence[:len(fence)-len(strings.TrimLeft(fence, "`"))]
	if len(ticks) < 3 {
		t.Fatalf("after the marker comes %q, want a fenced block", fence)
	}
	shown, _, found := strings.Cut(rest, "\n"+ticks+"\n")
	if !found {
		t.Fatal("the block after the marker has no end")
	}
	p := start(t, t.TempDir(), "--tour")
	if got := tour(t, p); got != shown+"\n" {
		t.Errorf("the tour prints\n%s\nand README.md shows\n%s", got, shown)
	}
}
