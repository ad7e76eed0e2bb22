package conflict

import "strings"

// stance is what a statement says about whether something is to be done.
type stance uint8

const (
	stanceNone     stance = iota
	stanceAllows          // may, can, is allowed
	stanceForbids         // must not, is forbidden, nobody may
	stanceObliges         // must, is mandatory
	stanceReleases        // need not, is optional
)

// String names the stance for people.
func (s stance) String() string {
	return [...]string{"nothing", "allows", "forbids", "obliges", "leaves free"}[s]
}

// against reports stances that cannot both be meant of one thing.
func (s stance) against(o stance) bool {
	pair := func(a, b stance) bool { return s == a && o == b || s == b && o == a }
	return pair(stanceAllows, stanceForbids) || pair(stanceObliges, stanceReleases) || pair(stanceObliges, stanceForbids)
}

// The phrases of each stance, negated forms where the stance is the negation
// of another. They are looked for in this order, and what one has taken is not
// looked at again, so "not allowed" is never read as "allowed".
var stances = [...]struct {
	stance  stance
	phrases []string
}{
	{stanceObliges, keyed("not optional", "isn't optional", "not voluntary", "nicht freiwillig", "pas facultatif", "pas facultative", "no es opcional", "اختیاری نیست")},
	{stanceReleases, keyed(
		"optional", "need not", "needn't", "not mandatory", "not required", "not compulsory", "not obligatory", "do not have to", "does not have to",
		"don't have to", "doesn't have to", "voluntary", "no need to", "not necessary",
		"freiwillig", "nicht verpflichtend", "nicht erforderlich", "nicht nötig", "muss nicht", "müssen nicht",
		"facultatif", "facultative", "facultatifs", "facultatives", "pas obligatoire", "pas obligatoires",
		"opcional", "opcionales", "no es obligatorio", "no es obligatoria", "no hace falta",
		"необязательно", "необязателен", "необязательна", "не обязательно", "не обязателен", "не обязательна", "не обязательны", "не нужно",
		"isteğe bağlı", "zorunlu değil", "gerekmez", "gerekmiyor",
		"اختیاری", "الزامی نیست", "اجباری نیست", "لازم نیست", "اختياري", "اختيارية", "ليس إلزاميا", "لازمی نہیں", "ضروری نہیں", "वैकल्पिक", "अनिवार्य नहीं", "ज़रूरी नहीं",
		"可选", "不必", "不需要", "无需", "任意です", "必要はない", "必要はありません", "不要です", "必要ない",
	)},
	{stanceForbids, keyed(
		"forbidden", "prohibited", "banned", "disallowed", "not allowed", "not permitted", "may not", "must not", "mustn't", "cannot", "can't", "can not",
		"never", "do not", "don't", "no one may", "nobody may", "no one can", "nobody can", "off limits", "not acceptable", "is out of the question",
		"verboten", "untersagt", "nicht erlaubt", "nicht gestattet", "darf nicht", "dürfen nicht", "niemand darf", "unzulässig", "nicht möglich",
		"interdit", "interdite", "interdits", "interdites", "défendu", "pas autorisé", "pas autorisée", "pas permis", "ne peut pas", "ne peuvent pas", "ne doit pas", "ne doivent pas",
		"prohibido", "prohibida", "prohibidos", "prohibidas", "no está permitido", "no está permitida", "no puede", "no pueden", "no debe", "no deben", "no se permite", "nadie puede",
		"запрещено", "запрещён", "запрещена", "запрещены", "нельзя", "не разрешено", "не разрешён", "не разрешена", "не может", "не могут", "не допускается",
		"yasak", "yasaktır", "izin verilmez", "izin verilmiyor", "izinli değil",
		"ممنوع است", "مجاز نیست", "اجازه نداریم", "اجازه ندارند", "اجازه ندارد", "نباید", "نمی‌تواند", "نمی‌توانند", "ممنوع", "ممنوعة", "غير مسموح", "لا يسمح", "لا يجوز", "لا يستطيع", "لا يمكن",
		"منع ہے", "اجازت نہیں", "نہیں سکتا", "نہیں سکتے", "मना है", "वर्जित", "अनुमति नहीं", "नहीं सकते", "नहीं सकता",
		"禁止", "不允许", "不得", "不能", "不可以", "不准", "禁じ", "できない", "できません", "てはいけ", "てはならない",
	)},
	{stanceObliges, keyed(
		"must", "mandatory", "required", "compulsory", "obligatory", "has to", "have to", "needs to", "need to", "shall",
		"muss", "müssen", "verpflichtend", "erforderlich", "pflicht", "zwingend", "doit", "doivent", "obligatoire", "obligatoires", "il faut",
		"debe", "deben", "obligatorio", "obligatoria", "obligatorios", "hay que", "должен", "должна", "должны", "обязательно", "обязателен", "обязательна", "обязательны", "необходимо",
		"zorunlu", "zorunludur", "gerekir", "gerekiyor", "şart", "باید", "اجباری", "الزامی", "يجب", "إلزامي", "إلزامية", "لازمی", "ضروری", "अनिवार्य", "ज़रूरी",
		"必须", "需要", "必須", "必要", "なければなら",
	)},
	{stanceAllows, keyed(
		"allowed", "permitted", "may", "can", "are fine", "is fine", "acceptable", "is ok", "are ok", "free to", "possible",
		"darf", "dürfen", "erlaubt", "gestattet", "kann", "können", "möglich", "permis", "permise", "autorisé", "autorisée", "peut", "peuvent",
		"permitido", "permitida", "puede", "pueden", "se permite", "можно", "разрешено", "разрешён", "разрешена", "разрешены", "может", "могут",
		"serbest", "serbesttir", "izinli", "izin verilir", "مجاز", "اجازه دارد", "اجازه دارند", "می‌تواند", "می‌توانند", "مسموح", "يسمح", "يستطيع", "يمكن",
		"اجازت ہے", "سکتا", "سکتے", "अनुमति है", "सकता", "सकते", "可以", "允许", "できる", "できます",
	)},
}

// stance returns the stance that the marks show and the phrase that shows it.
func (m *marks) stance() (stance, string) {
	for i, phrase := range m[markStance:] {
		if phrase != "" {
			return stances[i].stance, phrase
		}
	}
	return stanceNone, ""
}

// stanceWords are the words of all phrases: where two statements take the same
// stance they add nothing further.
var stanceWords = func() map[string]struct{} {
	m := make(map[string]struct{})
	for _, s := range stances {
		for _, p := range s.phrases {
			for _, w := range strings.Fields(p) {
				m[w] = struct{}{}
			}
		}
	}
	return m
}()
