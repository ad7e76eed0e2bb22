package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

const (
	// DefaultPort is the port on the loopback address when none is asked for;
	// portsTried is how many from it on are tried before any free one.
	DefaultPort = 8733
	portsTried  = 32
	// stopPatience is how long running requests may take to finish.
	stopPatience = 5 * time.Second
)

// Options are the settings of a server.
type Options struct {
	// Address is host:port; empty is the loopback address with DefaultPort or
	// the next free one. Port 0 is any free one.
	Address string
	// Hosts are further names that the server answers to, behind a proxy.
	Hosts []string
	// Tokens are those of the data folder.
	Tokens *tokens.File
	// BodyTime is how long a request's body may take; 30 seconds when 0.
	BodyTime time.Duration
	// Now gives the time of the rate limit; time.Now when nil.
	Now func() time.Time
	Log *slog.Logger
}

// Server is the HTTP server. Handlers are mounted before Start.
type Server struct {
	opts    Options
	log     *slog.Logger
	mux     *http.ServeMux
	guard   *guard
	http    *http.Server
	address string
	// Metrics are what the server counts.
	Metrics *Metrics
	// done is closed when serving ended, by itself with the error in failed.
	done   chan struct{}
	failed error
	// end ends the requests that still run when the time to stop is over,
	// endStreams those that would never end by themselves.
	end, endStreams context.CancelFunc
}

// NewServer makes a server that does not listen yet.
//
// Errors: InvalidArgument (the address; one that is not a loopback one needs
// tokens), Unavailable.
func NewServer(opts Options) (*Server, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.BodyTime == 0 {
		opts.BodyTime = bodyTime
	}
	open, err := loopback(opts.Address)
	if err != nil {
		return nil, err
	}
	if !open {
		some, err := opts.Tokens.Any()
		if err != nil {
			return nil, err
		}
		if !some {
			return nil, record.Errorf(record.InvalidArgument, "http", "an address beyond this machine needs tokens; make one first with: starter token create")
		}
	}
	base, end := context.WithCancel(context.Background())
	streams, endStreams := context.WithCancel(base)
	s := &Server{
		opts: opts, log: opts.Log, mux: http.NewServeMux(), Metrics: newMetrics(),
		done: make(chan struct{}), end: end, endStreams: endStreams,
	}
	s.guard = &guard{
		gate: &Gate{tokens: opts.Tokens, open: open}, limiter: newLimiter(opts.Now), hosts: map[string]bool{}, open: open,
		bodyTime: opts.BodyTime, streams: streams, log: opts.Log, denied: s.Metrics.denied,
	}
	for _, h := range opts.Hosts {
		s.guard.hosts[strings.ToLower(h)] = true
	}
	s.http = &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// loopback reports whether an address is reachable from this machine only.
func loopback(address string) (bool, error) {
	if address == "" {
		return true, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, record.Errorf(record.InvalidArgument, "http", "the address is host:port, like 127.0.0.1:%d", DefaultPort)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return false, record.Errorf(record.InvalidArgument, "http", "a port is 0 to 65535")
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback(), nil
}

// Gate tells who calls.
func (s *Server) Gate() *Gate { return s.guard.gate }

// Handle mounts a handler under a pattern of [http.ServeMux]. It is called only
// for requests that passed every check; [IdentityOf] says who calls.
func (s *Server) Handle(pattern string, h http.Handler) {
	s.mux.Handle(pattern, s.Metrics.measure(pattern, s.guard.protect(h, true)))
}

// HandleOpen mounts a handler that answers without knowing who calls. It must
// tell nothing of any workspace.
func (s *Server) HandleOpen(pattern string, h http.Handler) {
	s.mux.Handle(pattern, s.Metrics.measure(pattern, s.guard.protect(h, false)))
}

// HandleForeign mounts a handler that pages of other origins call, and that
// checks for itself which, and who calls. Host names are checked here.
func (s *Server) HandleForeign(pattern string, h http.Handler) {
	s.mux.Handle(pattern, s.Metrics.measure(pattern, s.guard.named(h)))
}

// Start listens and serves until Stop.
//
// Errors: Unavailable (the address is taken).
func (s *Server) Start(ctx context.Context) error {
	l, err := s.listen(ctx)
	if err != nil {
		return record.Wrap(record.Unavailable, err, "the gateway cannot listen on %s", s.opts.Address)
	}
	s.address = l.Addr().String()
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed = err
		}
	}()
	if s.guard.open {
		if some, err := s.opts.Tokens.Any(); err == nil && !some {
			s.log.Warn("no tokens are in use: every program on this machine may call, and is trusted to say for whom", "make one with", "starter token create")
		}
	}
	return nil
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	if s.opts.Address != "" {
		return lc.Listen(ctx, "tcp", s.opts.Address)
	}
	for port := DefaultPort; port < DefaultPort+portsTried; port++ {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// Address is where the server listens, after Start.
func (s *Server) Address() string { return s.address }

// Wait waits until the server, once started, has ended; it returns the error of
// one that ended by itself.
func (s *Server) Wait() error {
	<-s.done
	return s.failed
}

// Stop lets running requests finish for a while and then ends them; what they
// asked of a workflow goes on. Streams are ended at once.
func (s *Server) Stop(ctx context.Context) error {
	defer s.end()
	s.endStreams()
	if s.address == "" {
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	err := s.http.Shutdown(patience)
	if err != nil {
		s.end()
		err = s.http.Close()
	}
	<-s.done
	return err
}

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; there is nobody else to tell.
	_ = json.NewEncoder(w).Encode(v)
}

// WriteError answers with an error's name, message and field.
func WriteError(w http.ResponseWriter, status int, e *record.Error) {
	WriteJSON(w, status, map[string]*record.Error{"error": e})
}
