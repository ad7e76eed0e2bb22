package conflict

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// matter is how much two statements speak of the same thing, whatever the
// order of their words.
type matter struct {
	old, new *Parsed
	a, b     []token // what carries content, the weak verbs left out
	pairs    [][2]int
	inA, inB []bool
}

// compareMatter pairs the words of two statements without regard to order.
func compareMatter(old, new *Parsed) matter {
	m := matter{old: old, new: new, a: old.strong, b: new.strong}
	in := make([]bool, len(m.a)+len(m.b))
	m.inA, m.inB = in[:len(m.a)], in[len(m.a):]
	ways := []func(x, y *token) bool{sameWord, alike}
	if lasts(m.a) && lasts(m.b) {
		ways = append(ways, sameTerm)
	}
	for _, same := range ways {
		for i := range m.a {
			for j := range m.b {
				if !m.inA[i] && !m.inB[j] && same(&m.a[i], &m.b[j]) {
					m.pairs = append(m.pairs, [2]int{i, j})
					m.inA[i], m.inB[j] = true, true
				}
			}
		}
	}
	return m
}

func sameWord(x, y *token) bool { return x.id == y.id }

// alike reports words of one family: approve and approval, a noun and its
// cases. It is enough to suspect something, never to merge.
func alike(x, y *token) bool {
	if x.kind != kindWord || y.kind != kindWord || x.stem[0] != y.stem[0] && x.concept == 0 {
		return false
	}
	if x.concept != 0 && x.concept == y.concept {
		return true
	}
	a, b := x.stem, y.stem
	if x.paired || y.paired {
		return false
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	shared, longest := utf8.RuneCountInString(a[:n]), max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
	return shared >= 4 && shared*5 >= longest*3
}

// lasts reports that a statement names a length of time.
func lasts(ts []token) bool {
	for i := range ts {
		if d := ts[i].amount.dim; ts[i].kind == kindNumber && (d == dimTime || d == dimMonths) {
			return true
		}
	}
	return false
}

// sameTerm reports a word for keeping and one for deleting: with a length of
// time both say how long something is kept.
func sameTerm(x, y *token) bool {
	_, kx := keeping[x.concept]
	_, ky := keeping[y.concept]
	_, dx := deleting[x.concept]
	_, dy := deleting[y.concept]
	return kx && dy || dx && ky
}

var (
	keeping  = conceptSet("keep speichern garder guardar хранить saklanıyor ذخیره")
	deleting = conceptSet("delete löschen effacer borrar удалять siliniyor")
)

func conceptSet(words string) map[uint64]struct{} {
	m := make(map[uint64]struct{})
	for _, w := range strings.Fields(words) {
		n := text.Normalize(w)
		if c, ok := concepts[n]; ok {
			m[hashOf(c)] = struct{}{}
		} else if c, ok := concepts[text.Stem(n)]; ok {
			m[hashOf(c)] = struct{}{}
		}
	}
	return m
}

// strong leaves out the verbs that say little (have, use, make).
func strong(ts []token) []token {
	out := make([]token, 0, len(ts))
	for i, t := range ts {
		if _, weak := weakVerbs[t.stem]; weak && !t.neg && t.kind == kindWord {
			continue
		}
		if _, day := dayWords[t.stem]; day && (i > 0 && ts[i-1].scope == scopeWeekday || i+1 < len(ts) && ts[i+1].scope == scopeWeekday) {
			continue
		}
		out = append(out, t)
	}
	return out
}

// coverage is how much of the shorter statement, as far as its first clause,
// the two have in common: 0 to 1.
func (m *matter) coverage() float64 {
	covered := func(ts []token, in []bool) float64 {
		n := clause(ts)
		if n == 0 {
			return 0
		}
		c := 0
		for i := range n {
			if in[i] {
				c++
			}
		}
		return float64(c) / float64(n)
	}
	return max(covered(m.a, m.inA), covered(m.b, m.inB))
}

// clause returns where the first clause ends.
func clause(ts []token) int {
	for i := 3; i < len(ts); i++ {
		if ts[i].comma {
			return i
		}
	}
	return len(ts)
}

// otherThing finds what shows that the statements speak of two things: other
// places, times or people of one kind, or another word before the same noun.
func (m *matter) otherThing() (string, bool) {
	for _, s := range []scope{scopeEnvironment, scopeOrdinal} {
		if x, y := m.loose(s); x != "" && y != "" {
			return fmt.Sprintf("%q and %q", x, y), true
		}
	}
	if x, y := m.loose(scopeCalendar); x != "" && y != "" && m.new.reversal == "" {
		return fmt.Sprintf("%q and %q", x, y), true
	}
	if !m.inA[0] && !m.inB[0] && m.a[0].kind != kindNumber && m.b[0].kind != kindNumber {
		return fmt.Sprintf("%q and %q as the first words", m.a[0].surface, m.b[0].surface), true
	}
	for _, p := range m.pairs {
		x, y, ok := m.modifiers(p)
		if ok {
			return fmt.Sprintf("%q and %q before %q", x.surface, y.surface, m.b[p[1]].surface), true
		}
	}
	for i := range m.a {
		if m.inA[i] || !m.a[i].limits() {
			continue
		}
		for j := range m.b {
			if !m.inB[j] && m.b[j].limits() && (m.a[i].prep == m.b[j].prep || beneficiary(m.a[i].prep) && beneficiary(m.b[j].prep)) {
				return fmt.Sprintf("%s %q and %s %q", m.a[i].prep, m.a[i].surface, m.b[j].prep, m.b[j].surface), true
			}
		}
	}
	return "", false
}

// limits reports a word that says for whom or of what a statement holds: for
// guests, or in the subject from the browser.
func (t *token) limits() bool {
	return beneficiary(t.prep) || t.prep != "" && !t.pred && !copula(t.prep) && t.kind != kindNumber
}

// loose returns words of one scope that each statement has for itself.
func (m *matter) loose(s scope) (x, y string) {
	for i := range m.a {
		if m.a[i].scope == s && !m.inA[i] {
			x = m.a[i].surface
		}
	}
	for j := range m.b {
		if m.b[j].scope == s && !m.inB[j] {
			y = m.b[j].surface
		}
	}
	return x, y
}

// modifiers returns the words before a common noun when they differ: raw
// events and daily events.
func (m *matter) modifiers(p [2]int) (x, y *token, differ bool) {
	if p[0] == 0 || p[1] == 0 || m.a[p[0]].verb || m.b[p[1]].verb {
		return nil, nil, false
	}
	x, y = &m.a[p[0]-1], &m.b[p[1]-1]
	bound := func(ts []token, i int, in []bool) bool {
		t := ts[i]
		return t.prep == "" && !t.comma && !in[i-1] && ts[i-1].kind == kindWord && !ts[i-1].verb && !ts[i-1].neg
	}
	if !bound(m.a, p[0], m.inA) || !bound(m.b, p[1], m.inB) || opposed(x.stem, y.stem) {
		return nil, nil, false
	}
	return x, y, true
}

// Coverage of the shorter statement from which the signs of opposition count.
// The pairs of testdata set them: lower ones flag statements that only share a
// theme.
const (
	enoughShared = 0.5
	fewShared    = 0.34
)

// suspect looks for signs that two statements which no rule brought together
// cannot both hold. It can only ask for a review, never retire.
func suspect(old, new *Parsed) (Verdict, bool) {
	m := compareMatter(old, new)
	if len(m.pairs) == 0 {
		return Verdict{}, false
	}
	if _, other := m.otherThing(); other {
		return Verdict{}, false
	}
	cov := m.coverage()
	for _, sign := range signs {
		if cov < sign.least {
			continue
		}
		if why, ok := sign.seen(&m); ok {
			return Verdict{Uncertain, sign.rule, why}, true
		}
	}
	return Verdict{}, false
}

// signs of opposition, the more telling ones first.
var signs = []struct {
	rule  string
	least float64 // the coverage it asks for
	seen  func(m *matter) (string, bool)
}{
	{"stance", enoughShared, (*matter).stanceTurned},
	{"polarity", enoughShared, (*matter).negated},
	{"antonym", enoughShared, (*matter).antonyms},
	{"other-value", enoughShared, (*matter).otherAmount},
	{"limit", fewShared, (*matter).limitLifted},
	{"reversal", fewShared, (*matter).reversed},
}

func (m *matter) stanceTurned() (string, bool) {
	if !m.old.stance.against(m.new.stance) {
		return "", false
	}
	if m.cutOff() {
		return "", false
	}
	return fmt.Sprintf("one statement %s (%q), the other %s (%q), and they speak of the same", m.old.stance, m.old.stanceWord, m.new.stance, m.new.stanceWord), true
}

// cutOff reports that each statement ends in words of its own: what one allows
// and the other forbids are then two things.
func (m *matter) cutOff() bool {
	i, j := clause(m.a)-1, clause(m.b)-1
	if i < 0 || j < 0 {
		return true
	}
	if own(&m.a[i], m.inA[i]) && own(&m.b[j], m.inB[j]) {
		return true
	}
	return ownWords(m.a[:i+1], m.inA) > 1 && ownWords(m.b[:j+1], m.inB) > 1
}

// own reports a word that only its own statement has, stance and numbers left
// out.
func own(t *token, in bool) bool {
	_, word := stanceWords[t.surface]
	return !in && !word && t.kind != kindNumber && !t.paired
}

func ownWords(ts []token, in []bool) int {
	n := 0
	for i := range ts {
		if own(&ts[i], in[i]) && !ts[i].verb {
			n++
		}
	}
	return n
}

func (m *matter) negated() (string, bool) {
	n, at := 0, -1
	for k, p := range m.pairs {
		if m.a[p[0]].neg != m.b[p[1]].neg {
			n++
			at = k
		}
	}
	if n%2 == 0 || m.old.stance == m.new.stance && m.old.stance != stanceNone || m.cutOff() {
		return "", false
	}
	return fmt.Sprintf("%q is affirmed in one statement and negated in the other", m.b[m.pairs[at][1]].surface), true
}

func (m *matter) antonyms() (string, bool) {
	for i := range m.a {
		for j := range m.b {
			if m.inA[i] || m.inB[j] || m.a[i].neg != m.b[j].neg || !opposed(m.a[i].stem, m.b[j].stem) {
				continue
			}
			return fmt.Sprintf("%q and %q exclude each other", m.a[i].surface, m.b[j].surface), !m.cutOff() || i == len(m.a)-1
		}
	}
	return "", false
}

// otherAmount finds the one quantity of a kind that each statement gives, when
// they differ.
func (m *matter) otherAmount() (string, bool) {
	for i := range m.a {
		x := &m.a[i]
		if x.kind != kindNumber || m.inA[i] || x.scope != scopeNone {
			continue
		}
		found := -1
		for j := range m.b {
			y := &m.b[j]
			if y.kind != kindNumber || y.scope != scopeNone || y.amount.dim != x.amount.dim || y.amount.unit != x.amount.unit {
				continue
			}
			if m.inB[j] || found >= 0 {
				return "", false
			}
			found = j
		}
		if found < 0 {
			continue
		}
		y := &m.b[found]
		if x.amount.admits(y.amount) || y.amount.admits(x.amount) || x.amount.dim == dimNone && !m.counts(i, found) || m.measures(i, found) {
			continue
		}
		return fmt.Sprintf("%s stands against %s", x.surface, y.surface), true
	}
	return "", false
}

// measures reports that the numbers belong to different things: each statement
// has words of its own before its number, or right after it.
func (m *matter) measures(i, j int) bool {
	if ownWords(m.a[:i], m.inA) > 0 && ownWords(m.b[:j], m.inB) > 0 {
		return true
	}
	after := func(ts []token, in []bool, k int) bool {
		return k+1 < len(ts) && !ts[k+1].comma && own(&ts[k+1], in[k+1]) && ts[k+1].kind != kindNumber
	}
	return after(m.a, m.inA, i) && after(m.b, m.inB, j)
}

// counts reports that two bare numbers count or number the same thing: a
// common word stands beside both.
func (m *matter) counts(i, j int) bool {
	for _, p := range m.pairs {
		x, y := p[0]-i, p[1]-j
		if (x == 1 || x == -1) && (y == 1 || y == -1) && (!enumerates(m.a[p[0]]) || m.a[i].amount.bound != boundExact) {
			return true
		}
	}
	return false
}

// limitLifted finds a limit on one side and its absence on the other.
func (m *matter) limitLifted() (string, bool) {
	for _, s := range [][2]*Parsed{{m.old, m.new}, {m.new, m.old}} {
		free, bound := s[0], s[1]
		if free.limitless == "" || bound.limitless != "" {
			continue
		}
		for _, t := range bound.tokens {
			if t.kind == kindNumber && t.scope == scopeNone {
				return fmt.Sprintf("%q stands against %s", free.limitless, t.surface), true
			}
		}
	}
	return "", false
}

func (m *matter) reversed() (string, bool) {
	if m.new.reversal == "" || m.old.reversal != "" {
		return "", false
	}
	return fmt.Sprintf("the newer statement speaks of the same and says %q", m.new.reversal), true
}

// dayWords say nothing beside the name of a day.
var dayWords = stems("day days tag tage jour jours día días день дни день gün günü روز یوم يوم دن दिन")

// weakVerbs say so little that two statements may differ in them.
var weakVerbs = stems(`use uses used have has had get gets got make makes made do does done put go goes come happen happens take takes took run runs
work works live lives lie lies sit sits be become give gives set let
nutzt verwendet benutzt macht wird haben gibt utilise fait usa utiliza hace использует kullanıyor yapılır استفاده کند داریم استعمال उपयोग करना किया जा जाता जाती होता होती करता करती करते کرنا کیا جا جاتا جاتی ہوتا ہوتی کرتا کرتی`)

// concepts are words for one thing across word classes. They help to see what
// two statements speak of; nothing is merged by them.
var concepts = buildConcepts()

func buildConcepts() map[string]string {
	m := make(map[string]string)
	for _, line := range strings.Split(conceptList, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		first := text.Stem(text.Normalize(words[0]))
		for _, w := range words {
			n := text.Normalize(w)
			m[n], m[text.Stem(n)] = first, first
		}
	}
	return m
}

const conceptList = `
deploy deployment ship shipping release rollout publish
delete deletion erase purge remove wipe discard
keep retain retention store stored storage hold preserve
log logs protocol journal
own owner owns ownership responsible maintainer maintains lead leads leader head heads manages charge
approve approval review sign-off signoff reviewed
limit cap quota throttle throttled ceiling maximum limited restricted
start begin starts begins kickoff launch opens opening open
end ends finish close closes closing stop
buy purchase
choose pick select chosen picked selected
customer client user account
password passphrase credential
error failure fault exception crash
server host machine node
backup snapshot copy
meeting call sync session standup
fast quick rapid
write written rewritten implement implemented
move moved migrate migrated migration relocate switch switched
try trial test
split break separate
need require required needs requirement
support supports supported compatible works
cost price fee costs charge
speichern gespeichert aufbewahren aufbewahrt aufgehoben archiviert
löschen gelöscht entfernen entfernt
protokoll protokolle logs log
leitet leiter leitung leiterin verantwortlich zuständig verantwortet
freigabe freigegeben genehmigung genehmigt
begrenzt begrenzung limit grenze höchstens
verschoben verlegt verschiebung
journaux logs journal
garder garde gardés conservé conservés stocké archivés
effacer effacé effacés supprimé supprimés supprimer
dirige responsable gère chef
correo correos email mensajes mails
borrar borrado eliminar eliminado
guardar guardado conservar conserva archivan
lidera dirige responsable encargado
сборка собирает собирается собирают
хранятся хранится хранение хранить
удаляются удаление удалять удалить
отвечает ответственный руководит ведёт владелец
sorumlu yönetiyor yönetir sahibi
saklanıyor saklanır tutuluyor arşivleniyor
siliniyor silinir silme
مسئول مسئولیت مدیر صاحب
ذخیره نگهداری بایگانی
مسؤول مسؤولة يدير تدير المسؤولة
نسخ نسخة احتياطي احتياطية
ذمہ دار نگران سربراہ
जिम्मेदार नेतृत्व प्रमुख
`

// limitlessMarkers say that nothing bounds a matter.
var limitlessMarkers = keyed(
	"unlimited", "without limit", "no limit", "no limits", "not limited", "not throttled", "aren't throttled", "isn't throttled", "aren't limited", "isn't limited", "uncapped",
	"for good", "forever", "indefinitely", "permanently", "for ever", "no expiry", "never expire", "never expires", "never deleted", "ever deleted",
	"unbegrenzt", "ohne limit", "ohne begrenzung", "nicht begrenzt", "für immer", "dauerhaft", "unbefristet", "illimité", "illimitée", "sans limite", "pour toujours", "indéfiniment",
	"ilimitado", "ilimitada", "sin límite", "para siempre", "indefinidamente", "не ограничен", "не ограничено", "без ограничений", "бессрочно", "навсегда",
	"sınırsız", "süresiz", "نامحدود", "بدون محدودیت", "برای همیشه", "غير محدود", "بلا حدود", "إلى الأبد", "لامحدود", "ہمیشہ کے لیے", "असीमित", "हमेशा के लिए",
	"无限", "不限", "永久", "無制限", "永続", "무제한",
)
