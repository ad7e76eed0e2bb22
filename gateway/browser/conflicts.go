package browser

import (
	"net/http"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// conflictsPage is the content of the conflicts' tab.
type conflictsPage struct {
	Base string
	// All shows those that are closed too.
	All       bool
	Conflicts []conflictItem
	Next      string
	First     bool
	Notice    string
}

// conflictItem is a conflict as the list shows it.
type conflictItem struct {
	record.Conflict
	Sides []side
	// Action is where its form is sent.
	Action string
}

// side is one of the two facts of a conflict.
type side struct {
	ID, Text, Link string
	Won, Lost      bool
}

func (h *handler) conflicts(v *visit) error {
	in := v.URL.Query()
	p := conflictsPage{Base: v.link("conflicts"), All: in.Get("all") == "1", First: in.Get("cursor") == ""}
	if in.Has("resolved") {
		p.Notice = "Decided. The pair is not raised again."
	}
	rows, err := gateway.ReadPage[record.Conflict](v.ctx, h.Memory, record.ReadMemory{
		Caller: v.caller, What: record.ReadConflicts, OpenOnly: !p.All, Cursor: in.Get("cursor"), Limit: pageRows,
	})
	if err != nil {
		return err
	}
	for _, c := range rows.Items {
		p.Conflicts = append(p.Conflicts, conflictItem{Conflict: c, Action: v.link("conflicts", c.ID), Sides: []side{
			{c.FactA, c.ContentA, v.link("facts", c.FactA), c.Winner == c.FactA, c.Loser == c.FactA},
			{c.FactB, c.ContentB, v.link("facts", c.FactB), c.Winner == c.FactB, c.Loser == c.FactB},
		}})
	}
	p.Next = nextPage(v, rows.Next)
	return h.show(v, http.StatusOK, "conflicts.html", page{Title: "Conflicts", Tab: "conflicts", Live: true}, p)
}

// beliefsPage is the content of the beliefs' tab.
type beliefsPage struct {
	Beliefs []beliefItem
	Next    string
	First   bool
	Base    string
}

// beliefItem is a belief as the list shows it.
type beliefItem struct {
	record.Belief
	Links []string
}

func (h *handler) beliefs(v *visit) error {
	p := beliefsPage{Base: v.link("beliefs"), First: !v.URL.Query().Has("cursor")}
	rows, err := gateway.ReadPage[record.Belief](v.ctx, h.Memory, record.ReadMemory{
		Caller: v.caller, What: record.ReadBeliefs, Cursor: v.URL.Query().Get("cursor"), Limit: pageRows,
	})
	if err != nil {
		return err
	}
	for _, b := range rows.Items {
		item := beliefItem{Belief: b}
		for _, id := range b.FactIDs {
			item.Links = append(item.Links, v.link("facts", id))
		}
		p.Beliefs = append(p.Beliefs, item)
	}
	p.Next = nextPage(v, rows.Next)
	return h.show(v, http.StatusOK, "beliefs.html", page{Title: "Beliefs", Tab: "beliefs", Live: true}, p)
}
