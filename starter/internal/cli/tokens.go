package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/locate"
	"github.com/polyphony-memory/polyphony/workflows/tokens"
)

// shownToken is a token as it may be shown: without its hash.
type shownToken struct {
	ID        string      `json:"id"`
	State     string      `json:"state"`
	Workspace string      `json:"workspace"`
	Agent     string      `json:"agent"`
	Role      string      `json:"role,omitempty"`
	CreatedAt record.Time `json:"created_at"`
	ExpiresAt record.Time `json:"expires_at,omitzero"`
	RevokedAt record.Time `json:"revoked_at,omitzero"`
	// Token is the secret, once, when it is made.
	Token string `json:"token,omitempty"`
}

func (a *app) shown(t tokens.Token) shownToken {
	return shownToken{ID: t.ID, State: t.State(a.clock.now()), Workspace: t.Workspace, Agent: t.Agent, Role: t.Role, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt}
}

func (a *app) tokens() *cobra.Command {
	return group("token", "Who may call the worker's gateway", a.tokenCreate(), a.tokenList(), a.tokenRevoke())
}

// tokenFile opens the tokens of the data folder, which needs no worker.
func (a *app) tokenFile() (*tokens.File, error) {
	folder, err := locate.DataFolder(a.data, a.lookup)
	if err != nil {
		return nil, err
	}
	return tokens.Open(folder, a.clock.now), nil
}

func (a *app) tokenCreate() *cobra.Command {
	var life time.Duration
	c := &cobra.Command{
		Use: "create", Short: "Make a token for one workspace, agent and role",
		Long: "create makes a token for the workspace, agent and role of the flags -w, --agent and --role, and prints it once.\n" +
			"From the first token on, every call to the gateway of this data folder needs one.",
		Example: `  starter -w demo --agent scout --role coder token create --expires 720h`,
		Args:    positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("expires") && life <= 0 {
				return usage("expires", "a life is more than nothing, like 720h; leave --expires out for a token without an end")
			}
			f, err := a.tokenFile()
			if err != nil {
				return err
			}
			secret, t, err := f.Create(cmd.Context(), tokens.Token{Workspace: a.caller.Workspace, Agent: a.caller.Agent, Role: a.caller.Role}, life)
			if err != nil {
				return err
			}
			out := a.shown(t)
			out.Token = secret
			return a.emit(out, func(o *output) {
				o.line("%s", secret)
				a.note("Token %s for workspace %s, agent %s, role %s, %s. It is shown this once.", t.ID, t.Workspace, oneLine(t.Agent), or(t.Role, string(record.RoleGeneral)), until(t))
			})
		},
	}
	c.Flags().DurationVar(&life, "expires", 0, "how long it is good, like 720h (default: without an end)")
	return c
}

// until says in words how long a token is good.
func until(t tokens.Token) string {
	if t.ExpiresAt.IsZero() {
		return "without an end"
	}
	return "until " + moment(t.ExpiresAt)
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens, also those that are no longer good", Args: positional(),
		RunE: func(*cobra.Command, []string) error {
			f, err := a.tokenFile()
			if err != nil {
				return err
			}
			all, err := f.List()
			if err != nil {
				return err
			}
			out := make([]shownToken, len(all))
			for i, t := range all {
				out[i] = a.shown(t)
			}
			return a.emit(map[string]any{"tokens": out}, func(o *output) {
				if len(out) == 0 {
					o.line("No tokens. Programs on this machine may call without one.")
					return
				}
				table := make([][]string, len(out))
				for i, t := range out {
					table[i] = []string{t.ID, t.State, t.Workspace, oneLine(t.Agent), or(t.Role, "-"), moment(t.CreatedAt), moment(t.ExpiresAt)}
				}
				o.table([]string{"ID", "STATE", "WORKSPACE", "AGENT", "ROLE", "SINCE", "UNTIL"}, table)
			})
		},
	}
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Take a token back, at once", Args: positional("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.tokenFile()
			if err != nil {
				return err
			}
			t, err := f.Revoke(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.emit(a.shown(t), func(o *output) { o.line("%s token %s", o.bold("Revoked"), t.ID) })
		},
	}
}
