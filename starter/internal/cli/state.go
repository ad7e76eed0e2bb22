package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) state() *cobra.Command {
	return group("state", "What a task has committed to: steps that are done once, in order",
		a.stateOpen(), a.stateClaim(), a.stateCommit(), a.stateFail(), a.stateCancel(), a.stateWait(), a.stateList(), a.stateCheck())
}

// stepArgs are the positional arguments that name an obligation.
var stepArgs = []string{"TASK", "STEP"}

func stepOf(args []string) record.StepRef { return record.StepRef{TaskID: args[0], Step: args[1]} }

// writeState runs a write to an obligation and prints what it did.
func (a *app) writeState(ctx context.Context, f func(context.Context, backend) (record.ObligationResult, error)) error {
	out, err := call(ctx, a, f)
	if err != nil {
		return err
	}
	return a.emit(out, func(o *output) { obligationWords(o, out) })
}

func obligationWords(o *output, r record.ObligationResult) {
	b := r.Obligation
	verbs := map[record.ObligationOutcome]string{
		record.OutcomeOpened: "Opened", record.OutcomeExists: "Known:", record.OutcomeClaimed: "Claimed", record.OutcomeExtended: "Extended the claim on",
		record.OutcomeHeld: "Held by another, nothing changed:", record.OutcomeCommitted: "Committed", record.OutcomeFailed: "Failed",
		record.OutcomeCancelled: "Cancelled", record.OutcomeClosed: "Closed before, nothing changed:",
	}
	o.line("%s %s of task %s", o.bold(or(verbs[r.Outcome], string(r.Outcome))), oneLine(b.Step), oneLine(b.TaskID))
	rows := [][2]string{{"state", standingOf(b)}, {"key", b.Key}, {"kind", oneLine(b.Kind)}, {"after", brief(strings.Join(b.After, ", "))}}
	if b.State == record.ObligationClaimed {
		rows = append(rows, [2]string{"claim", strconv.FormatInt(b.Claim, 10) + " by " + oneLine(b.ClaimedBy) + ", until " + moment(b.LeaseUntil)})
	}
	if !b.Deadline.IsZero() {
		rows = append(rows, [2]string{"deadline", moment(b.Deadline)})
	}
	if b.State.Closed() {
		rows = append(rows, [2]string{"closed", moment(b.ClosedAt) + " by " + or(oneLine(b.ClosedBy), "its deadline")})
	}
	o.pairs(append(rows, [2]string{"result", brief(b.Result)}, [2]string{"reason", brief(b.Reason)})...)
	if d := r.Doubt; d != nil {
		o.line("%s claim %d, held by %s until %s, never told how it ended.", o.bold("In doubt:"), d.Claim, oneLine(d.ClaimedBy), moment(d.LeaseUntil))
		o.line("Before you act, ask the outside system whether it knows the key %s.", d.Key)
	}
}

// standingOf says where an obligation stands.
func standingOf(b record.Obligation) string {
	if b.InDoubt {
		return string(b.State) + ", in doubt"
	}
	return string(b.State)
}

func (a *app) stateOpen() *cobra.Command {
	var in record.OpenObligation
	var deadline string
	c := &cobra.Command{
		Use: "open TASK STEP", Short: "Commit a task to a step; the same again finds it",
		Example: "  starter state open order-7 ship --after pay --after pack --deadline 2027-01-31T18:00:00Z",
		Args:    positional(stepArgs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.StepRef = a.caller, stepOf(args)
			if deadline != "" {
				var err error
				if in.Deadline, err = record.ParseTime("deadline", deadline); err != nil {
					return err
				}
			}
			return a.writeState(cmd.Context(), func(ctx context.Context, b backend) (record.ObligationResult, error) { return b.StateOpen(ctx, in) })
		},
	}
	c.Flags().StringVar(&in.Kind, "kind", "", "what the step does, like payment")
	c.Flags().StringArrayVar(&in.After, "after", nil, "step of the same task that must be done first; may be given again")
	c.Flags().StringVar(&deadline, "deadline", "", "when it expires: a date, or a time like 2027-01-31T09:00:00Z")
	return c
}

