package bert

import (
	"context"
	"math"
	"sync"
)

// Vocabulary returns how many word pieces the encoder knows.
func (e *Encoder) Vocabulary() int { return e.vocabulary }

// MaxTokens returns how many tokens a text may have.
func (e *Encoder) MaxTokens() int { return e.maxTokens }

// chunkRows is about how many tokens one core works on at a time: enough to
// read each weight for many of them, few enough for its cache.
const chunkRows = 256

// Encode returns the mean of the last hidden states of each text, given as
// ids below Vocabulary, at least one and at most MaxTokens of them.
func (e *Encoder) Encode(ctx context.Context, texts [][]int32, workers int) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var chunks [][2]int
	for begin := 0; begin < len(texts); {
		end, rows := begin, 0
		for end < len(texts) && (end == begin || rows+padded(len(texts[end])) <= chunkRows) {
			rows += padded(len(texts[end]))
			end++
		}
		chunks = append(chunks, [2]int{begin, end})
		begin = end
	}
	// Several chunks are shared out among the cores; one alone is computed by all of them.
	inside := max(1, workers/max(1, len(chunks)))
	next := make(chan [2]int, len(chunks))
	for _, c := range chunks {
		next <- c
	}
	close(next)
	split(min(workers, len(chunks)), workers, func(int, int) {
		for c := range next {
			if ctx.Err() != nil {
				return
			}
			e.run(texts[c[0]:c[1]], vectors[c[0]:c[1]], inside)
		}
	})
	return vectors, ctx.Err()
}

func padded(n int) int { return (n + tileRows - 1) / tileRows * tileRows }

// scratch is the memory that one chunk needs.
type scratch struct {
	x, y, qkv, context, inner []float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// room returns s with n elements, whose values do not matter.
func room(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}

// run computes the vectors of some texts together. Each begins on a row of its
// own tile, so that no tile holds rows of two.
func (e *Encoder) run(texts [][]int32, vectors [][]float32, workers int) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	rows := 0
	starts := make([]int, len(texts))
	for i, t := range texts {
		starts[i] = rows
		rows += padded(len(t))
	}
	x, y := room(&s.x, rows*Size), room(&s.y, rows*Size)
	qkv, context, inner := room(&s.qkv, rows*3*Size), room(&s.context, rows*Size), room(&s.inner, rows*e.inner)

	for i, t := range texts {
		for n := range padded(len(t)) {
			id := int32(0) // What pads a tile is computed and never looked at.
			if n < len(t) {
				id = t[n]
			}
			row := x[(starts[i]+n)*Size:][:Size]
			place := e.places[min(n, e.maxTokens-1)*Size:][:Size]
			word, kind := e.words[int(id)*Size:][:Size], e.kind[:Size]
			for j := range row {
				row[j] = word[j] + kind[j] + place[j]
			}
		}
	}
	e.first.apply(x, nil, rows, workers)
	for _, l := range e.layers {
		l.query.times(qkv, x, rows, workers)
		split(len(texts)*heads, workers, func(begin, end int) {
			a := attentions.Get().(*attention)
			defer attentions.Put(a)
			for n := begin; n < end; n++ {
				i, head := n/heads, n%heads
				a.run(context[starts[i]*Size:], qkv[starts[i]*3*Size:], len(texts[i]), head)
			}
		})
		l.context.times(y, context, rows, workers)
		l.attention.apply(x, y, rows, workers)
		l.inner.times(inner, x, rows, workers)
		split(rows, workers, func(begin, end int) { gelu(inner[begin*e.inner : end*e.inner]) })
		l.outer.times(y, inner, rows, workers)
		l.output.apply(x, y, rows, workers)
	}
	for i, t := range texts {
		v := make([]float32, Size)
		for n := range t {
			for j, f := range x[(starts[i]+n)*Size:][:Size] {
				v[j] += f
			}
		}
		for j := range v {
			v[j] /= float32(len(t))
		}
		vectors[i] = v
	}
}

