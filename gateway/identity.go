package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

// Headers by which a client says once, in its settings, for whom it calls,
// percent-encoded where a name is not ASCII. Where tokens are in use they may
// only repeat what the token says.
const (
	HeaderWorkspace = "Polyphony-Workspace"
	HeaderAgent     = "Polyphony-Agent"
	HeaderRole      = "Polyphony-Role"
	HeaderRepo      = "Polyphony-Repo"
)

// Identity is who calls.
type Identity struct {
	// Token is the id of the token that was shown; empty on an open loopback
	// address, where the caller's own words are trusted.
	Token string
	// Workspace, Agent and Role are the token's, or else the caller's words,
	// which may be missing. Repo is always the caller's.
	Workspace, Agent, Role, Repo string
}

// Caller completes the words of a call with the identity. Under a token, words
// that differ from it are refused: neither an argument nor a header may make a
// caller somebody else.
//
// Errors: Unauthenticated, with the offending field.
func (id Identity) Caller(words record.Caller) (record.Caller, error) {
	for _, part := range []struct {
		field string
		word  *string
		own   string
	}{{"workspace", &words.Workspace, id.Workspace}, {"agent", &words.Agent, id.Agent}, {"role", &words.Role, id.Role}} {
		if id.Token != "" && *part.word != "" && *part.word != part.own {
			return words, record.Errorf(record.Unauthenticated, part.field, "the token is for another %s", part.field)
		}
		if *part.word == "" {
			*part.word = part.own
		}
	}
	if words.Repo == "" {
		words.Repo = id.Repo
	}
	return words, nil
}

// Gate finds out who calls.
type Gate struct {
	tokens *tokens.File
	// open is true on a loopback address: without tokens, words are trusted.
	open bool
}

// Identify returns who sends a request with these headers. It is asked anew
// for each request, since a connection may outlive a token.
//
// Errors: Unauthenticated, Unavailable.
func (g *Gate) Identify(h http.Header) (Identity, error) {
	words := Identity{Workspace: word(h, HeaderWorkspace), Agent: word(h, HeaderAgent), Role: word(h, HeaderRole), Repo: word(h, HeaderRepo)}
	text := bearer(h)
	if text == "" {
		inUse, err := g.tokens.Any()
		if err != nil {
			return Identity{}, err
		}
		if inUse || !g.open {
			return Identity{}, record.Errorf(record.Unauthenticated, "", "a token is required")
		}
		return words, nil
	}
	t, err := g.tokens.Verify(text)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Token: t.ID, Workspace: t.Workspace, Agent: t.Agent, Role: t.Role, Repo: words.Repo}
	if id.Role == "" {
		id.Role = string(record.RoleGeneral)
	}
	_, err = id.Caller(record.Caller{Workspace: words.Workspace, Agent: words.Agent, Role: words.Role})
	return id, err
}

// word reads a header that may be percent-encoded.
func word(h http.Header, name string) string {
	raw := h.Get(name)
	if plain, err := url.PathUnescape(raw); err == nil {
		return plain
	}
	return raw
}

func bearer(h http.Header) string {
	scheme, text, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

type identityKey struct{}

// IdentityOf returns who sent the request with this context; it holds one
// behind [Server.Handle].
func IdentityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}
