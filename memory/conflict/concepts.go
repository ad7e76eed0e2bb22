package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

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
