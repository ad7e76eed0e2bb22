package browser

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// pageFacts is how many facts a page of the table has, searchFacts how many
	// the best matches of a search are.
	pageFacts, searchFacts = 50, 100
	// maxDomains bounds the domains offered as a filter.
	maxDomains = 1000
)

// factQuery is what the facts' table is asked to show.
type factQuery struct {
	path string
	// Words are the words searched for; with them, order is by match.
	Words      string
	Domain     string
	MemoryType string
	Veracity   string
	Order      record.FactOrder
	Descending bool
	// All shows superseded, archived and expired facts too.
	All  bool
	Page int
}

func readFactQuery(v *visit) factQuery {
	in := v.URL.Query()
	q := factQuery{
		path: v.base, Words: in.Get("q"), Domain: in.Get("domain"), MemoryType: in.Get("type"), Veracity: in.Get("veracity"),
		Order: record.FactOrder(in.Get("sort")), Descending: in.Get("dir") != "asc", All: in.Get("all") == "1", Page: 1,
	}
	if q.Order == "" {
		q.Order = record.ByUpdated
	}
	// What is no page number is the first page; a link cannot be that wrong.
	if n, err := strconv.Atoi(in.Get("page")); err == nil && n > 1 && n < 1_000_000 {
		q.Page = n
	}
	return q
}

// link returns the address of the query; what is as usual is left out.
func (q factQuery) link() string {
	out := url.Values{}
	for name, value := range map[string]string{"q": q.Words, "domain": q.Domain, "type": q.MemoryType, "veracity": q.Veracity} {
		if value != "" {
			out.Set(name, value)
		}
	}
	if q.Order != record.ByUpdated {
		out.Set("sort", string(q.Order))
	}
	if !q.Descending {
		out.Set("dir", "asc")
	}
	if q.All {
		out.Set("all", "1")
	}
	if q.Page > 1 {
		out.Set("page", strconv.Itoa(q.Page))
	}
	if len(out) == 0 {
		return q.path
	}
	return q.path + "?" + out.Encode()
}

// AtPage returns the address of another page.
func (q factQuery) AtPage(n int) string {
	q.Page = n
	return q.link()
}

// SortedBy returns the address of the table sorted by a column; the column it
// is sorted by turns around. Names are sorted upwards first, numbers down.
func (q factQuery) SortedBy(column string) string {
	order := record.FactOrder(column)
	if order == q.Order {
		q.Descending = !q.Descending
	} else {
		q.Descending = order != record.ByDomain && order != record.ByTopic
	}
	q.Order, q.Page = order, 1
	return q.link()
}

// Sort is the aria-sort of a column.
func (q factQuery) Sort(column string) string {
	switch {
	case record.FactOrder(column) != q.Order || q.Words != "":
		return "none"
	case q.Descending:
		return "descending"
	}
	return "ascending"
}

// Filtered reports whether the query leaves facts out.
func (q factQuery) Filtered() bool {
	return q.Words != "" || q.Domain != "" || q.MemoryType != "" || q.Veracity != ""
}

// factItem is a fact as lists show it.
type factItem struct {
	record.Fact
	// State is current, superseded, archived or expired.
	State string
	Link  string
}

func (h *handler) item(v *visit, f record.Fact) factItem {
	return factItem{Fact: f, State: h.state(&f), Link: v.link("facts", f.ID)}
}

func (h *handler) state(f *record.Fact) string {
	switch {
	case !f.SupersededAt.IsZero():
		return "superseded"
	case !f.ArchivedAt.IsZero():
		return "archived"
	case f.Expired(record.Time{Time: h.Now()}):
		return "expired"
	}
	return "current"
}

// factsPage is the content of the facts' tab.
type factsPage struct {
	Query      factQuery
	Base       string
	Facts      []factItem
	Total      int64
	First      int64
	Last       int64
	Pages      int
	Domains    []record.Domain
	Types      []record.MemoryType
	Veracities []record.Veracity
	Notice     string
}

// Previous is the page before this one, 0 for none.
func (p factsPage) Previous() int { return p.Query.Page - 1 }

// Next is the page after this one, 0 for none.
func (p factsPage) Next() int {
	if p.Query.Page >= p.Pages {
		return 0
	}
	return p.Query.Page + 1
}

func (h *handler) facts(v *visit) error {
	p := factsPage{Query: readFactQuery(v), Base: v.base, Types: record.MemoryTypes(), Veracities: record.Veracities()}
	if v.URL.Query().Has("deleted") {
		p.Notice = "Deleted. Its words are gone from the memory, and nothing brings them back."
	}
	domains, err := gateway.ReadPage[record.Domain](v.ctx, h.Memory, record.ReadMemory{Caller: v.caller, What: record.ReadDomains, Limit: maxDomains})
	if err != nil {
		return err
	}
	p.Domains = domains.Items
	fill := h.table
	if p.Query.Words != "" {
		fill = h.search
	}
	if err := fill(v, &p); err != nil {
		return err
	}
	if len(p.Facts) > 0 {
		p.First = int64(p.Query.Page-1)*pageFacts + 1
		p.Last = p.First + int64(len(p.Facts)) - 1
	}
	return h.show(v, http.StatusOK, "facts.html", page{Title: "Facts", Tab: "facts", Live: true}, p)
}

// table fills the page with the facts that the query keeps.
func (h *handler) table(v *visit, p *factsPage) error {
	q := p.Query
	t, err := gateway.One[record.FactTable](v.ctx, h.Memory, record.ReadMemory{
		Caller: v.caller, What: record.ReadTable, Domain: q.Domain, All: q.All, Limit: pageFacts,
		Table: record.FactTableQuery{MemoryType: q.MemoryType, Veracity: q.Veracity, Order: q.Order, Descending: q.Descending, Offset: (q.Page - 1) * pageFacts},
	})
	for _, f := range t.Facts {
		p.Facts = append(p.Facts, h.item(v, f))
	}
	p.Total, p.Pages = t.Total, int((t.Total+pageFacts-1)/pageFacts)
	return err
}

// search fills the page with the best matches, which are one page.
func (h *handler) search(v *visit, p *factsPage) error {
	q := &p.Query
	limit := searchFacts
	found, err := h.Memory.Search(v.ctx, record.Search{Caller: v.caller, Query: q.Words, Mode: string(record.Keyword), Limit: &limit, Domain: q.Domain})
	found.Facts = slices.DeleteFunc(found.Facts, func(f record.Hit) bool {
		return q.MemoryType != "" && string(f.MemoryType) != q.MemoryType || q.Veracity != "" && string(f.Veracity) != q.Veracity
	})
	for _, f := range found.Facts {
		p.Facts = append(p.Facts, h.item(v, f.Fact))
	}
	q.Page, p.Total, p.Pages = 1, int64(len(p.Facts)), 1
	return err
}
