package memory

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/memory/text"
)

// repoPrefix starts the full name of a repository's domain.
const repoPrefix = "repo:"

// domainName is a domain's identity: the repository it belongs to (its slug,
// empty for the whole workspace) and its name.
type domainName struct {
	repo, key, name string
}

func (d domainName) String() string { return fullName(d.repo, d.name) }

func fullName(repo, name string) string {
	if repo == "" {
		return name
	}
	return repoPrefix + repo + "/" + name
}

// parseDomain reads a domain argument beside a repo argument: "architecture"
// belongs to the caller's repository when it named one, else to the workspace;
// "repo:<slug>/architecture" says itself where it belongs.
func parseDomain(domain, repo string) (domainName, error) {
	if err := record.CheckName("domain", domain); err != nil {
		return domainName{}, err
	}
	slug, err := repoSlug(repo)
	if err != nil {
		return domainName{}, err
	}
	if rest, ok := strings.CutPrefix(domain, repoPrefix); ok {
		given, name, found := strings.Cut(rest, "/")
		if !found {
			return domainName{}, record.Errorf(record.InvalidArgument, "domain", "a repository's domain is written repo:<slug>/<name>")
		}
		inName, err := repoSlug(given)
		if err != nil || inName == "" {
			return domainName{}, record.Errorf(record.InvalidArgument, "domain", "the repository in the domain has no letters or digits")
		}
		if slug != "" && slug != inName {
			return domainName{}, record.Errorf(record.InvalidArgument, "domain", "the domain names another repository than repo does")
		}
		slug, domain = inName, name
	}
	name := text.Name(domain)
	if name == "" {
		return domainName{}, record.Errorf(record.InvalidArgument, "domain", "a domain needs a name with letters or digits")
	}
	return domainName{repo: slug, key: text.Slug(name), name: name}, nil
}

// repoSlug returns the slug of a repository argument, "" for none.
func repoSlug(repo string) (string, error) {
	if err := record.CheckName("repo", repo); err != nil {
		return "", err
	}
	slug := text.Slug(repo)
	if slug == "" && strings.TrimSpace(repo) != "" {
		return "", record.Errorf(record.InvalidArgument, "repo", "a repository needs a name with letters or digits")
	}
	return slug, nil
}

// findDomain returns the domain's row, sql.ErrNoRows when there is none.
func findDomain(q queryer, d domainName) (id int64, name string, err error) {
	err = q.row("SELECT id, name FROM domains WHERE repo = ? AND name_key = ?", d.repo, d.key).Scan(&id, &name)
	return id, name, err
}

// resolveDomain returns the domain's row, making it when it is new: then every
// role may write in it. An existing domain's grants are never seeded again.
func (t *tx) resolveDomain(d domainName) (id int64, shown domainName, err error) {
	shown = d
	id, shown.name, err = findDomain(t, d)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return id, shown, err
	}
	shown.name = d.name
	id, err = t.insert("INSERT INTO domains (repo, name_key, name, created_at) VALUES (?, ?, ?, ?)", d.repo, d.key, d.name, t.now.Micros())
	if err != nil {
		return 0, shown, err
	}
	for _, role := range record.Roles() {
		err := t.exec("INSERT INTO grants (role, domain_id, level, updated_at, updated_by) VALUES (?, ?, 'write', ?, ?)", role, id, t.now.Micros(), t.caller.Agent)
		if err != nil {
			return 0, shown, err
		}
	}
	return id, shown, nil
}

// grantLevel returns what role may do in domain: read when no row says.
func grantLevel(q queryer, role record.Role, domain int64) (record.Level, error) {
	var level record.Level
	err := q.row("SELECT level FROM grants WHERE domain_id = ? AND role = ?", domain, role).Scan(&level)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Read, nil
	}
	return level, err
}

// needWrite refuses a policy write by a role without write on the domain.
func (t *tx) needWrite(domain int64, shown string) error {
	role, err := record.ParseRole("role", t.caller.Role)
	if err != nil {
		return err
	}
	level, err := grantLevel(t, role, domain)
	if err != nil || level.Covers(record.Write) {
		return err
	}
	e := record.Errorf(record.InsufficientMemoryPermission, "role", "role %s has %s on domain %s, and write is required", role, level, shown)
	e.Role, e.Domain, e.Required, e.Actual = string(role), shown, string(record.Write), string(level)
	return e
}

// grantee is whom and where a grant is for.
func (t *tx) grantee(forRole, domain, repo string, needWrite bool) (role record.Role, id int64, shown string, err error) {
	if forRole == "" {
		return role, 0, "", record.Errorf(record.InvalidArgument, "for_role", "name the role that the grant is for")
	}
	if role, err = record.ParseRole("for_role", forRole); err != nil {
		return role, 0, "", err
	}
	d, err := parseDomain(domain, repo)
	if err != nil {
		return role, 0, "", err
	}
	id, name, err := findDomain(t, d)
	if errors.Is(err, sql.ErrNoRows) {
		err = record.Errorf(record.NotFound, "domain", "there is no domain %s", d)
	}
	if shown = fullName(d.repo, name); err == nil && needWrite {
		err = t.needWrite(id, shown)
	}
	return role, id, shown, err
}

