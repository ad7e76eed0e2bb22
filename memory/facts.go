package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/conflict"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

const (
	// mentionGain is how much of the missing confidence a re-mention of full
	// weight adds (behaviour.md 2).
	mentionGain = 0.3
	// strengthTolerance makes equal strengths a tie in spite of rounding.
	strengthTolerance = 1e-9
	// topicWindow bounds the facts of one topic that a proposal is compared
	// with: all of a topic up to it, beyond it the newest half of it and the
	// ones that share its rarest terms.
	topicWindow = 64
)

// fact is a row of the facts table.
type fact struct {
	record.Fact
	seq        int64
	domainID   int64
	topicKey   string
	contentKey []byte
	parsed     *conflict.Parsed
}

const factColumns = `f.seq, f.id, f.domain_id, d.repo, d.name, f.topic, f.topic_key, f.content, f.content_key, f.confidence,
	f.memory_type, f.veracity, f.sources, coalesce(f.superseded_by, ''), f.superseded_kind, f.superseded_at, f.valid_until,
	f.recall_count, f.last_recalled_at, f.mention_count, f.last_mentioned_at, f.agent, f.role, f.version, f.created_at,
	f.updated_at, f.archived_at, f.archive_reason`

const fromFacts = ` FROM facts f JOIN domains d ON d.id = f.domain_id `

// current is the condition of an active fact, less its expiry, which depends
// on the time of asking.
const current = `f.superseded_at = 0 AND f.archived_at = 0`

// scanFact reads a row of factColumns. A row that is there but unreadable comes
// with StoreCorrupt and what could be read.
func scanFact(r scanner) (*fact, error) {
	var f fact
	var repo, name, sources string
	var superseded, valid, recalled, mentioned, created, updated, archived int64
	err := r.Scan(&f.seq, &f.ID, &f.domainID, &repo, &name, &f.Topic, &f.topicKey, &f.Content, &f.contentKey, &f.Confidence,
		&f.MemoryType, &f.Veracity, &sources, &f.SupersededBy, &f.SupersededKind, &superseded, &valid,
		&f.RecallCount, &recalled, &f.MentionCount, &mentioned, &f.AuthoredByAgent, &f.AuthoredByRole, &f.Version, &created,
		&updated, &archived, &f.ArchiveReason)
	if err != nil {
		return nil, err
	}
	f.Domain = fullName(repo, name)
	f.SupersededAt, f.ValidUntil = record.FromMicros(superseded), record.FromMicros(valid)
	f.LastRecalledAt, f.LastMentionedAt = record.FromMicros(recalled), record.FromMicros(mentioned)
	f.CreatedAt, f.UpdatedAt, f.ArchivedAt = record.FromMicros(created), record.FromMicros(updated), record.FromMicros(archived)
	if err := json.Unmarshal([]byte(sources), &f.SourceObservationIDs); err != nil {
		return &f, record.Wrap(record.StoreCorrupt, err, "fact %s has unreadable sources", f.ID)
	}
	return &f, nil
}

// statement returns the fact parsed for comparison, once.
func (f *fact) statement() *conflict.Parsed {
	if f.parsed == nil {
		f.parsed = conflict.Parse(conflict.Statement{Content: f.Content, Topic: f.Topic, Domain: f.Domain})
	}
	return f.parsed
}

// strength is what decides between two statements that cannot both be true.
func strength(confidence float64, v record.Veracity) float64 { return confidence * v.Weight() }

// beats reports whether the newer statement of strength n keeps its ground
// against the older one of strength o: a tie goes to the newer.
func beats(n, o float64) bool { return n >= o-strengthTolerance }

