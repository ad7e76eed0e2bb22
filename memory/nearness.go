package memory

import (
	"context"
	"database/sql"
	"errors"

	"github.com/polyphony-memory/polyphony/memory/conflict"
)

// embedUnsettled gives a proposal its vector when the rules cannot settle it
// against a fact of its topic that has one. It runs before the transaction, on
// the caller's goroutine: the model takes longer than a write may. What another
// caller adds meanwhile is judged by the rules alone, and so is everything when
// the model fails.
func (s *Store) embedUnsettled(ctx context.Context, p *proposal) {
	if s.embed == nil || s.model == "" || p.echo {
		return
	}
	unsettled := false
	err := s.View(ctx, func(v *View) error {
		domain, _, err := findDomain(v, p.domain)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := v.query("SELECT "+factColumns+fromFacts+"JOIN embeddings e ON e.seq = f.seq WHERE f.domain_id = ? AND f.topic_key = ? AND e.model = ? AND "+current+topicNewest,
			domain, p.topicKey, s.model)
		facts, err := collect(rows, err, scanFact)
		for _, f := range facts {
			unsettled = unsettled || conflict.Unsettled(conflict.Compare(f.statement(), p.parsed))
		}
		return err
	})
	if err != nil || !unsettled {
		return
	}
	vector, err := s.embed(ctx, s.model, p.content)
	if err != nil {
		s.log.Warn("a proposal is judged without its vector", "workspace", s.workspace, "error", err)
		return
	}
	if validVector(vector) {
		p.vector = vector
	}
}

// relation tells how a fact relates to the proposal: by the rules, and where
// they leave it open by the vectors of both.
func (t *tx) relation(p *proposal, f *fact) (conflict.Verdict, error) {
	v := conflict.Compare(f.statement(), p.parsed)
	if p.vector == nil || !conflict.Unsettled(v) {
		return v, nil
	}
	var raw []byte
	err := t.row("SELECT vector FROM embeddings WHERE seq = ? AND model = ?", f.seq, t.writer.store.model).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) || err == nil && len(raw) != 4*Dimensions {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	return conflict.Near(v, f.statement(), p.parsed, cosine(p.vector, raw)), nil
}

// judge compares a proposal with the facts of its topic and settles who wins.
func (t *tx) judge(p *proposal, facts []*fact) (verdicts, error) {
	relations := make(map[string]conflict.Verdict, len(facts))
	for _, f := range facts {
		v, err := t.relation(p, f)
		if err != nil {
			return verdicts{}, err
		}
		relations[f.ID] = v
	}
	return weigh(p, facts, func(f *fact) conflict.Verdict { return relations[f.ID] }), nil
}
