package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) proposeFact() *cobra.Command {
	var in record.ProposeFact
	var confidence float64
	var validUntil string
	c := &cobra.Command{
		Use: "propose-fact --domain D --topic T --content C", Short: "Add a fact, or find that it is known, refines or contradicts what is known",
		Example: `  starter propose-fact --domain architecture --topic storage --content "Billing data is in Postgres" --veracity stated`,
		Args:    positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := need(cmd, "domain", "topic", "content"); err != nil {
				return err
			}
			in.Caller, in.Confidence = a.caller, optional(cmd, "confidence", confidence)
			var err error
			if validUntil != "" {
				in.ValidUntil, err = record.ParseTime("valid_until", validUntil)
			}
			if err := firstError(err, second(record.ParseVeracity(in.Veracity)), second(record.ParseMemoryType(in.MemoryType)), record.CheckShare("confidence", in.Confidence)); err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.ProposeFactResult, error) { return b.ProposeFact(ctx, in) })
			if err != nil {
				return err
			}
			if out.Conflicts == nil {
				out.Conflicts = []record.ConflictRef{}
			}
			return a.emit(out, func(o *output) { proposed(o, out) })
		},
	}
	f := c.Flags()
	f.StringVar(&in.Domain, "domain", "", "domain, like architecture or repo:<slug>/architecture")
	f.StringVar(&in.Topic, "topic", "", "topic; facts of one topic are compared with each other")
	f.StringVar(&in.Content, "content", "", "the statement")
	f.StringVar(&in.Veracity, "veracity", "", "how it was come by: stated, inferred, imported, tool or unknown (default inferred)")
	f.Float64Var(&confidence, "confidence", 0, "0 to 1 (default the veracity's weight)")
	f.StringVar(&in.MemoryType, "type", "", "memory type (default: classified from the content)")
	f.StringVar(&validUntil, "valid-until", "", "until when it holds: a date, or a time like 2027-01-31T09:00:00Z")
	f.StringArrayVar(&in.SourceObservationIDs, "source-observation", nil, "observation that it comes from; may be given again")
	f.BoolVar(&in.DryRun, "dry-run", false, "say what would happen and write nothing")
	return c
}

func proposed(o *output, r record.ProposeFactResult) {
	verbs := map[record.ProposalStatus]string{
		record.StatusCreated: "Created", record.StatusReMentioned: "Re-mentioned", record.StatusRefined: "Refined what was known with",
		record.StatusSupersededBy: "Stored as superseded:",
	}
	would := map[record.ProposalStatus]string{
		record.StatusCreated: "it would be created.", record.StatusReMentioned: "it would re-mention fact " + r.FactID + ".",
		record.StatusRefined: "it would refine what is known.", record.StatusSupersededBy: "it would be superseded by what is known.",
	}
	if r.DryRun {
		o.line("%s %s", o.bold("Dry run, nothing written:"), or(would[r.Status], string(r.Status)))
	} else {
		o.line("%s fact %s", o.bold(or(verbs[r.Status], string(r.Status))), r.FactID)
	}
	more := [][2]string{
		{"in", place(r.Domain, r.Topic)},
		{"type", string(r.MemoryType)},
		{"confidence", share(r.Confidence) + ", " + count(r.MentionCount, "mention", "mentions")},
	}
	for _, c := range r.Conflicts {
		text := verdict(c, r.FactID)
		if !r.DryRun {
			text += " (conflict " + c.ID + ")"
		}
		more = append(more, [2]string{string(c.Kind), text}, [2]string{"", brief(c.Reason)})
	}
	o.pairs(more...)
}

// verdict says how a conflict row of the fact self stands.
func verdict(c record.ConflictRef, self string) string {
	switch {
	case c.Winner == "":
		return "with " + c.Other + ", open for review"
	case c.Winner == self:
		return "won over " + c.Loser
	case c.Loser == self:
		return "lost to " + c.Winner
	}
	return c.Winner + " won over " + c.Loser
}

func (a *app) supersede() *cobra.Command {
	var in record.SupersedeFact
	c := &cobra.Command{
		Use: "supersede OLD NEW", Short: "Retire one fact in favour of another", Args: positional("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.Old, in.New = a.caller, args[0], args[1]
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.SupersedeFactResult, error) {
				return b.SupersedeFact(ctx, in)
			})
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s fact %s", o.bold("Superseded"), out.Old)
				o.pairs([2]string{"by", out.New}, [2]string{"conflict", out.ConflictID}, [2]string{"undo with", "starter restore " + out.Old})
			})
		},
	}
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the history")
	return c
}

