package recall

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/text"
)

// Intent is what a query is after.
type Intent string

// The intents of behaviour.md 7.
const (
	IntentTemporal   Intent = "temporal"
	IntentFactual    Intent = "factual"
	IntentEntity     Intent = "entity"
	IntentPreference Intent = "preference"
	IntentProcedural Intent = "procedural"
	IntentGeneral    Intent = "general"
)

// intentCues are phrases that tell an intent, tried in order. They are whole
// words of the normalised query, in the languages that questions come in.
var intentCues = []struct {
	intent  Intent
	phrases []string
}{
	{IntentTemporal, []string{"when", "how long", "what time", "since when", "until when", "latest", "newest", "most recent", "recently", "last week", "last month", "yesterday", "today", "what is new", "what changed",
		"wann", "seit wann", "neueste", "quand", "depuis quand", "cuando", "desde cuando", "ne zaman", "когда", "недавно", "متى", "منذ متى", "چه زمانی", "کی بود", "اخیرا", "کب", "什么时候", "何时", "最近", "いつ", "最新", "언제", "최근"}},
	{IntentProcedural, []string{"how do", "how to", "how can", "how should", "steps to", "procedure", "wie kann", "wie macht", "comment faire", "como se", "как сделать", "كيف يمكن", "چگونه", "چطور", "怎么", "如何", "どうやって", "어떻게"}},
	{IntentPreference, []string{"prefer", "prefers", "preference", "preferences", "favorite", "favourite", "likes", "dislikes", "would rather", "bevorzugt", "prefere", "préfère", "предпочитает", "يفضل", "ترجیح", "喜欢", "好き", "좋아"}},
	{IntentEntity, []string{"who", "whom", "whose", "which person", "which team", "wer", "qui", "quien", "kim", "кто", "من هو", "چه کسی", "کون", "谁", "誰", "누가"}},
	{IntentFactual, []string{"what", "which", "where", "how many", "how much", "is", "are", "does", "did", "was", "were", "welche", "welcher", "wo", "was", "quel", "quelle", "ou", "que", "donde", "hangi", "nerede", "что", "где", "какой", "ما", "أين", "چیست", "کجا", "کیا", "什么", "哪里", "何", "どこ", "무엇", "어디"}},
}

// ClassifyIntent tells what a query is after by its wording.
func ClassifyIntent(query string) Intent {
	if len(query) > maxPhrase {
		query = text.Cut(query, maxPhrase)
	}
	folded := text.Normalize(query)
	words := " " + strings.Join(strings.FieldsFunc(folded, func(r rune) bool {
		return strings.ContainsRune(" \t\n\r.,;:!?\"'()[]{}¿¡؟،。？！", r)
	}), " ") + " "
	for _, c := range intentCues {
		for _, p := range c.phrases {
			p = text.Normalize(p)
			// Scripts without spaces hold a cue inside a run.
			if strings.Contains(words, " "+p+" ") || p[0] >= 0xe3 && strings.Contains(folded, p) {
				return c.intent
			}
		}
	}
	return IntentGeneral
}

// weights are what each voice's rank counts, together 1.
type weights struct{ semantic, graph, lexical, temporal float64 }

// baseWeights are those of behaviour.md 7.
var baseWeights = weights{semantic: .35, graph: .25, lexical: .25, temporal: .15}

// weigh scales the base weights by the intent and brings them back to 1.
func weigh(i Intent) weights {
	w := baseWeights
	switch i {
	case IntentTemporal:
		w.temporal *= 1.5
	case IntentEntity:
		w.graph *= 1.1
		w.lexical *= 1.2
	case IntentFactual:
		w.lexical *= 1.1
	case IntentPreference, IntentProcedural:
		w.semantic *= 1.2
	}
	sum := w.semantic + w.graph + w.lexical + w.temporal
	return weights{w.semantic / sum, w.graph / sum, w.lexical / sum, w.temporal / sum}
}

func (w weights) of(voice string) float64 {
	switch voice {
	case "semantic":
		return w.semantic
	case "graph":
		return w.graph
	case "lexical":
		return w.lexical
	case "temporal":
		return w.temporal
	}
	return 0
}
