package conflict

// hunk is a place where two statements differ: tokens of the old one, [i0,i1),
// stand where the new one has [j0,j1). One of the two may be empty.
type hunk struct{ i0, i1, j0, j1 int }

func (h hunk) insertion() bool { return h.i0 == h.i1 }
func (h hunk) deletion() bool  { return h.j0 == h.j1 }

// alignment is the longest common subsequence of two statements.
type alignment struct {
	pairs [][2]int
	hunks []hunk
}

// align finds the tokens that two statements have in common, in order.
func align(a, b []token) alignment {
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre].id == b[pre].id {
		pre++
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && a[len(a)-1-post].id == b[len(b)-1-post].id {
		post++
	}
	n, m := len(a)-pre-post, len(b)-pre-post
	al := alignment{pairs: make([][2]int, 0, min(len(a), len(b)))}
	for i := range pre {
		al.pairs = append(al.pairs, [2]int{i, i})
	}
	if n > 0 && m > 0 {
		al.middle(a[pre:len(a)-post], b[pre:len(b)-post], pre)
	}
	for k := range post {
		al.pairs = append(al.pairs, [2]int{len(a) - post + k, len(b) - post + k})
	}
	i, j := 0, 0
	for _, p := range al.pairs {
		if p[0] > i || p[1] > j {
			al.hunks = append(al.hunks, hunk{i, p[0], j, p[1]})
		}
		i, j = p[0]+1, p[1]+1
	}
	if i < len(a) || j < len(b) {
		al.hunks = append(al.hunks, hunk{i, len(a), j, len(b)})
	}
	return al
}

// middle aligns what common ends leave, by the table of common lengths.
func (al *alignment) middle(a, b []token, offset int) {
	n, m := len(a), len(b)
	var small [1024]uint16
	table := small[:]
	if (n+1)*(m+1) > len(small) {
		table = make([]uint16, (n+1)*(m+1))
	}
	w := m + 1
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			switch {
			case a[i].id == b[j].id:
				table[i*w+j] = table[(i+1)*w+j+1] + 1
			default:
				table[i*w+j] = max(table[(i+1)*w+j], table[i*w+j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a[i].id == b[j].id:
			al.pairs = append(al.pairs, [2]int{offset + i, offset + j})
			i++
			j++
		case table[(i+1)*w+j] >= table[i*w+j+1]:
			i++
		default:
			j++
		}
	}
}

// common counts the tokens of a that b holds too, repeats once each.
func common(a, b []token) int {
	if len(a)*len(b) <= 1024 {
		n := 0
		var used [8]uint64
		for i := range a {
			for j := range b {
				if j < 512 && used[j>>6]&(1<<(j&63)) == 0 && a[i].id == b[j].id {
					used[j>>6] |= 1 << (j & 63)
					n++
					break
				}
			}
		}
		return n
	}
	count := make(map[uint64]int, len(b))
	for i := range b {
		count[b[i].id]++
	}
	n := 0
	for i := range a {
		if count[a[i].id] > 0 {
			count[a[i].id]--
			n++
		}
	}
	return n
}

// rotation reports that b is a with its beginning moved to the end: "before
// every commit, run it" and "run it before every commit".
func rotation(a, b []token) bool {
	n := len(a)
	if n < 2 || n != len(b) {
		return false
	}
	for k := 1; k < n; k++ {
		if b[0].id != a[k].id {
			continue
		}
		same := true
		for i := range n {
			if a[(i+k)%n].id != b[i].id {
				same = false
				break
			}
		}
		if same {
			return true
		}
	}
	return false
}
