package browser

import (
	"net/http"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// graphFacts is how many facts the drawn graph has at most: more cannot be
// told apart.
const graphFacts = 150

// graphPage is the content of the graph's tab: the same graph as words, for
// who cannot see or draw it.
type graphPage struct {
	Base, Data, Domain string
	Domains            []record.Domain
	Tree               []branch
	Facts, Links       int
	Left               int64
}

// branch is a domain with its policies and topics, or a topic with its facts.
type branch struct {
	Label    string
	Branches []branch
	Leaves   []leaf
}

// leaf is a fact or a policy.
type leaf struct{ Kind, Label, Link string }

func (h *handler) readGraph(v *visit) (record.Graph, error) {
	return gateway.One[record.Graph](v.ctx, h.Memory, record.ReadMemory{
		Caller: v.caller, What: record.ReadGraph, Domain: v.URL.Query().Get("domain"), Limit: graphFacts,
	})
}

func (h *handler) graph(v *visit) error {
	domains, err := gateway.ReadPage[record.Domain](v.ctx, h.Memory, record.ReadMemory{Caller: v.caller, What: record.ReadDomains, Limit: maxDomains})
	if err != nil {
		return err
	}
	g, err := h.readGraph(v)
	if err != nil {
		return err
	}
	p := graphPage{Base: v.link("graph"), Data: v.link("graph.json"), Domain: v.URL.Query().Get("domain"), Domains: domains.Items, Left: g.Left}
	if v.URL.RawQuery != "" {
		p.Data += "?" + v.URL.RawQuery
	}
	p.Tree = tree(v, g)
	for _, n := range g.Nodes {
		if n.Kind == "fact" {
			p.Facts++
		}
	}
	for _, e := range g.Edges {
		if e.Kind != "contains" {
			p.Links++
		}
	}
	return h.show(v, http.StatusOK, "graph.html", page{Title: "Knowledge graph", Tab: "graph", Graph: true}, p)
}

// tree follows the edges that contain, from the domains down.
func tree(v *visit, g record.Graph) []branch {
	nodes, inside := map[string]record.GraphNode{}, map[string][]string{}
	for _, n := range g.Nodes {
		nodes[n.ID] = n
	}
	for _, e := range g.Edges {
		if e.Kind == "contains" {
			inside[e.Source] = append(inside[e.Source], e.Target)
		}
	}
	var grow func(id string) branch
	grow = func(id string) branch {
		b := branch{Label: nodes[id].Label}
		for _, in := range inside[id] {
			if n := nodes[in]; n.Kind == "topic" {
				b.Branches = append(b.Branches, grow(in))
			} else {
				b.Leaves = append(b.Leaves, leaf{n.Kind, n.Label, nodeLink(v, n)})
			}
		}
		return b
	}
	var out []branch
	for _, n := range g.Nodes {
		if n.Kind == "domain" {
			out = append(out, grow(n.ID))
		}
	}
	return out
}

// nodeLink is the page of a fact or a policy, empty for other nodes.
func nodeLink(v *visit, n record.GraphNode) string {
	switch n.Kind {
	case "fact":
		return v.link("facts", n.ID)
	case "policy":
		return v.link("policies", n.ID)
	}
	return ""
}

// graphData answers with the graph for the script that draws it.
func (h *handler) graphData(v *visit) error {
	g, err := h.readGraph(v)
	if err != nil {
		return err
	}
	type node struct {
		record.GraphNode
		Link string `json:"link,omitempty"`
	}
	out := struct {
		Nodes []node             `json:"nodes"`
		Edges []record.GraphEdge `json:"edges"`
	}{[]node{}, g.Edges}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, node{n, nodeLink(v, n)})
	}
	gateway.WriteJSON(v.out, http.StatusOK, out)
	return nil
}
