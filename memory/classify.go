package memory

import (
	"regexp"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// cue says that a statement that holds one of the phrases is of a type. Phrases
// are matched as whole words of the normalised text; the first cue wins, so the
// more telling ones come first. Statements without a cue are plain facts: what
// fades fast must say so itself.
type cue struct {
	memoryType record.MemoryType
	// start phrases count only at the beginning.
	start, anywhere []string
	// spaceless phrases count at the beginning of scripts without spaces.
	spaceless []string
	// pattern is matched against the text as written, nil for none.
	pattern *regexp.Regexp
}

// Parts of the patterns. A person is a capitalised word that opens the
// statement and is no article or pronoun of a thing.
const (
	person  = `(?:I|We|He|She|They|[A-Z]\p{L}+)`
	weekday = `(?:[Mm]onday|[Tt]uesday|[Ww]ednesday|[Tt]hursday|[Ff]riday|[Ss]aturday|[Ss]unday)`
	month   = `(?:January|February|March|April|May|June|July|August|September|October|November|December)`
	date    = `(?:\d{1,2} ` + month + `|` + month + `(?: \d{1,2})?|\d{4}-\d\d-\d\d|` + weekday + `)`
	soon    = `(?:` + date + `|tomorrow|today|tonight|noon|midnight|this week|next week|the end of the \w+)`
	place   = `(?:https?://|[\w.-]+\.(?:com|org|net|io)/|(?:^|[\s/])[\w.-]+/[\w./-]*\w)`
	paper   = `(?i:documents?|doc|dashboard|report|spreadsheet|runbook|wireframes?|diagram|slides?|pull request|script|notebook|presentation|mock-?ups?|template|recording)`
	job     = `(?:developer|engineer|designer|manager|analyst|architect|administrator|teacher|nurse|doctor|lawyer|accountant|student|scientist|writer|editor|translator|consultant|researcher|tester|programmer)`
)

var cues = prepared([]cue{
	{record.TypeRequest, []string{"please", "can you", "could you", "would you", "will you", "can we get", "could we get", "i need you to", "bitte", "kannst du", "könntest du", "können sie", "peux tu",
		"pouvez vous", "s il te plaît", "s il vous plaît", "puedes", "podrías", "por favor", "пожалуйста", "можешь", "не могли бы вы", "lütfen", "لطفا", "من فضلك", "براہ کرم", "कृपया"}, nil,
		[]string{"请", "お願い"}, nil},
	{record.TypeDecision, []string{"decision", "decided", "decidimos"}, []string{"we decided", "was decided", "were decided", "it is decided", "decided to", "decided that", "decided against", "we agreed to", "agreed to", "agreed that",
		"we will go with", "we chose", "chose to", "voted to", "voted for", "voted against", "settled on", "opted for", "resolved to", "entschieden", "beschlossen", "décidé de", "avons décidé", "hemos decidido", "se decidió",
		"мы решили", "решили", "решено", "karar verdik", "karar verildi", "تصمیم گرفت", "تصمیم گرفتیم", "قررنا", "تقرر", "فیصلہ کیا", "फैसला किया", "निर्णय लिया"},
		[]string{"决定", "我们决定", "決定"}, regexp.MustCompile(`\b(?:board|committee|council|team|management|jury|panel)\b.{0,20}\b(?:approved|rejected|adopted|vetoed)\b`)},
	{record.TypeGoal, []string{"goal is", "the goal is", "our goal is", "our goals are", "our objective", "the objective", "our aim", "unser ziel", "das ziel ist", "l objectif est", "notre objectif", "nuestro objetivo", "el objetivo es",
		"наша цель", "цель состоит", "hedefimiz", "هدف ما", "هدفنا", "ہمارا مقصد", "हमारा लक्ष्य"},
		[]string{"goal is", "aim to", "aims to", "aim for", "want to reach", "working towards", "working toward", "strive to", "strive for"}, []string{"目标", "目標"}, regexp.MustCompile(`^(?:(?:The |Our )?(?:[Gg]oals?|[Oo]bjectives?|[Tt]argets?)(?: for [^:]{1,30})?:)`)},
	{record.TypeCommitment, nil, []string{"i ll", "promised to", "promise to", "we committed to", "i committed to", "committed to deliver", "commits to", "pledged to", "is due by", "is due on", "are due on", "are due by", "due on", "due by"}, nil,
		regexp.MustCompile(`^` + person + `(?: will|'ll|’ll|’| has to| have to| must| owes?)\b.*\b(?:by|before|until|on|no later than)? ?` + soon + `\b|\b[Dd]eadline (?:for [^.]{1,60} )?is\b|^(?:I will|I'll|I’ll)\b|^Ich .{1,80}\bbis ` + `(?:Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag|morgen|heute|\d)|^Je \p{L}+rai\b`)},
	{record.TypeError, nil, []string{"failed with", "fails with", "failed because", "crashed", "crashes when", "crashes on", "crashes with", "crashes after", "crashes at", "stack trace", "segmentation fault", "bug in", "root cause", "keeps failing", "keeps crashing", "keeps timing out", "out of memory",
		"fehler abgebrochen", "abgestürzt", "a échoué", "ha fallado", "falló", "упал с ошибкой", "завершился с ошибкой", "خطا داد", "فشل"}, nil,
		regexp.MustCompile(`^(?i:error|fatal|panic|exception|traceback)\b ?(?:\([^)]*\))?:|\w(?:Exception|Error)\b(?: in |:)|\bthrows? an? [45]\d\d\b|\breturns? an? [45]\d\d (?:error|for)\b|^Traceback\b`)},
	{record.TypeLearning, []string{"lesson", "learned", "we learned", "what we learned", "turns out", "in hindsight", "the takeaway", "takeaway", "in retrospect", "im nachhinein", "avec le recul"},
		[]string{"i learned", "we learned", "turns out", "lesson learned", "it turned out", "found out that", "haben gelernt", "wir haben gelernt", "avons appris", "hemos aprendido", "мы узнали", "выяснилось", "یاد گرفتیم", "تعلمنا", "सीखा कि"}, nil, nil},
	{record.TypePreference, nil, []string{"prefers", "prefer", "i like", "i love", "i hate", "likes", "dislikes", "loves", "hates", "would rather", "favourite", "favorite", "my preferred", "bevorzuge", "bevorzugt", "mag lieber", "préfère", "préfèrent",
		"prefiero", "prefiere", "prefieren", "предпочитаю", "предпочитает", "tercih ediyor", "tercih ederim", "ترجیح", "أفضل أن", "يفضل", "تفضل", "पसंद करता", "पसंद करती", "ترجیح دیتا"}, []string{"我喜欢", "我更喜欢"}, nil},
	{record.TypeInstruction, []string{"always", "never", "do not", "don t", "make sure", "remember to", "ensure", "avoid", "use", "keep", "run", "add", "write", "put", "check", "check that", "sign", "test", "read", "close", "ask", "follow", "include", "store", "tag", "name",
		"immer", "niemals", "nie", "ne jamais", "n oubliez pas", "toujours", "nunca", "siempre", "no subas", "никогда", "всегда", "asla", "her zaman", "هرگز", "همیشه", "لا تقم", "دائما", "ہمیشہ", "हमेशा", "कभी न"},
		[]string{"you must", "agents must", "must always", "must never", "you should always", "you should never"}, []string{"始终", "不要", "必须", "务必", "必ず"}, regexp.MustCompile(`^(?:When|Before|After|If) you\b[^,]+, (?:\p{Ll}+)\b`)},
	{record.TypeObservation, []string{"observed", "i noticed", "noticed", "i saw", "we saw", "it looks like", "it seems", "mir ist aufgefallen", "j ai remarqué", "he notado", "я заметил", "متوجه شدم", "لاحظت"},
		[]string{"i noticed", "we noticed", "we observed", "i observed", "seems to", "seem to", "seems lower", "seems higher", "seems slower", "seems faster", "appears to", "appear to"}, nil, nil},
	{record.TypeEvent, []string{"yesterday", "last night", "last week", "gestern", "hier", "ayer", "вчера", "dün", "دیروز", "أمس"},
		[]string{"happened on", "took place", "outage on", "yesterday", "this morning", "last night"}, []string{"昨天", "昨日"},
		regexp.MustCompile(`\b(?:went|was|were|joined|left|moved|started|ended|launched|released|opened|closed|broke|died)\b.*\b(?:(?:on|in|at) ` + date + `|last (?:week|month|year))\b|\b(?:conference|meeting|workshop|fair|summit|retreat)\b.*\b(?:starts|begins|takes place|is) on ` + date)},
	{record.TypeArtifact, nil, nil, nil, regexp.MustCompile(`\b` + paper + `\b.*` + place + `|^See (?:the|our) `)},
	{record.TypeRelationship, nil, []string{"reports to", "is married to", "manager of", "is the manager", "is the sister", "is the brother", "is the mother", "is the father", "is the wife", "is the husband", "sister of", "brother of", "colleague of", "mentors", "is a customer of",
		"is a supplier of", "is a partner of", "friend of", "arbeitet mit", "berichtet an", "travaille avec"}, nil,
		regexp.MustCompile(`^[A-Z]\p{L}+ (?:is (?:on|in|part of) the \p{L}+ team|leads the|heads the|works with (?:the )?\p{L}+|is [A-Z]\p{L}+['’]s (?:deputy|boss|manager|assistant|sister|brother|wife|husband|mentor))|\bleitet das Team\b`)},
	{record.TypeProfile, []string{"my name is", "i am a", "i am an", "i m a", "i live in", "i work as", "ich heiße", "ich bin", "je m appelle", "je suis", "me llamo", "soy", "меня зовут", "adım", "نام من", "اسمي", "میرا نام", "मेरा नाम"},
		[]string{"works as", "was born", "is allergic to", "email address is", "phone number is", "date of birth"}, []string{"我叫", "我是", "私は"},
		regexp.MustCompile(`^` + person + ` (?:lives in|is an? (?:\p{L}+ ){0,2}` + job + `|speaks (?:[A-Z]\p{L}+))\b`)},
	{record.TypeContext, []string{"currently", "right now", "at the moment", "for now", "this sprint", "this week", "the current task", "derzeit", "im moment", "en ce moment", "pour l instant", "de momento", "сейчас", "şu anda", "فعلا", "حاليا"},
		[]string{"in the middle of", "i am currently", "we are currently", "i m currently"}, []string{"目前", "现在"}, nil},
})

// prepared brings the phrases to the form that statements are searched in.
func prepared(cues []cue) []cue {
	for i := range cues {
		for _, list := range [][]string{cues[i].start, cues[i].anywhere} {
			for k := range list {
				list[k] = normalWords(list[k])
			}
		}
	}
	return cues
}

// things are words that open a statement about a thing; a capital there names
// no person.
var things = map[string]bool{"The": true, "A": true, "An": true, "This": true, "That": true, "Our": true, "It": true, "Each": true, "Every": true, "All": true, "No": true, "Production": true, "Staging": true}

// classifyType picks the memory type of a statement by its wording.
func classifyType(content string) record.MemoryType {
	head := strings.ToValidUTF8(content, "")
	if len(head) > 2000 {
		head = strings.ToValidUTF8(head[:2000], "")
	}
	head = strings.TrimSpace(head)
	plain := normalWords(head)
	first, _, _ := strings.Cut(head, " ")
	for _, c := range cues {
		if c.matches(head, plain, things[first]) {
			return c.memoryType
		}
	}
	return record.TypeFact
}

// normalWords are the words of a text in search form, each between spaces.
func normalWords(s string) string {
	return " " + strings.Join(strings.FieldsFunc(text.Normalize(s), func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r' || strings.ContainsRune(".,;:!?\"'’()[]{}«»“”¿¡-", r)
	}), " ") + " "
}

func (c *cue) matches(head, plain string, thing bool) bool {
	for _, p := range c.start {
		if strings.HasPrefix(plain, p) {
			return true
		}
	}
	for _, p := range c.anywhere {
		if strings.Contains(plain, p) {
			return true
		}
	}
	for _, p := range c.spaceless {
		if strings.HasPrefix(head, p) {
			return true
		}
	}
	if c.pattern == nil || thing && ofPersons[c.memoryType] {
		return false
	}
	return c.pattern.MatchString(head)
}

// ofPersons are the types whose patterns ask for a person as the subject.
var ofPersons = map[record.MemoryType]bool{record.TypeRelationship: true, record.TypeProfile: true}
