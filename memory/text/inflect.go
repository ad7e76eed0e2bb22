package text

import (
	"strings"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/german"
)

// inflected emits the terms that a word gets because of the language of its
// text, beside itself and the stem that every word of its script gets.
func (t *tokenizer) inflected(a, b int, stem string) {
	s := t.src.text[a:b]
	if len(s) > maxStemBytes {
		return
	}
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case r < utf8.RuneSelf && t.latin == tongueGerman:
		t.german(a, b, stem)
	case r < utf8.RuneSelf && t.latin == tongueTurkish:
		t.turkish(a, b, stem)
	case !isArabicLetter(r):
	case t.arabic == tongueArabic:
		t.arabicForms(a, b, stem)
	case t.arabic == tongueNone && t.sink != nil:
		t.extra(consonants(stem), a, b, stem, kindStem) // a query may be too short to tell
	case t.arabic == tonguePersian:
		t.extra(stemPersian(s), a, b, stem, kindStem)
	case t.arabic == tongueUrdu:
		t.extra(stemUrdu(s), a, b, stem, kindStem)
	}
}

// extra emits a form of the word [a,b) unless it is the word or its stem. The
// span leaves out the word's last letter, so that nobody takes the form, which
// is looser than a stem, for another spelling of the word.
func (t *tokenizer) extra(form string, a, b int, stem string, k kind) {
	s := t.src.text[a:b]
	if form == s || form == stem {
		return
	}
	_, n := utf8.DecodeLastRuneInString(s)
	if n == len(s) {
		return
	}
	t.emit(form, a, b-n, false, k)
}

// german emits the stem, the spelling of umlauts with two letters, and the
// parts of a compound whose last part is a common one.
func (t *tokenizer) german(a, b int, stem string) {
	s := t.src.text[a:b]
	if t.sink == nil && t.src.start != nil {
		t.extra(t.transliterated(a, b), a, b, stem, kindIndex)
	}
	if len(s) < 4 || !isASCII(s) {
		return
	}
	g := stemGerman(umlauts(s), t.env)
	t.extra(g, a, b, stem, kindStem)
	if _, whole := germanHeads[g]; whole {
		return
	}
	for i := 4; i+3 <= len(g); i++ {
		if _, ok := germanHeads[g[i:]]; !ok {
			continue
		}
		first := stemGerman(g[:i], t.env)
		t.extra(first, a, b, stem, kindStem)
		t.extra(g[i:], a, b, stem, kindStem)
		return
	}
}

// transliterated returns a word with its umlauts written ae, oe and ue.
func (t *tokenizer) transliterated(a, b int) string {
	from, to := t.src.span(a, b)
	orig := t.src.orig[from:to]
	if isASCII(orig) {
		return t.src.text[a:b]
	}
	return Normalize(twoLetters.Replace(orig))
}

var twoLetters = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "Ä", "ae", "Ö", "oe", "Ü", "ue",
	"a\u0308", "ae", "o\u0308", "oe", "u\u0308", "ue", "A\u0308", "ae", "O\u0308", "oe", "U\u0308", "ue")

// umlauts folds ae, oe and ue as folding folds ä, ö and ü. A ue after a vowel
// or a q (neue, Quelle) is no umlaut.
func umlauts(s string) string {
	i := strings.IndexByte(s, 'e')
	if i <= 0 {
		return s
	}
	var b []byte // made when the first one is found
	for ; i < len(s); i++ {
		if s[i] == 'e' {
			switch p := s[i-1]; {
			case p == 'a' || p == 'o', p == 'u' && (i < 2 || strings.IndexByte("aeiouq", s[i-2]) < 0):
				if b == nil {
					b = append(make([]byte, 0, len(s)), s[:i]...)
				}
				continue
			}
		}
		if b != nil {
			b = append(b, s[i])
		}
	}
	if b == nil {
		return s
	}
	return string(b)
}

func stemGerman(word string, env *snowballstem.Env) string {
	if len(word) < 4 {
		return word
	}
	env.SetCurrent(word)
	german.Stem(env)
	return env.Current()
}

// germanHeads are nouns that end compounds often, as stems.
var germanHeads = buildGermanHeads()

func buildGermanHeads() map[string]struct{} {
	env := snowballstem.NewEnv("")
	m := make(map[string]struct{})
	for _, w := range strings.Fields(germanNouns) {
		if s := stemGerman(w, env); len(s) >= 3 {
			m[s] = struct{}{}
		}
	}
	return m
}

const germanNouns = `abfrage abteilung adresse anbieter anfrage anleitung anmeldung antrag anwendung arbeit archiv aufgabe auftrag
ausgabe ausweis bedarf bereich bericht besprechung bestellung betrag betrieb beutel blatt brief buchung budget buero daten datei
datenbank datum dienst dokument drucker einstellung entwickler entwicklung fehler firma formular frist fuehrer funktion
gebuehr gehalt geraet geschichte gespraech grenze gruppe handbuch inhalt kabel kanal karte kasse kennung kennwort konto
kopie kosten kraft kunde lager leiter leitung liste lizenz loesung maschine meldung minister mitarbeiter modell modul nachricht
name netzwerk nummer oberflaeche ordner paket partner passwort pause pflicht phase planung plattform problem produkt
programm projekt protokoll prozess pruefung punkt quelle raum rechner rechnung rechte regel reihe reise richtlinie schalter
schein schicht schluessel schnittstelle schrank schutz seite server sicherung sitzung software speicher sperre sprache stand stelle
steuer struktur stunde system tabelle tarif teile telefon termin ticket treffen umgebung unternehmen urlaub verbindung verfahren
verkehr verlauf vertrag verwaltung verzeichnis vorgang vorlage wartung wechsel werkzeug woche zahlung zeichen zeiten zeitraum
zentrale zentrum zertifikat ziffer zimmer zugang zugriff zustand zweig`

