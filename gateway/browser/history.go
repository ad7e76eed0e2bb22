package browser

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// historyRows bounds the rows of a history that the page shows.
const historyRows = 1000

// factPage is the content of one fact's page, which is the drawer too.
type factPage struct {
	factItem
	Base    string
	Changes []change
	// More is true when the history is longer than what is shown.
	More bool
	// Successor is the link of the fact that took this one's place.
	Successor string
	Notice    string
	// Key is that of the form that restores.
	Key string
}

// change is one event of a history, with what was said before and after it
// where it changed that.
type change struct {
	record.FactEvent
	// Other is true for an event of another fact of the chain, Link its page.
	Other bool
	Link  string
	// Words is the changed statement, Fields are the other values that changed.
	Words  []span
	Fields []fieldChange
}

// fieldChange is one value before and after an edit.
type fieldChange struct{ Name, Before, After string }

func (h *handler) fact(v *visit) error {
	p, err := h.readFact(v)
	if err != nil {
		return err
	}
	switch {
	case v.URL.Query().Has("saved"):
		p.Notice = "Saved. What it said before is kept in its history."
	case v.URL.Query().Has("restored"):
		p.Notice = "Restored. The fact is current again."
	}
	return h.show(v, http.StatusOK, "fact.html", page{Title: p.Topic, Tab: "facts"}, p)
}

func (h *handler) readFact(v *visit) (factPage, error) {
	p := factPage{Base: v.base}
	in := record.ReadMemory{Caller: v.caller, What: record.ReadHistory, ID: v.PathValue("id"), Limit: historyRows}
	rows, err := gateway.ReadPage[record.HistoryRow](v.ctx, h.Memory, in)
	if err != nil {
		return p, err
	}
	all, err := gateway.HistoryOf(in, rows.Items, rows.Next)
	if err != nil {
		return p, err
	}
	f, err := gateway.One[record.Fact](v.ctx, h.Memory, record.ReadMemory{Caller: v.caller, What: record.ReadFact, ID: in.ID})
	if err != nil {
		return p, err
	}
	p.factItem, p.More = h.item(v, f), all.Next != ""
	if f.SupersededBy != "" {
		p.Successor = v.link("facts", f.SupersededBy)
	}
	p.Key = newKey()
	p.Changes = changes(v, all.FactHistory)
	return p, nil
}

// changes tells a history, newest first.
func changes(v *visit, all record.FactHistory) []change {
	now := map[string]record.Fact{}
	for _, f := range all.Chain {
		now[f.ID] = f
	}
	out := []change{}
	for _, e := range all.Events {
		// The other side of an event that is told already.
		if e.Kind == "superseding" {
			continue
		}
		c := change{FactEvent: e, Other: e.FactID != all.FactID, Link: v.link("facts", e.FactID)}
		switch e.Kind {
		case "superseded":
			if next, found := now[e.Other]; found {
				c.Words = difference(now[e.FactID].Content, next.Content)
			}
		case "edited":
			c.edited(all.Versions, now[e.FactID])
		}
		out = append(out, c)
	}
	slices.Reverse(out)
	return out
}

// edited finds what an edit changed: the version it ended, and what follows.
func (c *change) edited(versions []record.FactVersion, current record.Fact) {
	own := slices.DeleteFunc(slices.Clone(versions), func(v record.FactVersion) bool { return v.FactID != c.FactID })
	slices.SortFunc(own, func(a, b record.FactVersion) int { return cmp.Compare(a.Version, b.Version) })
	i := slices.IndexFunc(own, func(v record.FactVersion) bool { return v.Until.Equal(c.At.Time) })
	if i < 0 {
		return
	}
	before := own[i]
	after := versionOf(current)
	if i+1 < len(own) {
		after = own[i+1]
	}
	c.Words, c.Fields = forget(difference(before.Content, after.Content)), fieldChanges(before, after)
}

// versionOf is what a fact says now, as its versions say it.
func versionOf(f record.Fact) record.FactVersion {
	return record.FactVersion{
		Topic: f.Topic, Content: f.Content, Confidence: f.Confidence, MemoryType: f.MemoryType, Veracity: f.Veracity, ValidUntil: f.ValidUntil,
	}
}

// fieldChanges lists the values beside the statement that differ.
func fieldChanges(before, after record.FactVersion) []fieldChange {
	return slices.DeleteFunc([]fieldChange{
		{"Topic", before.Topic, after.Topic},
		{"Confidence", percent(before.Confidence), percent(after.Confidence)},
		{"Type", words(before.MemoryType), words(after.MemoryType)},
		{"Veracity", words(before.Veracity), words(after.Veracity)},
		{"Valid until", until(before.ValidUntil), until(after.ValidUntil)},
	}, func(f fieldChange) bool { return f.Before == f.After })
}

func until(t record.Time) string {
	if t.IsZero() {
		return "no end"
	}
	return moment(t)
}
