// Package cli is the command line of polyphony over the workflows' client. A
// command parses its arguments into a request of package record, calls, and
// prints the result for people or, with --json, for programs.
//
// It must never hold rules about memory: what a call means is decided by the
// worker that owns the workspace's file.
package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Environment variables that give flags their defaults.
const (
	envWorkspace = "POLYPHONY_WORKSPACE"
	envAgent     = "POLYPHONY_AGENT"
	envRole      = "POLYPHONY_ROLE"
)

const (
	defaultWorkspace = "default"
	defaultAgent     = "cli"
	defaultTimeout   = 30 * time.Second
)

// Run executes one command line and returns the process exit code: 0, or that
// of the error's name (record.Code.ExitCode).
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, lookupEnv func(string) (string, bool)) (exit int) {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, lookup: lookupEnv, dial: dialEngine, clock: wallClock(), terminal: isTerminal}
	return a.run(ctx, args)
}

// app is one run of the command line.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool)
	dial           dialer
	clock          clock
	terminal       func(io.Writer) bool

	// Of the persistent flags.
	caller  record.Caller
	json    bool
	data    string
	timeout time.Duration
	// chosen is true when the caller named the workspace, so that an absent
	// one is a mistake; flagged when the flag did.
	chosen, flagged bool
	// timed is true when the caller gave a timeout.
	timed bool

	out     *output
	backend backend
}

// clock is time as the command line needs it.
type clock struct {
	now func() time.Time
	// wait returns early, with the context's error, when the context ends.
	wait func(ctx context.Context, d time.Duration) error
}

func wallClock() clock {
	return clock{now: time.Now, wait: func(ctx context.Context, d time.Duration) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		}
	}}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (a *app) env(name, fallback string) string {
	if v, ok := a.lookup(name); ok && v != "" {
		return v
	}
	return fallback
}

// colour reports whether w may be given escape sequences.
func (a *app) colour(w io.Writer) bool {
	return a.terminal(w) && a.env("NO_COLOR", "") == "" && a.env("TERM", "") != "dumb"
}

func (a *app) run(ctx context.Context, args []string) int {
	a.out = &output{w: a.stdout, terminal: a.terminal(a.stdout), colour: a.colour(a.stdout)}
	root := a.root()
	err := a.execute(ctx, root, args)
	if a.backend != nil {
		a.backend.Close()
	}
	if err == nil && a.out.err != nil {
		err = record.Wrap(record.Unavailable, a.out.err, "the output could not be written: %v", a.out.err)
	}
	if err == nil {
		return 0
	}
	// The flag was not read when the arguments before it were at fault.
	options, _, _ := strings.Cut(strings.Join(args, "\x00")+"\x00", "\x00--\x00")
	a.fail(err, a.json || slices.Contains(strings.Split(options, "\x00"), "--json"))
	return record.ErrorCode(err).ExitCode()
}

func (a *app) execute(ctx context.Context, root *cobra.Command, args []string) error {
	// Without any, the library would take those of the process.
	root.SetArgs(append([]string{}, args...))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		if err := known(root, args); err != nil {
			return err
		}
	}
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		return interrupted(err)
	}
	return err
}

// The groups of the help page.
const (
	groupFacts    = "facts"
	groupPolicies = "policies"
	groupAgent    = "agent"
	groupState    = "state"
	groupOrder    = "order"
	groupData     = "data"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "starter",
		Short:         "Durable memory for AI agents, from the command line",
		Long:          "starter calls a polyphony worker: it proposes facts and policies, keeps notes, searches,\nand assembles the text an agent gets at dispatch. Start a worker with: go run ./worker",
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return a.prepare(cmd, args) },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.out)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())

	f := root.PersistentFlags()
	f.StringVarP(&a.caller.Workspace, "workspace", "w", a.env(envWorkspace, defaultWorkspace), "workspace ($"+envWorkspace+")")
	f.StringVar(&a.caller.Agent, "agent", a.env(envAgent, defaultAgent), "who calls ($"+envAgent+")")
	f.StringVar(&a.caller.Role, "role", a.env(envRole, ""), "role of who calls ($"+envRole+")")
	f.StringVar(&a.caller.Repo, "repo", "", "repository that the call is about")
	f.StringVar(&a.caller.Key, "key", "", "idempotency key: the same call again with it changes nothing twice")
	f.BoolVar(&a.json, "json", false, "print the result as one JSON document")
	f.StringVar(&a.data, "data", "", "data folder of the worker ($POLYPHONY_DATA)")
	f.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long to wait for an answer, 0 for ever; import, consolidate, harmonize, backfill and model install wait for ever unless it is given")

	root.AddGroup(
		&cobra.Group{ID: groupFacts, Title: "Facts:"},
		&cobra.Group{ID: groupPolicies, Title: "Policies and grants:"},
		&cobra.Group{ID: groupAgent, Title: "What one agent keeps and gets:"},
		&cobra.Group{ID: groupState, Title: "What a task has committed to:"},
		&cobra.Group{ID: groupOrder, Title: "Keeping memory in order:"},
		&cobra.Group{ID: groupData, Title: "Data and state:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupFacts, a.proposeFact(), a.supersede(), a.restore(), a.history(), a.facts(), a.meeting())
	add(groupPolicies, a.proposePolicy(), a.supersedePolicy(), a.policies(), a.domains(), a.grants())
	add(groupAgent, a.dispatch(), a.search(), a.notes(), a.observe(), a.remember())
	add(groupState, a.state(), a.episode())
	add(groupOrder, a.consolidate(), a.harmonize(), a.conflicts(), a.resolve(), a.beliefs(), a.backfill())
	add(groupData, a.importFile(), a.export(), a.health(), a.workspaces(), a.model())
	root.AddCommand(a.version())
	return root
}

// prepare runs before every command.
func (a *app) prepare(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	a.flagged = flags.Changed("workspace")
	a.chosen = a.flagged || a.env(envWorkspace, "") != ""
	a.timed = flags.Changed("timeout")
	if a.timeout < 0 {
		return usage("timeout", "a timeout is not negative")
	}
	return checkArguments(cmd, args)
}

// group makes a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		// A flag of a mistyped command must not hide the mistake.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				var names []string
				for _, c := range cmd.Commands() {
					names = append(names, c.Name())
				}
				return hinted(usage("", "say what to do: %s", strings.Join(names, ", ")), cmd.CommandPath()+" --help")
			}
			return unknownCommand(cmd, args[0])
		},
	}
	c.AddCommand(commands...)
	return c
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Help about any command",
		// Help needs neither a worker nor valid settings.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := known(cmd.Root(), args); err != nil {
				return err
			}
			c, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
