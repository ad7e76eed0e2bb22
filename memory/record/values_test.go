package record

import (
	"encoding/json"
	"testing"
)

// TestNoTimeTravels: asking for no end of validity arrives as that, and the
// request's hash is the same on both sides.
func TestNoTimeTravels(t *testing.T) {
	sent := UpdateFact{FactID: "f", ExpectedVersion: 1, ValidUntil: &Time{}}
	raw, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got UpdateFact
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.ValidUntil == nil || !got.ValidUntil.IsZero() {
		t.Errorf("it arrives as %v", got.ValidUntil)
	}
	if RequestHash(KindUpdateFact, sent) != RequestHash(KindUpdateFact, got) {
		t.Error("the hash changed on the way")
	}
}