// getFact returns the fact or NotFound for field.
func getFact(q queryer, field, id string) (*fact, error) {
	f, err := scanFact(q.row("SELECT "+factColumns+fromFacts+"WHERE f.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, record.Errorf(record.NotFound, field, "there is no fact with that id in this workspace")
	}
	return f, err
}

// proposal is a checked request to add a fact, its ids and keys worked out.
type proposal struct {
	domain     domainName
	domainID   int64
	topic      string
	topicKey   string
	content    string
	contentKey []byte
	confidence float64
	memoryType record.MemoryType
	veracity   record.Veracity
	sources    []string
	validUntil record.Time
	// at is when the statement was made: now, or, when it is dated, the time that
	// the caller gave.
	at          record.Time
	dated       bool
	agent, role string
	// parsed and terms are the content's analysis, made by the caller's
	// goroutine so that the writer, which all share, need not.
	parsed *conflict.Parsed
	terms  []text.Term
	// vector is the content's, when the rules alone cannot settle it.
	vector []float32
	// echo is true when the text came out of this system's own preamble.
	echo bool
	// siblings are facts that this proposal leaves alone.
	siblings map[string]bool
}

// preambleLine is a shortlist line of our own preamble (dispatch writes it).
var preambleLine = regexp.MustCompile(`(?s)^- \[([^\]]*/[^\]]*)\] (.*) \(confidence [01](?:\.\d+)?(?:, disputed)?\)$`)

// unquote takes a statement out of a line of our own preamble; place is the
// domain/topic it was shown under. Any other text is the statement itself.
func unquote(s string) (place, statement string, echo bool) {
	if m := preambleLine.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		return m[1], m[2], true
	}
	return "", s, false
}

func checkProposal(req record.ProposeFact) (*proposal, error) {
	d, err := parseDomain(req.Domain, req.Repo)
	if err != nil {
		return nil, err
	}
	if err := checkTopic(req.Topic); err != nil {
		return nil, err
	}
	if err := checkContent("content", req.Content, record.MaxContentBytes); err != nil {
		return nil, err
	}
	p := &proposal{domain: d, topic: strings.TrimSpace(req.Topic), topicKey: text.Key(req.Topic), agent: req.Agent, role: req.Role, at: req.OccurredAt}
	_, p.content, p.echo = unquote(req.Content)
	key := text.ContentKey(p.content)
	p.contentKey = key[:]
	if p.veracity, err = record.ParseVeracity(req.Veracity); err != nil {
		return nil, err
	}
	if err := record.CheckShare("confidence", req.Confidence); err != nil {
		return nil, err
	}
	p.confidence = p.veracity.Weight()
	if req.Confidence != nil {
		p.confidence = math.Min(*req.Confidence, p.confidence)
	}
	if p.memoryType, err = record.ParseMemoryType(req.MemoryType); err != nil {
		return nil, err
	}
	if p.memoryType == "" {
		p.memoryType = classifyType(p.content)
	}
	if len(req.SourceObservationIDs) > record.MaxSources {
		return nil, record.Errorf(record.InvalidArgument, "source_observation_ids", "at most %d sources", record.MaxSources)
	}
	for _, s := range req.SourceObservationIDs {
		if err := record.CheckName("source_observation_ids", s); err != nil {
			return nil, err
		}
	}
	p.sources = req.SourceObservationIDs
	p.validUntil = req.ValidUntil
	p.parsed = conflict.Parse(conflict.Statement{Content: p.content, Topic: p.topic, Domain: p.domain.String()})
	p.terms = text.QueryTerms(p.content)
	return p, nil
}

func checkTopic(topic string) error {
	if err := record.CheckName("topic", topic); err != nil {
		return err
	}
	if text.Blank(topic) {
		return record.Errorf(record.InvalidArgument, "topic", "a fact needs a topic")
	}
	return nil
}

// checkContent refuses text that says nothing, cannot be stored, or holds a
// credential: what is remembered is shown to every agent and kept in histories.
func checkContent(field, s string, max int) error {
	if err := record.CheckText(field, s, max); err != nil {
		return err
	}
	if text.Blank(s) {
		return record.Errorf(record.ContentEmpty, field, "the text is empty or holds nothing visible")
	}
	return checkSecret(field, s)
}

func checkSecret(field, s string) error {
	if kind := text.Secret(s); kind != "" {
		return record.Errorf(record.InvalidArgument, field, "the text holds %s; say where it is kept instead", kind)
	}
	return nil
}

// ProposeFact adds a fact, or finds that it is known, refines or contradicts
// what is known (behaviour.md 3).
//
// Errors: InvalidArgument, ContentEmpty, ContentTooLarge, InvalidUTF8,
// IdempotencyKeyReused, Unavailable.
func (s *Store) ProposeFact(ctx context.Context, req record.ProposeFact) (record.ProposeFactResult, error) {
	p, err := checkProposal(req)
	if err != nil {
		return record.ProposeFactResult{}, err
	}
	s.embedUnsettled(ctx, p)
	return apply(ctx, s, record.KindProposeFact, req, func(t *tx) (record.ProposeFactResult, error) {
		t.discard = req.DryRun
		res, err := t.propose(p)
		res.DryRun = req.DryRun
		return res, err
	})
}

