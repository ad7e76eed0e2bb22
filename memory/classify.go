package memory

import (
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
}

var cues = []cue{
	{record.TypeRequest, []string{"please", "can you", "could you", "would you"}, nil},
	{record.TypeDecision, []string{"decision"}, []string{"we decided", "was decided", "it is decided", "decided to", "decided that", "we agreed to", "agreed to", "we will go with", "we chose", "voted to", "voted for", "voted against", "entschieden", "beschlossen", "décidé de", "تصمیم گرفت", "تصمیم گرفتیم"}},
	{record.TypeCommitment, nil, []string{"i will", "i ll", "will deliver by", "promised to", "committed to", "is due by", "due on", "due by", "deadline is"}},
	{record.TypeInstruction, []string{"always", "never", "do not", "don t", "make sure", "remember to", "ensure", "avoid"}, []string{"you must", "agents must", "must always", "must never"}},
	{record.TypePreference, nil, []string{"prefers", "prefer", "likes", "dislikes", "would rather", "favourite", "favorite", "bevorzugt", "préfère", "ترجیح"}},
	{record.TypeGoal, []string{"goal", "the goal", "our goal"}, []string{"goal is", "aim to", "aims to", "want to reach", "target for"}},
	{record.TypeError, []string{"error"}, []string{"failed with", "fails with", "crashed", "crashes", "stack trace", "exception", "bug in", "root cause"}},
	{record.TypeLearning, []string{"lesson", "learned", "we learned"}, []string{"i learned", "we learned", "turns out", "lesson learned", "it turned out"}},
	{record.TypeEvent, nil, []string{"happened on", "took place", "was released on", "outage on", "went down on", "yesterday", "this morning", "last night"}},
	{record.TypeRelationship, nil, []string{"reports to", "works with", "is married to", "manager of", "is the manager", "is the sister", "is the brother", "colleague of"}},
	{record.TypeProfile, []string{"my name is", "i am a", "i live in"}, []string{"works as", "was born", "lives in", "is allergic to"}},
	{record.TypeObservation, []string{"observed", "i noticed", "noticed"}, []string{"i noticed", "we observed", "seems to"}},
}

// classifyType picks the memory type of a statement by its wording.
func classifyType(content string) record.MemoryType {
	head := content
	if len(head) > 2000 {
		head = head[:2000]
	}
	words := " " + strings.Join(strings.FieldsFunc(text.Normalize(strings.ToValidUTF8(head, "")), func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n' || r == '\r' || strings.ContainsRune(".,;:!?\"'’()[]{}«»“”", r)
	}), " ") + " "
	for _, c := range cues {
		for _, p := range c.start {
			if strings.HasPrefix(words, " "+text.Normalize(p)+" ") {
				return c.memoryType
			}
		}
		for _, p := range c.anywhere {
			if strings.Contains(words, " "+text.Normalize(p)+" ") {
				return c.memoryType
			}
		}
	}
	return record.TypeFact
}