// DeleteGrant takes a role's grant in a domain back; without one it may read.
// Taking back one that is not there changes nothing.
//
// Errors: InvalidArgument, NotFound (the domain), InsufficientMemoryPermission
// (when write is asked for).
func (s *Store) DeleteGrant(ctx context.Context, req record.DeleteGrant) (record.SetGrantResult, error) {
	return apply(ctx, s, record.KindDeleteGrant, req, func(t *tx) (res record.SetGrantResult, err error) {
		role, id, shown, err := t.grantee(req.ForRole, req.Domain, req.Repo, req.NeedWrite)
		if err != nil {
			return res, err
		}
		res.Grant = record.Grant{Role: role, Domain: shown, Level: record.Read, UpdatedAt: t.now, UpdatedBy: req.Agent}
		return res, t.exec("DELETE FROM grants WHERE domain_id = ? AND role = ?", id, role)
	})
}

// SetGrant gives a role a level in a domain that exists.
func (s *Store) SetGrant(ctx context.Context, req record.SetGrant) (record.SetGrantResult, error) {
	return apply(ctx, s, record.KindSetGrant, req, func(t *tx) (res record.SetGrantResult, err error) {
		level, err := record.ParseLevel(req.Level)
		if err != nil {
			return res, err
		}
		role, id, shown, err := t.grantee(req.ForRole, req.Domain, req.Repo, req.NeedWrite)
		if err != nil {
			return res, err
		}
		err = t.exec(`INSERT INTO grants (role, domain_id, level, updated_at, updated_by) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (domain_id, role) DO UPDATE SET level = excluded.level, updated_at = excluded.updated_at, updated_by = excluded.updated_by`,
			role, id, level, t.now.Micros(), req.Agent)
		res.Grant = record.Grant{Role: role, Domain: shown, Level: level, UpdatedAt: t.now, UpdatedBy: req.Agent}
		return res, err
	})
}

// Grants lists every grant, by domain, then role.
func (v *View) Grants() ([]record.Grant, error) {
	rows, err := v.query(`SELECT g.role, d.repo, d.name, g.level, g.updated_at, g.updated_by
		FROM grants g JOIN domains d ON d.id = g.domain_id ORDER BY d.repo, d.name_key, d.id, g.role`)
	return collect(rows, err, func(r scanner) (g record.Grant, err error) {
		var repo, name string
		var at int64
		err = r.Scan(&g.Role, &repo, &name, &g.Level, &at, &g.UpdatedBy)
		g.Domain, g.UpdatedAt = fullName(repo, name), record.FromMicros(at)
		return g, err
	})
}

// Domains lists the domains that role may see, the workspace's first, then by
// repository and name, with counts of their active facts and policies.
func (v *View) Domains(role record.Role) ([]record.Domain, error) {
	rows, err := v.query(`SELECT d.repo, d.name, d.created_at,
		  (SELECT count(*) FROM facts f WHERE f.domain_id = d.id AND f.superseded_at = 0 AND f.archived_at = 0 AND (f.valid_until = 0 OR f.valid_until > ?1)),
		  (SELECT count(*) FROM policies p WHERE p.domain_id = d.id AND p.superseded_at = 0)
		FROM domains d WHERE NOT EXISTS (SELECT 1 FROM grants g WHERE g.domain_id = d.id AND g.role = ?2 AND g.level = 'none')
		ORDER BY d.repo, d.name_key, d.id`, v.now.Micros(), role)
	return collect(rows, err, func(r scanner) (d record.Domain, err error) {
		var name string
		var at int64
		err = r.Scan(&d.Repo, &name, &at, &d.Facts, &d.Policies)
		d.Name, d.CreatedAt = fullName(d.Repo, name), record.FromMicros(at)
		return d, err
	})
}

// Scope is what a read may see: one domain or all, less the domains that the
// reader's role has no grant for.
type Scope struct {
	// Domain is 0 for all.
	Domain int64
	// Unknown is true when the asked domain does not exist: nothing matches.
	Unknown bool
	// At, when set, asks for what was believed then instead of now.
	At     record.Time
	denied map[int64]bool
}

// Hidden reports whether the scope hides facts of domain.
func (s Scope) Hidden(domain int64) bool {
	return s.Unknown || s.denied[domain] || s.Domain != 0 && s.Domain != domain
}

// Scope resolves a reader's domain argument and role. An empty role sees
// every domain: the preamble asks for no grant.
func (v *View) Scope(domain, repo string, role record.Role) (Scope, error) {
	var s Scope
	if domain != "" {
		d, err := parseDomain(domain, repo)
		if err != nil {
			return s, err
		}
		s.Domain, _, err = findDomain(v, d)
		if errors.Is(err, sql.ErrNoRows) {
			s.Unknown = true
		} else if err != nil {
			return s, err
		}
	}
	if role == "" {
		return s, nil
	}
	rows, err := v.query("SELECT domain_id FROM grants WHERE role = ? AND level = 'none'", role)
	denied, err := collect(rows, err, scanOne[int64])
	s.denied = make(map[int64]bool, len(denied))
	for _, id := range denied {
		s.denied[id] = true
	}
	return s, err
}

// RepoDomains returns the ids of the repository's domains.
func (v *View) RepoDomains(repo string) (map[int64]bool, error) {
	slug, err := repoSlug(repo)
	if err != nil || slug == "" {
		return map[int64]bool{}, err
	}
	rows, err := v.query("SELECT id FROM domains WHERE repo = ?", slug)
	ids, err := collect(rows, err, scanOne[int64])
	out := make(map[int64]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	return out, err
}
