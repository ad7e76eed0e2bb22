package bert

import "sync"

// A tile is computed at once: rows of the left matrix by a panel of columns of
// the right one. All left matrices have room for whole tiles.
const (
	tileRows = 4
	panel    = 16
)

// matrix is the right side of a product, packed for the kernel: panel by panel
// of columns, and in each panel row by row.
type matrix struct {
	in, out int
	panels  []float32
	bias    []float32
}

// pack takes a matrix of a row per output; their number is a multiple of panel.
func pack(rows, bias []float32, in int) matrix {
	out := len(bias)
	m := matrix{in: in, out: out, panels: make([]float32, len(rows)), bias: bias}
	for o := range out {
		p := m.panels[o/panel*panel*in+o%panel:]
		for i, v := range rows[o*in : (o+1)*in] {
			p[i*panel] = v
		}
	}
	return m
}

// times computes the product of x, rows (a multiple of tileRows) of m.in each,
// with m into out, its columns split among workers.
func (m matrix) times(out, x []float32, rows, workers int) {
	split(m.out/panel, workers, func(begin, end int) {
		for p := begin; p < end; p++ {
			b := m.panels[p*panel*m.in : (p+1)*panel*m.in]
			bias := m.bias[p*panel : (p+1)*panel]
			for r := 0; r < rows; r += tileRows {
				tile(x[r*m.in:], m.in, b, m.in, bias, out[r*m.out+p*panel:], m.out)
			}
		}
	})
}

// tile computes out[i][j] = bias[j] + Σ a[i][x]·b[x][j], for four rows i of
// stride lda in a and ldout in out, sixteen columns j and x below k.
func tile(a []float32, lda int, b []float32, k int, bias []float32, out []float32, ldout int) {
	// What the kernel will touch, checked here since it does not.
	_, _ = a[(tileRows-1)*lda+k-1], b[k*panel-1]
	_, _ = bias[panel-1], out[(tileRows-1)*ldout+panel-1]
	if vectors {
		tileVector(&a[0], lda, &b[0], k, &bias[0], &out[0], ldout)
		return
	}
	tilePlain(a, lda, b, k, bias, out, ldout)
}

// tilePlain is the kernel where there is no better one: two rows by four
// columns are as much as most processors' registers hold.
func tilePlain(a []float32, lda int, b []float32, k int, bias []float32, out []float32, ldout int) {
	for i := 0; i < tileRows; i += 2 {
		a0, a1 := a[i*lda:i*lda+k], a[(i+1)*lda:(i+1)*lda+k]
		for j := 0; j < panel; j += 4 {
			s00, s01, s02, s03 := bias[j], bias[j+1], bias[j+2], bias[j+3]
			s10, s11, s12, s13 := s00, s01, s02, s03
			c := b[j:]
			for x, v0 := range a0 {
				v1 := a1[x]
				q := c[x*panel : x*panel+4 : x*panel+4]
				s00 += v0 * q[0]
				s01 += v0 * q[1]
				s02 += v0 * q[2]
				s03 += v0 * q[3]
				s10 += v1 * q[0]
				s11 += v1 * q[1]
				s12 += v1 * q[2]
				s13 += v1 * q[3]
			}
			o0, o1 := out[i*ldout+j:i*ldout+j+4], out[(i+1)*ldout+j:(i+1)*ldout+j+4]
			o0[0], o0[1], o0[2], o0[3] = s00, s01, s02, s03
			o1[0], o1[1], o1[2], o1[3] = s10, s11, s12, s13
		}
	}
}

// split calls fn for parts of 0..n, at most workers of them at once, and
// returns when all are done.
func split(n, workers int, fn func(begin, end int)) {
	workers = min(workers, n)
	if workers <= 1 {
		fn(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := 1; w < workers; w++ {
		wg.Go(func() { fn(n*w/workers, n*(w+1)/workers) })
	}
	fn(0, n/workers)
	wg.Wait()
}
