package record

import (
	"strings"
	"testing"
)

func TestObligationKey(t *testing.T) {
	t.Parallel()
	if got := ObligationKey("order-7", "pay"); got != "order-7/pay" {
		t.Errorf("key %q", got)
	}
	seen := map[string][2]string{}
	long := strings.Repeat("x", 60)
	for _, pair := range [][2]string{
		{"a", "b"}, {"a/b", "c"}, {"a", "b/c"}, {"a\n1", "b"}, {"a", "1\nb"}, {"سفارش", "پرداخت"}, {"سفارش پ", "رداخت"}, {"", "a"}, {"a", ""}, {"", ""},
		{long, "a"}, {long, "b"}, {long, long}, {long + "x", long[1:]}, {"h.", "a"}, {"a b", "c"}, {"a", "b c"}, {"ي", "x"}, {"ی", "x"},
	} {
		key := ObligationKey(pair[0], pair[1])
		if other, twice := seen[key]; twice {
			t.Errorf("%q and %q share the key %q", pair, other, key)
		}
		seen[key] = pair
		if len(key) > MaxObligationKeyBytes {
			t.Errorf("the key of %q has %d bytes", pair, len(key))
		}
		if err := CheckKey(key); err != nil || key == "" {
			t.Errorf("the key of %q cannot be used as one: %v", pair, err)
		}
	}
}
