package workflows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		ID(record.KindProposeFact, "w", "k/1"):                            "propose-fact/w/k/1",
		MeetingID("w", "weekly", 3):                                       "meeting/w/weekly/3",
		MaintenanceID(record.KindConsolidate, "w"):                        "consolidate/w",
		ObligationID("w", record.StepRef{TaskID: "order-7", Step: "pay"}): "obligation/w/order-7/order-7/pay",
		TaskQueue("anything", 1):                                          "memory-0",
		LedgerKey("propose-fact/w/k", "write"):                            "propose-fact/w/k#write",
		MeetingID("w", "جلسه هفتگی", 1)[:len("meeting/w/h.")]:             "meeting/w/h.",
		MaintenanceQueue(7):                                               "memory-7-maintenance",
		ShardID(7):                                                        "shard/7",
	} {
		if got != want {
			t.Errorf("id %q, want %q", got, want)
		}
	}
	// Nothing that a caller can name makes an id that the engine refuses, and no
	// two names share one.
	seen := map[string]string{}
	for _, key := range []string{"", "a", strings.Repeat("k", 128), strings.Repeat("k", 129), strings.Repeat("م", 200), "a b", "h.a", "a\x00"} {
		id := MeetingID(strings.Repeat("w", 64), key, 1<<62)
		if len(id) > 255 {
			t.Errorf("the id of %.20q has %d bytes", key, len(id))
		}
		if id := ObligationID(strings.Repeat("w", 64), record.StepRef{TaskID: key, Step: key}); len(id) > 255 {
			t.Errorf("the id of the step %.20q has %d bytes", key, len(id))
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q share an id", key, other)
		}
		seen[id] = key
		for _, step := range []string{"write", strings.Repeat("s", 90)} {
			key := LedgerKey(id, step)
			if err := record.CheckKey(key); err != nil {
				t.Errorf("the ledger refuses %q: %v", key, err)
			}
			if other, twice := seen[key]; twice {
				t.Errorf("a step of %q has the key of %q", id, other)
			}
			seen[key] = id
		}
	}
}

func TestShard(t *testing.T) {
	t.Parallel()
	used := map[int]bool{}
	for i := range 400 {
		s := Shard(fmt.Sprintf("workspace-%d", i), 16)
		if s < 0 || s > 15 {
			t.Fatalf("shard %d of 16", s)
		}
		used[s] = true
	}
	if len(used) != 16 {
		t.Errorf("%d of 16 shards are used", len(used))
	}
	// FNV-1a of "a" with 32 bits is 0xe40c292c; callers in other languages
	// depend on it.
	if got, want := Shard("a", 1<<30), int(uint32(0xe40c292c)%(1<<30)); got != want {
		t.Errorf("Shard(a) = %d, want %d", got, want)
	}
	if Shard("x", 0) != 0 {
		t.Error("no shards are one")
	}
}

func TestErrorsCrossTheEngine(t *testing.T) {
	t.Parallel()
	in := record.Errorf(record.InsufficientMemoryPermission, "role", "role qa has read")
	in.Role, in.Domain, in.Required, in.Actual = "qa", "api", "write", "read"
	out := FromTemporal(failure(ApplicationError(in, false)))
	var e *record.Error
	if !errors.As(out, &e) || e.Code != in.Code || e.Role != "qa" || e.Domain != "api" || e.Actual != "read" || e.Message != in.Message {
		t.Errorf("%+v came out as %+v", in, e)
	}
	for name, err := range map[string]error{
		"deadline": context.DeadlineExceeded, "cancelled": context.Canceled, "other": errors.New("x"),
		"foreign type": temporal.NewApplicationError("x", "SomethingElse"),
	} {
		if record.ErrorCode(FromTemporal(err)) != record.Unavailable {
			t.Errorf("%s became %v", name, FromTemporal(err))
		}
	}
	if FromTemporal(nil) != nil || failure(nil) != nil {
		t.Error("no error became one")
	}
}
