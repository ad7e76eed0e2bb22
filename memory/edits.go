package memory

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// UpdateFact is a person's edit of a current fact: the version before is kept,
// no counter is reset, and the index, the edges and the vector follow the text.
//
// Errors: NotFound, VersionConflict, SupersedeInvalid (the fact is not current,
// or the same statement is active under another id), and those of ProposeFact
// about its fields.
func (s *Store) UpdateFact(ctx context.Context, req record.UpdateFact) (record.UpdateFactResult, error) {
	res, err := applyAlone(ctx, s, record.KindUpdateFact, req, func(t *tx) (res record.UpdateFactResult, err error) {
		f, err := getFact(t, "fact_id", req.FactID)
		if err != nil {
			return res, err
		}
		if err := sameVersion(&req.ExpectedVersion, f.Version); err != nil {
			return res, err
		}
		if !f.Active(t.now) {
			return res, record.Errorf(record.SupersedeInvalid, "fact_id", "the fact is not current; restore it before you edit it")
		}
		edited, err := editedFact(f, req)
		if err != nil {
			return res, err
		}
		if err := t.freeOfTwin(edited, f); err != nil {
			return res, err
		}
		if err := t.keepVersion(f, req.Reason); err != nil {
			return res, err
		}
		err = t.exec(`UPDATE facts SET topic = ?, topic_key = ?, content = ?, content_key = ?, confidence = ?, memory_type = ?, veracity = ?, valid_until = ?,
			updated_at = ?, version = version + 1 WHERE seq = ?`,
			edited.Topic, edited.topicKey, edited.Content, edited.contentKey, edited.Confidence, edited.MemoryType, edited.Veracity, edited.ValidUntil.Micros(), t.now.Micros(), f.seq)
		if err != nil {
			return res, err
		}
		if edited.Content != f.Content || edited.Topic != f.Topic {
			if err := t.followText(f, edited); err != nil {
				return res, err
			}
		}
		reason := req.Reason
		if reason == "" {
			reason = "edited by hand"
		}
		return record.UpdateFactResult{FactID: f.ID, Version: f.Version + 1}, t.event(edited, "edited", "", reason)
	})
	return res, err
}

// sameVersion refuses a change of something that changed since it was read.
func sameVersion(expected *int64, have int64) error {
	switch {
	case expected == nil:
		return nil
	case *expected < 1:
		return record.Errorf(record.InvalidArgument, "expected_version", "name the version that you read, 1 or more")
	case *expected != have:
		return record.Errorf(record.VersionConflict, "expected_version", "it is at version %d, not %d; read it again", have, *expected)
	}
	return nil
}

// editedFact returns the fact as the request wants it, checked.
func editedFact(f *fact, req record.UpdateFact) (*fact, error) {
	if err := record.CheckText("reason", req.Reason, record.MaxNameBytes); err != nil {
		return nil, err
	}
	e := *f
	e.parsed = nil
	if req.Content != nil {
		if err := checkContent("content", *req.Content, record.MaxContentBytes); err != nil {
			return nil, err
		}
		key := text.ContentKey(*req.Content)
		e.Content, e.contentKey = *req.Content, key[:]
	}
	if req.Topic != nil {
		if err := checkTopic(*req.Topic); err != nil {
			return nil, err
		}
		e.Topic, e.topicKey = strings.TrimSpace(*req.Topic), text.Key(*req.Topic)
	}
	if err := record.CheckShare("confidence", req.Confidence); err != nil {
		return nil, err
	}
	if req.Confidence != nil {
		e.Confidence = *req.Confidence
	}
	if req.MemoryType != nil && *req.MemoryType != "" {
		var err error
		if e.MemoryType, err = record.ParseMemoryType(*req.MemoryType); err != nil {
			return nil, err
		}
	}
	if req.Veracity != nil && *req.Veracity != "" {
		var err error
		if e.Veracity, err = record.ParseVeracity(*req.Veracity); err != nil {
			return nil, err
		}
	}
	if req.ValidUntil != nil {
		e.ValidUntil = *req.ValidUntil
	}
	return &e, nil
}