func (a *app) stateClaim() *cobra.Command {
	var in record.ClaimObligation
	var lease time.Duration
	c := &cobra.Command{
		Use: "claim TASK STEP", Short: "Take a step, so that only you act until the lease ends", Args: positional(stepArgs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.StepRef = a.caller, stepOf(args)
			if lease < time.Second || lease%time.Second != 0 {
				return usage("lease_seconds", "a lease is whole seconds, one or more")
			}
			in.LeaseSeconds = int64(lease / time.Second)
			return a.writeState(cmd.Context(), func(ctx context.Context, b backend) (record.ObligationResult, error) { return b.StateClaim(ctx, in) })
		},
	}
	c.Flags().DurationVar(&lease, "lease", record.DefaultLeaseSeconds*time.Second, "how long the claim holds")
	c.Flags().Int64Var(&in.Claim, "claim", 0, "number of your own claim, whose lease begins anew")
	return c
}

func (a *app) stateCommit() *cobra.Command {
	var in record.CommitObligation
	var wait bool
	c := &cobra.Command{
		Use: "commit TASK STEP", Short: "Record that a step is done, and its result",
		Long: "commit records that a step is done. When another was first, it says who, and with which result. With --wait it\nwaits until every step before it is done, instead of saying which are not.",
		Args: positional(stepArgs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.StepRef = a.caller, stepOf(args)
			return a.writeState(cmd.Context(), func(ctx context.Context, b backend) (record.ObligationResult, error) {
				if wait {
					return b.CommitObligation(ctx, in)
				}
				return b.StateCommit(ctx, in)
			})
		},
	}
	c.Flags().StringVar(&in.Result, "result", "", "what came of it, for whoever asks later")
	c.Flags().Int64Var(&in.Claim, "claim", 0, "number of the claim you acted under (default: the claim of --agent)")
	c.Flags().BoolVar(&wait, "wait", false, "wait for the steps before it, as long as --timeout")
	return c
}

func (a *app) stateFail() *cobra.Command {
	var in record.FailObligation
	c := &cobra.Command{
		Use: "fail TASK STEP", Short: "Record that a step was tried and cannot be done", Args: positional(stepArgs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.StepRef = a.caller, stepOf(args)
			return a.writeState(cmd.Context(), func(ctx context.Context, b backend) (record.ObligationResult, error) { return b.StateFail(ctx, in) })
		},
	}
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the record")
	c.Flags().Int64Var(&in.Claim, "claim", 0, "number of the claim you acted under (default: the claim of --agent)")
	return c
}

func (a *app) stateCancel() *cobra.Command {
	var in record.CancelObligation
	c := &cobra.Command{
		Use: "cancel TASK STEP", Short: "Record that a step is no longer wanted", Args: positional(stepArgs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.StepRef = a.caller, stepOf(args)
			return a.writeState(cmd.Context(), func(ctx context.Context, b backend) (record.ObligationResult, error) { return b.StateCancel(ctx, in) })
		},
	}
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the record")
	c.Flags().Int64Var(&in.Claim, "claim", 0, "number of the claim that it is withdrawn under (default: the claim of --agent)")
	return c
}

func (a *app) stateWait() *cobra.Command {
	return &cobra.Command{
		Use: "wait TASK STEP", Short: "Wait until a step is closed, and show how", Args: positional(stepArgs...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.writeState(cmd.Context(), func(ctx context.Context, b backend) (record.ObligationResult, error) {
				return b.AwaitObligation(ctx, a.reader(), stepOf(args))
			})
		},
	}
}

