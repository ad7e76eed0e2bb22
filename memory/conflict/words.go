package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// auxiliary is what an auxiliary verb says.
type auxiliary uint8

const (
	auxPlain auxiliary = iota
	auxPresent
	auxPast
	auxMust
	auxMay
)

var auxiliaries = buildAuxiliaries()

func buildAuxiliaries() map[string]auxiliary {
	m := make(map[string]auxiliary, 128)
	add := func(a auxiliary, words string) {
		for _, w := range strings.Fields(words) {
			m[text.Normalize(w)] = a
		}
	}
	add(auxPresent, `is are am isnt arent has have hasnt havent does do doesnt dont ist sind hat haben est sont ont es son está están tiene
является есть هو هي است هستند ہے ہیں है हैं`)
	add(auxPast, `was were wasnt werent had hadnt did didnt war waren wurde wurden hatte était étaient fue fueron era eran был была было были
كان كانت بود بودند تھا تھی تھے था थी थे`)
	add(auxMust, `must shall mustnt muss müssen doit doivent debe deben должен должна должны باید`)
	add(auxMay, `may might can could cannot cant couldnt darf dürfen kann können peut peuvent puede pueden может могут`)
	add(auxPlain, `will wont would should shouldnt be been being wird werden soll sollen`)
	return m
}

// verbStems are stems of verbs that statements about systems and people turn
// on; they show where the subject ends.
var verbStems = stems(`use uses run runs live lives sit sits host hosts deploy deploys ship ships push point points work works write written
call called name named store stored keep kept listen listens default set sets cost costs last lasts take takes start starts begin
need needs require requires support supports accept accepts return returns throw throws expire expires own owns lead leads manage manages
review reviews administer administers prefer prefers like likes read reads send sends go goes get gets contain contains hold holds lie
serve serves handle handles build builds depend depends rely relies meet meets happen happens move moves mean means belong belongs
maintain maintains approve approves merge merges launch launches close closes open opens release releases charge charges pay pays
cache caches log logs emit emits expose exposes allow allows deny denies block blocks include includes exclude excludes reject rejects pass passes fail fails lock locks unlock unlocks forbid forbids
enable enables disable disables replace replaces
läuft nutzt verwendet benutzt liegt speichert kostet dauert heißt unterstützt
utilise tourne coûte dure s'appelle expire valide anime gère
usa utiliza cuesta dura corre revisa funciona
использует работает хранится стоит идёт kullanıyor çalışıyor`)

// exclusive are verbs, with the word after them, whose object can be only one
// at a time; "" stands for no preposition.
var exclusive = buildExclusive()

func buildExclusive() map[string]struct{} {
	m := make(map[string]struct{})
	for _, p := range strings.Fields(`deploy/to ship/to push/to point/to points/to hosted/on hosted/in hosted/with hosted/at host/on
live/in live/at live/on sit/in located/in based/in based/on work/at work/for work/from written/in write/in called/ called/as named/ named/as call/ name/
stored/in stored/on stored/at kept/in kept/on listen/on listens/on set/to defaults/to default/to report/to belong/to start/at starts/at
moved/to cost/ costs/ begin/at managed/by owned/by led/by maintained/by released/under licensed/under`) {
		v, prep, _ := strings.Cut(p, "/")
		m[text.Stem(v)+"/"+prep] = struct{}{}
	}
	return m
}

// slotNouns name a property that has one value at a time: "the port is".
var slotNouns = stems(`port branch database owner lead leader maintainer deadline limit timeout version region name language url host hostname
address email capital budget price cost colour color default id identifier password path directory folder schedule time date duration size interval
frequency threshold quota retention location timezone zone license licence currency role title status state level
hafen sprache frist grenze version langue délai limite puerto idioma límite порт язык срок`)

// exclusiveRoles are verbs whose subject can be only one at a time.
var exclusiveRoles = stems(`own owns lead leads manage manages chair chairs head heads`)

func stems(words string) map[string]struct{} {
	m := make(map[string]struct{})
	for _, w := range strings.Fields(words) {
		m[text.Stem(text.Normalize(w))] = struct{}{}
	}
	return m
}

// significant are words that the index treats as function words and that make
// a difference here.
var significant = set(`only before after until since over under above below up down more most less few fewer some both either
once again except between 有`)

// lightWords are further words that say nothing by themselves here.
var lightWords = set(`a an per currently now today already still simply really actually just all every each any every whole
use-case approx exactly namely ie eg etc therefore via within will shall should would must may can could might dass
bitte derzeit aktuell jeder jede jedes alle actuellement chaque tous toutes actualmente cada todos todas сейчас каждый все
şu anda her هر همه كل कर हर`)

var articles = set(`the a an der die das dem den des ein eine einer eines einem einen le la les l un une el los las una unos unas`)

// shortNames are function words that are names when written in capitals.
var shortNames = set(`us it get who can am`)

var possessives = set("my your his her its our their whose")

// contrasting words put what holds after what does not.
var contrasting = set("but rather sondern mais sino pero а но بلکه بل لكن बल्कि بلکہ")

// isBe reports to be in the singular.
func isBe(s string) bool {
	switch s {
	case "is", "ist", "est", "es", "esta":
		return true
	}
	return false
}

// enumerators name things by number: another number is another thing.
var enumerators = stems(`bug issue ticket phase step chapter sprint release build rfc item task tier room floor node shard replica host server cluster
adr case test option section page team group zone incident pr pull-request iteration milestone story epic question rule figure table line
sprint vorgang schritt étape paso шаг`)

// exclusivity says that nothing else is meant.
var exclusivity = keyed("only", "nowhere else", "nothing else", "solely", "exclusively", "sole", "single", "exactly", "nur", "ausschließlich", "uniquement",
	"seulement", "únicamente", "sólo", "solamente", "только", "sadece", "فقط", "केवल", "صرف")

// synonyms bring abbreviations that engineers write for each other's long
// forms together. Keys and values are stems.
var synonyms = buildSynonyms()

func buildSynonyms() map[string]string {
	m := make(map[string]string)
	for _, p := range strings.Fields(`prod/production repo/repository repos/repository db/database dbs/database config/configuration cert/certificate
certs/certificate auth/authentication app/application apps/application k8s/kubernetes postgresql/postgres js/javascript ts/typescript
docs/documentation doc/documentation env/environment envs/environment dev/development stg/staging stage/staging
admin/administrator admins/administrator perf/performance infra/infrastructure msg/message prs/pr mrs/mr azs/az`) {
		a, b, _ := strings.Cut(p, "/")
		m[a], m[text.Stem(a)] = text.Stem(b), text.Stem(b)
	}
	return m
}

func set(words string) map[string]struct{} {
	m := make(map[string]struct{})
	for _, w := range strings.Fields(words) {
		m[text.Normalize(w)] = struct{}{}
	}
	return m
}
