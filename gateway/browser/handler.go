package browser

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// personAgent is who an edit is by when the caller names no agent: somebody at
// this browser.
const personAgent = "browser"

// callTime bounds what one page asks of the memory.
const callTime = 30 * time.Second

// Options are what a handler is made of.
type Options struct {
	Memory *gateway.Memory
	// Now is the clock of what has expired; nil for the machine's.
	Now func() time.Time
	// Tracer begins a span for every page; nil for none.
	Tracer trace.Tracer
	Log    *slog.Logger
}

// handler serves the pages; who calls is in the request's context.
type handler struct {
	Options
	mux       *http.ServeMux
	templates map[string]*template.Template
	assets    *assets
}

// NewHandler serves the pages under /, /assets/ and /workspaces/.
//
// Errors: a page or an asset in the program is broken.
func NewHandler(opts Options) (http.Handler, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	h := &handler{Options: opts, mux: http.NewServeMux()}
	var err error
	if h.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if h.templates, err = loadTemplates(h.assets); err != nil {
		return nil, err
	}
	h.mux.Handle("GET /assets/", h.assets)
	const root = "/workspaces/{workspace}/settings/memory"
	for pattern, show := range map[string]func(*visit) error{
		"GET /{$}":                               h.workspaces,
		"GET " + root:                            h.facts,
		"GET " + root + "/facts/{id}":            h.fact,
		"GET " + root + "/facts/{id}/edit":       h.editFact,
		"POST " + root + "/facts/{id}/edit":      h.saveFact,
		"GET " + root + "/facts/{id}/delete":     h.askDeleteFact,
		"POST " + root + "/facts/{id}/delete":    h.deleteFact,
		"POST " + root + "/facts/{id}/restore":   h.restoreFact,
		"GET " + root + "/policies":              h.policies,
		"GET " + root + "/policies/{id}":         h.policy,
		"GET " + root + "/policies/{id}/edit":    h.editPolicy,
		"POST " + root + "/policies/{id}/edit":   h.savePolicy,
		"GET " + root + "/policies/{id}/delete":  h.askDeletePolicy,
		"POST " + root + "/policies/{id}/delete": h.deletePolicy,
		"GET " + root + "/graph":                 h.graph,
		"GET " + root + "/graph.json":            h.graphData,
		"GET " + root + "/conflicts":             h.conflicts,
		"POST " + root + "/conflicts/{id}":       h.resolve,
		"GET " + root + "/beliefs":               h.beliefs,
	} {
		h.mux.HandleFunc(pattern, h.visit(pattern, show))
	}
	h.mux.HandleFunc("/", h.visit("no page", func(*visit) error {
		return record.Errorf(record.NotFound, "", "there is no such page")
	}))
	return h, nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	// Without a referrer, a browser does not say which origin a form is of, and
	// the guard would refuse our own.
	w.Header().Set("Referrer-Policy", "same-origin")
	h.mux.ServeHTTP(w, r)
}

// visit is one request with its caller known.
type visit struct {
	*http.Request
	out    http.ResponseWriter
	ctx    context.Context
	caller record.Caller
	// operation is the page's name in traces and in the log.
	operation string
	// base is the path of the workspace's pages.
	base string
}

// link returns a path under the workspace's pages.
func (v *visit) link(parts ...string) string {
	out := v.base
	for _, p := range parts {
		out += "/" + url.PathEscape(p)
	}
	return out
}

// goTo sends the browser on to another page.
func (v *visit) goTo(target string) { http.Redirect(v.out, v.Request, target, http.StatusSeeOther) }

// author is the caller of a change; key makes a repeated submission harmless.
func (v *visit) author() record.Caller {
	c := v.caller
	if c.Agent == "" {
		c.Agent = personAgent
	}
	c.Key = v.PostFormValue("key")
	return c
}

// newKey makes the idempotency key that a form carries.
func newKey() string { return "browser-" + rand.Text() }

// visit finds the caller, and turns an error into a page; operation is the
// page's name in traces and in the log.
func (h *handler) visit(operation string, show func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callTime)
		defer cancel()
		ctx, span := gateway.StartSpan(ctx, h.Tracer, r.Header, "browser", operation)
		v := &visit{Request: r, out: w, ctx: ctx, operation: operation}
		err := h.run(v, show)
		span.End(v.caller, err)
		if err != nil {
			h.failed(v, err)
		}
	}
}

