package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// labelRunes bounds the label of a node.
const labelRunes = 80

// Graph returns the domains, topics and policies in scope with their newest
// current facts, at most limit of them, and the edges between those.
func (v *View) Graph(scope Scope, limit int) (record.Graph, error) {
	b := graphBuilder{seen: map[string]bool{}, rows: map[int64]string{}, graph: record.Graph{Nodes: []record.GraphNode{}, Edges: []record.GraphEdge{}}}
	if scope.Unknown {
		return b.graph, nil
	}
	denied, err := json.Marshal(slices.AppendSeq([]int64{}, maps.Keys(scope.denied)))
	if err != nil {
		return b.graph, err
	}
	const shown = fromFacts + "WHERE (?1 = 0 OR f.domain_id = ?1) AND " + current + " AND (f.valid_until = 0 OR f.valid_until > ?2) AND f.domain_id NOT IN (SELECT value FROM json_each(?3))"
	rows, err := v.query("SELECT "+factColumns+shown+" ORDER BY f.seq DESC LIMIT ?4", scope.Domain, v.now.Micros(), string(denied), limit)
	facts, err := collect(rows, err, scanFact)
	if err != nil {
		return b.graph, err
	}
	for _, f := range facts {
		b.fact(f)
	}
	if err := v.row("SELECT count(*)"+shown, scope.Domain, v.now.Micros(), string(denied)).Scan(&b.graph.Left); err != nil {
		return b.graph, err
	}
	b.graph.Left -= int64(len(facts))
	policies, err := v.query("SELECT " + policyColumns + fromPolicies + "WHERE p.superseded_at = 0 ORDER BY p.seq")
	_, err = collect(policies, err, func(r scanner) (struct{}, error) {
		p, err := scanPolicy(r)
		if err == nil && !scope.Hidden(p.domainID) {
			b.policy(p)
		}
		return struct{}{}, err
	})
	if err != nil {
		return b.graph, err
	}
	seqs := make([]int64, 0, len(b.rows))
	for seq := range b.rows {
		seqs = append(seqs, seq)
	}
	list, err := json.Marshal(seqs)
	if err != nil {
		return b.graph, err
	}
	edges, err := v.query("SELECT e.source, e.target, e.kind, e.weight FROM json_each(?) j JOIN edges e ON e.source = j.value ORDER BY e.source, e.target, e.kind", string(list))
	_, err = collect(edges, err, func(r scanner) (struct{}, error) {
		var e record.GraphEdge
		var source, target int64
		err := r.Scan(&source, &target, &e.Kind, &e.Weight)
		e.Source, e.Target = b.rows[source], b.rows[target]
		if err == nil && e.Target != "" {
			b.graph.Edges = append(b.graph.Edges, e)
		}
		return struct{}{}, err
	})
	return b.graph, err
}

// graphBuilder adds nodes, each once.
type graphBuilder struct {
	graph record.Graph
	seen  map[string]bool
	// rows are the facts' ids by row.
	rows map[int64]string
}

func (b *graphBuilder) node(n record.GraphNode) {
	if !b.seen[n.ID] {
		b.seen[n.ID] = true
		b.graph.Nodes = append(b.graph.Nodes, n)
	}
}

func (b *graphBuilder) contains(source, target string) {
	b.graph.Edges = append(b.graph.Edges, record.GraphEdge{Source: source, Target: target, Kind: "contains", Weight: 1})
}

func (b *graphBuilder) domain(id int64, name string) string {
	node := fmt.Sprintf("domain:%d", id)
	b.node(record.GraphNode{ID: node, Kind: "domain", Label: name, Domain: name})
	return node
}

func (b *graphBuilder) fact(f *fact) {
	domain := b.domain(f.domainID, f.Domain)
	topic := fmt.Sprintf("topic:%d:%s", f.domainID, f.topicKey)
	if !b.seen[topic] {
		b.node(record.GraphNode{ID: topic, Kind: "topic", Label: f.Topic, Domain: f.Domain})
		b.contains(domain, topic)
	}
	b.node(record.GraphNode{ID: f.ID, Kind: "fact", Label: labelOf(f.Content), Domain: f.Domain, Confidence: f.Confidence})
	b.contains(topic, f.ID)
	b.rows[f.seq] = f.ID
}

func (b *graphBuilder) policy(p policy) {
	domain := b.domain(p.domainID, p.Domain)
	b.node(record.GraphNode{ID: p.ID, Kind: "policy", Label: labelOf(p.Rule), Domain: p.Domain})
	b.contains(domain, p.ID)
}

// labelOf is the beginning of a text.
func labelOf(s string) string {
	if r := []rune(s); len(r) > labelRunes {
		return string(r[:labelRunes]) + "…"
	}
	return s
}
