package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatEvery is how often an activity says that it lives: several times within
// the heartbeat timeout that workflows give.
const beatEvery = time.Second

// pulse tells the engine that an activity lives, and how far it is, even while
// one step of it takes long.
type pulse struct {
	ctx     context.Context
	mu      sync.Mutex
	details any
	stop    chan struct{}
	stopped sync.WaitGroup
}

// startPulse begins with details; the caller must end it.
func startPulse(ctx context.Context, details any) *pulse {
	p := &pulse{ctx: ctx, details: details, stop: make(chan struct{})}
	activity.RecordHeartbeat(ctx, details)
	p.stopped.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				p.beat()
			}
		}
	})
	return p
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	activity.RecordHeartbeat(p.ctx, p.details)
}

// set changes what is told from the next beat on.
func (p *pulse) set(details any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.details = details
}

func (p *pulse) end() {
	close(p.stop)
	p.stopped.Wait()
}
