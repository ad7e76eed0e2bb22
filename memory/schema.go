package memory

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// applicationID marks a file as polyphony's ("plyf"), so that a foreign
// database is refused.
const applicationID = 0x706c7966

// migrations is append-only: migration i takes a file from user_version i to
// i+1. A released one is never edited.
var migrations = []string{migration1}

// migration1 is the first schema. Truths that must hold are constraints here,
// not code: one active fact per (domain, topic key, content key), one notes row
// per agent, one conflict row per unordered pair and kind, edges unique on
// their triple, one obligation per task and key, deletes that cascade.
//
// Times are UTC microseconds, 0 or NULL for none. facts.seq is the row id that
// the lexical index shares, episodes.seq that of the index of episodes, which is
// ranked by FTS5 itself and so keeps positions.
const migration1 = `
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
  key          TEXT PRIMARY KEY,
  kind         TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  result       TEXT NOT NULL,
  committed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE domains (
  id         INTEGER PRIMARY KEY,
  repo       TEXT NOT NULL DEFAULT '',
  name_key   TEXT NOT NULL,
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (repo, name_key)
) STRICT;

CREATE TABLE grants (
  role       TEXT NOT NULL,
  domain_id  INTEGER NOT NULL REFERENCES domains(id) ON DELETE CASCADE,
  level      TEXT NOT NULL CHECK (level IN ('none','read','write')),
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (domain_id, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
  seq               INTEGER PRIMARY KEY,
  id                TEXT NOT NULL UNIQUE,
  domain_id         INTEGER NOT NULL REFERENCES domains(id),
  topic             TEXT NOT NULL,
  topic_key         TEXT NOT NULL,
  content           TEXT NOT NULL,
  content_key       BLOB NOT NULL,
  confidence        REAL NOT NULL CHECK (confidence >= 0 AND confidence <= 1),
  memory_type       TEXT NOT NULL,
  veracity          TEXT NOT NULL,
  sources           TEXT NOT NULL DEFAULT '[]',
  superseded_by     TEXT REFERENCES facts(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
  superseded_kind   TEXT NOT NULL DEFAULT '',
  superseded_at     INTEGER NOT NULL DEFAULT 0,
  valid_until       INTEGER NOT NULL DEFAULT 0,
  recall_count      INTEGER NOT NULL DEFAULT 0,
  last_recalled_at  INTEGER NOT NULL DEFAULT 0,
  mention_count     INTEGER NOT NULL DEFAULT 1,
  last_mentioned_at INTEGER NOT NULL DEFAULT 0,
  agent             TEXT NOT NULL DEFAULT '',
  role              TEXT NOT NULL DEFAULT '',
  version           INTEGER NOT NULL DEFAULT 1,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL,
  archived_at       INTEGER NOT NULL DEFAULT 0,
  archive_reason    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX facts_active ON facts(domain_id, topic_key, content_key)
  WHERE superseded_at = 0 AND archived_at = 0;
CREATE INDEX facts_topic ON facts(domain_id, topic_key, seq)
  WHERE superseded_at = 0 AND archived_at = 0;
CREATE INDEX facts_retired ON facts(domain_id, topic_key, content_key)
  WHERE superseded_at > 0 OR archived_at > 0;
CREATE INDEX facts_identity ON facts(content_key);
CREATE INDEX facts_successor ON facts(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_expiry ON facts(valid_until) WHERE valid_until <> 0;

CREATE TABLE fact_events (
  seq        INTEGER PRIMARY KEY,
  fact       INTEGER NOT NULL REFERENCES facts(seq) ON DELETE CASCADE,
  at         INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  agent      TEXT NOT NULL DEFAULT '',
  role       TEXT NOT NULL DEFAULT '',
  other      TEXT NOT NULL DEFAULT '',
  veracity   TEXT NOT NULL DEFAULT '',
  confidence REAL NOT NULL,
  reason     TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX fact_events_fact ON fact_events(fact);

CREATE VIRTUAL TABLE fact_index USING fts5(
  topic, content, scope,
  content='', contentless_delete=1, detail=column,
  tokenize="ascii tokenchars '{{tokenchars}}'"
);
CREATE TABLE terms (
  term TEXT PRIMARY KEY,
  df   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE index_stats (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  docs   INTEGER NOT NULL,
  tokens INTEGER NOT NULL
) STRICT;
INSERT INTO index_stats VALUES (1, 0, 0);

CREATE TABLE embeddings (
  seq       INTEGER PRIMARY KEY REFERENCES facts(seq) ON DELETE CASCADE,
  model     TEXT NOT NULL,
  text_hash BLOB NOT NULL,
  vector    BLOB NOT NULL
) STRICT;
CREATE TABLE embedding_bits (
  seq       INTEGER PRIMARY KEY REFERENCES embeddings(seq) ON DELETE CASCADE,
  model     TEXT NOT NULL,
  domain_id INTEGER NOT NULL,
  bits      BLOB NOT NULL
) STRICT;
INSERT INTO meta VALUES ('vector_epoch', 0);
CREATE TRIGGER embedding_bits_inserted AFTER INSERT ON embedding_bits
  BEGIN UPDATE meta SET value = value + 1 WHERE key = 'vector_epoch'; END;
CREATE TRIGGER embedding_bits_updated AFTER UPDATE ON embedding_bits
  BEGIN UPDATE meta SET value = value + 1 WHERE key = 'vector_epoch'; END;
CREATE TRIGGER embedding_bits_deleted AFTER DELETE ON embedding_bits
  BEGIN UPDATE meta SET value = value + 1 WHERE key = 'vector_epoch'; END;
CREATE TABLE embedding_queue (
  seq INTEGER PRIMARY KEY REFERENCES facts(seq) ON DELETE CASCADE
) STRICT;

CREATE TABLE conflicts (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL,
  fact_a      TEXT NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  fact_b      TEXT NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  winner      TEXT NOT NULL DEFAULT '',
  loser       TEXT NOT NULL DEFAULT '',
  open        INTEGER NOT NULL,
  resolution  TEXT NOT NULL DEFAULT '',
  rule        TEXT NOT NULL DEFAULT '',
  reason      TEXT NOT NULL DEFAULT '',
  resolved_by TEXT NOT NULL DEFAULT '',
  created_at  INTEGER NOT NULL,
  closed_at   INTEGER NOT NULL DEFAULT 0,
  CHECK (fact_a < fact_b),
  UNIQUE (fact_a, fact_b, kind)
) STRICT;
CREATE INDEX conflicts_b ON conflicts(fact_b);
CREATE INDEX conflicts_open ON conflicts(created_at, id) WHERE open = 1;

CREATE TABLE edges (
  source     INTEGER NOT NULL REFERENCES facts(seq) ON DELETE CASCADE,
  target     INTEGER NOT NULL REFERENCES facts(seq) ON DELETE CASCADE,
  kind       TEXT NOT NULL CHECK (kind IN ('related_to','references','contextual')),
  weight     REAL NOT NULL CHECK (weight >= 0 AND weight <= 1),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (source, target, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_target ON edges(target);

CREATE TABLE policies (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  domain_id        INTEGER NOT NULL REFERENCES domains(id),
  rule             TEXT NOT NULL,
  rule_key         BLOB NOT NULL,
  required_role    TEXT NOT NULL DEFAULT '',
  superseded_by    TEXT REFERENCES policies(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
  superseded_at    INTEGER NOT NULL DEFAULT 0,
  supersede_reason TEXT NOT NULL DEFAULT '',
  agent            TEXT NOT NULL DEFAULT '',
  role             TEXT NOT NULL DEFAULT '',
  version          INTEGER NOT NULL DEFAULT 1,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX policies_active ON policies(domain_id, rule_key) WHERE superseded_at = 0;

CREATE TABLE notes (
  agent      TEXT PRIMARY KEY,
  text       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE observations (
  seq        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  agent      TEXT NOT NULL,
  text       TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX observations_agent ON observations(agent, seq);

CREATE TABLE session_items (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  session_id  TEXT NOT NULL,
  agent       TEXT NOT NULL,
  role        TEXT NOT NULL DEFAULT '',
  content     TEXT NOT NULL,
  memory_type TEXT NOT NULL,
  veracity    TEXT NOT NULL,
  importance  REAL NOT NULL CHECK (importance >= 0 AND importance <= 1),
  domain      TEXT NOT NULL DEFAULT '',
  topic       TEXT NOT NULL DEFAULT '',
  expires_at  INTEGER NOT NULL DEFAULT 0,
  fact_id     TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL DEFAULT 'kept' CHECK (state IN ('kept','promoted','expired')),
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX session_items_kept ON session_items(seq) WHERE state = 'kept';

CREATE TABLE meetings (
  meeting_id TEXT PRIMARY KEY,
  revision   INTEGER NOT NULL,
  title      TEXT NOT NULL,
  held_at    INTEGER NOT NULL DEFAULT 0,
  attendees  TEXT NOT NULL DEFAULT '[]',
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE meeting_decisions (
  meeting_id  TEXT NOT NULL REFERENCES meetings(meeting_id) ON DELETE CASCADE,
  content_key BLOB NOT NULL,
  topic_key   TEXT NOT NULL,
  fact_id     TEXT NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  revision    INTEGER NOT NULL,
  made        INTEGER NOT NULL,
  PRIMARY KEY (meeting_id, topic_key, content_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX meeting_decisions_fact ON meeting_decisions(fact_id);

CREATE TABLE beliefs (
  id         TEXT PRIMARY KEY,
  domain_id  INTEGER NOT NULL REFERENCES domains(id),
  topic      TEXT NOT NULL,
  statement  TEXT NOT NULL,
  confidence REAL NOT NULL,
  agents     TEXT NOT NULL,
  version    INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE belief_facts (
  fact_id   TEXT PRIMARY KEY REFERENCES facts(id) ON DELETE CASCADE,
  belief_id TEXT NOT NULL REFERENCES beliefs(id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX belief_facts_belief ON belief_facts(belief_id);

CREATE TABLE obligations (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  task_id     TEXT NOT NULL,
  step        TEXT NOT NULL,
  key         TEXT NOT NULL,
  kind        TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open','claimed','done','failed','cancelled','expired')),
  opened_by   TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  deadline    INTEGER NOT NULL DEFAULT 0,
  claim       INTEGER NOT NULL DEFAULT 0,
  claimed_by  TEXT NOT NULL DEFAULT '',
  claimed_at  INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER NOT NULL DEFAULT 0,
  closed_by   TEXT NOT NULL DEFAULT '',
  closed_at   INTEGER NOT NULL DEFAULT 0,
  result      TEXT NOT NULL DEFAULT '',
  reason      TEXT NOT NULL DEFAULT '',
  commit_hash TEXT NOT NULL DEFAULT '',
  awaited     INTEGER NOT NULL DEFAULT 0,
  UNIQUE (task_id, key),
  CHECK ((state IN ('open','claimed')) = (closed_at = 0)),
  CHECK (state <> 'claimed' OR claim > 0 AND lease_until > 0),
  CHECK (state = 'done' OR result = '')
) STRICT;
CREATE INDEX obligations_task ON obligations(task_id, seq);
CREATE INDEX obligations_open ON obligations(seq) WHERE closed_at = 0;
CREATE TABLE obligation_after (
  obligation INTEGER NOT NULL REFERENCES obligations(seq) ON DELETE CASCADE,
  task_id    TEXT NOT NULL,
  key        TEXT NOT NULL,
  step       TEXT NOT NULL,
  PRIMARY KEY (obligation, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX obligation_after_step ON obligation_after(task_id, key, obligation);

CREATE TABLE episode_contents (
  ref     TEXT NOT NULL UNIQUE,
  content TEXT NOT NULL
) STRICT;
CREATE TABLE episodes (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  task_id     TEXT NOT NULL,
  role        TEXT NOT NULL,
  agent       TEXT NOT NULL DEFAULT '',
  content_ref TEXT NOT NULL REFERENCES episode_contents(ref),
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX episodes_task ON episodes(task_id, seq);
CREATE VIRTUAL TABLE episode_index USING fts5(
  content, scope,
  content='', contentless_delete=1,
  tokenize="ascii tokenchars '{{tokenchars}}'"
);
`

