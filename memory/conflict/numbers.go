package conflict

import (
	"math"
	"strconv"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// dimension is what a quantity measures; quantities of two dimensions are
// never compared by value.
type dimension uint8

const (
	dimNone dimension = iota
	dimTime           // seconds
	dimMonths
	dimBytes
	dimPercent
	dimMoney  // in the currency named by the unit
	dimClock  // minutes after midnight
	dimPeriod // between two occasions: seconds, or months as the unit says
)

// bound is what a quantity says about the true value.
type bound uint8

const (
	boundExact bound = iota
	boundAtLeast
	boundAtMost
	boundAbout
)

// quantity is a number with its unit brought to the base of its dimension.
type quantity struct {
	value float64
	dim   dimension
	unit  string // for money, the currency
	bound bound
}

// admits reports whether a statement that gives o can be true together with
// one that gives q and no more.
func (q quantity) admits(o quantity) bool {
	if q.dim != o.dim || q.unit != o.unit {
		return false
	}
	switch q.bound {
	case boundAtLeast:
		return o.bound != boundAtMost && o.value >= q.value
	case boundAtMost:
		return o.bound != boundAtLeast && o.value <= q.value
	case boundAbout:
		return o.bound == boundExact && math.Abs(o.value-q.value) <= 0.1*math.Abs(q.value)
	}
	return false
}

// canonical names the quantity so that equal ones have equal names.
func (q quantity) canonical() string {
	return "#" + strconv.Itoa(int(q.dim)) + q.unit + "/" + strconv.FormatFloat(q.value, 'g', 12, 64) + "/" + strconv.Itoa(int(q.bound))
}

type unit struct {
	dim    dimension
	factor float64
	name   string
}

// unitOf finds the unit that a word, in search form, names.
func unitOf(word string) (unit, bool) {
	u, ok := units[word]
	return u, ok
}

var units = buildUnits()

func buildUnits() map[string]unit {
	m := make(map[string]unit, 256)
	add := func(u unit, words string) {
		for _, w := range strings.Fields(words) {
			m[w], m[text.Normalize(w)] = u, u
		}
	}
	const minute, hour, day = 60, 3600, 86400
	add(unit{dimTime, 1e-6, ""}, "us µs μs microsecond microseconds")
	add(unit{dimTime, 1e-3, ""}, "ms msec millisecond milliseconds millis millisekunde millisekunden milliseconde millisecondes milisegundo milisegundos милисекунд миллисекунд миллисекунды")
	add(unit{dimTime, 1, ""}, "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos saniye секунда секунды секунд секундам секундах سکند ثانیه ثوان सेकंड 秒 초")
	add(unit{dimTime, minute, ""}, "min mins minute minutes minuten minuto minutos dakika минута минуты минут минуту دقیقه دقایق منٹ मिनट 分钟 分 분")
	add(unit{dimTime, hour, ""}, "h hr hrs hour hours stunde stunden heure heures hora horas saat час часа часов ساعت ساعه ساعات گھنٹے घंटे 小时 時間 시간")
	add(unit{dimTime, day, ""}, "d day days tag tage tagen jour jours dia dias gun день дня дней روز یوم یوما ایام دن दिन 天 日 일")
	add(unit{dimTime, 7 * day, ""}, "w wk week weeks woche wochen semaine semaines semana semanas hafta неделя недели недель неделю неделями هفته اسبوع اسابیع ہفتے ہفتہ हफ्ते सप्ताह 周 週 週間 주")
	add(unit{dimMonths, 1, ""}, "month months monat monate monaten mois mes meses ay месяц месяца месяцев ماه شهر اشهر مہینے महीने 个月 月 ヶ月 개월")
	add(unit{dimMonths, 12, ""}, "year years yr yrs jahr jahre jahren an ans annee annees ano anos yil год года лет سال سنه سنوات साल 年 년")
	for i, p := range []string{"k", "m", "g", "t", "p"} {
		f := math.Pow(1000, float64(i+1))
		add(unit{dimBytes, f, ""}, p+"b")
		add(unit{dimBytes, math.Pow(1024, float64(i+1)), ""}, p+"ib")
	}
	add(unit{dimBytes, 1e3, ""}, "ko килобайт")
	add(unit{dimBytes, 1e6, ""}, "mo мб мегабайт megabyte megabytes مگابایت میغابایت")
	add(unit{dimBytes, 1e9, ""}, "go гб гигабайт gigabyte gigabytes گیگابایت")
	add(unit{dimBytes, 1, ""}, "bytes byte octets байт بایت")
	add(unit{dimPercent, 1, ""}, "% percent prozent pourcent процентов процента")
	add(unit{dimMoney, 1, "usd"}, "usd dollar dollars $")
	add(unit{dimMoney, 1, "eur"}, "eur euro euros евро یورو")
	add(unit{dimMoney, 1, "gbp"}, "gbp pounds")
	delete(m, "go") // a language far more often than a gigaoctet
	return m
}

// parseQuantity reads a number as it is written in one token: 30, 30s, 1.5k,
// $20, 99.95%, 03:00. What has more than one dot, or letters that are no unit,
// is a version or a name and no quantity.
func parseQuantity(s string) (quantity, bool) {
	var q quantity
	if t, ok := strings.CutPrefix(s, "$"); ok {
		q.dim, q.unit, s = dimMoney, "usd", t
	}
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	from, dots := i, 0
	for i < len(s) && (isDigit(s[i]) || (s[i] == '.' && i+1 < len(s) && isDigit(s[i+1]))) {
		if s[i] == '.' {
			dots++
		}
		i++
	}
	if i == from || dots > 1 || i-from > 18 {
		return q, false
	}
	v, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return q, false
	}
	q.value = v
	rest := s[i:]
	switch {
	case rest == "":
		return q, true
	case len(rest) == 3 && rest[0] == ':' && isDigit(rest[1]) && isDigit(rest[2]) && dots == 0 && v < 25:
		minutes := float64(rest[1]-'0')*10 + float64(rest[2]-'0')
		return quantity{value: v*60 + minutes, dim: dimClock}, true
	case rest == "k" && q.dim != dimBytes:
		q.value *= 1000
		return q, true
	case rest == "m":
		q.value, q.dim = v*60, dimTime
		return q, true
	case rest == "am" || rest == "pm":
		if v > 12 {
			return q, false
		}
		h := math.Mod(v, 12)
		if rest == "pm" {
			h += 12
		}
		return quantity{value: h * 60, dim: dimClock}, true
	}
	u, ok := unitOf(rest)
	if !ok || q.dim != dimNone {
		return q, false
	}
	q.apply(u)
	return q, true
}

