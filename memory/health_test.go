package memory

import (
	"context"
	"fmt"
	"testing"
)

// A reader that looked something up before the index grew finds a sound file
// sound.
func TestView_Health_afterReadsAndWrites(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	for i := range 200 {
		mustPropose(t, s, req(fmt.Sprint("topic ", i), fmt.Sprintf("the harbour crane %d lifts barley", i)))
		if i%20 == 0 {
			mustView(t, s, func(v *View) error {
				_, err := v.Postings("barley", 0, 10)
				return err
			})
		}
	}
	if err := s.View(context.Background(), func(v *View) error {
		h, err := v.Health(true)
		if !h.OK {
			t.Errorf("problems: %q", h.Problems)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