// propose does what a proposal asks, inside a transaction.
func (t *tx) propose(p *proposal) (record.ProposeFactResult, error) {
	p.dated = !p.at.IsZero() && !p.at.After(t.now.Time)
	if !p.dated {
		p.at = t.now
	}
	var res record.ProposeFactResult
	var err error
	if p.domainID, p.domain, err = t.resolveDomain(p.domain); err != nil {
		return res, err
	}
	same, err := t.sameActive(p)
	if err != nil {
		return res, err
	}
	if same != nil {
		return t.reMention(same, p, "the same statement")
	}
	if err := t.refuseDeleted(p); err != nil {
		return res, err
	}
	if known, err := t.retiredBackup(p); err != nil {
		return res, err
	} else if known != nil {
		return outcome(record.StatusSupersededBy, known, nil), nil
	}
	facts, err := t.topicFacts(p)
	if err != nil {
		return res, err
	}
	v, err := t.judge(p, facts)
	if err != nil {
		return res, err
	}
	if v.duplicate != nil {
		return t.reMention(v.duplicate, p, v.duplicateReason)
	}
	f, err := t.insertFact(p, v)
	if err != nil {
		return res, err
	}
	return t.settle(f, v)
}

func outcome(status record.ProposalStatus, f *fact, conflicts []record.ConflictRef) record.ProposeFactResult {
	if conflicts == nil {
		conflicts = []record.ConflictRef{}
	}
	return record.ProposeFactResult{
		Status: status, FactID: f.ID, Domain: f.Domain, Topic: f.Topic, MemoryType: f.MemoryType,
		Confidence: f.Confidence, MentionCount: f.MentionCount, Conflicts: conflicts,
	}
}

// sameActive returns the active fact with the same identity, if there is one.
// One whose validity has run out is archived first: it is not current, but its
// place in the unique index is.
func (t *tx) sameActive(p *proposal) (*fact, error) {
	f, err := scanFact(t.row("SELECT "+factColumns+fromFacts+"WHERE f.domain_id = ? AND f.topic_key = ? AND f.content_key = ? AND "+current, p.domainID, p.topicKey, p.contentKey))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.Expired(t.now) {
		return nil, t.archive(f, "expired", "its validity ended")
	}
	return f, nil
}

// retiredBackup returns the superseded fact that an import merely repeats: an
// old value in an old backup is not news, and must not come back to life.
func (t *tx) retiredBackup(p *proposal) (*fact, error) {
	if p.veracity != record.Imported && !p.echo {
		return nil, nil
	}
	f, err := scanFact(t.row("SELECT "+factColumns+fromFacts+`WHERE f.domain_id = ? AND f.topic_key = ? AND f.content_key = ?
		AND f.superseded_at > 0 AND f.archived_at = 0 ORDER BY f.superseded_at DESC, f.seq DESC LIMIT 1`, p.domainID, p.topicKey, p.contentKey))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if p.at.Before(t.now.Time) && p.at.After(f.SupersededAt.Time) {
		// Dated after the supersession: a real change back.
		return nil, nil
	}
	return f, nil
}

// topicNewest reads one fact more than the window, to see whether there are
// more. The limit is written out: a bound one makes SQLite compile the
// statement again for every call.
var topicNewest = fmt.Sprintf(" ORDER BY f.seq DESC LIMIT %d", topicWindow+1)

// topicFacts returns the active facts that the proposal must be compared with.
func (t *tx) topicFacts(p *proposal) ([]*fact, error) {
	const ofTopic = "SELECT " + factColumns + fromFacts + "WHERE f.domain_id = ? AND f.topic_key = ? AND " + current + " AND (f.valid_until = 0 OR f.valid_until > ?)"
	rows, err := t.query(ofTopic+topicNewest, p.domainID, p.topicKey, t.now.Micros())
	facts, err := collect(rows, err, scanFact)
	if err != nil || len(facts) <= topicWindow {
		return facts, err
	}
	facts = facts[:topicWindow/2]
	seen := map[int64]bool{}
	for _, f := range facts {
		seen[f.seq] = true
	}
	near, err := relatives(t, p.terms, topicToken(p.domainID, p.topicKey), topicWindow/2)
	if err != nil {
		return nil, err
	}
	for _, r := range near {
		if seen[r.seq] {
			continue
		}
		f, err := scanFact(t.row("SELECT "+factColumns+fromFacts+"WHERE f.seq = ? AND "+current, r.seq))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !f.Expired(t.now) {
			facts = append(facts, f)
		}
	}
	return facts, nil
}

