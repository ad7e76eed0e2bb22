//go:build faults

package fault

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	if Clock() != nil {
		t.Error("there is a clock that nobody asked for")
	}
	t.Setenv(envClock, "7")
	now := Clock()
	forward, back := 0, 0
	last := now()
	for range 1000 {
		real, at := time.Now(), now()
		// A second is more than passes between the two readings.
		if off := at.Sub(real).Abs(); off > maxJump+time.Second {
			t.Fatalf("the clock is off by %v", off)
		}
		switch step := at.Sub(last); {
		case step > time.Minute:
			forward++
		case step < -time.Minute:
			back++
		}
		last = at
	}
	if forward == 0 || back == 0 {
		t.Errorf("%d jumps forward, %d back", forward, back)
	}
}

// TestReach passes every point without one armed. That an armed one ends the
// process is what the harness lives on.
func TestReach(t *testing.T) {
	for _, p := range []Point{SchemaWritten, BatchBegun, OperationWritten, Committing, Committed, Answered} {
		Reach(p)
	}
}
