package conflict

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// complements are pairs of which one is true exactly when the other is not, so
// that "not enabled" says "disabled". The second of a pair is read as the first
// one negated.
var complements = stemPairs(`
enabled/disabled enable/disable enables/disables allowed/forbidden allowed/prohibited allowed/disallowed allowed/banned
permitted/forbidden mandatory/optional required/optional compulsory/optional true/false valid/invalid
possible/impossible supported/unsupported safe/unsafe stable/unstable active/inactive open/closed
opened/closed present/absent included/excluded include/exclude connected/disconnected visible/hidden
public/private online/offline available/unavailable reachable/unreachable encrypted/unencrypted
known/unknown used/unused correct/incorrect correct/wrong secure/insecure consistent/inconsistent
complete/incomplete dependent/independent mutable/immutable accepted/rejected succeeds/fails passes/fails
synchronous/asynchronous sync/async locked/unlocked installed/uninstalled legal/illegal signed/unsigned
aktiviert/deaktiviert erlaubt/verboten gestattet/untersagt offen/geschlossen öffentlich/privat gültig/ungültig
verschlüsselt/unverschlüsselt verpflichtend/freiwillig
activé/désactivé activée/désactivée autorisé/interdit autorisée/interdite obligatoire/facultatif obligatoire/facultative
public/privé publique/privée ouvert/fermé valide/invalide
activado/desactivado activada/desactivada habilitado/deshabilitado permitido/prohibido permitida/prohibida
obligatorio/opcional obligatoria/opcional público/privado abierto/cerrado válido/inválido
включено/выключено включён/выключен включена/выключена разрешено/запрещено разрешён/запрещён разрешена/запрещена
обязательно/необязательно обязательный/необязательный открыт/закрыт доступен/недоступен
aktif/pasif açık/kapalı zorunlu/isteğe izinli/yasak
اجباری/اختیاری فعال/غیرفعال مجاز/ممنوع عمومی/خصوصی باز/بسته
إلزامي/اختياري مسموح/ممنوع مفتوح/مغلق عام/خاص
لازمی/اختیاری
अनिवार्य/वैकल्पिक
`)

// contraries cannot both hold of one thing, but one not holding does not make
// the other hold.
var contraries = stemPairs(`
always/never always/sometimes everyone/nobody all/none before/after first/last increase/decrease increases/decreases rises/falls
raise/lower raised/lowered maximum/minimum upper/lower ascending/descending best/worst fast/slow faster/slower
high/low higher/lower early/late earlier/later left/right up/down more/less success/failure
add/remove added/removed start/stop starts/stops started/stopped lock/unlock likes/dislikes loves/hates push/pull
manual/automatic manually/automatically blocking/non-blocking stateful/stateless static/dynamic centralised/decentralised
centralized/decentralized horizontal/vertical strict/lenient serial/parallel sequential/parallel
accept/reject accepts/rejects allow/forbid allows/forbids allow/deny allows/denies permit/forbid approve/reject
experimental/stable temporary/permanent approved/rejected keep/delete kept/deleted kept/dropped single-threaded/multi-threaded
keep/break keep/split increase/cut yasak/serbest ممنوع/مسموح مسموح/محظور मना/अनुमति interdit/permis interdite/permise verboten/zulässig immer/nie täglich/wöchentlich toujours/jamais siempre/nunca всегда/никогда daily/weekly daily/monthly daily/hourly
weekly/monthly weekly/hourly monthly/yearly nightly/hourly weekly/biweekly hourly/yearly daily/yearly
میشه/هرگز دائما/ابدا हमेशा/कभी her/hiç
`)

// stemPairs reads pairs into a map from the stem of the second to the stems of
// the first, and back.
func stemPairs(list string) map[string][]string {
	m := make(map[string][]string)
	for _, p := range strings.Fields(list) {
		a, b, ok := strings.Cut(p, "/")
		if !ok {
			continue
		}
		a, b = text.Stem(text.Normalize(a)), text.Stem(text.Normalize(b))
		if a != b {
			m[b] = append(m[b], a)
		}
	}
	return m
}

// positives are the first words of the complements with the one that stands
// for all that share a second: what is not forbidden is allowed as much as
// permitted.
var positives = func() map[string]string {
	m := make(map[string]string)
	for _, firsts := range complements {
		for _, p := range firsts {
			if c, ok := m[p]; !ok || firsts[0] < c {
				m[p] = firsts[0]
			}
		}
	}
	return m
}()

// positiveOf returns the positive side of a complement whose negative side is
// stem.
func positiveOf(stem string) (string, bool) {
	if p, ok := complements[stem]; ok {
		return positives[p[0]], true
	}
	return "", false
}

// opposed reports whether two stems exclude each other.
func opposed(a, b string) bool {
	return listed(contraries[a], b) || listed(contraries[b], a) || listed(complements[a], b) || listed(complements[b], a) ||
		negatedPrefix(a, b) || negatedPrefix(b, a)
}

func listed(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// negatedPrefix reports that b is a with a prefix that negates. Only prefixes
// that hardly ever do anything else are read.
func negatedPrefix(a, b string) bool {
	if len(a) < 5 {
		return false
	}
	for _, p := range []string{"un", "non-", "non", "not-", "un-"} {
		if rest, ok := strings.CutPrefix(b, p); ok && rest == a {
			return true
		}
	}
	return false
}
