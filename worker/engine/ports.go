package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// ports of the server's four services.
type ports struct {
	frontend, history, matching, worker int
}

// choosePorts finds ports for a server. Those that are free to choose are bound together first, so that they differ.
// The server binds by number, so another program can still get in between: see [Engine.startServer].
func choosePorts(ctx context.Context, host string, frontend int) (ports, error) {
	listeners := make([]net.Listener, 0, 4)
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	take := func(port int) (int, error) {
		l, err := listen(ctx, host, port)
		if err != nil {
			return 0, err
		}
		listeners = append(listeners, l)
		return portOf(l), nil
	}

	var p ports
	var err error
	switch {
	case frontend > 0:
		p.frontend, err = take(frontend)
	case frontend == 0:
		if p.frontend, err = take(DefaultPort); errors.Is(err, ErrPortTaken) {
			p.frontend, err = take(0)
		}
	default:
		p.frontend, err = take(0)
	}
	if err != nil {
		return ports{}, err
	}
	for _, port := range []*int{&p.history, &p.matching, &p.worker} {
		if *port, err = take(0); err != nil {
			return ports{}, err
		}
	}
	return p, nil
}

// listen binds a port of host; zero is any free one.
func listen(ctx context.Context, host string, port int) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: %w", ErrPortTaken, err)
	case err != nil:
		return nil, fmt.Errorf("engine: %w", err)
	}
	return l, nil
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
