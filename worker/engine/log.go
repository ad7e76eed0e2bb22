package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
	"google.golang.org/grpc/status"
)

// failure is the first thing that the server would have ended its process for.
type failure struct {
	ch  chan error
	ctx context.Context
	end context.CancelCauseFunc

	stopping atomic.Bool // The server is being stopped, or has been.
	starting atomic.Bool // It does not answer yet.

	mu    sync.Mutex
	first error
	early []func() // What was logged while starting, ready to be written.
}

func newFailure() *failure {
	f := &failure{ch: make(chan error, 1)}
	f.ctx, f.end = context.WithCancelCause(context.Background())
	return f
}

// earlyLimit is how many records of a start are kept.
const earlyLimit = 50

// keep holds back a record while the server starts: its services complain about one another until all are there, and
// that matters only when they never come. It reports whether it did.
func (f *failure) keep(write func()) bool {
	if !f.starting.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.early) < earlyLimit {
		f.early = append(f.early, write)
	}
	return true
}

// started ends the start. What was held back is written if it failed and forgotten if not.
func (f *failure) started(ok bool) {
	f.starting.Store(false)
	f.mu.Lock()
	early := f.early
	f.early = nil
	f.mu.Unlock()
	if !ok {
		for _, write := range early {
			write()
		}
	}
}

// record keeps err when it is the first, and delivers it unless the engine is being stopped.
func (f *failure) record(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first != nil {
		return
	}
	f.first = err
	if !f.stopping.Load() {
		f.ch <- err
	}
	f.end(err)
}

// quiet ends the delivery: what goes wrong from now on is the stop's to report.
func (f *failure) quiet() { f.stopping.Store(true) }

func (f *failure) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// guard runs a function of the server where neither its panic nor its fatal end can reach the process.
func guard(failed *failure, run func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("the server panicked: %v", r)
			} else if !returned {
				if err = failed.err(); err == nil {
					err = errors.New("the server ended its goroutine")
				}
			}
			done <- err
		}()
		err = run()
		returned = true
	}()
	err := <-done
	// A fatal end inside one of the server's own goroutines comes back as a vague error; the first cause says more.
	if first := failed.err(); err != nil && first != nil && !errors.Is(err, first) {
		err = errors.Join(first, err)
	}
	return err
}

// serverLog is the server's log as it reaches ours. It implements the server's Logger, WithLogger and SLogWrapper.
type serverLog struct {
	log    *slog.Logger
	failed *failure
}

var (
	_ log.Logger      = serverLog{}
	_ log.WithLogger  = serverLog{}
	_ log.SLogWrapper = serverLog{}
)

func newServerLog(logger *slog.Logger, level slog.Leveler, failed *failure) serverLog {
	return serverLog{log: slog.New(levelHandler{logger.Handler(), level}), failed: failed}
}

// Debug implements the server's Logger.
func (l serverLog) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug, msg, tags) }

// Info implements the server's Logger.
func (l serverLog) Info(msg string, tags ...tag.Tag) { l.write(slog.LevelInfo, msg, tags) }

// Warn implements the server's Logger.
func (l serverLog) Warn(msg string, tags ...tag.Tag) { l.write(slog.LevelWarn, msg, tags) }

// Error implements the server's Logger.
func (l serverLog) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic implements the server's Logger; it panics in the server's own development only.
func (l serverLog) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic implements the server's Logger; see Fatal.
func (l serverLog) Panic(msg string, tags ...tag.Tag) { l.Fatal(msg, tags...) }

// Fatal implements the server's Logger. The server expects never to come back from it, so the calling goroutine ends
// here, and the process with all else in it goes on.
func (l serverLog) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	err := errors.New(msg)
	for _, t := range tags {
		if cause := errorOf(t); cause != nil {
			err = fmt.Errorf("%s: %w", msg, cause)
			break
		}
	}
	l.failed.record(err)
	runtime.Goexit()
}

// With implements the server's WithLogger.
func (l serverLog) With(tags ...tag.Tag) log.Logger {
	attrs := make([]any, len(tags))
	for i, t := range tags {
		attrs[i] = attr(t)
	}
	return serverLog{log: l.log.With(attrs...), failed: l.failed}
}

// SLog implements the server's SLogWrapper.
func (l serverLog) SLog() *slog.Logger { return l.log }

func (l serverLog) write(level slog.Level, msg string, tags []tag.Tag) {
	if level > slog.LevelDebug && (expected(msg) || l.failed.stopping.Load() && msg != stopFailed) {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, len(tags))
	for i, t := range tags {
		attrs[i] = attr(t)
	}
	write := func() { l.log.LogAttrs(ctx, level, msg, attrs...) }
	if level < slog.LevelWarn || !l.failed.keep(write) {
		write()
	}
}

// stopFailed is the server's word for a service that did not stop. Of what is logged during a stop it alone matters:
// the rest is the four services noticing one after the other that the others are gone.
const stopFailed = "Failed to stop service"

// expected reports warnings about what an engine does without on purpose.
func expected(msg string) bool {
	return strings.HasPrefix(msg, "HTTP API port has not been set")
}

func attr(t tag.Tag) slog.Attr {
	if err := errorOf(t); err != nil {
		return slog.String(t.Key(), err.Error())
	}
	return slog.Any(t.Key(), t.Value())
}

// errorOf returns the error that a tag carries, or nil. The value of such a tag is a text of the server's choosing.
func errorOf(t tag.Tag) error {
	if z, ok := t.(tag.ZapTag); ok {
		err, _ := z.Field().Interface.(error)
		return err
	}
	err, _ := t.Value().(error)
	return err
}

// fromStatus gives an error of a plain gRPC client the type it has in the API.
func fromStatus(err error) error {
	if s, ok := status.FromError(err); ok {
		return serviceerror.FromStatus(s)
	}
	return err
}

// levelHandler passes on what has at least its level.
type levelHandler struct {
	slog.Handler
	level slog.Leveler
}

// Enabled implements slog.Handler.
func (h levelHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level.Level() && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.level}
}
