package soak

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

// trace reads what the worker's runtime prints under
// GODEBUG=gctrace=1,schedtrace=N,scheddetail=1: the live heap after each
// collection, and every N milliseconds the goroutines. The worker needs no door
// of its own for it.
type trace struct {
	mu         sync.Mutex
	line       []byte
	counting   int
	goroutines int
	heap       int
	other      bytes.Buffer // What the worker itself logs.
}

var (
	collection = regexp.MustCompile(`^gc \d+ @.* \d+->\d+->(\d+) MB,`)
	goroutine  = regexp.MustCompile(`^  G\d+: status=(\d+)`)
	detail     = regexp.MustCompile(`^(SCHED \d|  [PM]\d+: )`)
)

// dead is the status of a goroutine that ended and waits to be used again.
const dead = "6"

func (tr *trace) Write(b []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for rest := b; len(rest) > 0; {
		text, more, whole := bytes.Cut(rest, []byte("\n"))
		tr.line = append(tr.line, text...)
		if rest = more; whole {
			tr.take(tr.line)
			tr.line = tr.line[:0]
		}
	}
	return len(b), nil
}

func (tr *trace) take(line []byte) {
	if m := goroutine.FindSubmatch(line); m != nil {
		if string(m[1]) != dead {
			tr.counting++
		}
		return
	}
	// Goroutines come last in a report; the next line of another kind ends it.
	if tr.counting > 0 {
		tr.goroutines, tr.counting = tr.counting, 0
	}
	switch m := collection.FindSubmatch(line); {
	case m != nil:
		tr.heap, _ = strconv.Atoi(string(m[1])) // Digits.
	case !detail.Match(line):
		tr.other.Write(append(bytes.Clone(line), '\n'))
	}
}

// seen returns the last counts: goroutines, and megabytes of live heap.
func (tr *trace) seen() (goroutines, heap int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.goroutines, tr.heap
}

func (tr *trace) log() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.other.String()
}

func TestTrace(t *testing.T) {
	t.Parallel()
	tr := &trace{}
	for _, part := range []string{
		"SCHED 0ms: gomaxprocs=2 idleprocs=0\n  P0: status=1\n  M0: p=0\n  G1: status=2() m=0\n  G2: sta", "tus=6() m=nil\n  G3: status=4(select) m=nil\n",
		"time=1 level=INFO msg=ready\n", "gc 3 @1.2s 1%: 0.1+0.2+0.3 ms clock, 4->5->17 MB, 8 MB goal, 0 MB stacks\n",
	} {
		if n, err := tr.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	goroutines, heap := tr.seen()
	if goroutines != 2 || heap != 17 || tr.log() != "time=1 level=INFO msg=ready\n" {
		t.Errorf("%d goroutines, %d MB, log %q", goroutines, heap, tr.log())
	}
}

// TestFlat shows that the check bites.
func TestFlat(t *testing.T) {
	t.Parallel()
	var steady, leaking []sample
	for i := range 30 {
		s := sample{at: time.Duration(i) * time.Second, goroutines: 500 + i%3, heap: 80 + i%7, rss: 200 + i%5, files: 90 + i%2, wal: 4 + i%4}
		steady = append(steady, s)
		s.goroutines += 20 * i
		leaking = append(leaking, s)
	}
	if found := notFlat(steady); len(found) > 0 {
		t.Errorf("a steady run is %q", found)
	}
	if found := notFlat(leaking); len(found) != 1 {
		t.Errorf("a run that leaks goroutines is %q", found)
	}
}
