// Package codec opens sealed payloads for Temporal's Web UI and command line,
// over the protocol of Temporal's codec servers: POST …/decode with payloads in
// JSON. It opens with a reader's token only, seals nothing, and answers pages
// of the configured origins only.
//
// It checks for itself who calls, because a browser calls it from the Web UI's
// origin, and because a reader sees every workspace: an agent's token must not
// do.
package codec

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

const (
	// maxBodyBytes bounds a request: the Web UI asks for the payloads of a page
	// of events at once, the largest of which have 2 MB each.
	maxBodyBytes = 16 << 20
	// bodyTime is how long a request's body may take to arrive.
	bodyTime = 30 * time.Second
	// realm is what a browser shows when it asks for the token.
	realm = "polyphony codec"
)

// Options are the settings of the endpoint.
type Options struct {
	// Ring holds the keys and who may read.
	Ring *seal.Ring
	// Origins are the Web UI's, like http://127.0.0.1:8233; other pages are
	// refused.
	Origins []string
	Log     *slog.Logger
}

type handler struct {
	codec   *seal.Codec
	ring    *seal.Ring
	origins []string
	log     *slog.Logger
}

// NewHandler makes the endpoint. It is mounted on a prefix that ends in a
// slash, as it is: no other check may stand before it that refuses foreign
// origins.
func NewHandler(opts Options) http.Handler {
	return &handler{codec: seal.NewCodec(opts.Ring), ring: opts.Ring, origins: opts.Origins, log: opts.Log}
}

// ServeHTTP answers POST …/decode, and GET, which lets a person give the token
// to the browser once: the Web UI then sends it along when "include cross-origin
// credentials" is on.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	head.Set("Vary", "Origin")
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.Contains(h.origins, origin) {
			h.refuse(w, r, http.StatusForbidden, "pages of this origin may not have payloads opened")
			return
		}
		head.Set("Access-Control-Allow-Origin", origin)
		head.Set("Access-Control-Allow-Credentials", "true")
		if r.Method == http.MethodOptions {
			head.Set("Access-Control-Allow-Methods", http.MethodPost)
			head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
			head.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if !h.ring.May(token(r)) {
		head.Add("WWW-Authenticate", `Basic realm="`+realm+`"`)
		head.Add("WWW-Authenticate", `Bearer realm="`+realm+`"`)
		h.refuse(w, r, http.StatusUnauthorized, "a reader's token is wanted; make one with: starter key reader")
		return
	}
	switch {
	case r.Method == http.MethodGet:
		head.Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "This browser may now have payloads opened, until it is closed.\n")
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/decode"):
		h.decode(w, r)
	default:
		h.refuse(w, r, http.StatusNotFound, "payloads are opened with POST to decode; nothing else is here")
	}
}

// token is what the caller shows: a bearer token, or the password of a browser
// that was asked for one.
func token(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(rest)
	}
	return ""
}

func (h *handler) decode(w http.ResponseWriter, r *http.Request) {
	// Test recorders have no connection to set a deadline on.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			h.refuse(w, r, http.StatusRequestEntityTooLarge, "the request is too large")
			return
		}
		h.refuse(w, r, http.StatusRequestTimeout, "the request did not arrive in time")
		return
	}
	var in commonpb.Payloads
	if err := protojson.Unmarshal(raw, &in); err != nil {
		h.refuse(w, r, http.StatusBadRequest, "the request does not hold payloads")
		return
	}
	opened, err := h.codec.Decode(in.GetPayloads())
	if err != nil {
		var e *record.Error
		message := "the payloads cannot be opened"
		if errors.As(err, &e) {
			message = e.Message
		}
		h.refuse(w, r, http.StatusUnprocessableEntity, message)
		return
	}
	out, err := protojson.Marshal(&commonpb.Payloads{Payloads: opened})
	if err != nil {
		h.refuse(w, r, http.StatusUnprocessableEntity, "the payloads cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone; there is nobody else to tell.
	_, _ = w.Write(out)
}

// refuse answers and leaves a line in the log, which names no secret.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	h.log.Warn("codec: denied", "status", status, "reason", message, "remote", r.RemoteAddr, "method", r.Method, "origin", r.Header.Get("Origin"))
	http.Error(w, message, status)
}
