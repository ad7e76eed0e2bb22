package browser

import (
	"net/http"
	"slices"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// pageRows is how many rows a page of policies or conflicts has.
const pageRows = 50

// policyItem is a policy as lists show it.
type policyItem struct {
	record.Policy
	Link string
}

func itemOf(v *visit, p record.Policy) policyItem {
	return policyItem{Policy: p, Link: v.link("policies", p.ID)}
}

// policiesPage is the content of the policies' tab.
type policiesPage struct {
	Base, Words, Domain string
	All                 bool
	Policies            []policyItem
	Domains             []record.Domain
	// Next is the address of the next page, empty for none.
	Next   string
	First  bool
	Notice string
}

// Filtered reports whether policies are left out.
func (p policiesPage) Filtered() bool { return p.Words != "" || p.Domain != "" }

func (h *handler) policies(v *visit) error {
	in := v.URL.Query()
	p := policiesPage{Base: v.link("policies"), Words: in.Get("q"), Domain: in.Get("domain"), All: in.Get("all") == "1", First: in.Get("cursor") == ""}
	if in.Has("deleted") {
		p.Notice = "Deleted. The next agent that is dispatched does not see it any more."
	}
	domains, err := gateway.ReadPage[record.Domain](v.ctx, h.Memory, record.ReadMemory{Caller: v.caller, What: record.ReadDomains, Limit: maxDomains})
	if err != nil {
		return err
	}
	p.Domains = slices.DeleteFunc(domains.Items, func(d record.Domain) bool { return d.Policies == 0 && d.Name != p.Domain })
	if p.Words != "" {
		none := 0
		found, err := h.Memory.Search(v.ctx, record.Search{Caller: v.caller, Query: p.Words, Mode: string(record.Keyword), Limit: &none, Domain: p.Domain})
		if err != nil {
			return err
		}
		for _, hit := range found.Policies {
			p.Policies = append(p.Policies, itemOf(v, hit.Policy))
		}
	} else {
		rows, err := gateway.ReadPage[record.Policy](v.ctx, h.Memory, record.ReadMemory{
			Caller: v.caller, What: record.ReadPolicies, Domain: p.Domain, All: p.All, Cursor: in.Get("cursor"), Limit: pageRows,
		})
		if err != nil {
			return err
		}
		for _, row := range rows.Items {
			p.Policies = append(p.Policies, itemOf(v, row))
		}
		p.Next = nextPage(v, rows.Next)
	}
	return h.show(v, http.StatusOK, "policies.html", page{Title: "Policies", Tab: "policies", Live: true}, p)
}

// nextPage is the address of this page from the cursor on, empty for none.
func nextPage(v *visit, cursor string) string {
	if cursor == "" {
		return ""
	}
	in := v.URL.Query()
	in.Set("cursor", cursor)
	in.Del("deleted")
	in.Del("resolved")
	return v.URL.Path + "?" + in.Encode()
}

// policyPage is the content of one policy's page.
type policyPage struct {
	policyItem
	List      string
	Versions  []policyVersion
	Successor string
	Notice    string
}

// policyVersion is an edit: what the policy said before, and what after.
type policyVersion struct {
	record.PolicyVersion
	Words  []span
	Fields []fieldChange
}

func (h *handler) policy(v *visit) error {
	r, err := h.readOnePolicy(v)
	if err != nil {
		return err
	}
	p := policyPage{policyItem: itemOf(v, r.Policy), List: v.link("policies")}
	if v.URL.Query().Has("saved") {
		p.Notice = "Saved. The next agent that is dispatched sees it; what it said before is kept here."
	}
	if r.SupersededBy != "" {
		p.Successor = v.link("policies", r.SupersededBy)
	}
	after := record.PolicyVersion{Rule: r.Rule, RequiredRole: r.RequiredRole}
	for _, before := range slices.Backward(r.Versions) {
		e := policyVersion{PolicyVersion: before, Words: forget(difference(before.Rule, after.Rule))}
		if before.RequiredRole != after.RequiredRole {
			e.Fields = []fieldChange{{"Meant for", roleName(before.RequiredRole), roleName(after.RequiredRole)}}
		}
		p.Versions = append(p.Versions, e)
		after = before
	}
	return h.show(v, http.StatusOK, "policy.html", page{Title: "A policy of " + r.Domain, Tab: "policies"}, p)
}

func roleName(r record.Role) string {
	if r == "" {
		return "every role"
	}
	return string(r)
}
