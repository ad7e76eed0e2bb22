package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

func folder(data, workspace string) string { return filepath.Join(data, "workspaces", workspace) }

// open opens the workspace file in a folder that no worker serves.
func open(dir string) (*sql.DB, error) {
	q := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(20000)"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.Join(dir, memory.FileName), RawQuery: q.Encode()}).String())
}

// rows asks a file; each row is its values.
func rows(ctx context.Context, db *sql.DB, query string, args ...any) ([][]any, error) {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]any
	for found.Next() {
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := found.Scan(dest...); err != nil {
			return nil, err
		}
		out = append(out, values)
	}
	return out, found.Err()
}

// texts asks a file for one column of text.
func texts(ctx context.Context, db *sql.DB, query string, args ...any) ([]string, error) {
	found, err := rows(ctx, db, query, args...)
	out := make([]string, len(found))
	for i, row := range found {
		out[i] = fmt.Sprint(row[0])
	}
	return out, err
}

// inspect checks the file of one workspace as a kill left it. It works on a
// copy, so that the worker itself recovers the original.
func (r *run) inspect(ctx context.Context, workspace int) (err error) {
	from := folder(r.data, r.plan.facts[workspace].of)
	to, err := os.MkdirTemp("", "polyphony-chaos-copy-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(filepath.Join(from, memory.FileName+suffix))
		switch {
		case errors.Is(err, fs.ErrNotExist) && suffix == "":
			// Killed before the workspace was made.
			return nil
		case errors.Is(err, fs.ErrNotExist):
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, memory.FileName+suffix), raw, 0o600)
		}
		if err != nil {
			return err
		}
	}
	db, err := open(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	made, err := texts(ctx, db, "SELECT name FROM sqlite_schema WHERE name = 'operations'")
	if err != nil || len(made) == 0 {
		// Killed before the schema was committed: an empty file.
		return err
	}
	_, problems, err := soundness(ctx, db)
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%s: %s", r.plan.facts[workspace].of, strings.Join(problems, "; "))
	}
	return err
}

// soundness checks a file in every way that it can be checked by itself, and
// returns how many checks there were and what they found.
func soundness(ctx context.Context, db *sql.DB) (checks int, problems []string, err error) {
	report := func(what, query string) {
		checks++
		found, e := texts(ctx, db, query)
		err = errors.Join(err, e)
		if len(found) > 0 {
			problems = append(problems, fmt.Sprintf("%s: %d, the first %s", what, len(found), found[0]))
		}
	}
	report("integrity_check", "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
	report("foreign_key_check", `SELECT "table" FROM pragma_foreign_key_check`)
	for _, index := range []string{"fact_index", "episode_index"} {
		checks++
		if _, e := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s(%s) VALUES ('integrity-check')", index, index)); e != nil {
			problems = append(problems, fmt.Sprintf("integrity-check of %s: %v", index, e))
		}
	}
	// Anti-joins both ways, and numbers that are kept beside what they count.
	report("facts that are not indexed", "SELECT seq FROM facts WHERE seq NOT IN (SELECT id FROM fact_index_docsize) ORDER BY seq")
	report("index rows without a fact", "SELECT id FROM fact_index_docsize WHERE id NOT IN (SELECT seq FROM facts) ORDER BY id")
	report("episodes that are not indexed", "SELECT seq FROM episodes WHERE seq NOT IN (SELECT id FROM episode_index_docsize) ORDER BY seq")
	report("index rows without an episode", "SELECT id FROM episode_index_docsize WHERE id NOT IN (SELECT seq FROM episodes) ORDER BY id")
	report("a wrong number of indexed facts", "SELECT docs FROM index_stats WHERE docs <> (SELECT count(*) FROM facts)")
	report("facts without an event of their making", "SELECT f.seq FROM facts f WHERE NOT EXISTS (SELECT 1 FROM fact_events e WHERE e.fact = f.seq AND e.kind = 'created') ORDER BY f.seq")
	// A fact that another was merged into has the other's mentions too.
	report("mention counts without their events", `SELECT f.seq FROM facts f
		WHERE f.mention_count - 1 <> (SELECT count(*) FROM fact_events e WHERE e.fact = f.seq AND e.kind = 're-mentioned')
		+ (SELECT coalesce(sum(m.mention_count), 0) FROM facts m WHERE m.superseded_by = f.id AND m.superseded_kind = 'merged') ORDER BY f.seq`)
	report("successors that are gone", "SELECT f.seq FROM facts f WHERE f.superseded_by IS NOT NULL AND f.superseded_by NOT IN (SELECT id FROM facts) ORDER BY f.seq")
	report("edges with an end that is gone", "SELECT source FROM edges WHERE source NOT IN (SELECT seq FROM facts) OR target NOT IN (SELECT seq FROM facts) ORDER BY source")
	report("promoted items without their fact", "SELECT seq FROM session_items WHERE state = 'promoted' AND fact_id NOT IN (SELECT id FROM facts) ORDER BY seq")
	report("contents that no episode has", "SELECT ref FROM episode_contents WHERE ref NOT IN (SELECT content_ref FROM episodes) ORDER BY ref")
	report("done steps before what they come after", `SELECT o.seq FROM obligations o JOIN obligation_after a ON a.obligation = o.seq
		LEFT JOIN obligations b ON b.task_id = a.task_id AND b.key = a.key WHERE o.state = 'done' AND b.state IS NOT 'done' ORDER BY o.seq`)
	return checks, problems, err
}