// run finds the caller and shows the page. A caller that is not let through is
// nobody.
func (h *handler) run(v *visit, show func(*visit) error) (err error) {
	defer gateway.Recover(h.Log, "a page panicked", slog.String("page", v.operation), &v.caller, &err, "internal error in the page")
	workspace := v.PathValue("workspace")
	v.base = "/workspaces/" + url.PathEscape(workspace) + "/settings/memory"
	caller, err := gateway.IdentityOf(v.ctx).Caller(record.Caller{Workspace: workspace})
	if workspace != "" && err == nil {
		err = caller.Check()
	}
	if err != nil {
		return err
	}
	v.caller = caller
	return show(v)
}

// page is what every page tells the layout.
type page struct {
	Title, Workspace, Base string
	// Tab is the tab that the page belongs to.
	Tab string
	// Live pages look for changes; their content must be the same bytes while
	// nothing changed.
	Live bool
	// Graph pages load what draws.
	Graph bool
	// Body is the rendered content, Tag its hash.
	Body template.HTML
	Tag  string
}

// show renders a page's content and puts the layout around it.
func (h *handler) show(v *visit, status int, name string, p page, content any) error {
	p.Workspace, p.Base = v.PathValue("workspace"), v.base
	var body bytes.Buffer
	if err := h.templates[name].ExecuteTemplate(&body, "content", content); err != nil {
		return err
	}
	sum := sha256.Sum256(body.Bytes())
	// The templates escaped the body already.
	p.Body, p.Tag = template.HTML(body.String()), hex.EncodeToString(sum[:12])
	var out bytes.Buffer
	if err := h.templates[name].ExecuteTemplate(&out, "layout", p); err != nil {
		return err
	}
	head := v.out.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	if p.Live {
		tag := `"` + p.Tag + `"`
		head.Set("ETag", tag)
		if v.Header.Get("If-None-Match") == tag {
			v.out.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	v.out.WriteHeader(status)
	// The reader may be gone; there is nobody else to tell.
	_, _ = v.out.Write(out.Bytes())
	return nil
}

// failed shows an error; the cause stays in the log.
func (h *handler) failed(v *visit, err error) {
	e := gateway.Failure(h.Log, "a page failed", slog.String("page", v.operation), v.caller, err, "the page cannot be shown now")
	if shown := h.show(v, statusOf(e.Code), "error.html", page{Title: titleOf(e.Code)}, struct {
		Title string
		Error *record.Error
	}{titleOf(e.Code), e}); shown != nil {
		h.Log.Error("the error page failed", "error", shown)
		http.Error(v.out, "the page cannot be shown now", http.StatusInternalServerError)
	}
}

func statusOf(c record.Code) int {
	switch c {
	case record.NotFound:
		return http.StatusNotFound
	case record.VersionConflict, record.SupersedeInvalid, record.IdempotencyKeyReused:
		return http.StatusConflict
	case record.Unauthenticated, record.InsufficientMemoryPermission:
		return http.StatusForbidden
	}
	if c.ExitCode() == record.ExitUsage {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

func titleOf(c record.Code) string {
	switch statusOf(c) {
	case http.StatusNotFound:
		return "Nothing is here"
	case http.StatusConflict:
		return "It changed meanwhile"
	case http.StatusForbidden:
		return "Not for you"
	case http.StatusBadRequest:
		return "That does not work"
	}
	return "The memory does not answer"
}

// workspaces lists what there is to look at.
func (h *handler) workspaces(v *visit) error {
	id := gateway.IdentityOf(v.ctx)
	names := []string{id.Workspace}
	if id.Token == "" {
		c := v.caller
		if c.Workspace == "" {
			c.Workspace = gateway.DefaultWorkspace
		}
		p, err := gateway.ReadPage[string](v.ctx, h.Memory, record.ReadMemory{Caller: c, What: record.ReadWorkspaces})
		if err != nil {
			return err
		}
		names = p.Items
	}
	slices.Sort(names)
	return h.show(v, http.StatusOK, "workspaces.html", page{Title: "Workspaces"}, names)
}
