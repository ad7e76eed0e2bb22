// Package corpus makes the statements that measurements use, and questions for
// them. It holds no real text.
package corpus

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// commonWords head the vocabulary, so that the most frequent words are those
// of real text.
var commonWords = strings.Fields(`the of to and a in is it for on that with as are this by be at or from we use service data when
	team not after before new user which their has been can test build time all system more than run into only each api code
	release should also during about between project database file server deploy error request page every change need client`)

// Corpus makes statements whose words follow Zipf's law, as natural text does,
// the same ones for the same seed. It is for one goroutine at a time.
type Corpus struct {
	rng   *rand.Rand
	words *rand.Zipf
	vocab []string
}

const vocabulary = 60000

// New returns the corpus of a seed.
func New(seed uint64) *Corpus {
	c := &Corpus{rng: rand.New(rand.NewPCG(seed, 7))}
	// s slightly above 1, as measured for English; v flattens the head.
	c.words = rand.NewZipf(c.rng, 1.07, 2.7, vocabulary-1)
	c.vocab = append(c.vocab, commonWords...)
	spell := rand.New(rand.NewPCG(99, 1))
	seen := map[string]bool{}
	for len(c.vocab) < vocabulary {
		var b strings.Builder
		for range 2 + spell.IntN(3) {
			b.WriteByte("bcdfghklmnprstvz"[spell.IntN(16)])
			b.WriteByte("aeiou"[spell.IntN(5)])
			if spell.IntN(3) == 0 {
				b.WriteByte("lnrst"[spell.IntN(5)])
			}
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			c.vocab = append(c.vocab, w)
		}
	}
	return c
}

func (c *Corpus) sentence() []string {
	words := make([]string, 9+c.rng.IntN(16))
	for i := range words {
		words[i] = c.vocab[c.words.Uint64()]
	}
	return words
}

// Proposal is the i-th statement of a workspace of n: 20 to a topic, 12
// domains, 8 agents.
func (c *Corpus) Proposal(workspace string, i, n int) record.ProposeFact {
	s := strings.Join(c.sentence(), " ")
	return record.ProposeFact{
		Caller: record.Caller{Workspace: workspace, Agent: fmt.Sprintf("agent-%d", i%8), Key: fmt.Sprintf("bench-%d", i)},
		Domain: fmt.Sprintf("domain %d", i%12), Topic: fmt.Sprintf("topic %d", c.rng.IntN(max(1, n/20))),
		Content: strings.ToUpper(s[:1]) + s[1:] + ".",
	}
}

// Question is 8 words of a statement, as somebody would ask for it: the order
// kept, the rest left out.
func Question(content string, rng *rand.Rand) string {
	words := strings.Fields(content)
	for len(words) > 8 {
		i := rng.IntN(len(words))
		words = append(words[:i], words[i+1:]...)
	}
	return strings.Join(words, " ")
}
