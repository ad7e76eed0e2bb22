package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Two runs of one seed differ in ids and in times, and in nothing else. The
// substance of a file is every row of it with these taken out.

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	stamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	hashes = regexp.MustCompile(`"request_hash":"[0-9a-f]*"`)
)

// names says what a row's id stands for, by a query that gives both. Facts are
// numbered in the order in which they were made, which is their lane's.
var names = []string{
	"SELECT id, 'fact ' || seq FROM facts",
	"SELECT id, 'policy ' || rule FROM policies",
	"SELECT id, 'item ' || seq FROM session_items",
	"SELECT id, 'observation ' || text FROM observations",
	"SELECT id, 'episode ' || content FROM episodes JOIN episode_contents ON ref = content_ref",
	"SELECT id, 'obligation ' || key FROM obligations",
}

// tables are the queries for the rows of every table, without times and
// without the numbers of rows that lanes make side by side. What the engine
// runs again under another name, the ledger's pages of maintenance, is left
// out: their effects are in the other tables.
var tables = []struct{ name, query string }{
	{"meta", "SELECT key FROM meta"},
	{"operation", fmt.Sprintf("SELECT key, kind, result FROM operations WHERE kind NOT IN ('%s', '%s')", record.KindConsolidate, record.KindHarmonize)},
	{"domain", "SELECT id, repo, name_key, name FROM domains"},
	{"grant", "SELECT role, domain_id, level, updated_by FROM grants"},
	{"fact", `SELECT seq, domain_id, topic, topic_key, content, content_key, confidence, memory_type, veracity, sources, superseded_by, superseded_kind,
		superseded_at > 0, valid_until, recall_count, mention_count, agent, role, version, archived_at > 0, archive_reason FROM facts`},
	{"version", "SELECT fact, version, topic, content, confidence, memory_type, veracity, valid_until, agent, role, reason FROM fact_versions"},
	{"deleted", "SELECT domain_id, hash FROM deleted_facts"},
	{"event", "SELECT seq, fact, kind, agent, role, other, veracity, confidence, reason FROM fact_events"},
	{"term", "SELECT term, df FROM terms"},
	{"index", "SELECT docs, tokens FROM index_stats"},
	{"queued", "SELECT seq FROM embedding_queue"},
	{"edge", "SELECT source, target, kind, weight FROM edges"},
	{"policy", `SELECT domain_id, rule, rule_key, required_role, superseded_by, superseded_at > 0, supersede_reason, agent, role, version FROM policies`},
	{"policy version", "SELECT p.rule, v.version, v.rule, v.required_role, v.agent, v.role, v.reason FROM policy_versions v JOIN policies p ON p.seq = v.policy"},
	{"notes", "SELECT agent, text, version FROM notes"},
	{"observation", "SELECT agent, text FROM observations"},
	{"item", "SELECT seq, session_id, agent, role, content, memory_type, veracity, importance, domain, topic, fact_id, state FROM session_items"},
	{"meeting", "SELECT meeting_id, revision, title, held_at, attendees FROM meetings"},
	{"decision", "SELECT meeting_id, content_key, topic_key, fact_id, revision, made FROM meeting_decisions"},
	{"belief", "SELECT domain_id, topic, statement, confidence, agents, version FROM beliefs"},
	{"belief of", "SELECT fact_id, (SELECT statement FROM beliefs b WHERE b.id = belief_id) FROM belief_facts"},
	{"obligation", "SELECT task_id, step, key, kind, state, opened_by, deadline, claim, claimed_by, lease_until > 0, closed_by, closed_at > 0, result, reason, awaited FROM obligations"},
	{"after", "SELECT o.task_id, o.step, a.task_id, a.key, a.step FROM obligation_after a JOIN obligations o ON o.seq = a.obligation"},
	{"content", "SELECT ref, content FROM episode_contents"},
	{"episode", "SELECT task_id, role, agent, content_ref FROM episodes"},
	{"word index", "SELECT count(*) FROM fact_index_docsize"},
	{"episode index", "SELECT count(*) FROM episode_index_docsize"},
}

// conflictRows orders a pair by what it says, since the file orders it by id.
const conflictRows = "SELECT kind, fact_a, fact_b, winner, loser, open, resolution, rule, reason, resolved_by FROM conflicts"

// substance returns the rows of a file that no worker serves, in order.
func substance(ctx context.Context, data, workspace string) (out []string, err error) {
	db, err := open(folder(data, workspace))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := complete(ctx, db); err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, query := range names {
		found, err := rows(ctx, db, query)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			known[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
		}
	}
	bare := func(value any) string {
		if b, ok := value.([]byte); ok {
			return fmt.Sprintf("x'%x'", b)
		}
		s := uuids.ReplaceAllStringFunc(fmt.Sprint(value), func(id string) string {
			if name, ok := known[id]; ok {
				return "<" + name + ">"
			}
			return "<id>"
		})
		return hashes.ReplaceAllString(stamps.ReplaceAllString(s, "<time>"), `"request_hash":""`)
	}
	line := func(name string, row []any) string {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = bare(v)
		}
		return name + ": " + strings.Join(values, "|")
	}
	for _, t := range tables {
		found, err := rows(ctx, db, t.query)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			out = append(out, line(t.name, row))
		}
	}
	found, err := rows(ctx, db, conflictRows)
	for _, row := range found {
		if bare(row[1]) > bare(row[2]) {
			row[1], row[2] = row[2], row[1]
		}
		out = append(out, line("conflict", row))
	}
	slices.Sort(out)
	return out, err
}

// complete refuses a file with a table that the substance would leave out.
func complete(ctx context.Context, db *sql.DB) error {
	found, err := texts(ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT LIKE 'fact_index%' AND name NOT LIKE 'episode_index%' AND name NOT IN ('conflicts', 'embeddings', 'embedding_bits') ORDER BY name`)
	for _, table := range found {
		if !slices.ContainsFunc(tables, func(t struct{ name, query string }) bool {
			return regexp.MustCompile(`(FROM|JOIN) ` + table + `\b`).MatchString(t.query)
		}) {
			err = errors.Join(err, fmt.Errorf("table %s is not compared", table))
		}
	}
	return err
}