// freeOfTwin refuses an edit that would state what another active fact states.
func (t *tx) freeOfTwin(edited, f *fact) error {
	if edited.topicKey == f.topicKey && bytes.Equal(edited.contentKey, f.contentKey) {
		return nil
	}
	var twin int
	err := t.row("SELECT count(*) FROM facts f WHERE f.domain_id = ? AND f.topic_key = ? AND f.content_key = ? AND "+current+" AND f.seq <> ?", edited.domainID, edited.topicKey, edited.contentKey, f.seq).Scan(&twin)
	if err == nil && twin > 0 {
		err = record.Errorf(record.SupersedeInvalid, "content", "the same statement is active under another id")
	}
	return err
}

func (t *tx) keepVersion(f *fact, reason string) error {
	return t.exec(`INSERT INTO fact_versions (fact, version, topic, content, confidence, memory_type, veracity, valid_until, until, agent, role, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.seq, f.Version, f.Topic, f.Content, f.Confidence, f.MemoryType, f.Veracity, f.ValidUntil.Micros(), t.now.Micros(), t.caller.Agent, t.caller.Role, reason)
}

// followText makes what was made of the old text anew: index, edges, vector, and
// the belief that rests on it. Which others agree with the new text, the next
// harmonization finds out.
func (t *tx) followText(f, edited *fact) error {
	name, err := t.unindex(f)
	if err != nil {
		return err
	}
	for _, stale := range []string{
		"DELETE FROM edges WHERE source = ?1 OR target = ?1",
		"DELETE FROM embeddings WHERE seq = ?1",
		"DELETE FROM embedding_queue WHERE seq = ?1",
	} {
		if err := t.exec(stale, f.seq); err != nil {
			return err
		}
	}
	if err := t.alignEdited(edited); err != nil {
		return err
	}
	if err := t.link(edited, text.QueryTerms(edited.Content)); err != nil {
		return err
	}
	t.writer.index.add(f.seq, indexText(f.domainID, name, edited.Topic, edited.topicKey, edited.Content))
	return t.queueEmbedding(f.seq)
}

// versions returns what a fact said before edits, oldest first.
func (v *View) versions(id string) ([]record.FactVersion, error) {
	rows, err := v.query(`SELECT f.id, o.version, o.topic, o.content, o.confidence, o.memory_type, o.veracity, o.valid_until, o.until, o.agent, o.role, o.reason
		FROM facts f JOIN fact_versions o ON o.fact = f.seq WHERE f.id = ? ORDER BY o.version`, id)
	return collect(rows, err, func(r scanner) (o record.FactVersion, err error) {
		var valid, until int64
		err = r.Scan(&o.FactID, &o.Version, &o.Topic, &o.Content, &o.Confidence, &o.MemoryType, &o.Veracity, &valid, &until, &o.Agent, &o.Role, &o.Reason)
		o.ValidUntil, o.Until = record.FromMicros(valid), record.FromMicros(until)
		return o, err
	})
}

// UpdatePolicy is a person's edit of a current policy; the version before is
// kept.
//
// Errors: NotFound, VersionConflict, SupersedeInvalid (the policy is
// superseded, or the same rule is active in its domain),
// InsufficientMemoryPermission, and those of ProposePolicy about its fields.
func (s *Store) UpdatePolicy(ctx context.Context, req record.UpdatePolicy) (record.UpdatePolicyResult, error) {
	return apply(ctx, s, record.KindUpdatePolicy, req, func(t *tx) (res record.UpdatePolicyResult, err error) {
		if err := record.CheckText("reason", req.Reason, record.MaxNameBytes); err != nil {
			return res, err
		}
		p, err := t.policyToChange(req.PolicyID, &req.ExpectedVersion)
		if err != nil {
			return res, err
		}
		if !p.SupersededAt.IsZero() {
			return res, record.Errorf(record.SupersedeInvalid, "policy_id", "the policy is superseded")
		}
		rule, required := p.Rule, string(p.RequiredRole)
		if req.Rule != nil {
			rule = *req.Rule
		}
		if req.RequiredRole != nil {
			required = *req.RequiredRole
		}
		role, err := checkRule(rule, required)
		if err != nil {
			return res, err
		}
		key := text.ContentKey(rule)
		var twin int
		err = t.row("SELECT count(*) FROM policies WHERE domain_id = ? AND rule_key = ? AND superseded_at = 0 AND id <> ?", p.domainID, key[:], p.ID).Scan(&twin)
		if err == nil && twin > 0 {
			err = record.Errorf(record.SupersedeInvalid, "rule", "the same rule is active under another id")
		}
		if err != nil {
			return res, err
		}
		err = t.exec(`INSERT INTO policy_versions (policy, version, rule, required_role, until, agent, role, reason)
			SELECT seq, version, rule, required_role, ?, ?, ?, ? FROM policies WHERE id = ?`, t.now.Micros(), t.caller.Agent, t.caller.Role, req.Reason, p.ID)
		if err != nil {
			return res, err
		}
		res = record.UpdatePolicyResult{PolicyID: p.ID, Version: p.Version + 1}
		return res, t.exec("UPDATE policies SET rule = ?, rule_key = ?, required_role = ?, updated_at = ?, version = version + 1 WHERE id = ?", rule, key[:], role, t.now.Micros(), p.ID)
	})
}

// policyToChange returns the policy when the caller may change the version it
// read.
func (t *tx) policyToChange(id string, expected *int64) (policy, error) {
	p, err := getPolicy(t, id)
	if err == nil {
		err = t.needWrite(p.domainID, p.Domain)
	}
	if err == nil {
		err = sameVersion(expected, p.Version)
	}
	return p, err
}

// DeletePolicy removes a policy and its earlier versions, for good.
//
// Errors: NotFound, VersionConflict, InsufficientMemoryPermission.
func (s *Store) DeletePolicy(ctx context.Context, req record.DeletePolicy) (record.DeletePolicyResult, error) {
	return apply(ctx, s, record.KindDeletePolicy, req, func(t *tx) (res record.DeletePolicyResult, err error) {
		p, err := t.policyToChange(req.PolicyID, req.ExpectedVersion)
		if err != nil {
			return res, err
		}
		return record.DeletePolicyResult{PolicyID: p.ID}, t.exec("DELETE FROM policies WHERE id = ?", p.ID)
	})
}

// getPolicy returns the policy or NotFound.
func getPolicy(q queryer, id string) (policy, error) {
	p, err := scanPolicy(q.row("SELECT "+policyColumns+fromPolicies+"WHERE p.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = record.Errorf(record.NotFound, "policy_id", "there is no policy with that id in this workspace")
	}
	return p, err
}

// PolicyRecord returns one policy, current or not, with its earlier versions.
//
// Errors: NotFound, also for a policy that the scope hides.
func (v *View) PolicyRecord(id string, scope Scope) (record.PolicyRecord, error) {
	p, err := getPolicy(v, id)
	if err == nil && scope.Hidden(p.domainID) {
		err = record.Errorf(record.NotFound, "policy_id", "there is no policy with that id in this workspace")
	}
	if err != nil {
		return record.PolicyRecord{}, err
	}
	p.Workspace = v.Workspace()
	rows, err := v.query(`SELECT o.version, o.rule, o.required_role, o.until, o.agent, o.role, o.reason
		FROM policies p JOIN policy_versions o ON o.policy = p.seq WHERE p.id = ? ORDER BY o.version`, id)
	versions, err := collect(rows, err, func(r scanner) (o record.PolicyVersion, err error) {
		var until int64
		err = r.Scan(&o.Version, &o.Rule, &o.RequiredRole, &until, &o.Agent, &o.Role, &o.Reason)
		o.Until = record.FromMicros(until)
		return o, err
	})
	if versions == nil {
		versions = []record.PolicyVersion{}
	}
	return record.PolicyRecord{Policy: p.Policy, Versions: versions}, err
}
