package memory

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// TestWorkspaces_UseModel changes the model under writers: each store keeps the
// model that it was opened with, and no write is lost.
func TestWorkspaces_UseModel(t *testing.T) {
	t.Parallel()
	w, err := NewWorkspaces(t.TempDir(), Options{Embedding: "model-0"})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each, changes = 4, 20, 30
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			for i := range each {
				err := w.Use(t.Context(), "w", func(s *Store) error {
					model := s.Model()
					_, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: record.Caller{Workspace: "w", Agent: "a"},
						Domain: "yard", Topic: fmt.Sprintf("shelf %d of %d", i, n), Content: fmt.Sprintf("Shelf %d of row %d holds ropes", i, n)})
					if s.Model() != model {
						t.Errorf("an open store changed from %s to %s", model, s.Model())
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for i := range changes {
			if err := w.UseModel(fmt.Sprintf("model-%d", i%3)); err != nil {
				t.Error(err)
			}
		}
		if err := w.UseModel("model-9"); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	err = w.Use(context.Background(), "w", func(s *Store) error {
		if s.Model() != "model-9" {
			t.Errorf("the model is %s after the last change", s.Model())
		}
		return s.View(t.Context(), func(v *View) error {
			h, err := v.Health(true)
			if h.FactsTotal != writers*each || h.EmbeddingQueue != writers*each || !h.OK {
				t.Errorf("%+v", h)
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
