package conflict

import "fmt"

// sameInAnyOrder finds statements that say the same with their words in
// another order: "the data team is headed by Jonas", "remote staff must use the
// VPN" and "the VPN is mandatory for remote staff".
//
// The same words in another order may also say the opposite (A calls B, B calls
// A). So either the words that name things keep their order, or the grammar
// shows why they do not.
func sameInAnyOrder(old, new *Parsed) (Verdict, bool) {
	turned := old.stance.against(new.stance)
	if old.stance != new.stance && !turned || !turned && (old.additive == "") != (new.additive == "") || (old.reversal == "") != (new.reversal == "") || (old.marks[markOnly] == "") != (new.marks[markOnly] == "") {
		return Verdict{}, false
	}
	if d := len(old.strong) - len(new.strong); d > 3 || d < -3 || common(old.strong, new.strong) < 2 {
		return Verdict{}, false
	}
	a, b := classless(bearing(old), bearing(new))
	if len(a) < 2 || len(a) != len(b) {
		return Verdict{}, false
	}
	x, y := negations(a), negations(b)
	carried := old.stance != stanceNone && new.stance != stanceNone && min(x, y) == 0 && max(x, y) <= 1
	at := make([]int, len(a))
	used := make([]bool, len(b))
	for i := range a {
		at[i] = -1
		for j := range b {
			if !used[j] && a[i].id == b[j].id && a[i].accents == b[j].accents && a[i].double == b[j].double && (a[i].neg == b[j].neg || carried && !a[i].excepted && !b[j].excepted) {
				at[i], used[j] = j, true
				break
			}
		}
		if at[i] < 0 {
			return Verdict{}, false
		}
	}
	if _, swapped := swappedRoles(a, b); swapped {
		return Verdict{}, false
	}
	again := restanced(old, new)
	if (agent(old, a) < 0) != (agent(new, b) < 0) {
		if !turnedPassive(old, new, a, b, at) {
			return Verdict{}, false
		}
	} else if !inOrder(a, at) && !pairOnly(a, old, new) && !again || !again && otherRole(a, b, at) {
		return Verdict{}, false
	}
	if turned {
		return Verdict{Contradiction, "stance", fmt.Sprintf("of the same one statement %s (%q), the other %s (%q)", old.stance, old.stanceWord, new.stance, new.stanceWord)}, true
	}
	if old.stance != stanceNone {
		return Verdict{Duplicate, "same-rule", fmt.Sprintf("both statements have the same content words, and each %s (%q, %q)", old.stance, old.stanceWord, new.stanceWord)}, true
	}
	return Verdict{Duplicate, "same-words", "the same content words in another order"}, true
}

// negations counts the negated words, what is excepted left out. Where one
// statement has none and the other just one, the stance carries it: nobody may
// deploy, deploying is forbidden. Two of them may negate different things.
func negations(ts []token) int {
	n := 0
	for i := range ts {
		if ts[i].neg && !ts[i].excepted {
			n++
		}
	}
	return n
}

// bearing are the words that two ways to say a thing have in common: without
// weak verbs and the words of the stance.
func bearing(p *Parsed) []token {
	ts := p.strong
	priced := false
	for i := range ts {
		priced = priced || ts[i].amount.dim == dimMoney
	}
	out := make([]token, 0, len(ts))
	for _, t := range ts {
		if _, word := stanceWords[t.surface]; word && p.stance != stanceNone {
			continue
		}
		if _, price := priceWords[t.stem]; price && priced && !t.neg {
			continue
		}
		out = append(out, t)
	}
	return out
}

// priceWords add nothing to an amount of money.
var priceWords = stems("cost costs price prices priced kosten kostet preis coûte prix cuesta precio стоит цена fiyat قیمت ثمن")

// classNouns say what kind of thing a name is; they may be left out after it.
var classNouns = stems("service job plan app application module component tool endpoint dienst modul travail módulo servicio сервис модуль servisi")

// classless leaves out the class noun after a name that both statements have
// when only one of them has the noun: the payments service, payments.
func classless(a, b []token) (x, y []token) {
	drop := func(ts, other []token) []token {
		out := make([]token, 0, len(ts))
		for i, t := range ts {
			if _, class := classNouns[t.stem]; class && i > 0 && t.prep == "" && !t.comma && !t.neg && !holds(other, t.id) && bare(other, ts[i-1].id) {
				continue
			}
			out = append(out, t)
		}
		return out
	}
	return drop(a, b), drop(b, a)
}

func holds(ts []token, id uint64) bool {
	for i := range ts {
		if ts[i].id == id {
			return true
		}
	}
	return false
}

// bare reports that the word of the id stands in ts with no noun after it.
func bare(ts []token, id uint64) bool {
	for i := range ts {
		if ts[i].id == id {
			return i+1 == len(ts) || ts[i+1].kind == kindNumber || ts[i+1].prep != "" || ts[i+1].comma || ts[i+1].verb || ts[i+1].be
		}
	}
	return false
}

// otherRole reports a word that stands in another relation: from it, to it.
func otherRole(a, b []token, at []int) bool {
	for i := range a {
		x, y := a[i].prep, b[at[i]].prep
		if x != y && (telling(x) || telling(y)) {
			return true
		}
	}
	return false
}

// telling reports function words that give the word after them its part.
func telling(prep string) bool {
	return prep == "by" || directional(prep) || beneficiary(prep)
}

// inOrder reports that the words that name things keep their order; numbers,
// times and places may move.
func inOrder(a []token, at []int) bool {
	last := -1
	for i := range a {
		if a[i].kind == kindNumber || a[i].scope != scopeNone {
			continue
		}
		if at[i] < last {
			return false
		}
		last = at[i]
	}
	return true
}

// pairOnly reports that nothing is named but one thing and what it does, so
// that there is nothing to change places with.
func pairOnly(a []token, old, new *Parsed) bool {
	names := 0
	for i := range a {
		if a[i].prep != "" && directional(a[i].prep) {
			return false
		}
		if a[i].kind != kindNumber && a[i].scope == scopeNone {
			names++
		}
	}
	return names <= 2 && len(old.strong) == len(old.tokens) && len(new.strong) == len(new.tokens)
}

// agent returns the place of the word that "by" names as the one who acts, in
// words of a statement in the passive; -1 without one.
func agent(p *Parsed, ts []token) int {
	if !p.present && !p.past {
		return -1
	}
	for i := range ts {
		switch ts[i].prep {
		case "by", "von", "par", "por", "tarafından", "tarafindan":
			return i
		}
	}
	return -1
}

// turnedPassive reports that one statement is the other in the passive: the
// one who acts comes first in the active and after "by" in the passive.
func turnedPassive(old, new *Parsed, a, b []token, at []int) bool {
	x, y := agent(old, a), agent(new, b)
	switch {
	case x >= 0 && y < 0:
		return at[x] == 0 && x > 0
	case y >= 0 && x < 0:
		return at[0] == y && y > 0
	}
	return false
}

// restanced reports that one statement puts its stance in a verb (must) and the
// other says it of a thing (is mandatory for).
func restanced(old, new *Parsed) bool {
	said := func(p *Parsed) bool {
		for i := range p.tokens {
			if beneficiary(p.tokens[i].prep) {
				return !p.must && !p.may
			}
		}
		return false
	}
	return old.stance != stanceNone && said(old) != said(new) && (old.must || old.may) != (new.must || new.may)
}
