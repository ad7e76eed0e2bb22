package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

func (a *app) consolidate() *cobra.Command {
	var in record.Consolidate
	c := &cobra.Command{
		Use: "consolidate", Short: "Expire, promote, merge and archive", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Caller = a.reader()
			if err := record.CheckName("for_agent", in.ForAgent); err != nil {
				return err
			}
			bar := a.phaseBar("Consolidating", record.ConsolidationPhases())
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.ConsolidationReport, error) {
				return b.ConsolidateMemory(ctx, in, bar.phase())
			})
			bar.close()
			if err != nil {
				return err
			}
			if out.Skipped == nil {
				out.Skipped = []string{}
			}
			return a.emit(out, func(o *output) { consolidated(o, out, in.DryRun) })
		},
	}
	c.Flags().StringVar(&in.ForAgent, "for-agent", "", "only what this agent keeps")
	c.Flags().BoolVar(&in.DryRun, "dry-run", false, "only list what would happen")
	return c
}

func consolidated(o *output, r record.ConsolidationReport, dryRun bool) {
	o.line("%s %s considered", o.bold(heading("Consolidated:", dryRun)), count(r.Considered, "item", "items"))
	if r.Promoted+r.ReMentioned+r.Merged+r.Archived+r.Expired+r.Conflicts == 0 {
		o.line("  Nothing needed doing.")
	} else {
		o.line("  %d promoted, %d re-mentioned, %d merged, %d archived, %d expired, %s", r.Promoted, r.ReMentioned, r.Merged, r.Archived, r.Expired, count(r.Conflicts, "conflict", "conflicts"))
	}
	skipped(o, r.Skipped)
	wouldChange(o, r.Would)
}

func skipped(o *output, reasons []string) {
	for _, s := range reasons {
		o.line("  skipped: %s", brief(s))
	}
}

// wouldChange lists what a dry run would do.
func wouldChange(o *output, changes record.Changes) {
	for _, c := range changes {
		o.line("  %s  %s  %s", o.bold(c.What), c.ID, quoted(c.Content))
		if c.Other != "" {
			o.line("    with %s", c.Other)
		}
		if c.Reason != "" {
			o.line("    %s", o.dim(brief(c.Reason)))
		}
	}
	if len(changes) == record.MaxChanges {
		o.line("  The list ends here; the counts are of everything.")
	}
}

// heading says that nothing was changed after a dry run.
func heading(done string, dryRun bool) string {
	if dryRun {
		return "A dry run, nothing is changed:"
	}
	return done
}

func (a *app) harmonize() *cobra.Command {
	var in record.Harmonize
	c := &cobra.Command{
		Use: "harmonize", Short: "Find what several agents hold, and where they disagree", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Caller = a.reader()
			bar := a.phaseBar("Harmonizing", record.HarmonizationPhases())
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.HarmonizationReport, error) {
				return b.HarmonizeMemory(ctx, in, bar.phase())
			})
			bar.close()
			if err != nil {
				return err
			}
			if out.Skipped == nil {
				out.Skipped = []string{}
			}
			return a.emit(out, func(o *output) {
				o.line("%s %s considered", o.bold(heading("Harmonized:", in.DryRun)), count(out.Considered, "fact", "facts"))
				o.line("  beliefs: %d created, %d updated, %d removed", out.BeliefsCreated, out.BeliefsUpdated, out.BeliefsRemoved)
				o.line("  conflicts between agents: %d opened", out.ConflictsOpened)
				skipped(o, out.Skipped)
				wouldChange(o, out.Would)
			})
		},
	}
	c.Flags().BoolVar(&in.DryRun, "dry-run", false, "only list what would happen")
	return c
}

func (a *app) conflicts() *cobra.Command {
	in := record.ReadMemory{What: record.ReadConflicts}
	c := &cobra.Command{
		Use: "conflicts", Short: "List pairs of facts that met, newest first", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := rows[record.Conflict](cmd.Context(), a, in)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"conflicts": all}, func(o *output) {
				switch {
				case len(all) == 0 && in.OpenOnly:
					o.line("No open conflicts.")
				case len(all) == 0:
					o.line("No conflicts yet.")
				}
				for _, c := range all {
					conflictRow(o, c)
				}
			})
		},
	}
	c.Flags().BoolVar(&in.OpenOnly, "open", false, "only those that wait for a decision")
	return c
}

func conflictRow(o *output, c record.Conflict) {
	state := "open"
	if !c.Open {
		state = "closed: " + or(c.Resolution, "resolved")
		if c.ResolvedBy != "" {
			state += " by " + oneLine(c.ResolvedBy)
		}
	}
	o.line("%s  %s, %s, %s", c.ID, o.bold(string(c.Kind)), state, moment(c.CreatedAt))
	for _, side := range [][2]string{{c.FactA, c.ContentA}, {c.FactB, c.ContentB}} {
		mark := ""
		switch side[0] {
		case c.Winner:
			mark = "  won"
		case c.Loser:
			mark = "  lost"
		}
		text := side[0]
		if side[1] != "" {
			text += "  " + quoted(side[1])
		}
		o.line("    %s%s", text, mark)
	}
	if c.Reason != "" {
		o.line("    %s", o.dim(brief(c.Reason)))
	}
	if !c.JudgedAt.IsZero() {
		o.line("    %s", o.dim(brief(fmt.Sprintf("judge %s: %s. %s", oneLine(or(c.Judge, "none")), or(c.Judgement, "no usable answer"), oneLine(c.JudgeWords)))))
	}
}

func (a *app) resolve() *cobra.Command {
	var in record.ResolveConflict
	c := &cobra.Command{
		Use: "resolve ID --winner FACT|both", Short: "Close an open conflict", Args: positional("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need(cmd, "winner"); err != nil {
				return err
			}
			in.Caller, in.ConflictID = a.caller, args[0]
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.ResolveConflictResult, error) {
				return b.ResolveConflict(ctx, in)
			})
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				c := out.Conflict
				if c.Winner == "" {
					o.line("%s conflict %s: both hold", o.bold("Resolved"), c.ID)
					return
				}
				o.line("%s conflict %s: %s stays, %s is superseded", o.bold("Resolved"), c.ID, c.Winner, c.Loser)
			})
		},
	}
	c.Flags().StringVar(&in.Winner, "winner", "", "the fact that stays, or both")
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the history")
	return c
}

func (a *app) beliefs() *cobra.Command {
	return &cobra.Command{
		Use: "beliefs", Short: "List what several agents hold", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := rows[record.Belief](cmd.Context(), a, record.ReadMemory{What: record.ReadBeliefs})
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"beliefs": all}, func(o *output) {
				if len(all) == 0 {
					o.line("No beliefs yet; starter harmonize finds them.")
				}
				for _, b := range all {
					o.line("%s  %s", b.ID, quoted(b.Statement))
					o.line("    %s", o.dim(fmt.Sprintf("%s, confidence %s, held by %s", place(b.Domain, b.Topic), share(b.Confidence), brief(strings.Join(b.Agents, ", ")))))
				}
			})
		},
	}
}

// phase returns the receiver of a maintenance run's progress, nil without a
// bar.
func (b *bar) phase() func(workflows.MaintenanceProgress) {
	if b == nil {
		return nil
	}
	return func(p workflows.MaintenanceProgress) {
		name := ""
		if p.Phase < len(b.phases) {
			name = b.phases[p.Phase]
		}
		b.set(p.Phase, fmt.Sprintf("%s: %s, %s", b.title, name, count(p.Pages, "page", "pages")))
	}
}