func (a *app) restore() *cobra.Command {
	var in record.RestoreFact
	c := &cobra.Command{
		Use: "restore FACT", Short: "Make a superseded or archived fact current again", Args: positional("FACT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.FactID = a.caller, args[0]
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.RestoreFactResult, error) { return b.RestoreFact(ctx, in) })
			if err != nil {
				return err
			}
			if out.ConflictIDs == nil {
				out.ConflictIDs = []string{}
			}
			return a.emit(out, func(o *output) {
				o.line("%s fact %s, which was %s", o.bold("Restored"), out.FactID, or(out.Was, "current"))
				for _, id := range out.ConflictIDs {
					o.line("  reopened conflict %s", id)
				}
			})
		},
	}
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the history")
	return c
}

func (a *app) history() *cobra.Command {
	return &cobra.Command{
		Use: "history FACT", Short: "Show the whole chain a fact belongs to: who, when, why", Args: positional("FACT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.FactHistory, error) {
				return b.History(ctx, a.reader(), args[0])
			})
			if err != nil {
				return err
			}
			if out.Chain == nil {
				out.Chain = []record.Fact{}
			}
			if out.Events == nil {
				out.Events = []record.FactEvent{}
			}
			return a.emit(out, func(o *output) { a.chain(o, out) })
		},
	}
}

func (a *app) chain(o *output, h record.FactHistory) {
	o.line("%s", o.bold(count(len(h.Chain), "version", "versions, oldest first")))
	for _, f := range h.Chain {
		asked := ""
		if f.ID == h.FactID && len(h.Chain) > 1 {
			asked = "  (asked for)"
		}
		o.line("%s  %s%s", f.ID, a.standing(f), asked)
		o.line("  %s", quoted(f.Content))
		o.line("  %s, %s, confidence %s", place(f.Domain, f.Topic), f.Veracity, share(f.Confidence))
		for _, e := range h.Events {
			if e.FactID != f.ID {
				continue
			}
			text := moment(e.At) + "  " + e.Kind + " by " + who(e.Agent, e.Role)
			if e.Other != "" {
				text += ", other fact " + e.Other
			}
			if e.Reason != "" {
				text += ": " + brief(e.Reason)
			}
			o.line("    %s", text)
		}
	}
}

// standing says whether a fact is current, and if not, why.
func (a *app) standing(f record.Fact) string {
	switch {
	case !f.SupersededAt.IsZero() && f.SupersededBy == "":
		return or(f.SupersededKind, "superseded")
	case !f.SupersededAt.IsZero():
		return "superseded"
	case !f.ArchivedAt.IsZero():
		return "archived"
	case f.Expired(record.At(a.clock.now())):
		return "expired"
	}
	return "current"
}

func (a *app) facts() *cobra.Command {
	in := record.ReadMemory{What: record.ReadFacts}
	c := &cobra.Command{
		Use: "facts", Short: "List facts, oldest first", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("subject") {
				if strings.TrimSpace(in.Subject) == "" {
					return usage("subject", "name the subject whose facts are wanted")
				}
				in.What = record.ReadSubject
			}
			all, err := rows[record.Fact](cmd.Context(), a, in)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"facts": all}, func(o *output) {
				if len(all) == 0 {
					about := ""
					if in.Subject != "" {
						about = " about " + quoted(in.Subject)
					}
					o.line("No facts%s%s yet.", about, within(in.Domain))
					return
				}
				heading := []string{"ID", "IN", "TYPE", "CONF", "CONTENT"}
				if in.All {
					heading = []string{"ID", "STATE", "IN", "TYPE", "CONF", "CONTENT"}
				}
				table := make([][]string, len(all))
				for i, f := range all {
					table[i] = []string{f.ID, place(f.Domain, f.Topic), string(f.MemoryType), share(f.Confidence), brief(f.Content)}
					if in.All {
						table[i] = append([]string{f.ID, a.standing(f)}, table[i][1:]...)
					}
				}
				o.table(heading, table)
			})
		},
	}
	c.Flags().StringVar(&in.Domain, "domain", "", "only this domain")
	c.Flags().StringVar(&in.Subject, "subject", "", "only those about this subject: filed under it, or naming it word for word")
	c.Flags().BoolVar(&in.All, "all", false, "superseded, archived and expired ones too")
	return c
}
