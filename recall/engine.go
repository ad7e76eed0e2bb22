package recall

import (
	"cmp"
	"context"
	"slices"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// defaultLimit and maxLimit bound the hits of one search (behaviour.md 7).
	defaultLimit, maxLimit = 10, 100
	// depth is how many candidates each voice gives.
	depth = 64
	// policyFloor is the same for policies, and maxPolicies bounds them.
	policyFloor, maxPolicies = 0.3, 5
)

// Engine answers searches over one workspace.
type Engine struct {
	model *inUse
	// lambda is how much relevance counts against novelty.
	lambda float64
	// ageless leaves freshness out; only, when not empty, names the voices
	// that count. Both are for taking the engine apart in evaluations.
	ageless bool
	only    []string
	// begin is told that a voice is asked and returns what is told its end.
	begin func(ctx context.Context, voice string) (context.Context, func(error))
}

// Observed returns an engine that tells begin of every voice that it asks; what
// begin returns is told when the voice has answered.
func (e *Engine) Observed(begin func(ctx context.Context, voice string) (context.Context, func(error))) *Engine {
	told := *e
	told.begin = begin
	return &told
}

// Only returns an engine that counts nothing but the named voices.
func (e *Engine) Only(voices ...string) *Engine {
	part := *e
	part.only = voices
	return &part
}

// Ageless returns an engine that leaves freshness out.
func (e *Engine) Ageless() *Engine {
	part := *e
	part.ageless = true
	return &part
}

// NewEngine makes an engine; without a model (nil) the semantic voice is
// missing and answers say so.
func NewEngine(m Model) *Engine {
	return &Engine{model: newInUse(m), lambda: mmrLambda, begin: func(ctx context.Context, _ string) (context.Context, func(error)) {
		return ctx, func(error) {}
	}}
}

// UseModel makes m the model of later searches, nil for none.
func (e *Engine) UseModel(m Model) { e.model.set(m) }

// Search answers search_memory.
//
// Errors: InvalidArgument, ContentTooLarge, InvalidUTF8, Unavailable.
func (e *Engine) Search(ctx context.Context, s *memory.Store, req record.Search) (record.SearchResult, error) {
	res := record.SearchResult{Facts: []record.Hit{}, Policies: []record.PolicyHit{}, Voices: []string{}}
	limit, mode, role, err := checkSearch(req)
	if err != nil {
		return res, err
	}
	vector := e.embed(ctx, mode, req.Query, s.Model(), &res)
	var ids []string
	err = s.View(ctx, func(v *memory.View) error {
		scope, err := v.Scope(req.Domain, req.Repo, role)
		if err != nil {
			return err
		}
		scope.At = req.AsOf
		lexicon, err := NewLexicon(v, req.Query)
		if err != nil {
			return err
		}
		q := Query{Text: req.Query, Lexicon: lexicon, Intent: ClassifyIntent(req.Query), Vector: vector, Scope: scope, Limit: depth}
		if limit > 0 {
			if res.Facts, err = e.facts(ctx, v, mode, req.Repo, q, limit, &res); err != nil {
				return err
			}
		}
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

// SearchWorkspace answers search_memory in a workspace of w. One that does not
// exist holds nothing and is not made.
//
// Errors: those of [Engine.Search].
func (e *Engine) SearchWorkspace(ctx context.Context, w *memory.Workspaces, req record.Search) (record.SearchResult, error) {
	res := record.SearchResult{Facts: []record.Hit{}, Policies: []record.PolicyHit{}, Voices: []string{}}
	if _, _, _, err := checkSearch(req); err != nil {
		return res, err
	}
	if err := w.Check(req.Workspace); err != nil {
		return res, err
	}
	if !w.Exists(req.Workspace) {
		return res, nil
	}
	err := w.Use(ctx, req.Workspace, func(s *memory.Store) (err error) {
		res, err = e.Search(ctx, s, req)
		return err
	})
	return res, err
}

// embed returns the query's vector of the store's model, before the snapshot is
// taken: a model is slow beside a read.
func (e *Engine) embed(ctx context.Context, mode record.Mode, query, model string, res *record.SearchResult) []float32 {
	// A query without a word, or of words that say nothing, asks nothing.
	if mode == record.Keyword || len(text.QueryTerms(query)) == 0 {
		return nil
	}
	m := e.model.get()
	if m == nil {
		res.Degraded = append(res.Degraded, "semantic: no embedding model is installed")
		return nil
	}
	if m.ID() != model {
		res.Degraded = append(res.Degraded, "semantic: the embedding model is being changed")
		return nil
	}
	vector, err := m.EmbedQuery(ctx, query)
	if err != nil || vector == nil {
		res.Degraded = append(res.Degraded, "semantic: the embedding model did not answer")
		return nil
	}
	return vector
}

// listen asks the mode's voices, in the order in which they build on each
// other. A voice that fails is left out and named; only when none can answer is
// it an error.
func (e *Engine) listen(ctx context.Context, v *memory.View, mode record.Mode, q Query, res *record.SearchResult) ([]ranking, error) {
	var rankings []ranking
	var last error
	ask := func(voice Voice) []Candidate {
		ctx, end := e.begin(ctx, voice.Name())
		found, err := voice.Find(ctx, v, q)
		end(err)
		if err != nil {
			last = err
			res.Degraded = append(res.Degraded, voice.Name()+": "+string(record.ErrorCode(err)))
			return nil
		}
		if len(e.only) > 0 && !slices.Contains(e.only, voice.Name()) {
			return found
		}
		rankings = append(rankings, ranking{voice.Name(), found})
		res.Voices = append(res.Voices, voice.Name())
		return found
	}
	lexical := ask(Lexical{})
	var semantic []Candidate
	if q.Vector != nil {
		semantic = ask(Semantic{})
	}
	if mode == record.Hybrid {
		q.Found = seeds(lexical, semantic)
		ask(Graph{})
		ask(Temporal{})
	}
	if len(rankings) == 0 && last != nil {
		return nil, last
	}
	return rankings, nil
}

// vagueness is what a semantic find counts as a seed beside a lexical one.
const vagueness = 0.5

// seeds joins what the lexical and the semantic voice found, best first, each
// measured by its own best.
func seeds(lexical, semantic []Candidate) []Candidate {
	all := map[int64]Candidate{}
	add := func(list []Candidate, weight float64) {
		for _, c := range list {
			c.Score = all[c.Seq].Score + weight*c.Score/list[0].Score
			all[c.Seq] = c
		}
	}
	add(lexical, 1)
	add(semantic, vagueness)
	out := make([]Candidate, 0, len(all))
	for _, c := range all {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq))
	})
	return out
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
	return
}

