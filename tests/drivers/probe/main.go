// Probe writes to a workspace or asks it, with the driver that it was built
// with. The test of both drivers runs it once with each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/recall"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// run does "write DIR FROM TO" or "ask DIR".
func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("say write DIR FROM TO, or ask DIR")
	}
	index := memory.VectorsInMemory
	if args[0] == "ask" {
		index = memory.VectorsInFile
	}
	s, err := memory.Open(ctx, args[1], "both", memory.Options{Embedding: "probe-1", VectorIndex: index})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch {
	case args[0] == "ask":
		return ask(ctx, s)
	case args[0] == "write" && len(args) == 4:
		from, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		to, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return write(ctx, s, from, to)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

var subjects = []string{"gateway", "billing service", "درگاه پرداخت", "缓存服务器", "session-store", "поиск"}

var verbs = []string{"listens on port", "is deployed to node", "retries after seconds", "روی سرور شماره", "运行在节点", "хранит записей"}

// write proposes facts, supersedes every ninth by the one after it, and gives
// all a vector.
func write(ctx context.Context, s *memory.Store, from, to int) error {
	caller := record.Caller{Workspace: "both", Agent: "probe"}
	before := ""
	for i := from; i < to; i++ {
		caller.Key = fmt.Sprintf("fact-%d", i)
		res, err := s.ProposeFact(ctx, record.ProposeFact{
			Caller: caller, Domain: fmt.Sprintf("domain %d", i%3), Topic: fmt.Sprintf("topic %d", i),
			Content: fmt.Sprintf("The %s %s %d, see build %08x", subjects[i%len(subjects)], verbs[i/3%len(verbs)], 1000+i, i*7919),
		})
		if err != nil {
			return err
		}
		if i%9 == 0 && before != "" {
			caller.Key = fmt.Sprintf("supersede-%d", i)
			if _, err := s.SupersedeFact(ctx, record.SupersedeFact{Caller: caller, Old: before, New: res.FactID}); err != nil {
				return err
			}
		}
		before = res.FactID
	}
	for {
		waiting, err := s.QueuedForEmbedding(ctx, 50)
		if err != nil || len(waiting) == 0 {
			return err
		}
		vectors := make([]memory.Embedded, len(waiting))
		for i, w := range waiting {
			// Some are the same, so that the order of equals counts.
			vectors[i] = memory.Embedded{ToEmbed: w, Vector: vector(uint64(w.Seq) % 61)}
		}
		if _, err := s.StoreVectors(ctx, vectors); err != nil {
			return err
		}
	}
}

func vector(seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 8))
	v := make([]float32, memory.Dimensions)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// answers is all that the two drivers must agree on.
type answers struct {
	Facts     []memory.Row[record.Fact] `json:"facts"`
	Histories []record.FactHistory      `json:"histories"`
	Lexical   map[string][]string       `json:"lexical"`
	Near      [][]string                `json:"near"`
	Problems  []string                  `json:"problems"`
	Indexed   int64                     `json:"vectors_indexed"`
}

func ask(ctx context.Context, s *memory.Store) error {
	out := answers{Lexical: map[string][]string{}}
	err := s.View(ctx, func(v *memory.View) (err error) {
		if out.Facts, err = v.Facts(memory.Scope{}, true, 0, 10000); err != nil {
			return err
		}
		for i, f := range out.Facts {
			if i%9 == 0 {
				h, err := v.History(f.Value.ID)
				if err != nil {
					return err
				}
				out.Histories = append(out.Histories, h)
			}
		}
		for _, question := range []string{"which port does the gateway listen on", "درگاه پرداخت", "缓存服务器", "поиск записей", "session-store node 1010", `status: "done" OR NEAR(a`, fmt.Sprintf("%08x", 12*7919)} {
			lexicon, err := recall.NewLexicon(v, question)
			if err != nil {
				return err
			}
			found, err := recall.Lexical{}.Find(ctx, v, recall.Query{Text: question, Lexicon: lexicon, Limit: 20})
			if err != nil {
				return err
			}
			out.Lexical[question] = []string{}
			for _, c := range found {
				out.Lexical[question] = append(out.Lexical[question], fmt.Sprintf("%s %v", c.ID, c.Score))
			}
		}
		for seed := range uint64(12) {
			near, err := v.Nearest(vector(seed*5), memory.Scope{}, 25)
			if err != nil {
				return err
			}
			ids := []string{}
			for _, n := range near {
				ids = append(ids, fmt.Sprintf("%s %v", n.ID, n.Cosine))
			}
			out.Near = append(out.Near, ids)
		}
		h, err := v.Health(true)
		out.Problems, out.Indexed = h.Problems, h.VectorsIndexed
		return err
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
