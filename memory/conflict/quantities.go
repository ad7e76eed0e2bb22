package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// number reads a quantity at word i and the unit after it.
func (b *builder) number(i int) (quantity, int, bool) {
	w := b.words[i]
	if q, ok := duals[w.surface]; ok {
		return q, 1, true
	}
	q, ok := parseQuantity(w.surface)
	if !ok && b.unitArticle(i) {
		u, _ := unitOf(b.surface(i + 1))
		q.value = 1
		q.apply(u)
		return q, 2, true
	}
	if !ok {
		v, isWord := numberWords[w.surface]
		if !isWord && !b.oneOf(i) {
			return q, 0, false
		}
		if !isWord {
			v = 1
		}
		q = quantity{value: v}
	}
	if w.surface[0] != '$' && strings.HasSuffix(b.content[:w.start], "€") {
		q.apply(unit{dimMoney, 1, "eur"})
		return q, 1, true
	}
	if q.dim != dimNone || i+1 >= len(b.words) {
		return q, 1, true
	}
	next := b.words[i+1]
	if next.start-w.end > 1 {
		if strings.HasPrefix(strings.TrimLeft(b.content[w.end:], " "), "%") {
			q.apply(unit{dimPercent, 1, ""})
		}
		return q, 1, true
	}
	switch next.surface {
	case "am", "pm", "a.m", "p.m":
		if q.value <= 12 {
			h := q.value
			if h == 12 {
				h = 0
			}
			if next.surface[0] == 'p' {
				h += 12
			}
			return quantity{value: h * 60, dim: dimClock}, 2, true
		}
	case "uhr", "oclock":
		return quantity{value: q.value * 60, dim: dimClock}, 2, true
	}
	if i+2 < len(b.words) && b.words[i+2].start == next.end {
		if u, ok := unitOf(next.surface + b.words[i+2].surface); ok { // 分钟
			q.apply(u)
			return q, 3, true
		}
	}
	if u, ok := unitOf(next.surface); ok {
		q.apply(u)
		return q, 2, true
	}
	return q, 1, true
}

// unitArticle reports an article that counts the unit of time after it.
func (b *builder) unitArticle(i int) bool {
	u, ok := unitOf(b.surface(i + 1))
	if !ok || u.dim != dimTime && u.dim != dimMonths || len(b.surface(i+1)) < 2 {
		return false
	}
	switch s := b.surface(i); s {
	case "a", "an", "one":
		_, opens := unitOpeners[b.surface(i-1)]
		return opens || s == "one"
	default:
		_, article := unitArticles[s]
		return article
	}
}

// boundAfter reads the words that bound the number before them: 18 or later.
func (b *builder) boundAfter(i int) (bound, int) {
	if i+1 >= len(b.words) {
		return boundExact, 0
	}
	switch b.surface(i) {
	case "or", "oder", "ou", "o", "или", "veya", "یا", "او", "أو", "and", "und", "et", "y", "и", "या":
	default:
		return boundExact, 0
	}
	next := b.surface(i + 1)
	if _, up := upwards[next]; up {
		return boundAtLeast, 2
	}
	if _, down := downwards[next]; down {
		return boundAtMost, 2
	}
	return boundExact, 0
}

var (
	upwards   = set("later newer more above higher up neuer höher mehr später plus supérieur ultérieur más mas posterior superior выше новее более больше üstü sonrası yenisi بالاتر بیشتر جدیدتر أحدث أعلى أكثر")
	downwards = set("less fewer below lower older earlier älter weniger niedriger moins inférieur antérieur menos anterior inferior ниже меньше старше altı پایین‌تر کمتر أقل कम")
)

// phrase returns the n words from i as they are compared.
func (b *builder) phrase(i, n int) string {
	parts := make([]string, n)
	for k := range parts {
		parts[k] = b.surface(i + k)
	}
	return strings.Join(parts, " ")
}

