package engine

import (
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

func TestServerLog_Levels(t *testing.T) {
	t.Parallel()
	failed := newFailure()
	out := new(syncBuffer)
	l := log.With(newServerLog(slog.New(slog.NewTextHandler(out, nil)), slog.LevelWarn, failed), tag.NewStringTag("service", "history"))
	l.Debug("debug")
	l.Info("info")
	l.Warn("warn", tag.Error(errors.New("cause")))
	l.Warn("HTTP API port has not been set. And so on.")
	l.Error("error", tag.NewInt("shard", 1))
	l.DPanic("no panic")
	failed.quiet()
	l.Warn("others are gone")
	l.Error("others are gone")
	l.Error(stopFailed)

	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ") // Without the time.
		got = append(got, rest)
	}
	want := []string{
		`level=WARN msg=warn service=history error=cause`,
		`level=ERROR msg=error service=history shard=1`,
		`level=ERROR msg="no panic" service=history`,
		`level=ERROR msg="Failed to stop service" service=history`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServerLog_Start(t *testing.T) {
	t.Parallel()
	for _, ok := range []bool{true, false} {
		failed := newFailure()
		failed.starting.Store(true)
		out := new(syncBuffer)
		l := newServerLog(slog.New(slog.NewTextHandler(out, nil)), slog.LevelWarn, failed)
		for range earlyLimit + 1 {
			l.Error("early")
		}
		if out.Len() > 0 {
			t.Errorf("logged while starting: %s", out)
		}
		failed.started(ok)
		l.Error("late")
		want := 1
		if !ok {
			want += earlyLimit
		}
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("a start that went well (%v) leaves %d records, want %d", ok, got, want)
		}
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	newLog := func(failed *failure) log.Logger {
		return newServerLog(slog.New(slog.DiscardHandler), slog.LevelWarn, failed)
	}

	t.Run("returns", func(t *testing.T) {
		want := errors.New("no")
		if err := guard(newFailure(), func() error { return want }); !errors.Is(err, want) {
			t.Errorf("guard = %v", err)
		}
		if err := guard(newFailure(), func() error { return nil }); err != nil {
			t.Errorf("guard = %v", err)
		}
	})
	t.Run("fatal", func(t *testing.T) {
		failed := newFailure()
		after := false
		err := guard(failed, func() error {
			newLog(failed).Fatal("no listener", tag.Error(syscall.EADDRINUSE))
			after = true
			return nil
		})
		if after || !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "no listener") {
			t.Errorf("guard = %v, went on: %v", err, after)
		}
		select {
		case got := <-failed.ch:
			if !errors.Is(got, syscall.EADDRINUSE) {
				t.Errorf("delivered %v", got)
			}
		default:
			t.Error("nothing delivered")
		}
	})
	t.Run("fatal_elsewhere", func(t *testing.T) {
		failed := newFailure()
		vague := errors.New("goroutine exited without returning")
		err := guard(failed, func() error {
			_ = guard(failed, func() error { newLog(failed).Panic("cause"); return nil })
			return vague
		})
		if err == nil || !strings.Contains(err.Error(), "cause") || !errors.Is(err, vague) {
			t.Errorf("guard = %v", err)
		}
	})
	t.Run("fatal_while_stopping", func(t *testing.T) {
		failed := newFailure()
		failed.quiet()
		err := guard(failed, func() error { newLog(failed).Fatal("late"); return nil })
		if err == nil || len(failed.ch) > 0 {
			t.Errorf("guard = %v, delivered %d", err, len(failed.ch))
		}
	})
	t.Run("panic", func(t *testing.T) {
		if err := guard(newFailure(), func() error { panic("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("guard = %v", err)
		}
	})
}
