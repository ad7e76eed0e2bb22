package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// scope is a kind of word that says where, when or for whom a statement holds.
// Two statements with different words of one kind speak of different things.
type scope uint8

const (
	scopeNone        scope = iota
	scopeEnvironment       // production, staging
	scopeCalendar          // months, quarters, seasons
	scopeWeekday
	scopeOrdinal // first, 99th
)

var scopes = buildScopes()

func buildScopes() map[string]scope {
	m := make(map[string]scope, 400)
	add := func(s scope, words string) {
		for _, w := range strings.Fields(words) {
			n := text.Normalize(w)
			m[n] = s
			m[text.Stem(n)] = s
		}
	}
	add(scopeEnvironment, `production staging development testing sandbox preview local prod dev qa uat canary preprod demo
produktion produktivsystem testsystem entwicklung preproduction producción pruebas desarrollo продакшен стейджинг прод тест
üretim آزمایشی إنتاج اختبار प्रोडक्शन स्टेजिंग`)
	add(scopeCalendar, `january february march april june july august september october november december q1 q2 q3 q4
spring summer autumn winter quarter januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet
août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
diciembre январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь ocak şubat nisan mayıs haziran
temmuz ağustos eylül ekim kasım aralık`)
	add(scopeWeekday, `monday tuesday wednesday thursday friday saturday sunday weekday weekend
montag dienstag mittwoch donnerstag freitag samstag sonntag montags dienstags mittwochs donnerstags freitags
lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo
понедельник вторник среда четверг пятница суббота воскресенье pazartesi salı çarşamba perşembe cuma cumartesi pazar
دوشنبه سه‌شنبه چهارشنبه پنجشنبه جمعه شنبه یکشنبه الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد
پیر منگل بدھ جمعرات جمعہ ہفتہ اتوار सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार`)
	add(scopeOrdinal, `first second third fourth fifth primary secondary median erste zweite dritte premier deuxième primera segunda первый второй`)
	return m
}

// scopeOf finds the kind of a word by its stem or by its surface.
func scopeOf(surface, stem string) scope {
	if s, ok := scopes[surface]; ok {
		return s
	}
	if s, ok := scopes[stem]; ok {
		return s
	}
	if n := len(surface); n > 2 && isDigit(surface[0]) {
		switch surface[n-2:] {
		case "st", "nd", "rd", "th":
			return scopeOrdinal
		}
	}
	return scopeNone
}

// The markers below are searched in the key form of a statement, between
// spaces.

// pastMarkers say that a statement held in the past and may no longer.
var pastMarkers = keyed(
	"used to", "previously", "formerly", "in the past", "at that time", "back then", "originally", "was once",
	"früher", "damals", "ehemals", "bis vor kurzem", "autrefois", "auparavant", "anteriormente", "раньше", "ранее",
	"eskiden", "قبلا", "سابقا", "در گذشته", "以前", "曾经", "かつて", "예전에",
)

// pastOpeners say the same when they open the statement.
var pastOpeners = keyed("until", "till", "bis", "jusqu", "hasta", "до", "تا", "حتى", "直到", "in 19", "in 20", "en 20", "в 20")

// additive markers say that something comes on top of what is known.
var additiveMarkers = keyed(
	"also", "too", "as well", "in addition", "additionally", "besides", "auch", "zusätzlich", "außerdem", "aussi", "également",
	"también", "además", "тоже", "также", "ayrıca", "همچنین", "نیز", "أيضا", "كذلك", "بھی", "भी",
)

// reportMarkers say that somebody else said it; a report is no statement.
var reportMarkers = keyed(
	"said", "says", "say", "claims", "claimed", "according to", "thinks", "believes", "believed", "asked whether", "asks whether", "asked if",
	"wrote:", "wrote that", "quoted", "quote", "heard that", "told", "reports that", "reported that", "supposedly", "allegedly", "rumour", "rumor",
	"used to say", "the old docs", "the docs say", "sagte", "sagt", "laut", "behauptet", "dit que", "selon", "dijo", "dice que", "según",
	"сказал", "говорит", "по словам", "dedi", "گفت", "می‌گوید", "قال", "يقول", "کہا", "कहा", "说", "という", "と言",
)

