package locate

import (
	"strconv"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// MaxShards bounds the shards that workspaces are spread over.
const MaxShards = 4096

// EnvironmentShards returns the number of shards that the environment names; 1
// when it names none.
func EnvironmentShards(lookup func(string) (string, bool)) (int, error) {
	v, ok := lookup(EnvShards)
	if !ok || v == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > MaxShards {
		return 0, record.Errorf(record.InvalidArgument, EnvShards, "the shards are a number of 1 to %d", MaxShards)
	}
	return n, nil
}

// ParseShards reads some of n shards, like 0-7 or 0,3,5-6, in order and each
// once; "" is all. field names the setting in errors.
//
// Errors: InvalidArgument.
func ParseShards(field, text string, n int) ([]int, error) {
	if text == "" {
		text = "0-" + strconv.Itoa(n-1)
	}
	taken := make([]bool, n)
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		lo, errLo := strconv.Atoi(first)
		hi, errHi := strconv.Atoi(last)
		if errLo != nil || errHi != nil || lo < 0 || hi < lo || hi >= n {
			return nil, record.Errorf(record.InvalidArgument, field, "%q is not shards of 0 to %d", part, n-1)
		}
		for i := lo; i <= hi; i++ {
			taken[i] = true
		}
	}
	var out []int
	for i, t := range taken {
		if t {
			out = append(out, i)
		}
	}
	return out, nil
}
