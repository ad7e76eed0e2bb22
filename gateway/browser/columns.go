package browser

// column is a heading of the facts' table.
type column struct {
	Label, Sort string
	// Link sorts by the column; empty while a search orders by match.
	Link string
}

func columnOf(q factQuery, name, label string) column {
	c := column{Label: label, Sort: q.Sort(name)}
	if q.Words == "" {
		c.Link = q.SortedBy(name)
	}
	return c
}
