package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

const (
	// MaxBodyBytes bounds a request's body: the largest request of ours and
	// what a protocol puts around it.
	MaxBodyBytes = record.MaxRequestBytes + 100_000
	// maxHeaderBytes and headerTime bound a request's head, bodyTime is how
	// long its body may take, idleTime how long a connection may wait for the
	// next request.
	maxHeaderBytes = 32 << 10
	headerTime     = 10 * time.Second
	bodyTime       = 30 * time.Second
	idleTime       = 2 * time.Minute
)

// guard is what stands before every handler.
type guard struct {
	gate    *Gate
	limiter *limiter
	hosts   map[string]bool
	// open is true on a loopback address.
	open     bool
	bodyTime time.Duration
	// streams ends requests that only wait for what the server may say.
	streams context.Context
	log     *slog.Logger
	// denied counts what was turned away, by reason.
	denied func(reason string)
}

// refusal is a request that is turned away.
type refusal struct {
	status int
	// reason is a stable word for the log and the metrics.
	reason string
	err    *record.Error
	wait   time.Duration
}

// origin checks where a request comes from. A name in Host that is not ours is
// DNS rebinding: a foreign page that made its own name point here. An Origin
// that is not the Host is a foreign page that calls us openly.
func (g *guard) origin(r *http.Request) *refusal {
	if refused := g.name(r); refused != nil {
		return refused
	}
	foreign := &refusal{status: http.StatusForbidden, reason: "origin", err: record.Errorf(record.Unauthenticated, "", "pages of another origin may not call this server")}
	if origin := r.Header.Get("Origin"); origin != "" {
		_, host, found := strings.Cut(origin, "://")
		if !found || !strings.EqualFold(host, r.Host) {
			return foreign
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	// A link from elsewhere may lead to a page, but change nothing.
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return nil
	}
	return foreign
}

func (g *guard) name(r *http.Request) *refusal {
	if g.ours(r.Host) {
		return nil
	}
	return &refusal{status: http.StatusForbidden, reason: "host", err: record.Errorf(record.Unauthenticated, "", "this server does not answer to that host name")}
}

// named lets requests to our names through, wherever they come from.
func (g *guard) named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := g.name(r); refused != nil {
			g.refuse(w, r, refused)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ours reports whether the server answers to the host: a loopback name, one
// that was configured, or, off loopback, any address, which no name leads to.
func (g *guard) ours(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(host, "]"), "["), "."))
	if g.hosts[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost"
	}
	return ip.IsLoopback() || !g.open
}

// body reads the whole body within the limits of size and time, so that no
// handler waits for a slow sender.
func (g *guard) body(w http.ResponseWriter, r *http.Request) *refusal {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	// Test recorders have no connection to set a deadline on.
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(g.bodyTime))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &refusal{status: http.StatusRequestEntityTooLarge, reason: "body", err: record.Errorf(record.PayloadTooLarge, "", "a request has at most %d bytes", MaxBodyBytes)}
	case err != nil:
		return &refusal{status: http.StatusRequestTimeout, reason: "slow", err: record.Errorf(record.Unavailable, "", "the request did not arrive in time")}
	}
	_ = deadline.SetReadDeadline(time.Time{})
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return nil
}

// who finds the caller.
func (g *guard) who(r *http.Request) (Identity, *refusal) {
	id, err := g.gate.Identify(r.Header)
	if err == nil {
		return id, nil
	}
	var e *record.Error
	if !errors.As(err, &e) || e.Code != record.Unauthenticated {
		g.log.Error("tokens cannot be checked", "error", err)
		return id, &refusal{status: http.StatusServiceUnavailable, reason: "tokens", err: record.Errorf(record.Unavailable, "", "tokens cannot be checked now")}
	}
	out := &refusal{status: http.StatusUnauthorized, reason: "token", err: e}
	if wait, limited := g.limiter.failed(r.RemoteAddr); limited {
		out.status, out.reason, out.wait = http.StatusTooManyRequests, "rate", wait
		out.err = record.Errorf(record.Unauthenticated, "", "too many failed attempts; wait before the next")
	}
	return id, out
}

// protect puts the checks before h; who calls is asked only when identified.
func (g *guard) protect(h http.Handler, identified bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		refused := g.origin(r)
		if refused == nil && identified {
			// Before the body: who may not call may not make us read either.
			var id Identity
			if id, refused = g.who(r); refused == nil {
				r = r.WithContext(context.WithValue(r.Context(), identityKey{}, id))
			}
		}
		if refused == nil {
			refused = g.body(w, r)
		}
		if refused != nil {
			g.refuse(w, r, refused)
			return
		}
		if r.Method == http.MethodGet {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(g.streams, cancel)()
			r = r.WithContext(ctx)
		}
		h.ServeHTTP(w, r)
	})
}

// refuse answers and leaves a line in the audit log, which names no secret.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	g.denied(why.reason)
	if why.reason != "rate" {
		g.log.Warn("denied", "reason", why.reason, "status", why.status, "remote", r.RemoteAddr, "method", r.Method, "path", r.URL.Path,
			"host", r.Host, "origin", r.Header.Get("Origin"), "field", why.err.Field)
	}
	if why.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="polyphony"`)
	}
	if why.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(why.wait.Seconds()))))
	}
	if why.status == http.StatusRequestEntityTooLarge || why.status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close")
	}
	WriteError(w, why.status, why.err)
}
