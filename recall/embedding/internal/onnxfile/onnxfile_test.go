package onnxfile

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func message(b []byte, num protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), m)
}

func number(b []byte, num protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), n)
}

func made() []byte {
	var raw []byte
	for _, f := range []float32{1, -2, .5, 4, 5, 6} {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	weight := message(message(number(number(number(nil, 1, 2), 1, 3), 2, 1), 8, []byte("w")), 9, raw)
	packed := message(message(number(message(nil, 1, []byte{3, 2}), 2, 1), 9, raw), 8, []byte("packed"))
	kept := message(message(number(number(nil, 1, 6), 2, 1), 8, []byte("elsewhere")), 13, []byte("external"))
	attribute := number(number(message(nil, 1, []byte("transB")), 3, 1), 20, 2)
	node := message(message(message(message(message(nil, 1, []byte("x")), 1, []byte("w")), 2, []byte("y")), 4, []byte("Gemm")), 5, attribute)
	graph := message(message(message(message(nil, 1, node), 5, weight), 5, packed), 5, kept)
	return message(message(number(nil, 1, 8), 7, graph), 8, number(nil, 2, 17))
}

func open(tb testing.TB, content []byte) (*File, error) {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "model.onnx")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return Open(name)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	f, err := open(t, made())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if len(f.Nodes) != 1 || !f.Plain {
		t.Fatalf("%+v", f)
	}
	if n := f.Nodes[0]; n.Op != "Gemm" || !slices.Equal(n.Inputs, []string{"x", "w"}) || !slices.Equal(n.Outputs, []string{"y"}) || n.Ints["transB"] != 1 {
		t.Errorf("%+v", n)
	}
	for name, dims := range map[string][]int64{"w": {2, 3}, "packed": {3, 2}} {
		if got := f.Weights[name].Dims; !slices.Equal(got, dims) {
			t.Errorf("%s is %v", name, got)
		}
		if got, err := f.Floats(name); err != nil || !slices.Equal(got, []float32{1, -2, .5, 4, 5, 6}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"elsewhere", "nothing"} {
		if _, err := f.Floats(name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	other, err := open(t, message(made(), 8, number(message(nil, 1, []byte("com.microsoft")), 2, 1)))
	if err != nil || other.Plain {
		t.Errorf("another's operators: %v", err)
	}
	_ = other.Close()
}

// FuzzOpen looks for input that panics or takes memory it has no use for.
func FuzzOpen(f *testing.F) {
	good := made()
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("version https"))
	huge := message(message(number(number(nil, 1, 1<<30), 2, 1), 8, []byte("w")), 9, nil)
	f.Add(message(nil, 7, message(nil, 5, huge)))
	f.Add(message(nil, 7, message(nil, 5, number(number(nil, 1, 1<<63), 1, 1<<62))))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := open(t, content)
		if err != nil {
			return
		}
		for name := range file.Weights {
			if got, err := file.Floats(name); err == nil && 4*len(got) > len(content) {
				t.Errorf("%d numbers from %d bytes", len(got), len(content))
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
}
