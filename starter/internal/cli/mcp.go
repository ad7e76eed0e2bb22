package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// Environment variables of the bridge. A token has no flag, since others can
// see the arguments of a process.
const (
	envURL   = "POLYPHONY_URL"
	envToken = "POLYPHONY_TOKEN"
)

func (a *app) mcp() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use: "mcp", Short: "Serve the memory to an agent over standard input and output (MCP)",
		Long: "mcp passes the Model Context Protocol on to the worker, for agents that start their servers themselves.\n" +
			"The worker is the one of the data folder, or the one at --url; a token is taken from $" + envToken + ".\n" +
			"Standard output carries the protocol and nothing else.",
		Example: `  starter -w demo --agent scout mcp`,
		Args:    positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.caller.Check(); err != nil {
				return err
			}
			b := &bridge{app: a, address: address}
			if cmd.Flags().Changed("agent") || a.env(envAgent, "") != "" {
				b.agent.Store(&a.caller.Agent)
			}
			return b.serve(cmd.Context())
		},
	}
	c.Flags().StringVar(&address, "url", a.env(envURL, ""), "address of the worker's gateway, like http://127.0.0.1:8733 (default: $"+envURL+", else as the worker announced itself)")
	return c
}

// bridge serves one client on standard input and output by passing its
// requests on to the worker, in one session that is made anew when the worker
// was.
type bridge struct {
	*app
	address string

	// agent is the agent's name: the caller's word, else the client's name.
	agent atomic.Pointer[string]

	mu      sync.Mutex
	session *mcp.ClientSession
	// client is who is served, once it has begun.
	client *mcp.ServerSession
}

// serve runs until the client closes standard input.
func (b *bridge) serve(ctx context.Context) error {
	worker, err := b.connected(ctx)
	if err != nil {
		return err
	}
	defer b.drop(nil)
	hello := worker.InitializeResult()
	s := mcp.NewServer(hello.ServerInfo, &mcp.ServerOptions{
		Instructions: hello.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{}},
	})
	s.AddReceivingMiddleware(b.pass)
	err = s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(b.stdin), Writer: writeCloser{b.stdout}})
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return record.Wrap(record.Unavailable, err, "the client's connection broke")
}

// writeCloser leaves standard output open, which is not ours to close.
type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// pass answers what the worker answers; the rest of the protocol is between
// the bridge and its client.
func (b *bridge) pass(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ask := asking(req)
		if ask == nil {
			return next(ctx, method, req)
		}
		b.served(req)
		worker, err := b.connected(ctx)
		if err != nil {
			return nil, wire(err)
		}
		res, err := ask(ctx, worker)
		if err == nil || ctx.Err() != nil || errors.As(err, new(*jsonrpc.Error)) && !errors.Is(err, mcp.ErrSessionMissing) {
			return res, err
		}
		b.drop(worker)
		if !errors.Is(err, mcp.ErrSessionMissing) && !errors.Is(err, syscall.ECONNREFUSED) {
			// It may have been done; whoever asked has to look.
			return nil, wire(record.Wrap(record.Unavailable, err, "the connection to the worker broke before the answer came; the call may have been done all the same"))
		}
		// The worker was started anew and never saw the request.
		if worker, err = b.connected(ctx); err != nil {
			return nil, wire(err)
		}
		return ask(ctx, worker)
	}
}

// question is how a request is put to the worker.
type question func(context.Context, *mcp.ClientSession) (mcp.Result, error)

// asking returns how a request is put to the worker, nil for one that is not
// its affair.
func asking(req mcp.Request) question {
	switch p := req.GetParams().(type) {
	case *mcp.ListToolsParams:
		return relay(p, (*mcp.ClientSession).ListTools)
	case *mcp.CallToolParamsRaw:
		in := &mcp.CallToolParams{Meta: p.Meta, Name: p.Name}
		if len(p.Arguments) > 0 {
			in.Arguments = p.Arguments
		}
		return relay(in, (*mcp.ClientSession).CallTool)
	case *mcp.ListResourcesParams:
		return relay(p, (*mcp.ClientSession).ListResources)
	case *mcp.ListResourceTemplatesParams:
		return relay(p, (*mcp.ClientSession).ListResourceTemplates)
	case *mcp.ReadResourceParams:
		return relay(p, (*mcp.ClientSession).ReadResource)
	case *mcp.ListPromptsParams:
		return relay(p, (*mcp.ClientSession).ListPrompts)
	case *mcp.GetPromptParams:
		return relay(p, (*mcp.ClientSession).GetPrompt)
	}
	return nil
}

