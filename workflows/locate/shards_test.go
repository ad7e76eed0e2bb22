package locate

import (
	"slices"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func TestParseShards(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{
		"": {0, 1, 2, 3}, "0-3": {0, 1, 2, 3}, "2": {2}, "3, 0": {0, 3}, "1-2,2-3": {1, 2, 3},
	} {
		if got, err := ParseShards("own", text, 4); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"4", "0-4", "-1", "3-1", "a", "1,", "0-", "۱-۲", "1 2", "99999999999999999999"} {
		if got, err := ParseShards("own", text, 4); record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("%q gives %v, %v", text, got, err)
		}
	}
}

func TestEnvironmentShards(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"": 1, "1": 1, "16": 16, "4096": 4096, "0": 0, "-2": 0, "4097": 0, "many": 0} {
		got, err := EnvironmentShards(func(name string) (string, bool) { return value, name == EnvShards })
		if got != want || (want == 0) != (record.ErrorCode(err) == record.InvalidArgument) {
			t.Errorf("%q gives %d, %v", value, got, err)
		}
	}
}
