package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// negation is how a word negates.
type negation uint8

const (
	negNone negation = iota
	negNext          // the content word after it: not, never, nicht, не
	negPrev          // the content word before it: değil, نیست
	negSelf          // the word itself holds it: нельзя, -мıyor
)

// negators are given in search form. Contractions come without apostrophe.
var negators = buildNegators()

func buildNegators() map[string]negation {
	m := make(map[string]negation, 160)
	add := func(n negation, words string) {
		for _, w := range strings.Fields(words) {
			m[strings.ReplaceAll(text.Normalize(w), "'", "")] = n
		}
	}
	add(negNext, `not no never without cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt couldnt shouldnt
mustnt neednt hasnt havent hadnt aint neither nor none nobody nothing nowhere hardly
nicht kein keine keinen keinem keiner keines nie niemals ohne niemand nichts
pas jamais aucun aucune sans ni personne rien
nunca jamás sin ningún ninguna ninguno nadie tampoco
не нет никогда без нельзя ни никто ничего
لا لم لن ليس ليست غير بدون دون هرگز بدون مت نہ بغیر मत न बिना
hiç asla`)
	add(negPrev, `off against olmadan değil yok yoktur نیست نیستند نبود نشد ندارد ندارند نداریم نشده نباید نہیں नहीं 아니다 아닙니다`)
	delete(m, "nur")
	return m
}

// excepting are the negations that name a condition.
var excepting = set("without ohne sans sin без بدون دون بغیر बिना olmadan unless")

// negationOf reports whether and how the word negates. prev and next are its
// neighbours, function words included.
func negationOf(w, prev, next string) negation {
	n, ok := negators[w]
	if !ok {
		return negatedForm(w)
	}
	switch next {
	case "only", "just", "merely", "even", "nur", "einmal", "seulement", "meme", "solo", "siquiera", "только", "даже", "matter", "sooner", "doubt", "فقط", "sadece":
		return negNone
	case "later", "more", "less", "fewer", "mehr", "weniger", "plus", "moins", "mas", "menos", "более", "менее":
		// "no more than" bounds a number; "nicht mehr" and "no longer" do not.
		if w == "no" || w == "not" {
			return negNone
		}
	}
	switch {
	case prev == "के" || prev == "کے":
		return negPrev // समीक्षा के बिना: without after its noun
	case w == "no" && (prev == "or" || prev == "yes"):
		return negNone
	case w == "not" && prev == "or" && (next == "" || next == "and"):
		return negNone // whether or not
	case w == "nothing" && next == "but":
		return negNone
	}
	return n
}

// negatedForm reads negation inside a word: Turkish verbs, Persian verbs that
// begin with ن, Korean verb endings.
func negatedForm(w string) negation {
	if len(w) < 4 {
		return negNone
	}
	switch c := w[0]; {
	case c < 0x80:
		if len(w) >= 7 {
			for _, e := range []string{"miyor", "muyor", "miyoruz", "muyoruz", "miyorlar", "muyorlar", "mamali", "memeli", "mayacak", "meyecek", "amaz", "emez", "ilmez", "ilmaz", "unmaz", "inmez", "ulmaz"} {
				if strings.HasSuffix(w, e) {
					return negSelf
				}
			}
		}
	case strings.HasPrefix(w, "نمی") && len(w) >= 10:
		return negSelf
	case c >= 0xEA && c <= 0xED && (strings.Contains(w, "않") || strings.Contains(w, "없") || strings.Contains(w, "못") || w == "안"):
		return negSelf
	}
	return negNone
}

// positiveForm returns the word without the negation inside it, so that it
// aligns with its positive: نمی‌شود with می‌شود.
func positiveForm(w string) string {
	if rest, ok := strings.CutPrefix(w, "نمی"); ok {
		return "می" + rest
	}
	for _, s := range [][2]string{{"miyor", "iyor"}, {"muyor", "uyor"}, {"amaz", "abilir"}, {"emez", "ebilir"}} {
		if i := strings.LastIndex(w, s[0]); i > 0 {
			return w[:i] + s[1] + w[i+len(s[0]):]
		}
	}
	return w
}

// hanNegation reports whether the character at i of a Chinese or Japanese text
// negates what follows.
func hanNegation(rs []rune, i int) bool {
	next := rune(0)
	if i+1 < len(rs) {
		next = rs[i+1]
	}
	prev := rune(0)
	if i > 0 {
		prev = rs[i-1]
	}
	switch rs[i] {
	case '不':
		return !strings.ContainsRune("仅但同过久断论管足少错", next)
	case '没', '沒':
		return next != '收'
	case '非':
		return !strings.ContainsRune("常洲", next) && prev != '除' && prev != '是'
	case '未':
		return !strings.ContainsRune("来來", next)
	case '无', '無':
		return !strings.ContainsRune("论線线料", next)
	case '勿':
		return true
	case '禁':
		return next == '止'
	}
	return false
}

// kanaNegations returns where in a Japanese text a predicate is negated. The
// ending of "only" (しか…ない) and of "must" (なければならない) negates nothing.
func kanaNegations(s string) []int {
	if !strings.ContainsAny(s, "なませずぬ") {
		return nil
	}
	var at []int
	for _, e := range []string{"ない", "ません", "なかった", "ずに"} {
		from := 0
		for {
			i := strings.Index(s[from:], e)
			if i < 0 {
				break
			}
			i += from
			from = i + len(e)
			before := s[max(0, i-36):i]
			if strings.HasSuffix(before, "なければなら") || strings.HasSuffix(before, "なければなり") || strings.Contains(before, "しか") ||
				strings.HasPrefix(s[from:], "と") {
				continue
			}
			at = append(at, i)
		}
	}
	return at
}

// denials begin a statement that calls the rest of it false.
var denials = []string{
	"it is not true that", "it isn't true that", "it's not true that", "it is false that", "it is wrong that", "it is incorrect that",
	"it is untrue that", "it is no longer true that", "it is not the case that", "it isn't the case that", "not true that",
	"it was wrong that", "i was wrong about", "i was wrong that", "i was wrong to say that", "we were wrong that",
	"it is not correct that", "contrary to what was said,", "it turns out to be false that", "the claim that",
	"es stimmt nicht, dass", "es ist nicht wahr, dass", "es ist falsch, dass",
	"il n'est pas vrai que", "il est faux que", "ce n'est pas vrai que",
	"no es cierto que", "no es verdad que", "es falso que",
	"неправда, что", "неверно, что", "это неправда, что",
	"درست نیست که", "این درست نیست که", "ليس صحيحا ان", "यह सच नहीं है कि", "یہ درست نہیں کہ",
	"不是真的", "并非", "doğru değil",
}

// denied returns what a statement denies, when it is a denial. Folded is the
// statement's key form.
func denied(folded string) (rest string, ok bool) {
	for _, d := range foldedDenials {
		rest, found := strings.CutPrefix(folded, d)
		if !found || strings.TrimSpace(rest) == "" {
			continue
		}
		if d == "the claim that" {
			for _, tail := range []string{" is false", " is wrong", " is not true", " is untrue", " is incorrect"} {
				if i := strings.Index(rest, tail); i > 0 {
					return strings.TrimSpace(rest[:i]), true
				}
			}
			continue
		}
		return strings.TrimSpace(rest), true
	}
	return "", false
}

var foldedDenials = func() []string {
	out := make([]string, len(denials))
	for i, d := range denials {
		out[i] = text.Key(d)
	}
	return out
}()