func (a *app) stateList() *cobra.Command {
	in := record.ReadMemory{What: record.ReadObligations}
	c := &cobra.Command{
		Use: "list", Short: "List obligations in the order they were opened", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := rows[record.Obligation](cmd.Context(), a, in)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"obligations": all}, func(o *output) {
				if len(all) == 0 {
					o.line("No obligations.")
					return
				}
				table := make([][]string, len(all))
				for i, b := range all {
					by := b.ClosedBy
					if !b.State.Closed() {
						by = b.ClaimedBy
					}
					table[i] = []string{oneLine(b.TaskID), oneLine(b.Step), standingOf(b), or(oneLine(by), "-"), or(brief(strings.Join(b.After, ", ")), "-"), moment(b.Deadline), brief(or(b.Result, b.Reason))}
				}
				o.table([]string{"TASK", "STEP", "STATE", "BY", "AFTER", "DEADLINE", "RESULT"}, table)
			})
		},
	}
	c.Flags().StringVar(&in.TaskID, "task", "", "only this task")
	c.Flags().BoolVar(&in.OpenOnly, "open", false, "only what is not closed")
	return c
}

func (a *app) stateCheck() *cobra.Command {
	return fileCommand(&cobra.Command{
		Use: "check FILE", Short: "Hold statements against the record (- is standard input)",
		Long: "check reads the statements that an agent holds, one a line or a JSON array of strings, and says which of them are\nstale or contradicted by the record, and what the record says now.",
		Args: positional("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			statements, err := a.readStatements(args[0])
			if err != nil {
				return err
			}
			all, err := rows[record.CheckedStatement](cmd.Context(), a, record.ReadMemory{What: record.ReadCheck, Context: statements})
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"statements": all}, func(o *output) {
				for _, s := range all {
					o.line("%s  %s", o.bold(string(s.Standing)), quoted(s.Statement))
					for _, n := range s.Now {
						o.line("  now: %s, %s (fact %s)", quoted(n.Content), place(n.Domain, n.Topic), n.FactID)
						if n.Reason != "" {
							o.line("       %s", brief(n.Reason))
						}
					}
					if s.Standing == record.StandingStale && len(s.Now) == 0 {
						o.line("  it was withdrawn; nothing took its place")
					}
				}
			})
		},
	})
}

func (a *app) episode() *cobra.Command {
	return group("episode", "What was said in a task: searchable, and without authority", a.episodeAdd(), a.episodeSearch())
}

func (a *app) episodeAdd() *cobra.Command {
	var in record.AppendEpisode
	c := &cobra.Command{
		Use: "add TASK TEXT", Short: "Keep what was said in a task", Args: positional("TASK", "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.TaskID, in.Content = a.caller, args[0], args[1]
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.AppendEpisodeResult, error) {
				return b.AppendEpisode(ctx, in)
			})
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s episode %s of task %s", o.bold("Kept"), out.EpisodeID, oneLine(in.TaskID))
			})
		},
	}
	c.Flags().StringVar(&in.EpisodeRole, "as", "", "who spoke: user, agent, tool or any other name (default agent)")
	return c
}

func (a *app) episodeSearch() *cobra.Command {
	in := record.ReadMemory{What: record.ReadEpisodes}
	limit := 10
	c := &cobra.Command{
		Use: "search QUERY", Short: "Find what was said by its words", Args: positional("QUERY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Query, in.Limit = args[0], limit
			if limit < 1 || limit > 100 {
				return usage("limit", "a limit is 1 to 100")
			}
			if strings.TrimSpace(in.Query) == "" {
				return usage("query", "say what to look for")
			}
			all, _, err := page[record.Episode](cmd.Context(), a, in)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"episodes": all}, func(o *output) {
				if len(all) == 0 {
					o.line("Nothing was said that matches.")
					return
				}
				for _, e := range all {
					o.line("%s  %s  %s, task %s", moment(e.CreatedAt), e.ID, oneLine(e.Role), oneLine(e.TaskID))
					o.line("  %s", quoted(e.Content))
				}
			})
		},
	}
	c.Flags().StringVar(&in.TaskID, "task", "", "only this task")
	c.Flags().IntVar(&limit, "limit", limit, "at most this many, 1 to 100")
	return c
}
