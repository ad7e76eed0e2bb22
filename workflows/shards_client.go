package workflows

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// shardsAtOnce bounds how many shards are asked at the same time.
	shardsAtOnce = 16
	// shardPatience is how long a shard may take to answer when the others have
	// to be heard too.
	shardPatience = 10 * time.Second
)

// Workspaces lists the workspaces of all shards, in order.
//
// Errors: Unavailable, naming the shards that did not answer.
func (c *Client) Workspaces(ctx context.Context, caller record.Caller) ([]string, error) {
	caller.Key = ""
	var mu sync.Mutex
	// A worker names the workspaces of all its shards, whichever is asked.
	all := map[string]bool{}
	err := c.eachShard(ctx, shardRange(c.shards), func(ctx context.Context, shard int) error {
		in := record.ReadMemory{Caller: caller, What: record.ReadWorkspaces}
		for {
			id, err := freshID(record.KindRead, caller.Workspace)
			if err != nil {
				return err
			}
			page, err := run[record.Page[string]](ctx, c, start{id: id, workflow: ReadMemory, caller: caller, queue: ShardQueue(shard), summary: string(in.What)}, in)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, id := range page.Items {
				all[id] = true
			}
			mu.Unlock()
			if in.Cursor = page.Next; in.Cursor == "" {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// CheckShards asks the workers of the shards for an answer, each through its
// shard's task queue; nil shards are all. It leaves one closed run a shard in
// the engine however often it is called: the first call makes it, and the later
// ones have the worker answer a query about it.
//
// Errors: Unavailable, naming the shards that did not answer.
func (c *Client) CheckShards(ctx context.Context, shards []int) error {
	if shards == nil {
		shards = shardRange(c.shards)
	}
	// Of which workspace makes no difference: the read is of all.
	caller := record.Caller{Workspace: "shard"}
	return c.eachShard(ctx, shards, func(ctx context.Context, shard int) error {
		s := start{
			id: ShardID(shard), workflow: ReadMemory, caller: caller, queue: ShardQueue(shard), summary: "answer",
			reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		}
		in := record.ReadMemory{Caller: caller, What: record.ReadWorkspaces, Limit: 1}
		if _, err := run[record.Page[string]](ctx, c, s, in); err != nil {
			return err
		}
		_, err := c.temporal.QueryWorkflow(ctx, s.id, "", client.QueryTypeStackTrace)
		return FromTemporal(err)
	})
}

// eachShard runs f for every shard, several at once, and names those that
// failed.
func (c *Client) eachShard(ctx context.Context, shards []int, f func(context.Context, int) error) error {
	var failed []int
	var errs []error
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, shardsAtOnce)
	for _, shard := range shards {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			ctx, cancel := context.WithTimeout(ctx, shardPatience)
			defer cancel()
			if err := f(ctx, shard); err != nil {
				mu.Lock()
				failed, errs = append(failed, shard), append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(errs) == 0 {
		return nil
	}
	for _, err := range errs {
		if record.ErrorCode(err) != record.Unavailable {
			return err
		}
	}
	slices.Sort(failed)
	return record.Wrap(record.Unavailable, errors.Join(errs...), "no answer from %d of %d shards, %v; is a worker running that owns them?", len(failed), len(shards), failed)
}

func shardRange(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