// apply adds y, if given, to x and normalises each row.
func (s scaling) apply(x, y []float32, rows, workers int) {
	split(rows, workers, func(begin, end int) { s.rows(x, y, begin, end) })
}

func (s scaling) rows(x, y []float32, begin, end int) {
	weight, bias := s.weight[:Size], s.bias[:Size]
	for r := begin; r < end; r++ {
		row := x[r*Size:][:Size]
		if y != nil {
			for j, v := range y[r*Size:][:Size] {
				row[j] += v
			}
		}
		var sum float32
		for _, v := range row {
			sum += v
		}
		mean := sum / Size
		var square float32
		for _, v := range row {
			d := v - mean
			square += d * d
		}
		scale := float32(1 / math.Sqrt(float64(square)/Size+epsilon))
		for j, v := range row {
			row[j] = (v-mean)*scale*weight[j] + bias[j]
		}
	}
}

// attention is the memory that one head needs.
type attention struct {
	keys, values, scores []float32
}

var (
	attentions = sync.Pool{New: func() any { return new(attention) }}
	noBias     [panel]float32
)

// run computes one head of one text of n tokens into context, a row of Size
// per token, from queries, keys and values.
func (a *attention) run(context, qkv []float32, n, head int) {
	const stride = 3 * Size
	columns := (n + panel - 1) / panel * panel
	keys := room(&a.keys, columns*headSize)
	values := room(&a.values, n*headSize)
	scores := room(&a.scores, padded(n)*columns)

	if columns > n {
		clear(keys[(columns-panel)*headSize:])
	}
	for t := range n {
		key := qkv[t*stride+Size+head*headSize:][:headSize]
		to := keys[t/panel*panel*headSize+t%panel:]
		for j, v := range key {
			to[j*panel] = v
		}
		value := qkv[t*stride+2*Size+head*headSize:][:headSize]
		for p := range headSize / panel {
			copy(values[(p*n+t)*panel:][:panel], value[p*panel:])
		}
	}
	for p := range columns / panel {
		for r := 0; r < n; r += tileRows {
			tile(qkv[r*stride+head*headSize:], stride, keys[p*panel*headSize:], headSize, noBias[:], scores[r*columns+p*panel:], columns)
		}
	}
	for r := range padded(n) {
		softmax(scores[r*columns:][:n])
	}
	for p := range headSize / panel {
		for r := 0; r < n; r += tileRows {
			tile(scores[r*columns:], columns, values[p*n*panel:], n, noBias[:], context[r*Size+head*headSize+p*panel:], Size)
		}
	}
}

// softmax turns the scores of one query into shares.
func softmax(scores []float32) {
	scale := 1 / math.Sqrt(headSize)
	highest := scores[0]
	for _, v := range scores {
		highest = max(highest, v)
	}
	var sum float32
	for i, v := range scores {
		v = float32(math.Exp(float64(v-highest) * scale))
		scores[i] = v
		sum += v
	}
	for i := range scores {
		scores[i] /= sum
	}
}

// gelu is looked up: the error function in full costs more than the rest of a
// layer's small steps together. Between two entries it is linear, off by less
// than 2e-6.
const (
	geluReach = 8 // Beyond it the function is 0 or x in float32.
	geluSteps = 256
)

var geluTable = sync.OnceValue(func() *[2*geluReach*geluSteps + 2]float32 {
	t := new([2*geluReach*geluSteps + 2]float32)
	for i := range t {
		x := float64(i)/geluSteps - geluReach
		t[i] = float32(x * (1 + math.Erf(x/math.Sqrt2)) / 2)
	}
	return t
})

func gelu(xs []float32) {
	t := geluTable()
	for i, x := range xs {
		switch {
		case x >= geluReach:
		case x > -geluReach:
			at := (x + geluReach) * geluSteps
			n := int(at)
			xs[i] = t[n] + (t[n+1]-t[n])*(at-float32(n))
		case x <= -geluReach:
			xs[i] = 0
		}
	}
}
