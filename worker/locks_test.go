package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// journal is a log that a test reads while others write it.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.buf.String(), text)
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustTake(t *testing.T, data string, own ...int) *locks {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := takeLocks(ctx, Config{Data: data, own: own}, quietLog())
	if err != nil || l == nil {
		t.Fatalf("shards %v cannot be locked: %v", own, err)
	}
	t.Cleanup(func() { _ = l.release() })
	return l
}

// TestTakeLocks_standBy has a second worker wait for a shard of the first and
// take over when that one ends. Meanwhile it holds nothing that a third wants.
func TestTakeLocks_standBy(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first := mustTake(t, data, 2, 3)
	log := &journal{}
	taken := make(chan *locks)
	go func() {
		l, err := takeLocks(t.Context(), Config{Data: data, own: []int{0, 1, 2}}, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Error(err)
		}
		taken <- l
	}()
	for log.count("standing by") == 0 {
		select {
		case l := <-taken:
			t.Fatalf("the second worker got %d locks", len(l.held))
		case <-time.After(time.Millisecond):
		}
	}
	if log.count("shard=2") != 1 {
		t.Errorf("the second worker says %s", log.buf.String())
	}
	third := mustTake(t, data, 0, 1)
	if err := third.release(); err != nil {
		t.Fatal(err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	second := <-taken
	if len(second.held) != 3 || log.count("standing by") != 1 || log.count("taking over") != 1 {
		t.Errorf("%d locks, want 3: %s", len(second.held), log.buf.String())
	}
	if err := second.release(); err != nil {
		t.Fatal(err)
	}
	mustTake(t, data, 0, 1, 2, 3)
}

func TestTakeLocks_interrupted(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	mustTake(t, data, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := takeLocks(ctx, Config{Data: data, own: []int{0}}, quietLog()); l != nil || err != nil {
		t.Errorf("got %v, %v", l, err)
	}
}

func TestTakeLocks_noFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := takeLocks(t.Context(), Config{Data: file, own: []int{0}}, quietLog()); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("got %v", err)
	}
}
