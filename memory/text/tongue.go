package text

import (
	"strings"
	"unicode/utf8"
)

// tongue is a language whose words get terms of their own beside those that
// every word of its script gets.
type tongue uint8

const (
	tongueNone tongue = iota // nothing that tells
	tongueGerman
	tongueTurkish
	tongueOther // English and the other languages in Latin script
	tongueArabic
	tonguePersian
	tongueUrdu
	tongues
)

const (
	// listenBytes bounds how much of a text is read to tell its language.
	listenBytes = 2000
	// sure is how many words of English alone end the reading.
	sure = 3
)

// listen tells the language of the words in Latin and of those in Arabic
// script, by function words, endings and letters that others do not have.
// Without evidence, or with as much for another language, there is none: a
// text gets no terms of a language that it may not be in.
func listen(src *source) (latin, arabic tongue) {
	var n [tongues]int
	s := src.text[:min(len(src.text), listenBytes)]
	for i := 0; i < len(s); {
		j := i
		switch c := s[i]; {
		case 'a' <= c && c <= 'z':
			for j < len(s) && 'a' <= s[j] && s[j] <= 'z' {
				j++
			}
			if n[latinWord(s[i:j])]++; n[tongueOther] == sure && n[tongueGerman]+n[tongueTurkish] == 0 && src.start == nil {
				return tongueNone, tongueNone
			}
		case 0xD8 <= c && c <= 0xDB:
			for j+1 < len(s) && 0xD8 <= s[j] && s[j] <= 0xDB {
				j += 2
			}
			n[arabicWord(s[i:j])]++
		}
		i = max(j, i+1)
	}
	if src.start != nil {
		letters(src.orig, &n)
	}
	return most(&n, tongueGerman, tongueOther), most(&n, tongueArabic, tongueUrdu)
}

