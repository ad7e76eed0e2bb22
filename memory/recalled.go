package memory

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// recallFlush is how many counted recalls are written without waiting for a
// write to travel with.
const recallFlush = 4096

// recallCounter batches recall counts: a read only adds to it, and the next
// write takes them along. Counts that a crash loses are lost; they are signals,
// not the record.
type recallCounter struct {
	mu     sync.Mutex
	counts map[string]int
	total  int
	last   record.Time
}

// CountRecall notes that the facts were recalled now. It does not touch the
// file.
func (s *Store) CountRecall(ids []string) {
	if s.readOnly || len(ids) == 0 {
		return
	}
	c := &s.recalls
	c.mu.Lock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	for _, id := range ids {
		c.counts[id]++
	}
	c.total += len(ids)
	c.last = s.Now()
	full := c.total >= recallFlush
	c.mu.Unlock()
	if full {
		s.flushRecalls()
	}
}

// flushRecalls queues a write that only takes the counts along, and does not
// wait for it.
func (s *Store) flushRecalls() {
	op := &operation{ctx: context.Background(), finished: make(chan struct{}), effect: func(*tx) (any, error) { return struct{}{}, nil }}
	s.writer.mu.RLock()
	defer s.writer.mu.RUnlock()
	if s.writer.closed {
		return
	}
	select {
	case s.writer.queue <- op:
	default:
		// The queue is full of writes, any of which takes the counts along.
	}
}

// take empties the counter.
func (c *recallCounter) take() (counts map[string]int, last record.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts, last = c.counts, c.last
	c.counts, c.total = nil, 0
	return counts, last
}

// writeRecalls adds the counts within the writer's open transaction.
func (t *tx) writeRecalls(counts map[string]int, last record.Time) error {
	if len(counts) == 0 {
		return nil
	}
	list, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE facts SET recall_count = recall_count + j.value, last_recalled_at = max(last_recalled_at, ?)
		FROM json_each(?) j WHERE facts.id = j.key`, last.Micros(), string(list))
}