// migrate brings the file to the newest schema, in one transaction under
// SQLite's write lock, and refuses a file that is not ours or is newer.
func migrate(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return storeError(err)
	}
	err := migrateLocked(ctx, conn)
	if err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return storeError(err)
	}
	return nil
}

func migrateLocked(ctx context.Context, conn *sql.Conn) error {
	version, err := checkIdentity(ctx, conn)
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		if _, err := conn.ExecContext(ctx, replaceTokenChars(migrations[version])); err != nil {
			return storeError(err)
		}
	}
	for _, pragma := range []string{
		pragmaInt("application_id", applicationID), pragmaInt("user_version", len(migrations)),
	} {
		if _, err := conn.ExecContext(ctx, pragma); err != nil {
			return storeError(err)
		}
	}
	return nil
}

// checkIdentity returns the file's schema version: 0 for an empty file.
func checkIdentity(ctx context.Context, conn *sql.Conn) (int, error) {
	var app, version, objects int
	err := conn.QueryRowContext(ctx, "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)").Scan(&app, &version, &objects)
	if err != nil {
		return 0, storeError(err)
	}
	if app != applicationID && (app != 0 || version != 0 || objects != 0) {
		return 0, record.Errorf(record.StoreCorrupt, "", "the file is a database of another program")
	}
	if version > len(migrations) {
		return 0, record.Errorf(record.StoreNewer, "", "the file has schema %d and this program knows up to %d; use a newer polyphony", version, len(migrations))
	}
	return version, nil
}

func replaceTokenChars(ddl string) string {
	return strings.ReplaceAll(ddl, "{{tokenchars}}", text.TokenChars)
}

func pragmaInt(name string, v int) string { return fmt.Sprintf("PRAGMA %s = %d", name, v) }
