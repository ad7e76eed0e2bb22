package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/cors"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// webUI serves Temporal's Web UI. It is put together from the routes of ui-server rather than run by its Start, which
// binds its own port and ends the process when it cannot.
type webUI struct {
	server *http.Server
	served chan struct{}
}

// serveUI serves the Web UI of the frontend at address on l, which it takes over.
func serveUI(l net.Listener, address string, cfg Config) (*webUI, error) {
	handler, err := uiHandler(&uiconfig.Config{
		TemporalGRPCAddress: address,
		Host:                cfg.Host,
		Port:                portOf(l),
		EnableUI:            true,
		DefaultNamespace:    cfg.Namespace,
		HideLogs:            true,
		DisableNewsFetch:    true,
		// Loopback has no TLS to bind a cookie to.
		CORS: uiconfig.CORS{CookieInsecure: true},
	})
	if err != nil {
		return nil, fmt.Errorf("engine: Web UI: %w", err)
	}
	u := &webUI{
		server: &http.Server{
			Handler:           localOnly(cfg.Host, handler),
			ReadHeaderTimeout: 10 * time.Second,
			ErrorLog:          slog.NewLogLogger(levelHandler{cfg.Logger.Handler(), cfg.LogLevel}, slog.LevelWarn),
		},
		served: make(chan struct{}),
	}
	go func() {
		defer close(u.served)
		if err := u.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("The Temporal Web UI ended", "error", err)
		}
	}()
	return u, nil
}

func uiHandler(cfg *uiconfig.Config) (http.Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	provider, err := uiconfig.NewConfigProviderWithRefresh(cfg)
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	if assets, err = fs.Sub(assets, "local"); err != nil {
		return nil, err
	}
	cookieSecure := !cfg.CORS.CookieInsecure
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(
		middleware.Recover(),
		middleware.Gzip(),
		middleware.Secure(),
		cors.CORSMiddleware(cors.CORSConfig{ConfigProvider: provider}), // No origin but its own.
		csrf.EnsureTokenCookie(cookieSecure),
		middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, cookieSecure)),
	)
	route.SetHealthRoute(e)
	forward := []api.Middleware{headers.WithForwardHeaders([]string{"Caller-Type"})}
	if err := route.SetAPIRoutes(e, provider, forward); err != nil {
		return nil, err
	}
	if err := route.SetUIRoutes(e, cfg.PublicPath, assets, provider); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "/")
	return e, nil
}

// localOnly refuses requests that name another host than this machine: a page elsewhere whose name was made to point
// here must not get at the UI.
func localOnly(host string, next http.Handler) http.Handler {
	allowed := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, host: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		if !allowed[name] {
			http.Error(w, "this host is not served here", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// stop lets requests in progress end until ctx does, then cuts them off.
func (u *webUI) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := u.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = u.server.Close()
	}
	<-u.served
	return err
}
