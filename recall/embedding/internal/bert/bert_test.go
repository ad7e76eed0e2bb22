package bert

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	out := make([]float32, n)
	for i := range out {
		out[i] = r.Float32() - .5
	}
	return out
}

// kernels are those that this machine has.
func kernels() map[string]func(a []float32, lda int, b []float32, k int, bias, out []float32, ldout int) {
	all := map[string]func(a []float32, lda int, b []float32, k int, bias, out []float32, ldout int){"plain": tilePlain}
	if vectors {
		all["vector"] = func(a []float32, lda int, b []float32, k int, bias, out []float32, ldout int) {
			tileVector(&a[0], lda, &b[0], k, &bias[0], &out[0], ldout)
		}
	}
	return all
}

func TestTile(t *testing.T) {
	t.Parallel()
	for name, kernel := range kernels() {
		for _, k := range []int{1, 2, 3, 31, 32, 384, 1536} {
			lda, ldout := k+5, panel+9
			a, b, bias := random(tileRows*lda, 1), random(k*panel, 2), random(panel, 3)
			out := make([]float32, tileRows*ldout)
			for i := range out {
				out[i] = 777 // Must go where it is in the tile, and stay where it is not.
			}
			kernel(a, lda, b, k, bias, out, ldout)
			for i := range tileRows {
				for j := range ldout {
					want := 777.
					if j < panel {
						want = float64(bias[j])
						for x := range k {
							want += float64(a[i*lda+x]) * float64(b[x*panel+j])
						}
					}
					if got := float64(out[i*ldout+j]); math.Abs(got-want) > 1e-4 {
						t.Fatalf("%s, k=%d: [%d][%d] = %v, want %v", name, k, i, j, got, want)
					}
				}
			}
		}
	}
}

func TestTile_bounds(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"a": func() {
			tile(make([]float32, 4*32-1), 32, make([]float32, 32*16), 32, make([]float32, 16), make([]float32, 64), 16)
		},
		"b": func() {
			tile(make([]float32, 4*32), 32, make([]float32, 32*16-1), 32, make([]float32, 16), make([]float32, 64), 16)
		},
		"bias": func() {
			tile(make([]float32, 4*32), 32, make([]float32, 32*16), 32, make([]float32, 15), make([]float32, 64), 16)
		},
		"out": func() {
			tile(make([]float32, 4*32), 32, make([]float32, 32*16), 32, make([]float32, 16), make([]float32, 63), 16)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is too short, and the kernel ran", name)
				}
			}()
			call()
		}()
	}
}

func TestGelu(t *testing.T) {
	t.Parallel()
	for x := -20.0; x < 20; x += .0037 {
		v := []float32{float32(x)}
		gelu(v)
		want := x * (1 + math.Erf(x/math.Sqrt2)) / 2
		if math.Abs(float64(v[0])-want) > 4e-6 {
			t.Fatalf("gelu(%v) = %v, want %v", x, v[0], want)
		}
	}
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	if gelu(odd); odd[0] == odd[0] || !math.IsInf(float64(odd[1]), 1) || odd[2] != 0 {
		t.Errorf("got %v", odd)
	}
}

// made returns an encoder of MiniLM's size with random weights.
func made(layers, vocabulary int) *Encoder {
	e := &Encoder{
		words: random(vocabulary*Size, 1), places: random(512*Size, 2), kind: random(2*Size, 3),
		vocabulary: vocabulary, maxTokens: 512, inner: 4 * Size, first: scaling{random(Size, 4), random(Size, 5)},
	}
	linear := func(in, out int, seed uint64) matrix { return pack(random(in*out, seed), random(out, seed+1), in) }
	for n := range uint64(layers) {
		e.layers = append(e.layers, layer{
			query: linear(Size, 3*Size, 10+20*n), context: linear(Size, Size, 12+20*n),
			inner: linear(Size, e.inner, 14+20*n), outer: linear(e.inner, Size, 16+20*n),
			attention: scaling{random(Size, 18+20*n), random(Size, 19+20*n)}, output: scaling{random(Size, 20+20*n), random(Size, 21+20*n)},
		})
	}
	return e
}

func TestEncoder_Encode(t *testing.T) {
	t.Parallel()
	e := made(2, 100)
	r := rand.New(rand.NewPCG(1, 1))
	var texts [][]int32
	for _, n := range []int{1, 2, 3, 4, 5, 15, 16, 17, 64, 255, 256, 512, 7, 300, 1, 33} {
		text := make([]int32, n)
		for i := range text {
			text[i] = int32(r.IntN(100))
		}
		texts = append(texts, text)
	}
	together, err := e.Encode(t.Context(), texts, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		for _, workers := range []int{1, 3, 16} {
			alone, err := e.Encode(t.Context(), [][]int32{text}, workers)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(alone[0], together[i]) {
				t.Errorf("%d tokens: alone on %d cores it is another vector than in a batch", len(text), workers)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Encode(ctx, texts, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got, err := e.Encode(t.Context(), nil, 2); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// BenchmarkEncoder computes one text with each kernel.
func BenchmarkEncoder(b *testing.B) {
	e := made(6, 30522)
	has := vectors
	defer func() { vectors = has }()
	for _, on := range []bool{true, false} {
		if on && !has {
			continue
		}
		vectors = on
		for _, n := range []int{12, 32, 256} {
			text := make([]int32, n)
			for i := range text {
				text[i] = int32(i * 97 % 30522)
			}
			b.Run(fmt.Sprintf("vectors=%v/tokens=%d", on, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := e.Encode(b.Context(), [][]int32{text}, 2); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
