package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// checkTime bounds one check of readiness.
const checkTime = 3 * time.Second

// Check is one thing that must work before calls can be served.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// MountHealth mounts /healthz (the process answers), /readyz (every check
// passes, or 503 with the names of those that do not) and /metrics.
func (s *Server) MountHealth(checks ...Check) {
	s.HandleOpen("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
	}))
	s.HandleOpen("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := struct {
			Ready  bool              `json:"ready"`
			Checks map[string]string `json:"checks"`
		}{true, map[string]string{}}
		for _, c := range checks {
			ctx, cancel := context.WithTimeout(r.Context(), checkTime)
			err := c.Run(ctx)
			cancel()
			out.Checks[c.Name] = "ok"
			if err != nil {
				s.log.Warn("not ready", "check", c.Name, "error", err)
				out.Ready, out.Checks[c.Name] = false, string(record.ErrorCode(err))
			}
		}
		status := http.StatusOK
		if !out.Ready {
			status = http.StatusServiceUnavailable
		}
		WriteJSON(w, status, out)
	}))
	s.Handle("GET /metrics", s.Metrics.Handler())
}
