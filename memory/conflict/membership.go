package conflict

import (
	"fmt"
	"strings"
)

// memberMarkers say that there are others besides.
var memberMarkers = keyed("one of the", "among the", "einer der", "eine der", "l'un des", "l'une des", "uno de los", "una de las", "один из", "одна из", "یکی از", "أحد", "إحدى")

// member finds a list that holds the one of whom the older statement says that
// he is among others: one of the owners, and both owners.
func member(old, new *Parsed) (Verdict, bool) {
	mark := old.marks[markMember]
	if mark == "" || old.stance != new.stance || new.reversal != "" || old.reversal != "" {
		return Verdict{}, false
	}
	m := compareMatter(old, new)
	rest := 0
	for i := range m.a {
		if !m.inA[i] && m.a[i].kind != kindNumber && !strings.Contains(mark, m.a[i].surface) {
			return Verdict{}, false
		}
	}
	for _, p := range m.pairs {
		if m.a[p[0]].neg || m.b[p[1]].neg {
			return Verdict{}, false
		}
	}
	for j := range m.b {
		if m.inB[j] {
			continue
		}
		if !m.b[j].capital || m.b[j].prep != "" && m.b[j].prep != "and" && m.b[j].prep != "und" && m.b[j].prep != "et" && m.b[j].prep != "y" {
			return Verdict{}, false
		}
		rest++
	}
	if rest == 0 {
		return Verdict{}, false
	}
	return Verdict{Refinement, "membership", fmt.Sprintf("%q leaves room for others, and the newer statement names them", mark)}, true
}
