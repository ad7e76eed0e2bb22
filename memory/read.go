package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// defaultRows and maxRows bound the rows of one page of a read, and
	// maxPageBytes its encoded size: pages travel in payloads.
	defaultRows, maxRows = 500, 1000
	maxPageBytes         = 1 << 20
)

// Read answers one page of a read operation.
//
// Errors: InvalidArgument, ContentTooLarge, InvalidUTF8, NotFound, Unavailable.
func (s *Store) Read(ctx context.Context, req record.ReadMemory) (record.Page[json.RawMessage], error) {
	p, err := newPager(req)
	if err != nil {
		return p.page, err
	}
	role, err := record.ParseRole("role", req.Role)
	if err != nil {
		return p.page, err
	}
	err = s.View(ctx, func(v *View) error {
		scope, err := v.Scope(req.Domain, req.Repo, role)
		if err != nil {
			return err
		}
		return v.read(req, role, scope, &p)
	})
	return p.page, err
}

func (v *View) read(req record.ReadMemory, role record.Role, scope Scope, p *pager) error {
	seq := int64(0)
	switch req.What {
	case record.ReadFacts, record.ReadItems, record.ReadObservation, record.ReadSubject, record.ReadObligations:
		if req.Cursor != "" {
			var err error
			if seq, err = strconv.ParseInt(req.Cursor, 10, 64); err != nil {
				return record.Errorf(record.InvalidArgument, "cursor", "the cursor is not one of a page")
			}
		}
	}
	switch req.What {
	case record.ReadFacts:
		rows, err := v.Facts(scope, req.All, seq, p.limit)
		return addRows(p, rows, err)
	case record.ReadItems:
		rows, err := v.SessionItems(req.Agent, seq, p.limit)
		return addRows(p, rows, err)
	case record.ReadObservation:
		rows, err := v.Observations(req.Agent, seq, p.limit)
		return addRows(p, rows, err)
	case record.ReadConflicts:
		rows, err := v.Conflicts(req.OpenOnly, scope, req.Cursor, p.limit)
		for _, c := range rows {
			if err == nil {
				err = p.add(c.ID, c)
			}
		}
		return p.end(len(rows), err)
	case record.ReadHistory:
		h, err := v.History(req.ID)
		if err == nil && scope.hidesAny(v, h.Chain) {
			err = record.Errorf(record.NotFound, "id", "there is no fact with that id in this workspace")
		}
		rows := make([]record.HistoryRow, 0, len(h.Chain)+len(h.Events))
		for i := range h.Chain {
			rows = append(rows, record.HistoryRow{Fact: &h.Chain[i]})
		}
		for i := range h.Versions {
			rows = append(rows, record.HistoryRow{Version: &h.Versions[i]})
		}
		for i := range h.Events {
			rows = append(rows, record.HistoryRow{Event: &h.Events[i]})
		}
		return addAll(p, rows, err)
	case record.ReadFact:
		f, err := v.visibleFact(req.ID, scope)
		return addAll(p, []record.Fact{f}, err)
	case record.ReadTable:
		t, err := v.FactTable(scope, req)
		return addAll(p, []record.FactTable{t}, err)
	case record.ReadEdges:
		if _, err := v.visibleFact(req.ID, scope); err != nil {
			return err
		}
		rows, err := v.Edges(req.ID, scope)
		return addAll(p, rows, err)
	case record.ReadGraph:
		g, err := v.Graph(scope, p.limit)
		return addAll(p, []record.Graph{g}, err)
	case record.ReadPolicy:
		r, err := v.PolicyRecord(req.ID, scope)
		return addAll(p, []record.PolicyRecord{r}, err)
	case record.ReadPolicies:
		rows, err := v.Policies(req.Repo, scope, req.All)
		return addAll(p, rows, err)
	case record.ReadDomains:
		rows, err := v.Domains(role)
		return addAll(p, rows, err)
	case record.ReadGrants:
		rows, err := v.Grants()
		return addAll(p, rows, err)
	case record.ReadNotes:
		if err := needAgent(req.Caller); err != nil {
			return err
		}
		n, err := v.Notes(req.Agent)
		return addAll(p, []record.Notes{n}, err)
	case record.ReadBeliefs:
		rows, err := v.Beliefs(scope)
		return addAll(p, rows, err)
	case record.ReadSubject:
		rows, err := v.FactsBySubject(scope, req.Subject, req.All, seq, p.limit)
		return addRows(p, rows, err)
	case record.ReadObligations:
		rows, err := v.Obligations(req.TaskID, req.OpenOnly, seq, p.limit)
		return addRows(p, rows, err)
	case record.ReadEpisodes:
		return v.readEpisodes(req, p)
	case record.ReadCheck:
		rows, err := v.CheckStatements(scope, req.Context)
		return addAll(p, rows, err)
	case record.ReadHealth:
		h, err := v.Health(req.All)
		return addAll(p, []record.Health{h}, err)
	}
	return record.Errorf(record.InvalidArgument, "what", "there is no read operation of that name")
}