// turkish emits what is left of a word when its endings are taken off one by
// one, and its stem: five letters are as good as a root for finding.
func (t *tokenizer) turkish(a, b int, stem string) {
	s := t.src.text[a:b]
	if len(s) < 4 || !isASCII(s) {
		return
	}
	rest, steps := s, 0
	for ; steps < 6; steps++ {
		cut := trimTurkish(rest)
		if cut == rest {
			break
		}
		rest = cut
		if t.sink == nil && steps < 3 && len(rest) > 3 {
			t.extra(rest, a, b, stem, kindIndex)
		}
	}
	root := rest[:min(len(rest), turkishRoot)]
	switch last := len(root) - 1; {
	case len(rest) > turkishRoot || steps == 0 && len(root) == len(s):
	case root[last] == 'b':
		root = root[:last] + "p"
	case root[last] == 'd':
		root = root[:last] + "t"
	case root[last] == 'g':
		root = root[:last] + "k"
	}
	t.extra(root, a, b, stem, kindStem)
}

// turkishRoot is how many letters of a Turkish word make its stem.
const turkishRoot = 5

// trimTurkish takes one ending off a folded word. An ending that starts with a
// vowel stands after a consonant, one with a buffer letter after a vowel.
func trimTurkish(w string) string {
	for _, e := range turkishEndings {
		rest, ok := strings.CutSuffix(w, e)
		if !ok || len(rest) < 3 {
			continue
		}
		vowel := strings.IndexByte("aeiou", rest[len(rest)-1]) >= 0
		switch e[0] {
		case 'a', 'e', 'i', 'o', 'u':
			if vowel {
				continue
			}
		case 's', 'y', 'n':
			if !vowel {
				continue
			}
		}
		return rest
	}
	return w
}

var turkishEndings = strings.Fields(`iliyor uluyor ilecek ilacak iyorlar uyorlar iyoruz uyoruz ecegiz acagiz yecegiz yacagiz larimiz lerimiz
lariniz leriniz larinin lerinin larinda lerinde larindan lerinden iyor uyor yecek yacak ecek acak larini lerini larina lerine
ildi uldu ilir ulur imiz umuz iniz unuz sinin sunun sinda sinde sunda sindan sinden sundan ndaki ndeki daki deki taki teki
lari leri miz muz sini sunu sina sine suna nin nun nda nde ndan nden dan den tan ten yla yle mali meli dir tir dur tur
lar ler mek mak maz mez mis mus ma me da de ta te la le in un si su yi yu ya ye ni nu na ne ki di du ti tu i u a e`)

// arabicForms emits a word without the particle glued to its front, and its
// consonants, which a broken plural shares with its singular (خادم, خوادم).
func (t *tokenizer) arabicForms(a, b int, stem string) {
	s := t.src.text[a:b]
	if rest := trimParticle(s); rest != s {
		t.extra(stemArabicScript(rest), a, b, stem, kindStem)
	}
	t.extra(consonants(stem), a, b, stem, kindStem)
}

// trimParticle takes off و, ف, ب, ل or ک when a word of four letters is left.
func trimParticle(w string) string {
	for _, p := range []string{"و", "ف", "ب", "ل", "ک"} {
		if rest, ok := strings.CutPrefix(w, p); ok && len(rest) >= 8 {
			return rest
		}
	}
	return w
}

// skeletonMark starts a term of consonants alone, so that it is no word.
const skeletonMark = "~"

// consonants returns the three or four consonants of an Arabic stem, marked;
// "" when it has fewer or more.
func consonants(stem string) string {
	var b strings.Builder
	b.WriteString(skeletonMark)
	n := 0
	for _, r := range stem {
		switch r {
		case 'ا', 'و', 'ی', 'ء':
		default:
			b.WriteRune(r)
			n++
		}
	}
	if n < 3 || n > 4 {
		return ""
	}
	return b.String()
}

// stemPersian takes the verb prefix and every ending off a word.
func stemPersian(word string) string {
	w := word
	for _, p := range []string{"نمی", "می"} {
		if rest, ok := strings.CutPrefix(w, p); ok && utf8.RuneCountInString(rest) >= 3 {
			return trimSuffix(rest, persianVerbEndings, 2)
		}
	}
	for range 3 {
		cut := trimSuffix(trimSuffix(w, persianEndings, 2), persianNounEndings, 3)
		if cut == w {
			break
		}
		w = cut
	}
	return w
}

var (
	persianVerbEndings = []string{"یم", "ید", "ند", "ین", "ن", "م", "ی", "د", "ه"}
	persianNounEndings = []string{"مان", "تان", "شان", "مون", "تون", "شون", "ات", "ان", "یی", "ای", "ام", "ست", "ش", "م", "ی", "ه"}
	urduEndings        = []string{"ییان", "ییون", "ییین", "یان", "یون", "ین", "ون", "یز", "ات", "ز", "س", "ی", "ا", "ه"}
)

// stemUrdu takes the ending of number, case and gender off a word, and the s
// that English words keep in their plural.
func stemUrdu(word string) string { return trimSuffix(word, urduEndings, 2) }

// koreanParticles follow a noun without a space, longest first.
var koreanParticles = []string{
	"에서는", "에서의", "으로는", "에서", "에게", "에는", "에도", "까지", "부터", "으로", "한테", "이나", "처럼", "보다", "하고",
	"은", "는", "이", "가", "을", "를", "의", "에", "와", "과", "도", "로", "만",
}