// letters adds what single letters tell. In Latin script they count only
// where no word speaks for another language: a name keeps its umlaut there.
func letters(s string, n *[tongues]int) {
	german, turkish := 0, 0
	for i := 0; i < len(s) && i < listenBytes; {
		// Only letters of two bytes tell, and most text is of one or three.
		switch c := s[i]; {
		case c < utf8.RuneSelf:
			i++
			continue
		case c >= 0xE0:
			i += 3
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch r {
		case 'ß', 'ä', 'Ä':
			german += 2
		case 'ö', 'ü', 'Ö', 'Ü':
			german++
			turkish++
		case 'ğ', 'Ğ', 'ı', 'İ':
			turkish += 2
		case 'ş', 'Ş':
			turkish++
		case 'ة':
			n[tongueArabic] += 2
		case 'پ', 'چ', 'ژ', 'گ':
			n[tonguePersian]++
			n[tongueUrdu]++
		case 'ٹ', 'ڈ', 'ڑ', 'ں', 'ے':
			n[tongueUrdu] += 2
		}
	}
	if n[tongueOther] == 0 {
		n[tongueGerman] += german
		n[tongueTurkish] += turkish
	}
}

// most returns the language from first to last with the most evidence.
func most(n *[tongues]int, first, last tongue) tongue {
	best, tied := first, false
	for t := first + 1; t <= last; t++ {
		switch {
		case n[t] > n[best]:
			best, tied = t, false
		case n[t] == n[best]:
			tied = true
		}
	}
	if tied || n[best] == 0 || best == tongueOther {
		return tongueNone
	}
	return best
}

// latinWord returns the language that a folded word speaks for. Words that are
// common in another language as well (war, her, des, den) speak for none.
func latinWord(w string) tongue {
	if len(w) >= 7 {
		return latinEnding(w)
	}
	switch w {
	case "the", "is", "are", "of", "to", "and", "for", "with", "what", "how", "does", "when", "where", "which", "who", "why",
		"that", "this", "it", "we", "our", "my", "you", "your", "they", "their", "he", "she", "his", "has", "have", "had", "did",
		"do", "at", "by", "from", "or", "not", "be", "been", "were", "would", "can", "should", "must", "if", "than",
		"i", "a", "as", "but", "there", "its", "into",
		"le", "la", "les", "une", "est", "pour", "dans", "que", "qui", "et", "sur", "avec", "pas", "el", "los", "las", "para",
		"con", "por", "del", "una", "il", "che", "di", "non", "per", "sono", "het", "een", "van", "och", "att", "som":
		return tongueOther
	case "der", "die", "das", "dem", "und", "ist", "sind", "wird", "werden", "wurde", "wurden", "ein", "eine", "einen", "einem",
		"einer", "eines", "mit", "von", "vom", "zum", "zur", "fuer", "fur", "nicht", "kein", "keine", "wer", "wie", "wann", "wo",
		"warum", "wem", "wen", "auf", "aus", "bei", "beim", "nach", "im", "ich", "wir", "uns", "unser", "unsere", "kann", "muss",
		"soll", "darf", "haben", "durch", "gegen", "ohne", "ueber", "oder", "aber", "auch", "nur", "noch", "wenn", "dass", "weil",
		"welche", "sich", "mein", "meine", "meinen", "gibt", "jede", "jeden", "jeder", "viele", "neue", "zwei", "drei":
		return tongueGerman
	case "ve", "bir", "icin", "ile", "bu", "nerede", "nereye", "nasil", "hangi", "kim", "kime", "kimin", "kac", "zaman", "mu",
		"degil", "yok", "olan", "olarak", "gibi", "daha", "sonra", "kadar", "veya", "ama", "neden", "yeni", "gun", "gunu", "gunde":
		return tongueTurkish
	}
	return tongueNone
}

// latinEnding is latinWord for words that are too long to be function words.
func latinEnding(w string) tongue {
	switch w[len(w)-2:] {
	case "ng":
		if len(w) >= 8 && strings.HasSuffix(w, "ung") {
			return tongueGerman
		}
	case "it", "ft", "ch", "en":
		if hasEnding(w, "keit", "heit", "schaft", "lich", "ungen", "ieren", "welchen") {
			return tongueGerman
		}
	case "em", "er", "es":
		if hasEnding(w, "welchem", "welcher", "welches") {
			return tongueGerman
		}
	case "or", "ek", "ak", "in", "ri", "di", "si", "ir", "uz", "iz", "gi", "ni", "da", "de", "an":
		if hasEnding(w, "iyor", "uyor", "ecek", "acak", "larin", "lerin", "lari", "leri", "ildi", "masi", "mesi", "lidir",
			"iyoruz", "uyoruz", "ecegiz", "acagiz", "ligi", "sini", "inda", "inde", "ndan", "nereden", "hangisi") {
			return tongueTurkish
		}
	}
	return tongueNone
}

func hasEnding(w string, endings ...string) bool {
	for _, e := range endings {
		if strings.HasSuffix(w, e) {
			return true
		}
	}
	return false
}

// arabicWord returns the language that a folded word of the Arabic script
// speaks for.
func arabicWord(w string) tongue {
	switch w {
	case "فی", "علی", "الی", "عن", "هذا", "هذه", "التی", "الذی", "متی", "کیف", "یوم", "عند", "هل", "لماذا":
		return tongueArabic
	case "است", "می", "نمی", "را", "رو", "برای", "از", "با", "باید", "شود", "شده", "کند", "کنند", "کجا", "چه", "چند", "چرا",
		"کدام", "کدوم", "های", "ها", "در", "به", "روی", "شد":
		return tonguePersian
	case "کا", "کو", "هین", "مین", "هی", "نی", "اور", "کون", "کب", "کهان", "کس", "کتنی", "کیا", "هو", "گا", "گی", "هوتی", "جاتی",
		"هوتا", "جاتا", "نهین":
		return tongueUrdu
	}
	if len(w) >= 10 && hasPrefix(w, arabicPrefixes) { // five letters
		return tongueArabic
	}
	return tongueNone
}

func hasPrefix(w string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(w, p) {
			return true
		}
	}
	return false
}