// relay puts a request to the worker by a method of the session. A request
// without parameters has nil ones.
func relay[P interface {
	comparable
	mcp.Params
}, R mcp.Result](p P, method func(*mcp.ClientSession, context.Context, P) (R, error)) question {
	var none P
	if p != none {
		p.SetMeta(forWorker(p.GetMeta()))
	}
	return func(ctx context.Context, s *mcp.ClientSession) (mcp.Result, error) { return method(s, ctx, p) }
}

// forWorker keeps of a request's metadata what the worker has to know. The rest
// is about the connection it came over, which may speak another version.
func forWorker(meta map[string]any) map[string]any {
	const token = "progressToken"
	if t, ok := meta[token]; ok {
		return map[string]any{token: t}
	}
	return nil
}

// served notes who is served, for progress and for the agent's name.
func (b *bridge) served(req mcp.Request) {
	client, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return
	}
	b.mu.Lock()
	b.client = client
	b.mu.Unlock()
	if p := client.InitializeParams(); p != nil && p.ClientInfo != nil && record.CheckName("agent", p.ClientInfo.Name) == nil {
		b.agent.CompareAndSwap(nil, &p.ClientInfo.Name)
	}
}

// connected returns the session with the worker, made if there is none.
func (b *bridge) connected(ctx context.Context) (*mcp.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil {
		return b.session, nil
	}
	endpoint, err := b.endpoint()
	if err != nil {
		return nil, err
	}
	token, _ := b.lookup(envToken)
	c := mcp.NewClient(&mcp.Implementation{Name: "starter", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
			b.mu.Lock()
			client := b.client
			b.mu.Unlock()
			if client != nil {
				// A client that is gone misses only this.
				_ = client.NotifyProgress(ctx, req.Params)
			}
		},
	})
	// The session outlives the request that needed it first.
	b.session, err = c.Connect(context.WithoutCancel(ctx), &mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: &http.Client{Transport: &credentials{b, token, http.DefaultTransport}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		b.session = nil
		return nil, record.Wrap(record.Unavailable, err, "the worker's gateway does not answer as it should; is the worker running, and is $%s right?", envToken)
	}
	return b.session, nil
}

// endpoint finds the worker.
func (b *bridge) endpoint() (string, error) {
	address := b.address
	if address == "" {
		folder, err := locate.DataFolder(b.data, b.lookup)
		if err != nil {
			return "", err
		}
		w, err := locate.Announced(folder)
		if err != nil {
			return "", err
		}
		if w.HTTP == "" {
			return "", record.Errorf(record.Unavailable, "", "the worker runs without its gateway; start it without --http off")
		}
		address = "http://" + w.HTTP
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", usage("url", "the address is like http://127.0.0.1:8733")
	}
	return strings.TrimSuffix(address, "/") + "/mcp", nil
}

// drop forgets a session that no longer serves; nil is the one there is.
func (b *bridge) drop(session *mcp.ClientSession) {
	b.mu.Lock()
	if session == nil {
		session = b.session
	}
	if b.session == session {
		b.session = nil
	}
	b.mu.Unlock()
	if session != nil {
		// The worker lets go of it by itself if this does not reach it.
		_ = session.Close()
	}
}

// credentials puts who calls on every request.
type credentials struct {
	bridge *bridge
	token  string
	next   http.RoundTripper
}

func (c *credentials) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range c.bridge.words() {
		if value != "" {
			// Headers are ASCII; names are of any script.
			r.Header.Set(name, url.PathEscape(value))
		}
	}
	return c.next.RoundTrip(r)
}

// words are the headers that say for whom the agent calls. With a token, which
// says it all, only what the caller chose is repeated.
func (b *bridge) words() map[string]string {
	token := b.env(envToken, "") != ""
	out := map[string]string{"Polyphony-Role": b.caller.Role, "Polyphony-Repo": b.caller.Repo}
	if b.chosen || !token {
		out["Polyphony-Workspace"] = b.caller.Workspace
	}
	if agent := b.agent.Load(); agent != nil && !token {
		out["Polyphony-Agent"] = *agent
	}
	return out
}

// wire is an error of ours in the protocol's form.
func wire(err error) error {
	var e *record.Error
	if !errors.As(err, &e) {
		e = record.Wrap(record.Unavailable, err, "the call failed")
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Error()}
}
