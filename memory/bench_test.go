package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// BenchmarkProposeFact measures proposals under group commit, 256 callers.
func BenchmarkProposeFact(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), "w", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var next atomic.Int64
	b.SetParallelism(128)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		rng := rand.New(rand.NewPCG(uint64(next.Add(1)), 1))
		words := rand.NewZipf(rng, 1.07, 2.7, 60000)
		for pb.Next() {
			i := next.Add(1)
			var c strings.Builder
			for range 15 {
				fmt.Fprintf(&c, "w%x ", words.Uint64())
			}
			_, err := s.ProposeFact(context.Background(), record.ProposeFact{Caller: record.Caller{Workspace: "w", Agent: "a", Key: fmt.Sprint(i)}, Domain: fmt.Sprint("d", i%12), Topic: fmt.Sprint("t", i/20), Content: c.String()})
			if err != nil {
				b.Error(err)
			}
		}
	})
}
