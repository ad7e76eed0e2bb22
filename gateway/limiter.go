package gateway

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// failuresAllowed is how many calls of one address may fail to say who
	// calls within failureWindow before it is told to wait.
	failuresAllowed = 20
	failureWindow   = time.Minute
	// failureAddresses bounds the addresses that are remembered.
	failureAddresses = 4096
)

// limiter counts failures to authenticate by address. It slows down guessing
// and keeps the log short. A good token passes it: the token's 256 random bits
// are what keeps guessers out, and one bad client must not lock out the others
// behind its address.
type limiter struct {
	now func() time.Time

	mu   sync.Mutex
	seen *simplelru.LRU[string, *failures]
}

type failures struct {
	since time.Time
	count int
}

func newLimiter(now func() time.Time) *limiter {
	// The size is a constant above zero, the only thing that is checked.
	seen, _ := simplelru.NewLRU[string, *failures](failureAddresses, nil)
	return &limiter{now: now, seen: seen}
}

// failed counts a failure. Once there are too many it returns how long the
// address has to wait.
func (l *limiter) failed(remote string) (wait time.Duration, limited bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	f, ok := l.seen.Get(host)
	if !ok || now.Sub(f.since) >= failureWindow {
		f = &failures{since: now}
		l.seen.Add(host, f)
	}
	f.count++
	return f.since.Add(failureWindow).Sub(now), f.count > failuresAllowed
}
