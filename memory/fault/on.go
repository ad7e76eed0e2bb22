//go:build faults

package fault

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// envKill arms one point: its name, a colon and at which passage of it the
	// process ends, counted from 1.
	envKill = "POLYPHONY_FAULT_KILL"
	// envClock seeds the disturbed clock.
	envClock = "POLYPHONY_FAULT_CLOCK"
)

// maxJump bounds how far the disturbed clock is off, either way. Twice as much
// is less than the hour within which two facts count as written in one breath,
// so that jumps change no weight of an edge.
const maxJump = 20 * time.Minute

// armed is what the environment asks for.
var armed = sync.OnceValue(func() (a struct {
	point Point
	at    int64
}) {
	name, at, _ := strings.Cut(os.Getenv(envKill), ":")
	n, err := strconv.ParseInt(at, 10, 64)
	if err == nil && n > 0 {
		a.point, a.at = Point(name), n
	}
	return a
})

var passed atomic.Int64

// Reach ends the process without any clean-up when p is the armed point and it
// is passed for the time that was asked for.
func Reach(p Point) {
	a := armed()
	if a.at == 0 || p != a.point || passed.Add(1) != a.at {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	// The signal is on its way; nothing may happen meanwhile.
	select {}
}

// Clock returns a clock that now and then jumps forward or back by up to
// maxJump, when the environment asks for one.
func Clock() func() time.Time {
	seed, err := strconv.ParseUint(os.Getenv(envClock), 10, 64)
	if err != nil {
		return nil
	}
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	var off time.Duration
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(10) == 0 {
			off = time.Duration(random.Int64N(int64(2*maxJump))) - maxJump
		}
		return time.Now().Add(off)
	}
}