// insertFact stores the proposal as a new fact, already superseded when it
// lost, and indexes it.
func (t *tx) insertFact(p *proposal, v verdicts) (*fact, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	sources := p.sources
	if sources == nil {
		sources = []string{}
	}
	list, err := json.Marshal(sources)
	if err != nil {
		return nil, err
	}
	f := &fact{Fact: record.Fact{
		ID: id, Workspace: t.writer.store.workspace, Domain: p.domain.String(), Topic: p.topic, Content: p.content, Confidence: p.confidence,
		MemoryType: p.memoryType, Veracity: p.veracity, SourceObservationIDs: sources, MentionCount: 1,
		AuthoredByAgent: p.agent, AuthoredByRole: record.Role(p.role), ValidUntil: p.validUntil, CreatedAt: p.at, UpdatedAt: t.now,
	}, domainID: p.domainID, topicKey: p.topicKey, contentKey: p.contentKey}
	var by any
	if v.loses != nil {
		f.SupersededBy, f.SupersededKind, f.SupersededAt = v.loses.fact.ID, string(record.ConflictContradiction), t.now
		by = f.SupersededBy
	}
	f.seq, err = t.insert(`INSERT INTO facts (id, domain_id, topic, topic_key, content, content_key, confidence, memory_type, veracity, sources,
		superseded_by, superseded_kind, superseded_at, valid_until, agent, role, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.ID, f.domainID, f.Topic, f.topicKey, f.Content, f.contentKey, f.Confidence, f.MemoryType, f.Veracity, string(list),
		by, f.SupersededKind, f.SupersededAt.Micros(), f.ValidUntil.Micros(), f.AuthoredByAgent, f.AuthoredByRole, f.CreatedAt.Micros(), f.UpdatedAt.Micros())
	if err != nil {
		return nil, err
	}
	x := indexText(f.domainID, p.domain.name, f.Topic, f.topicKey, f.Content)
	if err := t.link(f, p.terms); err != nil {
		return nil, err
	}
	t.writer.index.add(f.seq, x)
	if err := t.queueEmbedding(f.seq); err != nil {
		return nil, err
	}
	return f, t.event(f, "created", "", "")
}

// settle applies the verdicts to the new fact and the facts it met.
func (t *tx) settle(f *fact, v verdicts) (record.ProposeFactResult, error) {
	var rows []record.ConflictRef
	add := func(kind record.ConflictKind, r related, winner, loser string) error {
		row, err := t.conflictRow(kind, f.ID, r.fact.ID, winner, loser, r.verdict.Rule, r.verdict.Reason)
		row.Other = r.fact.ID
		rows = append(rows, row)
		return err
	}
	for _, r := range v.contradicted {
		winner, loser := f.ID, r.fact.ID
		if v.loses != nil {
			theirs := strength(r.fact.Confidence, r.fact.Veracity)
			if beats(strength(f.Confidence, f.Veracity), theirs) && r.fact.ID != v.loses.fact.ID {
				// A proposal that lost to another retires nobody.
				continue
			}
			winner, loser = r.fact.ID, f.ID
		} else if err := t.supersede(r.fact, f, record.ConflictContradiction, r.verdict.Reason); err != nil {
			return record.ProposeFactResult{}, err
		}
		if err := add(record.ConflictContradiction, r, winner, loser); err != nil {
			return record.ProposeFactResult{}, err
		}
	}
	if v.loses != nil {
		if err := t.event(f, "superseded", v.loses.fact.ID, v.loses.verdict.Reason); err != nil {
			return record.ProposeFactResult{}, err
		}
		return outcome(v.status(), f, rows), nil
	}
	for _, r := range v.refined {
		if err := t.supersede(r.fact, f, record.ConflictRefinement, r.verdict.Reason); err != nil {
			return record.ProposeFactResult{}, err
		}
		if err := add(record.ConflictRefinement, r, f.ID, r.fact.ID); err != nil {
			return record.ProposeFactResult{}, err
		}
	}
	for _, r := range v.suspected {
		if err := add(record.ConflictSuspected, r, "", ""); err != nil {
			return record.ProposeFactResult{}, err
		}
	}
	return outcome(v.status(), f, rows), nil
}

// reMention confirms a fact that is known. A source that repeats itself counts
// half as much each further time, and text out of our own preamble not at all.
func (t *tx) reMention(f *fact, p *proposal, reason string) (record.ProposeFactResult, error) {
	if p.echo {
		return outcome(record.StatusReMentioned, f, nil), nil
	}
	var before int
	err := t.row("SELECT count(*) FROM fact_events WHERE fact = ? AND kind = 're-mentioned' AND agent = ?", f.seq, p.agent).Scan(&before)
	if err != nil {
		return record.ProposeFactResult{}, err
	}
	f.Confidence = raised(f.Confidence, p.veracity, before)
	f.Veracity = record.StrongerOf(f.Veracity, p.veracity)
	f.MentionCount++
	if p.at.After(f.LastMentionedAt.Time) {
		f.LastMentionedAt = p.at
	}
	f.SourceObservationIDs = union(f.SourceObservationIDs, p.sources)
	if p.validUntil.After(f.ValidUntil.Time) && !f.ValidUntil.IsZero() {
		f.ValidUntil = p.validUntil
	}
	sources, err := json.Marshal(f.SourceObservationIDs)
	if err != nil {
		return record.ProposeFactResult{}, err
	}
	err = t.exec("UPDATE facts SET confidence = ?, veracity = ?, mention_count = ?, last_mentioned_at = ?, sources = ?, valid_until = ?, updated_at = ?, version = version + 1 WHERE seq = ?",
		f.Confidence, f.Veracity, f.MentionCount, f.LastMentionedAt.Micros(), string(sources), f.ValidUntil.Micros(), t.now.Micros(), f.seq)
	if err != nil {
		return record.ProposeFactResult{}, err
	}
	err = t.exec("INSERT INTO fact_events (fact, at, kind, agent, role, veracity, confidence, reason) VALUES (?, ?, 're-mentioned', ?, ?, ?, ?, ?)",
		f.seq, t.now.Micros(), p.agent, p.role, p.veracity, f.Confidence, reason)
	return outcome(record.StatusReMentioned, f, nil), err
}

// raised is the confidence after a re-mention by a source that mentioned the
// fact before times: c' = c + (1 − c) × w × 0.3 (behaviour.md 2), w halved for
// each earlier time.
func raised(c float64, v record.Veracity, before int) float64 {
	return math.Min(1, c+(1-c)*v.Weight()*mentionGain*math.Pow(0.5, float64(before)))
}

func union(a, b []string) []string {
	seen := make(map[string]bool, len(a)+len(b))
	out := make([]string, 0, len(a)+len(b))
	for _, list := range [][]string{a, b} {
		for _, s := range list {
			if !seen[s] && len(out) < record.MaxSources {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// event writes a line of a fact's history.
func (t *tx) event(f *fact, kind, other, reason string) error {
	agent, role := t.caller.Agent, t.caller.Role
	if kind == "created" {
		agent, role = f.AuthoredByAgent, string(f.AuthoredByRole)
	}
	return t.exec("INSERT INTO fact_events (fact, at, kind, agent, role, other, veracity, confidence, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		f.seq, t.now.Micros(), kind, agent, role, other, f.Veracity, f.Confidence, reason)
}

// supersede retires old in favour of successor.
func (t *tx) supersede(old, successor *fact, kind record.ConflictKind, reason string) error {
	err := t.exec("UPDATE facts SET superseded_by = ?, superseded_kind = ?, superseded_at = ?, updated_at = ?, version = version + 1 WHERE seq = ?",
		successor.ID, kind, t.now.Micros(), t.now.Micros(), old.seq)
	if err != nil {
		return err
	}
	if err := t.event(old, "superseded", successor.ID, reason); err != nil {
		return err
	}
	if err := t.event(successor, "superseding", old.ID, reason); err != nil {
		return err
	}
	return t.closeConflicts(old.ID, successor.ID)
}

// archive takes a fact out of what is current; it can be restored.
func (t *tx) archive(f *fact, kind, reason string) error {
	err := t.exec("UPDATE facts SET archived_at = ?, archive_reason = ?, updated_at = ?, version = version + 1 WHERE seq = ?", t.now.Micros(), kind, t.now.Micros(), f.seq)
	if err != nil {
		return err
	}
	event := "archived"
	if kind == "expired" {
		event = "expired"
	}
	if err := t.event(f, event, "", reason); err != nil {
		return err
	}
	return t.closeConflicts(f.ID, "")
}

// SupersedeFact retires Old in favour of New on a caller's word.
//
// Errors: NotFound, SupersedeInvalid (the same fact, an inactive old one, or a
// chain that would close into a circle).
func (s *Store) SupersedeFact(ctx context.Context, req record.SupersedeFact) (record.SupersedeFactResult, error) {
	return apply(ctx, s, record.KindSupersedeFact, req, func(t *tx) (res record.SupersedeFactResult, err error) {
		if err := record.CheckText("reason", req.Reason, record.MaxNameBytes); err != nil {
			return res, err
		}
		old, err := getFact(t, "old", req.Old)
		if err != nil {
			return res, err
		}
		successor, err := getFact(t, "new", req.New)
		if err != nil {
			return res, err
		}
		if old.ID == successor.ID {
			return res, record.Errorf(record.SupersedeInvalid, "new", "a fact cannot supersede itself")
		}
		if !old.Active(t.now) {
			return res, record.Errorf(record.SupersedeInvalid, "old", "the old fact is no longer active")
		}
		if !successor.ArchivedAt.IsZero() {
			return res, record.Errorf(record.SupersedeInvalid, "new", "the new fact is archived; restore it first")
		}
		circle, err := t.leadsTo(successor, old.ID)
		if err != nil {
			return res, err
		}
		if circle {
			return res, record.Errorf(record.SupersedeInvalid, "new", "the old fact already succeeds the new one; restoring it is restore_fact")
		}
		reason := req.Reason
		if reason == "" {
			reason = "superseded on request"
		}
		if err := t.supersede(old, successor, record.ConflictManual, reason); err != nil {
			return res, err
		}
		row, err := t.conflictRow(record.ConflictManual, successor.ID, old.ID, successor.ID, old.ID, "request", reason)
		return record.SupersedeFactResult{Old: old.ID, New: successor.ID, ConflictID: row.ID}, err
	})
}

// leadsTo follows f's successors and reports whether id is among them.
func (t *tx) leadsTo(f *fact, id string) (bool, error) {
	var found int
	err := t.row(`WITH RECURSIVE chain(id) AS (SELECT ?1 UNION SELECT f.superseded_by FROM facts f JOIN chain c ON f.id = c.id WHERE f.superseded_by IS NOT NULL)
		SELECT count(*) FROM chain WHERE id = ?2`, f.ID, id).Scan(&found)
	return found > 0, err
}

// RestoreFact undoes a supersession or an archiving. Its conflict rows with
// the successor become open ones, for review, since both sides are current
// again.
//
// Errors: NotFound, SupersedeInvalid (the fact is current, or the same
// statement is active under another id).
func (s *Store) RestoreFact(ctx context.Context, req record.RestoreFact) (record.RestoreFactResult, error) {
	return apply(ctx, s, record.KindRestoreFact, req, func(t *tx) (res record.RestoreFactResult, err error) {
		if err := record.CheckText("reason", req.Reason, record.MaxNameBytes); err != nil {
			return res, err
		}
		f, err := getFact(t, "fact_id", req.FactID)
		if err != nil {
			return res, err
		}
		res = record.RestoreFactResult{FactID: f.ID, ConflictIDs: []string{}}
		switch {
		case !f.ArchivedAt.IsZero():
			res.Was = "archived"
		case !f.SupersededAt.IsZero():
			res.Was = "superseded"
		default:
			return res, record.Errorf(record.SupersedeInvalid, "fact_id", "the fact is current; there is nothing to restore")
		}
		var twin int
		err = t.row("SELECT count(*) FROM facts f WHERE f.domain_id = ? AND f.topic_key = ? AND f.content_key = ? AND "+current, f.domainID, f.topicKey, f.contentKey).Scan(&twin)
		if err != nil {
			return res, err
		}
		if twin > 0 {
			return res, record.Errorf(record.SupersedeInvalid, "fact_id", "the same statement is active under another id")
		}
		valid := f.ValidUntil
		if f.Expired(t.now) {
			valid = record.Time{}
		}
		err = t.exec(`UPDATE facts SET superseded_by = NULL, superseded_kind = '', superseded_at = 0, archived_at = 0, archive_reason = '',
			valid_until = ?, updated_at = ?, version = version + 1 WHERE seq = ?`, valid.Micros(), t.now.Micros(), f.seq)
		if err != nil {
			return res, err
		}
		reason := req.Reason
		if reason == "" {
			reason = "restored on request"
		}
		if err := t.event(f, "restored", f.SupersededBy, reason); err != nil {
			return res, err
		}
		if f.SupersededBy != "" {
			res.ConflictIDs, err = t.reopenConflicts(f.ID, f.SupersededBy)
		}
		return res, err
	})
}
