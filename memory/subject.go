package memory

import (
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

func checkSubject(subject string) error {
	if err := record.CheckName("subject", subject); err != nil {
		return err
	}
	if text.Blank(subject) {
		return record.Errorf(record.InvalidArgument, "subject", "name the subject whose facts are wanted")
	}
	return nil
}

// subjectMatch is the index query for the facts that may mention the phrase: a
// superset of those that do. It is empty when none of the phrase's words is one
// that the index can be asked for.
func subjectMatch(p text.Phrase) string {
	var all []string
	for _, word := range p.Words() {
		for _, t := range text.Terms(word) {
			all = append(all, `"`+t.Text+`"`)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "{topic content} : (" + strings.Join(all, " AND ") + ")"
}

// FactsBySubject lists the facts in scope that are about a subject, oldest
// first, after the cursor row: those filed under it as their topic, and those
// whose topic or content names it, word for word. It reads the record: nothing
// is ranked, guessed or left out. all includes superseded, archived and expired
// ones, marked.
func (v *View) FactsBySubject(scope Scope, subject string, all bool, after int64, limit int) ([]Row[record.Fact], error) {
	phrase := text.NewPhrase(subject)
	topic := text.Key(subject)
	match := subjectMatch(phrase)
	from := "FROM facts f JOIN domains d ON d.id = f.domain_id WHERE f.seq > ?1 AND ?5 = '' "
	if match != "" {
		from = "FROM fact_index x JOIN facts f ON f.seq = x.rowid JOIN domains d ON d.id = f.domain_id WHERE x.rowid > ?1 AND fact_index MATCH ?5 "
	}
	rows, err := v.query("SELECT "+factColumns+" "+from+`AND (?2 = 0 OR f.domain_id = ?2)
		AND (?3 OR `+current+` AND (f.valid_until = 0 OR f.valid_until > ?4)) ORDER BY f.seq`, after, scope.Domain, all, v.now.Micros(), match)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := []Row[record.Fact]{}
	for len(out) < limit && rows.Next() {
		f, err := scanFact(rows)
		if err != nil {
			return nil, err
		}
		if scope.Hidden(f.domainID) || f.topicKey != topic && !phrase.In(f.Topic) && !phrase.In(f.Content) {
			continue
		}
		out = append(out, Row[record.Fact]{f.seq, v.factRow(f).Fact})
	}
	return out, rows.Err()
}
