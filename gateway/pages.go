package gateway

import "net/http"

// HandlePages is [Server.Handle] for pages that a person opens. Where tokens
// are in use, the person's browser asks for one: the name is free, the password
// is the token. A page of another site cannot use it, since the guard looks at
// where a request comes from.
func (s *Server) HandlePages(pattern string, h http.Handler) {
	guarded := s.guard.protect(h, true)
	s.mux.Handle(pattern, s.Metrics.measure(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, token, given := r.BasicAuth(); given {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
		}
		guarded.ServeHTTP(challenge{w}, r)
	})))
}

// challenge makes an answer without a token ask a browser for one.
type challenge struct{ http.ResponseWriter }

func (c challenge) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		c.Header().Set("WWW-Authenticate", `Basic realm="polyphony, with a token as the password", charset="UTF-8"`)
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap lets a [http.ResponseController] through.
func (c challenge) Unwrap() http.ResponseWriter { return c.ResponseWriter }
