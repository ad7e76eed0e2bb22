package memory

import (
	"context"
	"database/sql"
	"errors"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

const policyColumns = `p.id, d.repo, d.name, p.domain_id, p.rule, p.required_role, coalesce(p.superseded_by, ''), p.superseded_at, p.supersede_reason, p.agent, p.role, p.version, p.created_at, p.updated_at`

const fromPolicies = ` FROM policies p JOIN domains d ON d.id = p.domain_id `

// policy is a row of the policies table.
type policy struct {
	record.Policy
	domainID int64
}

func scanPolicy(r scanner) (policy, error) {
	var p policy
	var repo, name string
	var superseded, created, updated int64
	err := r.Scan(&p.ID, &repo, &name, &p.domainID, &p.Rule, &p.RequiredRole, &p.SupersededBy, &superseded, &p.SupersedeReason, &p.AuthoredByAgent, &p.AuthoredByRole, &p.Version, &created, &updated)
	p.Domain = fullName(repo, name)
	p.SupersededAt, p.CreatedAt, p.UpdatedAt = record.FromMicros(superseded), record.FromMicros(created), record.FromMicros(updated)
	return p, err
}

// ProposePolicy adds a rule to a domain. The same active rule again is found,
// not added.
//
// Errors: InvalidArgument, ContentEmpty, ContentTooLarge, InvalidUTF8,
// InsufficientMemoryPermission, IdempotencyKeyReused, Unavailable.
func (s *Store) ProposePolicy(ctx context.Context, req record.ProposePolicy) (record.PolicyResult, error) {
	return apply(ctx, s, record.KindProposePolicy, req, func(t *tx) (res record.PolicyResult, err error) {
		p, err := checkPolicy(req)
		if err != nil {
			return res, err
		}
		id, d, err := t.resolveDomain(p.domain)
		if err != nil {
			return res, err
		}
		if err := t.needWrite(id, d.String()); err != nil {
			return res, err
		}
		res.Status, res.PolicyID, err = t.addPolicy(id, req.Rule, p.required)
		res.Domain = d.String()
		return res, err
	})
}

// policyProposal is a checked request to add a policy.
type policyProposal struct {
	domain   domainName
	required record.Role
}

func checkPolicy(req record.ProposePolicy) (p policyProposal, err error) {
	if p.domain, err = parseDomain(req.Domain, req.Repo); err != nil {
		return p, err
	}
	p.required, err = checkRule(req.Rule, req.RequiredRole)
	return p, err
}

func checkRule(rule, requiredRole string) (record.Role, error) {
	if err := checkContent("rule", rule, record.MaxRuleBytes); err != nil {
		return "", err
	}
	if requiredRole == "" {
		return "", nil
	}
	return record.ParseRole("required_role", requiredRole)
}

// addPolicy stores the rule, or finds the active one that says the same.
func (t *tx) addPolicy(domain int64, rule string, required record.Role) (status, id string, err error) {
	key := text.ContentKey(rule)
	err = t.row("SELECT id FROM policies WHERE domain_id = ? AND rule_key = ? AND superseded_at = 0", domain, key[:]).Scan(&id)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return "exists", id, err
	}
	if id, err = newID(); err != nil {
		return "", "", err
	}
	err = t.exec("INSERT INTO policies (id, domain_id, rule, rule_key, required_role, agent, role, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		id, domain, rule, key[:], required, t.caller.Agent, t.caller.Role, t.now.Micros(), t.now.Micros())
	return "created", id, err
}

// SupersedePolicy retires a policy, in favour of a new rule when one is given.
//
// Errors: NotFound, SupersedeInvalid (already superseded, or the new rule says
// the same), InsufficientMemoryPermission, and those of ProposePolicy.
func (s *Store) SupersedePolicy(ctx context.Context, req record.SupersedePolicy) (record.PolicyResult, error) {
	return apply(ctx, s, record.KindSupersedePolicy, req, func(t *tx) (res record.PolicyResult, err error) {
		if err := record.CheckText("reason", req.Reason, record.MaxNameBytes); err != nil {
			return res, err
		}
		var required record.Role
		if req.Rule != "" {
			if required, err = checkRule(req.Rule, req.RequiredRole); err != nil {
				return res, err
			}
		}
		p, err := getPolicy(t, req.PolicyID)
		if err != nil {
			return res, err
		}
		if err := t.needWrite(p.domainID, p.Domain); err != nil {
			return res, err
		}
		if !p.SupersededAt.IsZero() {
			return res, record.Errorf(record.SupersedeInvalid, "policy_id", "the policy is superseded already")
		}
		res = record.PolicyResult{Status: "superseded", PolicyID: p.ID, Domain: p.Domain}
		var by any
		if req.Rule != "" {
			if _, res.ReplacementID, err = t.addPolicy(p.domainID, req.Rule, required); err != nil {
				return res, err
			}
			if res.ReplacementID == p.ID {
				return res, record.Errorf(record.SupersedeInvalid, "rule", "the new rule says the same as the old one")
			}
			by = res.ReplacementID
		}
		return res, t.exec("UPDATE policies SET superseded_by = ?, superseded_at = ?, supersede_reason = ?, updated_at = ?, version = version + 1 WHERE id = ?",
			by, t.now.Micros(), req.Reason, t.now.Micros(), p.ID)
	})
}

// Policies lists the policies in scope, the repository's own first, then by
// domain, then oldest first; all includes superseded ones, marked.
func (v *View) Policies(repo string, scope Scope, all bool) ([]record.Policy, error) {
	slug, err := repoSlug(repo)
	if err != nil {
		return nil, err
	}
	rows, err := v.query("SELECT "+policyColumns+fromPolicies+`WHERE (p.superseded_at = 0 OR ?2)
		ORDER BY CASE WHEN ?1 <> '' AND d.repo = ?1 THEN 0 ELSE 1 END, d.repo, d.name_key, d.id, p.created_at, p.seq`, slug, all)
	found, err := collect(rows, err, scanPolicy)
	out := make([]record.Policy, 0, len(found))
	for _, p := range found {
		if !scope.Hidden(p.domainID) {
			p.Workspace = v.Workspace()
			out = append(out, p.Policy)
		}
	}
	return out, err
}
