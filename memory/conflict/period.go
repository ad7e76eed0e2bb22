package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// period reads how often something happens at word i: daily, every six hours,
// once a week, раз в день. Its value is the seconds, or the months, between.
func (b *builder) period(i int) (q quantity, words int, ok bool) {
	s := b.surface(i)
	if v, found := adverbs[s]; found {
		return v, 1, true
	}
	if _, each := eachWords[s]; each && !b.rate() {
		n, at := 1.0, i+1
		if v, isNumber := b.plainNumber(at); isNumber {
			n, at = v, at+1
		}
		if q, ok := b.every(at, n, 1); ok {
			return q, at - i + 1, true
		}
		return q, 0, false
	}
	times, at := b.times(i)
	if at == 0 {
		return q, 0, false
	}
	if _, per := perWords[b.surface(at)]; per {
		at++
	}
	if q, ok := b.every(at, 1, times); ok {
		return q, at - i + 1, true
	}
	return q, 0, false
}

// rate reports a number earlier in the clause: 45 a seat each month is a rate.
func (b *builder) rate() bool {
	for k := len(b.p.tokens) - 1; k >= 0 && !b.comma; k-- {
		if t := &b.p.tokens[k]; t.kind == kindNumber && (t.amount.dim == dimMoney || t.amount.dim == dimNone) {
			return true
		} else if t.comma {
			break
		}
	}
	return false
}

// times reads "once" or "three times" and returns where it ends.
func (b *builder) times(i int) (n float64, end int) {
	if v, ok := onceWords[b.surface(i)]; ok {
		return v, i + 1
	}
	if v, ok := b.plainNumber(i); ok {
		if _, times := timesWords[b.surface(i+1)]; times {
			return v, i + 2
		}
	}
	return 0, 0
}

func (b *builder) plainNumber(i int) (float64, bool) {
	s := b.surface(i)
	if v, ok := numberWords[s]; ok {
		return v, true
	}
	q, ok := parseQuantity(s)
	return q.value, ok && q.dim == dimNone
}

// every makes the period of count units, shared by times occasions, when a
// unit of time stands at word i.
func (b *builder) every(i int, count, times float64) (quantity, bool) {
	if _, night := nightWords[b.surface(i)]; night && count == 1 && times == 1 {
		return adverbs["nightly"], true
	}
	u, ok := unitOf(b.surface(i))
	if !ok || u.dim != dimTime && u.dim != dimMonths || len(b.surface(i)) < 2 || times == 0 {
		return quantity{}, false
	}
	q := quantity{value: u.factor * count / times, dim: dimPeriod, unit: "s"}
	if u.dim == dimMonths {
		q.unit = "months"
	}
	return q, true
}

var (
	eachWords  = set("every each jeden jede jedes alle chaque cada каждый каждую каждое каждые her هر كل کل हर ہر 毎 每")
	perWords   = set("a an per the pro am in im par al a la por в bir")
	timesWords = set("times mal fois veces раз kez kere بار مرات مرة बार 次 回")
	onceWords  = map[string]float64{"once": 1, "twice": 2, "thrice": 3, "einmal": 1, "zweimal": 2, "dreimal": 3}
	nightWords = set("night nacht nuit noche ночь gece شب ليلة رات रात 晚")
	adverbs    = buildAdverbs()
)

func buildAdverbs() map[string]quantity {
	m := make(map[string]quantity)
	add := func(value float64, unit, words string) {
		for _, w := range strings.Fields(words) {
			m[text.Normalize(w)] = quantity{value: value, dim: dimPeriod, unit: unit}
		}
	}
	const day = 86400
	add(3600, "s", "hourly stündlich ежечасно saatlik ساعتی")
	add(day, "s", "daily täglich quotidiennement diariamente ежедневно günlük روزانه يوميا یومیا روزآنہ रोज़ाना प्रतिदिन")
	add(7*day, "s", "weekly wöchentlich semanalmente еженедельно haftalık هفتگی أسبوعيا साप्ताहिक")
	add(day, "night", "nightly nachts")
	add(14*day, "s", "biweekly fortnightly zweiwöchentlich")
	add(1, "months", "monthly monatlich mensualmente ежемесячно aylık ماهانه شهريا मासिक")
	add(3, "months", "quarterly vierteljährlich")
	add(12, "months", "yearly annually jährlich ежегодно yıllık سالانه سنويا वार्षिक")
	return m
}
