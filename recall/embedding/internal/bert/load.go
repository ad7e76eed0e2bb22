package bert

import (
	"fmt"
	"strings"

	"github.com/polyphony-memory/polyphony/recall/embedding/internal/onnxfile"
)

// The shape of all-MiniLM-L6-v2 and of models like it. Other numbers of
// layers, words and inner units are taken from the file.
const (
	// Size is the length of a vector.
	Size     = 384
	heads    = 12
	headSize = Size / heads
	epsilon  = 1e-12
)

// Encoder holds the weights. It is safe for concurrent use.
type Encoder struct {
	words, places, kind []float32 // Rows of Size.
	vocabulary          int
	maxTokens           int
	first               scaling
	layers              []layer
	inner               int
}

type layer struct {
	// query holds queries, keys and values, one behind the other.
	query, context, inner, outer matrix
	attention, output            scaling
}

// scaling is a layer normalisation's.
type scaling struct{ weight, bias []float32 }

// Load takes the encoder out of an ONNX graph. It answers only to a graph it
// can compute, and says of any other why not.
func Load(f *onnxfile.File) (*Encoder, error) {
	l := loader{f: f}
	if !f.Plain {
		return nil, fmt.Errorf("operators beyond the standard's")
	}
	const words = "embeddings.word_embeddings.weight"
	for name := range f.Weights {
		if prefix, ok := strings.CutSuffix(name, words); ok {
			l.prefix = prefix
		}
	}
	e := &Encoder{
		words:  l.vector(words, -1, Size),
		places: l.vector("embeddings.position_embeddings.weight", -1, Size),
		kind:   l.vector("embeddings.token_type_embeddings.weight", -1, Size),
		first:  l.scaling("embeddings.LayerNorm"),
	}
	e.vocabulary, e.maxTokens = len(e.words)/Size, len(e.places)/Size
	for n := 0; l.err == nil; n++ {
		name := fmt.Sprintf("encoder.layer.%d.", n)
		if _, more := f.Weights[l.prefix+name+"attention.self.query.bias"]; !more {
			break
		}
		self, output := name+"attention.self.", name+"attention.output."
		var qkv, bias []float32
		for _, part := range []string{"query", "key", "value"} {
			w, b := l.linear(self+part, Size)
			if l.err == nil && len(b) != Size {
				l.err = fmt.Errorf("%s%s gives %d, want %d", self, part, len(b), Size)
			}
			qkv, bias = append(qkv, w...), append(bias, b...)
		}
		context, contextBias := l.linear(output+"dense", Size)
		in, inBias := l.linear(name+"intermediate.dense", Size)
		out, outBias := l.linear(name+"output.dense", int64(len(inBias)))
		attention, norm := l.scaling(output+"LayerNorm"), l.scaling(name+"output.LayerNorm")
		switch {
		case l.err != nil:
		case len(contextBias) != Size || len(outBias) != Size || len(inBias)%panel != 0 || n > 0 && len(inBias) != e.inner:
			l.err = fmt.Errorf("layer %d has an unusual size", n)
		default:
			e.inner = len(inBias)
			e.layers = append(e.layers, layer{
				query: pack(qkv, bias, Size), context: pack(context, contextBias, Size),
				inner: pack(in, inBias, Size), outer: pack(out, outBias, e.inner),
				attention: attention, output: norm,
			})
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	// The names tell the weights; that nothing else happens to them, the
	// operators must tell.
	ops := map[string]int{}
	for _, n := range f.Nodes {
		ops[n.Op]++
	}
	for op, want := range map[string]int{"Softmax": len(e.layers), "Erf": len(e.layers), "Tanh": 0, "Relu": 0, "Sigmoid": 0, "Gelu": 0} {
		if ops[op] != want && op != "Tanh" || op == "Tanh" && ops[op] > 1 { // One is the pooler's.
			return nil, fmt.Errorf("%d times %s, want %d", ops[op], op, want)
		}
	}
	if len(e.layers) == 0 || e.vocabulary == 0 || e.maxTokens == 0 {
		return nil, fmt.Errorf("no layers")
	}
	return e, nil
}

// loader reads weights until one fails.
type loader struct {
	f      *onnxfile.File
	prefix string
	err    error
}

// vector reads a weight of the given dimensions; -1 stands for any.
func (l *loader) vector(name string, dims ...int64) []float32 {
	if l.err != nil {
		return nil
	}
	w, ok := l.f.Weights[l.prefix+name]
	ok = ok && len(w.Dims) == len(dims)
	for i := 0; ok && i < len(dims); i++ {
		ok = dims[i] == w.Dims[i] || dims[i] < 0
	}
	if !ok {
		l.err = fmt.Errorf("%s is not of the size wanted", name)
		return nil
	}
	var out []float32
	out, l.err = l.f.Floats(l.prefix + name)
	return out
}

func (l *loader) scaling(name string) scaling {
	return scaling{l.vector(name+".weight", Size), l.vector(name+".bias", Size)}
}

// linear reads a matrix as rows per output, and its bias. The matrix often has
// no name to go by: it is what is multiplied before the bias is added.
func (l *loader) linear(name string, in int64) (weight, bias []float32) {
	bias = l.vector(name+".bias", -1)
	if l.err != nil {
		return nil, nil
	}
	matrix, rows := l.applied(l.prefix + name + ".bias")
	w, ok := l.f.Weights[matrix]
	out := int64(len(bias))
	switch {
	case !ok || len(w.Dims) != 2:
		l.err = fmt.Errorf("%s has no matrix", name)
	case rows && (w.Dims[0] != out || w.Dims[1] != in), !rows && (w.Dims[0] != in || w.Dims[1] != out):
		l.err = fmt.Errorf("%s is %v, want %d to %d", name, w.Dims, in, out)
	default:
		weight, l.err = l.f.Floats(matrix)
	}
	if l.err != nil || rows {
		return weight, bias
	}
	turned := make([]float32, len(weight))
	for i := range int(in) {
		for o := range int(out) {
			turned[o*int(in)+i] = weight[i*int(out)+o]
		}
	}
	return turned, bias
}

// applied returns the matrix that a bias belongs to, and whether it has a row
// per output (else a column).
func (l *loader) applied(bias string) (matrix string, rows bool) {
	for _, n := range l.f.Nodes {
		switch {
		case n.Op == "Gemm" && len(n.Inputs) == 3 && n.Inputs[2] == bias && n.Ints["transA"] == 0:
			return n.Inputs[1], n.Ints["transB"] == 1
		case n.Op == "Add" && len(n.Inputs) == 2 && (n.Inputs[0] == bias || n.Inputs[1] == bias):
			product := n.Inputs[0]
			if product == bias {
				product = n.Inputs[1]
			}
			for _, m := range l.f.Nodes {
				if m.Op == "MatMul" && len(m.Inputs) == 2 && len(m.Outputs) == 1 && m.Outputs[0] == product {
					return m.Inputs[1], false
				}
			}
		}
	}
	return "", false
}
