package memory

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	weekly = "Marta would rather get a weekly digest than single mails about the builds."
	digest = "About the builds Marta prefers the digest of each week to single mails."
)

// axis is a unit vector; equal ones have cosine 1.
func axis(i int) []float32 {
	v := make([]float32, Dimensions)
	v[i] = 1
	return v
}

// openEmbedding opens a store whose model is embed, and gives the facts that it
// holds already their vectors.
func openEmbedding(t *testing.T, dir string, embed func(ctx context.Context, model, text string) ([]float32, error)) *Store {
	t.Helper()
	s, err := Open(context.Background(), filepath.Join(dir, "w"), "w", Options{Now: newTestClock().Now, Embedding: "stub", OnQueued: func(string) {}, Embed: embed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustEmbedAs(t *testing.T, s *Store, vector []float32) {
	t.Helper()
	waiting, err := s.QueuedForEmbedding(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range waiting {
		if _, err := s.StoreVectors(context.Background(), []Embedded{{w, vector}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStore_ProposeFact_vectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		embed func(ctx context.Context, model, text string) ([]float32, error)
		want  record.ProposalStatus
	}{
		{"near", func(context.Context, string, string) ([]float32, error) { return axis(0), nil }, record.StatusReMentioned},
		{"far", func(context.Context, string, string) ([]float32, error) { return axis(1), nil }, record.StatusCreated},
		{"failing", func(context.Context, string, string) ([]float32, error) { return nil, errors.New("no memory") }, record.StatusCreated},
		{"wrong size", func(context.Context, string, string) ([]float32, error) { return []float32{1}, nil }, record.StatusCreated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openEmbedding(t, t.TempDir(), c.embed)
			first := mustPropose(t, s, req("mail", weekly))
			mustEmbedAs(t, s, axis(0))
			got := mustPropose(t, s, req("mail", digest))
			if got.Status != c.want {
				t.Fatalf("status %s, want %s", got.Status, c.want)
			}
			if got.Status == record.StatusReMentioned && got.FactID != first.FactID {
				t.Errorf("re-mentioned %s, want %s", got.FactID, first.FactID)
			}
		})
	}
}

// The model is asked only where the rules leave a pair open, and never while
// the writer waits.
func TestStore_ProposeFact_vectorsOnlyWhenUnsettled(t *testing.T) {
	t.Parallel()
	var asked []string
	var s *Store
	s = openEmbedding(t, t.TempDir(), func(ctx context.Context, _, text string) ([]float32, error) {
		asked = append(asked, text)
		// Another write passes while the model thinks.
		_, err := s.ProposeFact(ctx, req("elsewhere", "The lobby has a piano."))
		return axis(0), err
	})
	mustPropose(t, s, req("mail", weekly))
	mustEmbedAs(t, s, axis(0))
	mustPropose(t, s, req("mail", weekly))
	mustPropose(t, s, req("other topic", digest))
	if len(asked) > 0 {
		t.Fatalf("the model was asked about %q, which the rules settle", asked)
	}
	if got := mustPropose(t, s, req("mail", digest)); got.Status != record.StatusReMentioned {
		t.Fatalf("status %s, want re-mentioned", got.Status)
	}
	if strings.Join(asked, "|") != digest {
		t.Fatalf("the model was asked about %q", asked)
	}
}
