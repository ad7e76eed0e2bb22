package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// defaultEpisodeRole is who spoke when nobody says: the agent itself.
const defaultEpisodeRole = "agent"

func checkEpisode(req record.AppendEpisode) error {
	if err := record.CheckID("task_id", req.TaskID); err != nil {
		return err
	}
	if req.EpisodeRole != "" {
		if err := record.CheckID("episode_role", req.EpisodeRole); err != nil {
			return err
		}
	}
	return checkContent("content", req.Content, record.MaxContentBytes)
}

// AppendEpisode keeps what was said in a task. The same words are stored once,
// however often they are said.
//
// Errors: InvalidArgument, ContentEmpty, ContentTooLarge, InvalidUTF8,
// IdempotencyKeyReused, Unavailable.
func (s *Store) AppendEpisode(ctx context.Context, req record.AppendEpisode) (record.AppendEpisodeResult, error) {
	terms := text.IndexForm(req.Content)
	return apply(ctx, s, record.KindAppendEpisode, req, func(t *tx) (res record.AppendEpisodeResult, err error) {
		if err := checkEpisode(req); err != nil {
			return res, err
		}
		role := req.EpisodeRole
		if role == "" {
			role = defaultEpisodeRole
		}
		if res.EpisodeID, err = newID(); err != nil {
			return res, err
		}
		sum := sha256.Sum256([]byte(req.Content))
		res.ContentRef = "sha256:" + hex.EncodeToString(sum[:])
		if err := t.exec("INSERT INTO episode_contents (ref, content) VALUES (?, ?) ON CONFLICT DO NOTHING", res.ContentRef, req.Content); err != nil {
			return res, err
		}
		seq, err := t.insert("INSERT INTO episodes (id, task_id, role, agent, content_ref, created_at) VALUES (?, ?, ?, ?, ?, ?)",
			res.EpisodeID, req.TaskID, role, req.Agent, res.ContentRef, t.now.Micros())
		if err != nil {
			return res, err
		}
		t.writer.index.episodes = append(t.writer.index.episodes, pendingEpisode{seq, terms, taskToken(req.TaskID)})
		return res, nil
	})
}

// taskToken is the scope token by which a task's episodes are found.
func taskToken(task string) string { return fmt.Sprintf("k%x", text.ContentKey(task)) }

const episodeColumns = "e.seq, e.id, e.task_id, e.role, e.agent, e.content_ref, c.content, e.created_at"

func (v *View) scanEpisode(r scanner) (e Row[record.Episode], err error) {
	var at int64
	w := &e.Value
	err = r.Scan(&e.Seq, &w.ID, &w.TaskID, &w.Role, &w.Agent, &w.ContentRef, &w.Content, &at)
	w.Workspace, w.CreatedAt = v.Workspace(), record.FromMicros(at)
	return e, err
}

// Episodes lists what was said in a task, or in all when it is empty, in order,
// after the cursor row.
func (v *View) Episodes(task string, after int64, limit int) ([]Row[record.Episode], error) {
	where := "e.seq > ?1 AND ?2 = ''"
	if task != "" {
		where = "e.seq > ?1 AND e.task_id = ?2"
	}
	rows, err := v.query("SELECT "+episodeColumns+" FROM episodes e JOIN episode_contents c ON c.ref = e.content_ref WHERE "+where+" ORDER BY e.seq LIMIT ?3", after, task, limit)
	return collect(rows, err, v.scanEpisode)
}

// SearchEpisodes finds what was said by its words, best match first, then
// newest; it leaves out the first skip of them. Episodes have no authority: what
// is true is asked of the facts.
func (v *View) SearchEpisodes(task, query string, skip, limit int) ([]Row[record.Episode], error) {
	terms := text.QueryTerms(query)
	if len(terms) == 0 {
		return nil, nil
	}
	names := make([]string, len(terms))
	for i, t := range terms {
		names[i] = `"` + t.Text + `"`
	}
	match := "{content} : (" + strings.Join(names, " OR ") + ")"
	if task != "" {
		match = "(" + match + `) AND ({scope} : "` + taskToken(task) + `")`
	}
	rows, err := v.query("SELECT "+episodeColumns+` FROM episode_index x JOIN episodes e ON e.seq = x.rowid JOIN episode_contents c ON c.ref = e.content_ref
		WHERE episode_index MATCH ?1 AND (?2 = '' OR e.task_id = ?2) ORDER BY bm25(episode_index, 1, 0), e.seq DESC LIMIT ?3 OFFSET ?4`, match, task, limit, skip)
	return collect(rows, err, v.scanEpisode)
}

// readEpisodes answers a page of episodes: ranked when there is a query, and
// then the cursor counts them, else in order.
func (v *View) readEpisodes(req record.ReadMemory, p *pager) error {
	if err := record.CheckText("query", req.Query, record.MaxTaskBytes); err != nil {
		return err
	}
	done := 0
	if req.Cursor != "" {
		var err error
		if done, err = strconv.Atoi(req.Cursor); err != nil || done < 0 {
			return record.Errorf(record.InvalidArgument, "cursor", "the cursor is not one of a page")
		}
	}
	if req.Query == "" {
		rows, err := v.Episodes(req.TaskID, int64(done), p.limit)
		return addRows(p, rows, err)
	}
	rows, err := v.SearchEpisodes(req.TaskID, req.Query, done, p.limit)
	for i, r := range rows {
		if err == nil {
			err = p.add(strconv.Itoa(done+i+1), r.Value)
		}
	}
	return p.end(len(rows), err)
}