// pager fills a page up to its rows and bytes.
type pager struct {
	page  record.Page[json.RawMessage]
	limit int
	after string
	bytes int
	last  string
	full  bool
}

// newPager begins the page of a read. It refuses what can be seen to be wrong
// without the file, so that a workspace that is not there refuses the same.
func newPager(req record.ReadMemory) (pager, error) {
	p := pager{limit: cmp.Or(req.Limit, defaultRows), after: req.Cursor, page: record.Page[json.RawMessage]{Items: []json.RawMessage{}}}
	if err := req.Check(); err != nil {
		return p, err
	}
	if p.limit < 1 || p.limit > maxRows {
		return p, record.Errorf(record.InvalidArgument, "limit", "a page has 1 to %d rows", maxRows)
	}
	switch req.What {
	case record.ReadSubject:
		return p, checkSubject(req.Subject)
	case record.ReadCheck:
		return p, checkStatements(req.Context)
	case record.ReadObligations, record.ReadEpisodes:
		return p, record.CheckName("task_id", req.TaskID)
	}
	return p, nil
}

// add encodes one row; at is the cursor after it. Rows past the page's size
// are left for the next one, but a page holds at least one.
func (p *pager) add(at string, row any) error {
	raw, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if p.full || p.bytes > 0 && p.bytes+len(raw) > maxPageBytes {
		p.full = true
		return nil
	}
	p.bytes += len(raw)
	p.page.Items = append(p.page.Items, raw)
	p.last = at
	return nil
}

// end sets the next cursor when rows were left: found is how many there were
// up to the limit.
func (p *pager) end(found int, err error) error {
	if err == nil && (p.full || found == p.limit) {
		p.page.Next = p.last
	}
	return err
}

func addRows[T any](p *pager, rows []Row[T], err error) error {
	for _, r := range rows {
		if err == nil {
			err = p.add(strconv.FormatInt(r.Seq, 10), r.Value)
		}
	}
	return p.end(len(rows), err)
}

// addAll adds rows of a kind that is read whole; the cursor counts them, for
// the case that they pass a page's bytes.
func addAll[T any](p *pager, rows []T, err error) error {
	done := 0
	if err == nil && p.after != "" {
		if done, err = strconv.Atoi(p.after); err != nil || done < 0 {
			return record.Errorf(record.InvalidArgument, "cursor", "the cursor is not one of a page")
		}
	}
	for i, r := range rows {
		if err == nil && i >= done {
			p.full = p.full || len(p.page.Items) == p.limit
			err = p.add(strconv.Itoa(i+1), r)
		}
	}
	if err == nil && p.full {
		p.page.Next = p.last
	}
	return err
}

// visibleFact returns one fact, current or not; one that the scope hides is not
// there.
func (v *View) visibleFact(id string, scope Scope) (record.Fact, error) {
	f, err := getFact(v, "id", id)
	if err == nil && scope.Hidden(f.domainID) {
		err = record.Errorf(record.NotFound, "id", "there is no fact with that id in this workspace")
	}
	if err != nil {
		return record.Fact{}, err
	}
	return v.factRow(f).Fact, nil
}

// hidesAny reports whether the scope hides one of the facts.
func (s Scope) hidesAny(v *View, facts []record.Fact) bool {
	for _, f := range facts {
		row, err := getFact(v, "id", f.ID)
		if err != nil || s.Hidden(row.domainID) {
			return true
		}
	}
	return false
}
