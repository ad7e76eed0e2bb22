package recall

import (
	"cmp"
	"context"
	"slices"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// defaultLimit and maxLimit bound the hits of one search (behaviour.md 7).
	defaultLimit, maxLimit = 10, 100
	// coverageFloor is the share of the query's weight that a hit must cover:
	// results are never filled up with facts that share one common word.
	coverageFloor = 0.08
	// policyFloor is the same for policies, and maxPolicies bounds them.
	policyFloor, maxPolicies = 0.3, 5
)

// Engine answers searches over one workspace.
type Engine struct {
	lexical Voice
}

// NewEngine makes an engine that answers with the lexical voice.
func NewEngine() *Engine { return &Engine{lexical: Lexical{}} }

// Search answers search_memory.
//
// Errors: InvalidArgument, ContentTooLarge, InvalidUTF8, Unavailable.
func (e *Engine) Search(ctx context.Context, s *memory.Store, req record.Search) (record.SearchResult, error) {
	res := record.SearchResult{Facts: []record.Hit{}, Policies: []record.PolicyHit{}, Voices: []string{}}
	limit, mode, role, err := checkSearch(req)
	if err != nil {
		return res, err
	}
	if mode != record.Keyword {
		res.Degraded = append(res.Degraded, "semantic: no embedding model is installed")
	}
	var ids []string
	err = s.View(ctx, func(v *memory.View) error {
		scope, err := v.Scope(req.Domain, req.Repo, role)
		if err != nil {
			return err
		}
		lexicon, err := NewLexicon(v, req.Query)
		if err != nil {
			return err
		}
		if limit > 0 {
			if res.Facts, err = e.facts(ctx, v, req, scope, lexicon, limit); err != nil {
				return err
			}
		}
		res.Voices = append(res.Voices, e.lexical.Name())
		for i := range res.Facts {
			if res.Facts[i].HistoryLength, err = v.HistoryLength(res.Facts[i].ID); err != nil {
				return err
			}
			ids = append(ids, res.Facts[i].ID)
		}
		res.Policies, err = matchingPolicies(v, req.Repo, scope, lexicon)
		return err
	})
	if err == nil {
		s.CountRecall(ids)
	}
	return res, err
}

func checkSearch(req record.Search) (limit int, mode record.Mode, role record.Role, err error) {
	if err = req.Check(); err != nil {
		return
	}
	if err = record.CheckText("query", req.Query, record.MaxTaskBytes); err != nil {
		return
	}
	if mode, err = record.ParseMode(req.Mode); err != nil {
		return
	}
	if role, err = record.ParseRole("role", req.Role); err != nil {
		return
	}
	limit = defaultLimit
	if req.Limit != nil {
		limit = *req.Limit
	}
	if limit < 0 || limit > maxLimit {
		err = record.Errorf(record.InvalidArgument, "limit", "a limit is 0 to %d", maxLimit)
	}
	if !req.AsOf.IsZero() {
		err = record.Errorf(record.InvalidArgument, "as_of", "as_of is not answered by keyword search")
	}
	return
}

func (e *Engine) facts(ctx context.Context, v *memory.View, req record.Search, scope memory.Scope, lexicon *Lexicon, limit int) ([]record.Hit, error) {
	found, err := e.lexical.Find(ctx, v, Query{Text: req.Query, Scope: scope, Limit: maxLimit})
	if err != nil {
		return nil, err
	}
	repo, err := v.RepoDomains(req.Repo)
	if err != nil {
		return nil, err
	}
	hits := make([]record.Hit, 0, len(found))
	own := map[string]bool{}
	for i, c := range found {
		if _, coverage := lexicon.Score(c.Domain+"\n"+c.Topic, c.Content); coverage < coverageFloor {
			continue
		}
		h := record.Hit{Fact: c.Fact, Score: c.Score * (0.8 + 0.2*c.Confidence), Voices: map[string]int{e.lexical.Name(): i + 1}}
		own[h.ID] = repo[c.DomainID]
		hits = append(hits, h)
	}
	// The repository's own first; within each part by score, then newest id.
	slices.SortStableFunc(hits, func(a, b record.Hit) int {
		if own[a.ID] != own[b.ID] {
			if own[a.ID] {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.ID, a.ID))
	})
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	for i := range hits {
		hits[i].Score /= best
	}
	return hits[:min(len(hits), limit)], nil
}

func matchingPolicies(v *memory.View, repo string, scope memory.Scope, lexicon *Lexicon) ([]record.PolicyHit, error) {
	policies, err := v.Policies(repo, scope, false)
	if err != nil {
		return nil, err
	}
	hits := []record.PolicyHit{}
	for _, p := range policies {
		if _, coverage := lexicon.Score(p.Domain, p.Rule); coverage >= policyFloor {
			hits = append(hits, record.PolicyHit{Policy: p, Score: coverage})
		}
	}
	slices.SortStableFunc(hits, func(a, b record.PolicyHit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(len(hits), maxPolicies)], nil
}
