package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// BenchmarkStoreVectors measures what the index in the file adds to keeping a
// vector: pages of 256, as the embedder writes them when it catches up.
func BenchmarkStoreVectors(b *testing.B) {
	for _, index := range []VectorIndex{VectorsInMemory, VectorsWithoutExtension} {
		b.Run(string(index), func(b *testing.B) {
			const page = 256
			s := mustOpenVectors(b, b.TempDir(), "m", index)
			vector := randomVector(rand.New(rand.NewPCG(1, 1)))
			var took time.Duration
			stored := 0
			for b.Loop() {
				items := make([]record.ProposeFact, page)
				for i := range items {
					items[i] = req(fmt.Sprint(stored+i), fmt.Sprintf("statement number %d", stored+i))
				}
				if _, err := s.ImportFactsPage(b.Context(), record.ImportFacts{Caller: record.Caller{Workspace: "w"}, Items: items}); err != nil {
					b.Fatal(err)
				}
				waiting, err := s.QueuedForEmbedding(b.Context(), page)
				if err != nil {
					b.Fatal(err)
				}
				vectors := make([]Embedded, len(waiting))
				for i, w := range waiting {
					vectors[i] = Embedded{w, vector}
				}
				start := time.Now()
				n, err := s.StoreVectors(b.Context(), vectors)
				if err != nil {
					b.Fatal(err)
				}
				took += time.Since(start)
				stored += n
			}
			b.ReportMetric(float64(took.Microseconds())/float64(stored), "µs/vector")
		})
	}
}

// BenchmarkUpkeep copies, examines and mends a workspace of 20,000 facts.
func BenchmarkUpkeep(b *testing.B) {
	const facts = 20_000
	data := b.TempDir()
	w, err := NewWorkspaces(data, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	use := func(f func(*Store) error) {
		b.Helper()
		if err := w.Use(context.Background(), "w", f); err != nil {
			b.Fatal(err)
		}
	}
	use(func(s *Store) error {
		for page := range facts / 500 {
			in := record.ImportFacts{Caller: record.Caller{Workspace: "w"}, Page: page}
			for i := range 500 {
				n := page*500 + i
				in.Items = append(in.Items, record.ProposeFact{Domain: "load", Topic: fmt.Sprintf("thing %d", n), Content: fmt.Sprintf("Thing number %d stands in hall %d beside machine %d of the plant", n, n%97, n%1009)})
			}
			if _, err := s.ImportFactsPage(context.Background(), in); err != nil {
				return err
			}
		}
		return nil
	})
	b.Run("backup", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			out, err := w.BackUp(context.Background(), record.BackUp{Caller: record.Caller{Workspace: "w"}, Name: fmt.Sprint("b", b.N, "-", n)})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(out.Bytes)/1e6, "MB")
		}
	})
	b.Run("doctor", func(b *testing.B) {
		for b.Loop() {
			use(func(s *Store) error {
				r, err := s.Doctor(context.Background(), record.Doctor{Caller: record.Caller{Workspace: "w"}})
				if !r.OK {
					b.Fatalf("%+v", r)
				}
				return err
			})
		}
	})
	b.Run("repair", func(b *testing.B) {
		for b.Loop() {
			use(func(s *Store) error {
				_, err := apply(context.Background(), s, "damage", record.Caller{Workspace: "w"}, func(t *tx) (struct{}, error) { return struct{}{}, t.exec("DELETE FROM terms") })
				if err != nil {
					return err
				}
				r, err := s.Doctor(context.Background(), record.Doctor{Caller: record.Caller{Workspace: "w"}, Repair: true})
				if !r.OK {
					b.Fatalf("%+v", r)
				}
				return err
			})
		}
	})
}
