package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/polyphony-memory/polyphony/memory/fault"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// callers is how many lanes make a new call at once. A call that is repeated
	// after a kill, and may wait for the engine, takes no one's turn.
	callers = 10
	// sameCall is how many calls there are to one that two callers make at once.
	sameCall = 12
	// againAfter is how long a caller waits after an answer of Unavailable from
	// a worker that lives.
	againAfter = 50 * time.Millisecond
)

// acknowledged is one call with its answer.
type acknowledged struct {
	lane string
	call call
	// code is the refusal, empty for an effect.
	code   record.Code
	answer any
}

// run is one execution of a plan on a data folder.
type run struct {
	data string
	plan *plan

	acks  atomic.Int64
	turns chan struct{}

	mu sync.Mutex
	// alive is the present life, nil between two; changed is closed when that
	// changes.
	alive   *life
	changed chan struct{}
	log     []acknowledged
	// repeats counts attempts that were not the first of their call.
	repeats int
}

func newRun(data string, p *plan) *run {
	return &run{data: data, plan: p, turns: make(chan struct{}, callers), changed: make(chan struct{})}
}

// publish makes l the present life; nil is none.
func (r *run) publish(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = l
	close(r.changed)
	r.changed = make(chan struct{})
}

// current returns the present life, and waits for one when there is none.
func (r *run) current(ctx context.Context) (*life, error) {
	for {
		r.mu.Lock()
		l, changed := r.alive, r.changed
		r.mu.Unlock()
		if l != nil && l.ctx.Err() == nil {
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// drive makes all calls of the plan and returns when each was answered. The
// first error ends it.
func (r *run) drive(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	byWorkspace := map[string][]int{}
	for i, l := range r.plan.lanes {
		byWorkspace[l.workspace()] = append(byWorkspace[l.workspace()], i)
	}
	for _, lanes := range byWorkspace {
		all.Go(func() {
			// The first call of each agent makes its domain. These go one after the
			// other, so that rows that number domains are the same in every run.
			for _, i := range lanes[1:] {
				if err := r.travel(ctx, i, 1); err != nil {
					stop(err)
					return
				}
			}
			for n, i := range lanes {
				all.Go(func() {
					if err := r.travel(ctx, i, r.plan.calls[i]-min(n, 1)); err != nil {
						stop(err)
					}
				})
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// travel makes the next calls of lane i.
func (r *run) travel(ctx context.Context, i, calls int) error {
	l := r.plan.lanes[i]
	for range calls {
		c := l.next()
		twice := int(r.acks.Load())%sameCall == 0 && !c.reports
		answer, code, err := r.ask(ctx, c, twice)
		if err != nil {
			return fmt.Errorf("%s, %s (%s): %w", l.name(), c.kind, c.ledger, err)
		}
		switch {
		case code != c.refusal && (code == "" || code != c.mayRefuse):
			return fmt.Errorf("%s, %s (%s): refused with %q, want %q", l.name(), c.kind, c.ledger, code, c.refusal)
		case code == "":
			c.took(answer)
		}
		r.mu.Lock()
		r.log = append(r.log, acknowledged{lane: l.name(), call: c, code: code, answer: answer})
		r.mu.Unlock()
		r.acks.Add(1)
	}
	return nil
}

// ask makes a call until it is answered, by an effect or a refusal.
func (r *run) ask(ctx context.Context, c call, twice bool) (answer any, code record.Code, err error) {
	for attempt := 0; ; attempt++ {
		l, err := r.current(ctx)
		if err != nil {
			return nil, "", err
		}
		if attempt == 0 {
			select {
			case r.turns <- struct{}{}:
			case <-ctx.Done():
				return nil, "", ctx.Err()
			}
		} else {
			r.mu.Lock()
			r.repeats++
			r.mu.Unlock()
		}
		answer, err = attemptCall(l, c, twice)
		if attempt == 0 {
			<-r.turns
		}
		switch code := record.ErrorCode(err); code {
		case "":
			return answer, "", nil
		case record.Unavailable:
		default:
			return nil, code, nil
		}
		// The worker is gone, or cannot serve just now: the same call again.
		wait := time.NewTimer(againAfter)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil, "", ctx.Err()
		}
	}
}

// attemptCall makes a call once, or by two callers at once, who must be told
// the same.
func attemptCall(l *life, c call, twice bool) (any, error) {
	ctx, cancel := context.WithTimeout(l.ctx, callPatience)
	defer cancel()
	if !twice {
		return c.make(ctx, l.client)
	}
	var other any
	var otherErr error
	var both sync.WaitGroup
	both.Go(func() { other, otherErr = c.make(ctx, l.client) })
	answer, err := c.make(ctx, l.client)
	both.Wait()
	switch {
	case record.ErrorCode(err) == record.Unavailable:
		return nil, err
	case record.ErrorCode(otherErr) == record.Unavailable:
		return nil, otherErr
	case record.ErrorCode(err) != record.ErrorCode(otherErr):
		return nil, record.Errorf(record.InvalidArgument, "", "two callers of one call were told %v and %v", err, otherErr)
	case err == nil:
		one, _ := json.Marshal(answer)
		two, _ := json.Marshal(other)
		if string(one) != string(two) {
			return nil, record.Errorf(record.InvalidArgument, "", "two callers of one call were told %s and %s", one, two)
		}
	}
	return answer, err
}

// uninterrupted runs the plan in one life.
func (r *run) uninterrupted(ctx context.Context) error {
	l, err := spawn(ctx, r.data, nil)
	if err != nil {
		return err
	}
	defer l.kill()
	defer l.disconnect()
	if err := l.ready(); err != nil {
		return err
	}
	r.publish(l)
	if err := r.drive(ctx); err != nil {
		return err
	}
	return stopped(l)
}

// stopped asks a worker to stop, which it must do cleanly.
func stopped(l *life) error {
	code, err := l.terminate()
	if err == nil && code != 0 {
		err = fmt.Errorf("the worker stopped with code %d\n%s", code, l.log.end(20))
	}
	return err
}

// kills counts the ends of lives, by what ended them.
type kills struct {
	// byPoint counts those at a named point, and starting those before the worker
	// was ready; random counts the others.
	byPoint          map[fault.Point]int
	random, starting int
	// engines counts the engine files that were removed between two lives.
	engines int
	// looked counts the files that were checked right after a kill.
	looked int
}

func (k *kills) total() int {
	n := k.random + k.starting
	for _, c := range k.byPoint {
		n += c
	}
	return n
}

// points are the armed points with the most passages after which each ends a
// life: a life is about fifty calls long.
var points = []struct {
	point fault.Point
	upTo  int64
}{
	{fault.BatchBegun, 60}, {fault.OperationWritten, 40}, {fault.Committing, 40}, {fault.Committed, 40}, {fault.Answered, 40},
}

// interrupted runs the plan through n kills. Between two lives one file in the
// folder is looked at, and now and then the engine's are removed. Every tenth
// kill it says how far it is.
func (r *run) interrupted(ctx context.Context, seed uint64, n int, say func(format string, args ...any)) (kills, error) {
	k := kills{byPoint: map[fault.Point]int{}}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	driven := make(chan error, 1)
	var finished sync.WaitGroup
	defer finished.Wait()
	defer func() { stop(context.Canceled) }()
	finished.Go(func() { driven <- r.drive(ctx) })
	random := rand.New(rand.NewPCG(seed, 1<<32))
	total := int64(r.plan.total())
	for done := 0; done < n; done++ {
		plot := plotOf(random, done)
		target := total * int64(done+1) / int64(n+1)
		how, err := r.oneLife(ctx, plot, target, driven)
		if err != nil {
			return k, fmt.Errorf("life %d: %w", done+1, err)
		}
		switch {
		case how == "":
			k.random++
		case how == beforeReady:
			k.starting++
		default:
			k.byPoint[how]++
		}
		if err := r.inspect(ctx, random.IntN(len(r.plan.facts))); err != nil {
			return k, fmt.Errorf("after kill %d: %w", done+1, err)
		}
		k.looked++
		if (done+1)%10 == 0 {
			say("%d kills, %d of %d calls acknowledged", done+1, r.acks.Load(), total)
		}
		if plot.loseEngine {
			if err := os.RemoveAll(filepath.Join(r.data, "engine")); err != nil {
				return k, err
			}
			k.engines++
		}
	}
	l, err := spawn(ctx, r.data, nil)
	if err != nil {
		return k, err
	}
	defer l.kill()
	defer l.disconnect()
	if err := l.ready(); err != nil {
		return k, err
	}
	r.publish(l)
	if err := <-driven; err != nil {
		return k, err
	}
	return k, stopped(l)
}

// beforeReady stands for a kill during the start.
const beforeReady fault.Point = "before it was ready"

// plot is how one life is to end.
type plot struct {
	env []string
	// point is armed; empty leaves the life to a kill from outside.
	point fault.Point
	// starting ends the life this long after its start, if not 0.
	starting time.Duration
	// after is how long after the target was reached the kill comes.
	after      time.Duration
	loseEngine bool
}

func plotOf(random *rand.Rand, life int) plot {
	p := plot{
		after:      time.Duration(random.IntN(40)) * time.Millisecond,
		loseEngine: random.IntN(10) == 0,
		env:        []string{fmt.Sprintf("POLYPHONY_FAULT_CLOCK=%d", random.Uint32())},
	}
	dice := random.IntN(100)
	chosen := points[random.IntN(len(points))]
	at := 1 + random.Int64N(chosen.upTo)
	starting := time.Duration(1+random.IntN(800)) * time.Millisecond
	switch {
	case life == 0:
		// The first life makes the files.
		p.point, at = fault.SchemaWritten, 2
	case dice < 6:
		p.starting = starting
	case dice < 60:
		p.point = chosen.point
	}
	if p.point != "" {
		p.env = append(p.env, fmt.Sprintf("POLYPHONY_FAULT_KILL=%s:%d", p.point, at))
	}
	return p
}

// oneLife starts the worker and ends it as plotted, by SIGKILL in any case. It
// returns the point at which that was, empty for a kill from outside.
func (r *run) oneLife(ctx context.Context, p plot, target int64, driven <-chan error) (fault.Point, error) {
	l, err := spawn(ctx, r.data, p.env)
	if err != nil {
		return "", err
	}
	defer l.disconnect()
	defer l.kill()
	if p.starting > 0 {
		select {
		case <-time.After(p.starting):
		case <-l.exited:
		}
		l.kill()
		return beforeReady, l.ended()
	}
	if err := l.ready(); err != nil {
		if l.ctx.Err() != nil && ctx.Err() == nil && p.point != "" {
			// What the engine had waiting reached the point before the
			// announcement was read.
			return p.point, l.ended()
		}
		return "", err
	}
	r.publish(l)
	defer r.publish(nil)
	// An armed point gets more time than a kill from outside, which takes over
	// when the load does not come by.
	if p.point != "" {
		target += int64(callers) * 40
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.acks.Load() < target {
		select {
		case <-tick.C:
			continue
		case <-l.exited:
			return p.point, l.ended()
		case err := <-driven:
			if err == nil {
				err = fmt.Errorf("the load ended before the kills")
			}
			return "", err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	select {
	case <-time.After(p.after):
		l.kill()
		return "", nil
	case <-l.exited:
		return p.point, l.ended()
	}
}
