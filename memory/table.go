package memory

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// tableRows and maxTableRows bound the facts of one page of a table,
	// tableRunes what it shows of each: a full page stays under what travels.
	tableRows, maxTableRows = 50, 100
	tableRunes              = 2000
)

// tableOrders are the columns that a table can be sorted by.
var tableOrders = map[record.FactOrder]string{
	record.ByUpdated: "f.updated_at", record.ByCreated: "f.created_at", record.ByDomain: "d.repo || '/' || d.name_key",
	record.ByTopic: "f.topic_key", record.ByConfidence: "f.confidence", record.ByRecalls: "f.recall_count", record.ByMentions: "f.mention_count",
}

// FactTable returns one page of the facts in scope, chosen and sorted for
// people: unlike a list it can go to any page, and it counts.
//
// Errors: InvalidArgument.
func (v *View) FactTable(scope Scope, req record.ReadMemory) (record.FactTable, error) {
	out := record.FactTable{Facts: []record.Fact{}}
	q := req.Table
	if q.Order == "" {
		q.Order = record.ByUpdated
	}
	order, known := tableOrders[q.Order]
	if !known {
		return out, record.Errorf(record.InvalidArgument, "order", "facts are not sorted by that")
	}
	if q.Offset < 0 {
		return out, record.Errorf(record.InvalidArgument, "offset", "an offset is 0 or more")
	}
	limit := req.Limit
	if limit == 0 {
		limit = tableRows
	}
	if limit > maxTableRows {
		return out, record.Errorf(record.InvalidArgument, "limit", "a page of a table has 1 to %d facts", maxTableRows)
	}
	if q.MemoryType != "" {
		if _, err := record.ParseMemoryType(q.MemoryType); err != nil {
			return out, err
		}
	}
	if q.Veracity != "" {
		if _, err := record.ParseVeracity(q.Veracity); err != nil {
			return out, err
		}
	}
	if scope.Unknown {
		return out, nil
	}
	denied, err := json.Marshal(slices.AppendSeq([]int64{}, maps.Keys(scope.denied)))
	if err != nil {
		return out, err
	}
	const kept = fromFacts + `WHERE (?1 = 0 OR f.domain_id = ?1) AND (?2 OR ` + current + ` AND (f.valid_until = 0 OR f.valid_until > ?3))
		AND f.domain_id NOT IN (SELECT value FROM json_each(?4)) AND (?5 = '' OR f.memory_type = ?5) AND (?6 = '' OR f.veracity = ?6)`
	args := []any{scope.Domain, req.All, v.now.Micros(), string(denied), q.MemoryType, q.Veracity}
	if err := v.row("SELECT count(*)"+kept, args...).Scan(&out.Total); err != nil {
		return out, err
	}
	way := " ASC"
	if q.Descending {
		way = " DESC"
	}
	rows, err := v.query("SELECT "+factColumns+kept+" ORDER BY "+order+way+", f.seq"+way+" LIMIT ?7 OFFSET ?8", append(args, limit, q.Offset)...)
	found, err := collect(rows, err, scanFact)
	for _, f := range found {
		if r := []rune(f.Content); len(r) > tableRunes {
			f.Content = string(r[:tableRunes]) + "…"
		}
		out.Facts = append(out.Facts, v.factRow(f).Fact)
	}
	return out, err
}