// findings are what the comparison of a file with the acknowledged answers
// came to.
type findings struct {
	acknowledged, effects int
	// lost are acknowledged effects that the file does not hold, doubled effects
	// in it that no call made.
	lost, doubled []string
	checks        int
	problems      []string
	health        []record.Health
}

// differ compares two sets of names.
func (f *findings) differ(what string, want map[string]bool, have []string) {
	found := map[string]bool{}
	for _, id := range have {
		if found[id] = true; !want[id] {
			f.doubled = append(f.doubled, what+" "+id)
		}
	}
	for id := range want {
		if !found[id] {
			f.lost = append(f.lost, what+" "+id)
		}
	}
}

// count compares a number that can only grow.
func (f *findings) count(what string, want, have int) {
	for range want - have {
		f.lost = append(f.lost, what)
	}
	for range have - want {
		f.doubled = append(f.doubled, what)
	}
}

// audit compares the files of a finished run with what was acknowledged. The
// worker must have stopped.
func (r *run) audit(ctx context.Context) (*findings, error) {
	f := &findings{acknowledged: len(r.log)}
	for i, l := range r.plan.facts {
		err := func() (err error) {
			db, err := open(folder(r.data, l.of))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			checks, problems, err := soundness(ctx, db)
			f.checks += checks
			for _, p := range problems {
				f.problems = append(f.problems, l.of+": "+p)
			}
			own := r.plan.own[i*agentsPerWorkspace : (i+1)*agentsPerWorkspace]
			return errors.Join(err, f.ofFacts(ctx, db, l), f.ofAgents(ctx, db, own), f.ofLedger(ctx, db, l.of, r.log))
		}()
		if err != nil {
			return f, fmt.Errorf("%s: %w", l.of, err)
		}
		h, err := deepHealth(ctx, r.data, l.of)
		if err != nil {
			return f, err
		}
		f.health = append(f.health, h)
		f.checks++
		for _, p := range h.Problems {
			f.problems = append(f.problems, fmt.Sprintf("%s: health: %s", l.of, p))
		}
	}
	for _, l := range r.plan.own {
		if l.misread != "" {
			f.lost = append(f.lost, l.misread)
		}
	}
	return f, nil
}

// deepHealth is what the store itself says of a file.
func deepHealth(ctx context.Context, data, workspace string) (h record.Health, err error) {
	s, err := memory.Open(ctx, folder(data, workspace), workspace, memory.Options{})
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.View(ctx, func(v *memory.View) (err error) {
		h, err = v.Health(true)
		return err
	})
	return h, err
}

func (f *findings) ofFacts(ctx context.Context, db *sql.DB, l *factLane) error {
	facts, err := texts(ctx, db, "SELECT id FROM facts WHERE id NOT IN (SELECT fact_id FROM session_items WHERE state = 'promoted') ORDER BY seq")
	items, err2 := texts(ctx, db, "SELECT id FROM session_items ORDER BY seq")
	promoted, err3 := texts(ctx, db, "SELECT fact_id FROM session_items WHERE state = 'promoted' ORDER BY seq")
	mentions, err4 := texts(ctx, db, "SELECT fact FROM fact_events WHERE kind = 're-mentioned' ORDER BY seq")
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	want := map[string]bool{}
	for id := range l.held.facts {
		want[id] = !slices.Contains(promoted, id)
		if !want[id] {
			delete(want, id)
		}
	}
	f.differ("fact", want, facts)
	f.differ("item", l.held.items, items)
	f.count("mention", l.held.mentions, len(mentions))
	return nil
}

