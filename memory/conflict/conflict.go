// Package conflict tells how two statements relate: whether the newer repeats,
// refines, contradicts or merely stands beside the older one.
//
// It decides by rules over what the statements say: their words, numbers with
// units, versions and dates, polarity, scope and subject, in the languages
// that agents write. It is pure and deterministic. Wrongly retiring a true
// statement is the worst outcome, so every rule that would retire asks for
// positive evidence, and what no rule settles stands as compatible.
//
// It must never hold I/O, clocks, models, or rules about what happens to a
// statement afterwards: strength and storage are the store's.
package conflict

// Relation is how a newer statement relates to an older one.
type Relation string

// The relations of the contract.
const (
	Duplicate     Relation = "duplicate"
	Refinement    Relation = "refinement"
	Contradiction Relation = "contradiction"
	Compatible    Relation = "compatible"
	Uncertain     Relation = "uncertain"
)

// Statement is a statement with the topic and domain it was filed under.
type Statement struct {
	Content string
	Topic   string
	Domain  string
}

// Verdict is the outcome of a comparison. Rule is a stable short name; Reason
// is a sentence for people that names the words the rule saw.
type Verdict struct {
	Relation Relation
	Rule     string
	Reason   string
}

// Classify compares two statements that are not analysed yet.
func Classify(old, new Statement) Verdict { return Compare(Parse(old), Parse(new)) }