func (q *quantity) apply(u unit) {
	q.value *= u.factor
	q.dim = u.dim
	if u.name != "" {
		q.unit = u.name
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// numberWords are cardinals from two up. One is left out: it is a pronoun, an
// article and a numeral in most of these languages.
var numberWords = buildNumberWords()

func buildNumberWords() map[string]float64 {
	m := make(map[string]float64, 160)
	for _, l := range []string{
		"two three four five six seven eight nine ten eleven twelve",
		"zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
		"deux trois quatre cinq six sept huit neuf dix onze douze",
		"dos tres cuatro cinco seis siete ocho nueve diez once doce",
		"два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
		"iki uc dort bes alti yedi sekiz dokuz on onbir oniki",
		"دو سه چهار پنج شش هفت هشت نه ده یازده دوازده",
		"दो तीन चार पांच छह सात आठ नौ दस ग्यारह बारह",
	} {
		for i, w := range strings.Fields(l) {
			m[w] = float64(i + 2)
		}
	}
	for v, words := range map[float64]string{
		2: "две двух двумя iki دو دوم दो", 3: "трёх тремя تین", 4: "четырёх چار چہار", 5: "пяти پانچ पाँच خمسة خمس",
		6: "шести چھ छः ستة ست", 7: "семи سات", 8: "восьми آٹھ", 9: "نو", 10: "десяти دس عشرة عشر", 12: "بارہ",
	} {
		for _, w := range strings.Fields(words) {
			m[text.Normalize(w)] = v
		}
	}
	for w, v := range map[string]float64{"zero": 0, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100, "zwanzig": 20, "vingt": 20, "veinte": 20} {
		m[w] = v
	}
	delete(m, "on") // a preposition far more often than the Turkish ten
	delete(m, "once")
	delete(m, "نه") // also "not"
	return m
}

// unitArticles are articles that count the unit of time after them: un an,
// eine Woche. The English ones do so only after the words of unitOpeners,
// since "12 a month" is a rate.
var (
	unitArticles = set("один одну одной одна ein eine einen einer einem bir یک ایک एक un una une")
	unitOpeners  = set("for after within in than least most lasts last takes take about around every")
)

// duals are words that hold the number two and their unit.
var duals = buildDuals()

func buildDuals() map[string]quantity {
	m := make(map[string]quantity)
	for _, d := range []struct {
		dim   dimension
		value float64
		words string
	}{
		{dimTime, 2 * 60, "دقيقتين دقيقتان"}, {dimTime, 2 * 3600, "ساعتين ساعتان"}, {dimTime, 2 * 86400, "يومين يومان"},
		{dimTime, 14 * 86400, "أسبوعين أسبوعان"}, {dimMonths, 2, "شهرين شهران"}, {dimMonths, 24, "سنتين سنتان عامين"},
		{dimMonths, 6, "полгода halbjahr"}, {dimTime, 14 * 86400, "fortnight"},
	} {
		for _, w := range strings.Fields(d.words) {
			m[text.Normalize(w)] = quantity{value: d.value, dim: d.dim}
		}
	}
	return m
}