func (f *findings) ofAgents(ctx context.Context, db *sql.DB, agents []*agentLane) error {
	all := newHeld()
	steps := map[record.StepRef]stepState{}
	for _, l := range agents {
		for _, set := range []struct{ to, from map[string]bool }{
			{all.observations, l.held.observations}, {all.policies, l.held.policies}, {all.episodes, l.held.episodes}, {all.obligations, l.held.obligations},
		} {
			for id := range set.from {
				set.to[id] = true
			}
		}
		for ref, s := range l.steps {
			steps[ref] = s
		}
		page, err := rows(ctx, db, "SELECT text, version FROM notes WHERE agent = ?", l.agent)
		if err != nil {
			return err
		}
		switch {
		case l.version == 0 && len(page) == 0:
		case len(page) != 1:
			f.lost = append(f.lost, "the page of "+l.name())
		default:
			f.count("version of the page of "+l.name(), int(l.version), int(page[0][1].(int64)))
			if page[0][0] != l.notes {
				f.lost = append(f.lost, "text of the page of "+l.name())
			}
		}
	}
	for _, set := range []struct {
		what, table string
		want        map[string]bool
	}{{"observation", "observations", all.observations}, {"policy", "policies", all.policies}, {"episode", "episodes", all.episodes}, {"obligation", "obligations", all.obligations}} {
		have, err := texts(ctx, db, "SELECT id FROM "+set.table+" ORDER BY id")
		if err != nil {
			return err
		}
		f.differ(set.what, set.want, have)
	}
	have, err := rows(ctx, db, "SELECT task_id, step, state, claim, result FROM obligations ORDER BY seq")
	for _, row := range have {
		ref := record.StepRef{TaskID: row[0].(string), Step: row[1].(string)}
		state := stepState{record.ObligationState(row[2].(string)), row[3].(int64), row[4].(string)}
		if want := steps[ref]; state != want {
			f.lost = append(f.lost, fmt.Sprintf("obligation %v is %+v, and was acknowledged as %+v", ref, state, want))
		}
	}
	return err
}

// ofLedger looks for the ledger row of every acknowledged effect, which must
// hold the answer that was given, and for rows that no call made.
func (f *findings) ofLedger(ctx context.Context, db *sql.DB, workspace string, log []acknowledged) error {
	found, err := rows(ctx, db, "SELECT key, kind, result FROM operations ORDER BY key")
	if err != nil {
		return err
	}
	ledger := map[string]string{}
	for _, row := range found {
		ledger[row[0].(string)] = row[2].(string)
	}
	asked := map[string]bool{}
	for _, a := range log {
		if !strings.HasPrefix(a.lane, workspace+"/") || a.code != "" || a.call.kind == record.KindRead {
			continue
		}
		f.effects++
		if a.call.ledger == "" {
			continue
		}
		asked[a.call.ledger] = true
		result, ok := ledger[a.call.ledger]
		if !ok {
			f.lost = append(f.lost, "ledger row "+a.call.ledger)
			continue
		}
		if same, err := sameAnswer(result, a); err != nil || !same {
			f.lost = append(f.lost, fmt.Sprintf("answer of %s: the ledger says %.300s", a.call.ledger, result))
		}
	}
	for _, row := range found {
		key, kind := row[0].(string), row[1].(string)
		pages := kind == record.KindCaptureMeeting || kind == record.KindConsolidate || kind == record.KindHarmonize
		if !asked[key] && !pages {
			f.doubled = append(f.doubled, "ledger row "+key)
		}
	}
	return nil
}

// sameAnswer compares the ledger's result with the answer that was given. A
// result also names the runs that wait, for the workflow alone; and a caller
// who asked again after the engine was lost is told that the commit is made,
// without its receipt.
func sameAnswer(result string, a acknowledged) (bool, error) {
	raw, err := json.Marshal(a.answer)
	if err != nil {
		return false, err
	}
	var have, want map[string]any
	if err := errors.Join(json.Unmarshal([]byte(result), &have), json.Unmarshal(raw, &want)); err != nil {
		return false, err
	}
	delete(have, "awaited")
	if a.call.kind == record.KindObligation {
		for _, name := range []string{"outcome", "request_hash"} {
			delete(have, name)
			delete(want, name)
		}
	}
	return reflect.DeepEqual(have, want), nil
}
