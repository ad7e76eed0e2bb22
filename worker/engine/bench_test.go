package engine

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/dynamicconfig"
)

// BenchmarkRoundTrip measures what a caller waits for: start a workflow, run a local activity in it, get its result.
// The first case is the engine as it is; the others show what one of its choices is worth.
//
//	go test ./worker/engine -run '^$' -bench RoundTrip -benchtime 200x
func BenchmarkRoundTrip(b *testing.B) {
	cases := []struct {
		name string
		vary func(*Config)
	}{
		{"engine", func(*Config) {}},
		{"synchronous_normal", func(c *Config) { c.synchronous = "NORMAL" }},
		{"default_poll_rates", func(c *Config) {
			c.dynamic = dynamicconfig.StaticClient{
				dynamicconfig.TransferProcessorMaxPollRPS.Key():   20,
				dynamicconfig.TimerProcessorMaxPollRPS.Key():      20,
				dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 20,
				dynamicconfig.OutboundProcessorMaxPollRPS.Key():   20,
			}
		}},
		{"four_partitions", func(c *Config) {
			c.dynamic = dynamicconfig.StaticClient{
				dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  4,
				dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 4,
			}
		}},
	}
	for _, tc := range cases {
		b.Run(tc.name, func(b *testing.B) {
			cfg := Config{Dir: b.TempDir(), Port: AnyPort}
			tc.vary(&cfg)
			c := dial(b, mustStart(b, cfg))
			queue := startWorker(b, c)
			roundTrip := func() { roundTrip(b, c, queue) }
			for range 10 { // Caches, shard and task queue are warm after this.
				roundTrip()
			}
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				roundTrip()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)*95/100]), "p95-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkThroughput runs the same workflow for 32 callers at once and reports how many end in a second.
func BenchmarkThroughput(b *testing.B) {
	c := dial(b, mustStart(b, Config{Dir: b.TempDir(), Port: AnyPort}))
	queue := startWorker(b, c)
	roundTrip(b, c, queue)
	b.SetParallelism(max(1, 32/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			roundTrip(b, c, queue)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "workflows/s")
}

func roundTrip(b *testing.B, c client.Client, queue string) {
	run, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{
		ID: "bench/" + uuid.NewString(), TaskQueue: queue,
	}, greet, "bench")
	if err != nil {
		b.Error(err)
		return
	}
	var got string
	if err := run.Get(b.Context(), &got); err != nil {
		b.Error(err)
	}
}