// oneOf tells the numeral one from the pronoun: one approval, but not the one,
// one of them, another one.
func (b *builder) oneOf(i int) bool {
	if b.surface(i) != "one" || i+1 >= len(b.words) {
		return false
	}
	if next := b.words[i+1]; next.start != b.words[i].end+1 || text.Stop(next.surface) {
		return false
	}
	switch b.surface(i - 1) {
	case "the", "this", "that", "no", "another", "each", "every", "which", "at":
		return false
	}
	return true
}

// boundPhrase reads the words that bound the number right after them.
func (b *builder) boundPhrase(i int) (words int, bd bound, ok bool) {
	for _, p := range boundPhrases[b.words[i].surface] {
		match := true
		for k, w := range p.words {
			match = match && b.surface(i+k) == w
		}
		next := i + len(p.words)
		if !match || next >= len(b.words) {
			continue
		}
		_, isNum := parseQuantity(b.words[next].surface)
		if !isNum {
			_, isNum = numberWords[b.words[next].surface]
		}
		if isNum || b.unitArticle(next) {
			if bd, turned := turnedBound[p.bound]; turned && comparative(p.words) && b.takeNegation() {
				return len(p.words), bd, true
			}
			return len(p.words), p.bound, true
		}
	}
	return 0, 0, false
}

// turnedBound is what a negation makes of a bound: not more than is at most.
var turnedBound = map[bound]bound{boundAtLeast: boundAtMost, boundAtMost: boundAtLeast}

// comparative reports a bound that compares (more than, fewer than).
func comparative(words []string) bool {
	switch words[0] {
	case "more", "less", "fewer", "over":
		return true
	}
	return false
}

// takeNegation takes the negation off the clause's verb when it negates the
// comparison: "must not use more than".
func (b *builder) takeNegation() bool {
	if b.negate {
		b.negate = false
		return true
	}
	for k := len(b.p.tokens) - 1; k >= 0 && !b.comma && !b.p.tokens[k].comma; k-- {
		t := &b.p.tokens[k]
		if !t.neg || t.paired || t.excepted {
			continue
		}
		t.neg = false
		if b.p.must { // must not do more than: may do at most
			b.p.must, b.p.may = false, true
		}
		return true
	}
	return false
}

var boundPhrases = buildBoundPhrases()

type boundWords struct {
	words []string
	bound bound
}

func buildBoundPhrases() map[string][]boundWords {
	out := make(map[string][]boundWords)
	add := func(bd bound, phrases ...string) {
		for _, p := range phrases {
			words := strings.Fields(text.Normalize(p))
			out[words[0]] = append(out[words[0]], boundWords{words, bd})
		}
	}
	add(boundAtLeast, "at least", "no fewer than", "no less than", "not fewer than", "not less than", "a minimum of", "minimum of", "minimum",
		"min", "more than", "over", "mindestens", "wenigstens", "au moins", "al menos", "por lo menos", "не менее", "минимум", "en az", "حداقل", "على الأقل", "कम से कम")
	add(boundAtMost, "at most", "no more than", "not more than", "no later than", "up to", "a maximum of", "maximum of", "maximum", "max", "less than",
		"fewer than", "höchstens", "maximal", "au plus", "au maximum", "como máximo", "hasta", "не более", "максимум", "en fazla", "حداکثر", "على الأكثر", "अधिकतम")
	add(boundAbout, "about", "around", "roughly", "approximately", "approx", "nearly", "almost", "circa", "ca", "etwa", "ungefähr", "rund",
		"environ", "unos", "unas", "aproximadamente", "около", "примерно", "yaklaşık", "حدود", "حوالي", "लगभग")
	add(boundExact, "exactly", "precisely", "genau", "exactement", "exactamente", "ровно", "tam", "دقیقا")
	return out
}

// isNumber reports a number at word i.
func (b *builder) isNumber(i int) bool {
	_, ok := b.plainNumber(i)
	if !ok {
		q, is := parseQuantity(b.surface(i))
		ok = is && q.dim != dimClock
	}
	return ok || b.unitArticle(i)
}