func (e *Engine) facts(ctx context.Context, v *memory.View, mode record.Mode, repoName string, q Query, limit int, res *record.SearchResult) ([]record.Hit, error) {
	rankings, err := e.listen(ctx, v, mode, q, res)
	if err != nil {
		return nil, err
	}
	repo, err := v.RepoDomains(repoName)
	if err != nil {
		return nil, err
	}
	all := fuse(weigh(q.Intent), rankings)
	if err := believe(v, all); err != nil {
		return nil, err
	}
	if mode == record.Hybrid {
		score(all, v.Now().Time, e.ageless)
		all = diversify(all, e.lambda)
	} else {
		scorePlain(all, rankings)
	}
	// The repository's own first, each part in its order.
	OwnFirst(all, func(f *fused) bool { return repo[f.DomainID] })
	hits := make([]record.Hit, 0, limit)
	for _, f := range all[:min(len(all), limit)] {
		hits = append(hits, record.Hit{Fact: f.Fact, Score: f.score, Voices: f.ranks})
	}
	return hits, nil
}

// OwnFirst puts what own holds true of before the rest, each part in its order:
// work in a repository ranks its facts first and filters nothing out.
func OwnFirst[T any](list []T, own func(T) bool) {
	slices.SortStableFunc(list, func(a, b T) int {
		switch x, y := own(a), own(b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
}

// believe notes which facts several agents hold.
func believe(v *memory.View, all []*fused) error {
	seqs := make([]int64, len(all))
	for i, f := range all {
		seqs[i] = f.Seq
	}
	beliefs, err := v.BelievedAt(seqs)
	for _, f := range all {
		f.belief = beliefs[f.Seq]
	}
	return err
}

// scorePlain orders by the fused ranks alone, or by the voice's own score when
// only one answered.
func scorePlain(all []*fused, rankings []ranking) {
	if len(rankings) == 1 {
		own := map[int64]float64{}
		for _, c := range rankings[0].found {
			own[c.Seq] = c.Score
		}
		for _, f := range all {
			f.score = own[f.Seq] * (0.8 + 0.2*f.Confidence)
		}
	} else {
		for _, f := range all {
			f.score = f.rrf * (0.8 + 0.2*f.Confidence)
		}
	}
	normalise(all)
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