// modalMarkers say that it is a wish, a plan, a guess or a question.
var modalMarkers = keyed(
	"might", "maybe", "perhaps", "possibly", "probably", "should we", "could we", "proposed", "proposes", "proposal", "suggested", "suggests",
	"considering", "consider", "plan to", "plans to", "planning to", "planned to", "want to", "wants to", "hope to", "would like", "what if", "if we",
	"idea", "vielleicht", "möglicherweise", "geplant", "peut-être", "quizás", "tal vez", "возможно", "может быть", "belki", "شاید", "ربما", "शायद",
	"也许", "可能", "かもしれ",
)

// reversalMarkers say that something ended or changed.
var reversalMarkers = keyed(
	"no longer", "not any more", "not anymore", "any more", "anymore", "reversed", "revoked", "withdrawn", "overturned", "cancelled", "canceled",
	"abandoned", "deprecated", "retired", "removed", "replaced", "dropped", "stopped", "switched", "migrated", "moved", "moved off", "instead of",
	"took over", "taken over", "gave up", "discontinued", "scrapped", "rolled back", "postponed", "slipped", "delayed", "obsolete", "wrong", "false",
	"nicht mehr", "abgeschafft", "ersetzt", "umgestellt", "ne plus", "n'est plus", "remplacé", "abandonné", "ya no", "reemplazado", "больше не",
	"отказались", "заменили", "перешли", "artık", "دیگر", "منتقل", "اب", "لم يعد", "لم تعد", "अब",
	"put off", "put back", "brought forward", "pushed back", "handed over", "handed to", "given up", "is gone", "are gone", "was cut", "were cut", "rewritten",
	"turned off", "shut down", "superseded", "phased out", "ended", "has left", "left the", "ported",
	"verschoben", "vertagt", "aufgegeben", "eingestellt", "übergeben", "abgelöst", "umgezogen", "stillgelegt", "reporté", "reportée", "arrêté", "arrêtée", "supprimé", "migré",
	"déplacé", "a quitté", "aplazado", "aplazada", "cancelado", "dejamos", "dejó", "migramos", "trasladado", "sustituido", "pospuesto",
	"перенесли", "перенесён", "перенесен", "перенесена", "остановили", "прекратили", "отменили", "отменён", "переписан", "передали", "убрали",
	"ertelendi", "kaldırıldı", "bırakıldı", "bıraktık", "taşındı", "taşıdık", "durduruldu", "geçtik", "لغو شد", "متوقف شد", "جایگزین", "به تعویق", "منتقل شد", "کنار گذاشت", "کنار گذاشتیم",
	"أوقفنا", "توقفنا", "ألغينا", "ألغي", "نقلنا", "انتقلنا", "استبدلنا", "تأجل", "بند کر دیا", "ملتوی", "چھوڑ دیا", "बंद कर दिया", "स्थगित", "छोड़ दिया", "बदल दिया",
	"推迟", "停止使用", "更换", "搬到", "改由", "延期", "中止", "交代", "切り替え", "引き継",
	"不再", "取消", "停用", "废弃", "迁移", "改为", "换成", "改成", "廃止", "変わ", "移行", "やめ", "変更", "더 이상", "변경",
)

// conditionMarkers say when a statement holds.
var conditionMarkers = keyed(
	"if", "when", "whenever", "unless", "while", "during", "except", "as long as", "wenn", "falls", "solange", "außer", "während", "si", "quand", "lorsque", "sauf", "pendant",
	"cuando", "mientras", "salvo", "durante", "если", "когда", "пока", "кроме", "eğer", "اگر", "وقتی", "هنگام", "مگر", "إذا", "عندما", "إلا", "اگر", "جب", "अगर", "जब",
	"如果", "除非", "除了", "場合", "とき", "除いて", "경우",
)

func keyed(words ...string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = text.Key(w)
	}
	return out
}

// opens returns the marker that the statement begins with.
func opens(folded string, markers []string) (string, bool) {
	for _, m := range markers {
		if !strings.HasPrefix(folded, m) {
			continue
		}
		n := len(m)
		if isDigit(m[n-1]) { // a year
			if len(folded) < n+2 || !isDigit(folded[n]) || !isDigit(folded[n+1]) {
				continue
			}
			n += 2
		}
		if edge(folded, n) || m == "jusqu" || m[0] >= 0xE3 {
			return m, true
		}
	}
	return "", false
}
