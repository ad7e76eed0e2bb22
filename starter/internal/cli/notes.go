package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) notes() *cobra.Command {
	return group("notes", "The page that one agent (--agent) keeps for itself", a.notesGet(), a.notesSet())
}

func (a *app) notesGet() *cobra.Command {
	return &cobra.Command{
		Use: "get", Short: "Print the agent's page", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.Notes, error) { return b.Notes(ctx, a.reader()) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				if out.Text == "" {
					// Beside the page, so that what is piped on is the page.
					a.note("No notes yet for agent %s.", oneLine(out.Agent))
					return
				}
				o.text(out.Text)
			})
		},
	}
}

func (a *app) notesSet() *cobra.Command {
	var version int64
	c := fileCommand(&cobra.Command{
		Use: "set FILE", Short: "Replace the agent's page with a file (- is standard input)", Args: positional("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.caller.Check(); err != nil {
				return err
			}
			text, err := a.readText("text", args[0], record.MaxContentBytes)
			if err != nil {
				return err
			}
			in := record.UpdateNotes{Caller: a.caller, Text: text, ExpectedVersion: optional(cmd, "expect-version", version)}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.UpdateNotesResult, error) { return b.UpdateNotes(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s the notes of agent %s: version %d, %s", o.bold("Replaced"), oneLine(a.caller.Agent), out.Version, size(int64(out.Bytes)))
			})
		},
	})
	c.Flags().Int64Var(&version, "expect-version", 0, "only if the page is at this version; 0 is a page never written")
	return c
}

func (a *app) observe() *cobra.Command {
	return &cobra.Command{
		Use: "observe TEXT", Short: "Append a line to the agent's page; facts may cite it", Args: positional("TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := record.RecordObservation{Caller: a.caller, Text: args[0]}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.RecordObservationResult, error) {
				return b.RecordObservation(ctx, in)
			})
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s %s (notes version %d)", o.bold("Noted observation"), out.ObservationID, out.NotesVersion)
			})
		},
	}
}

func (a *app) remember() *cobra.Command {
	var in record.Remember
	var importance float64
	var ttl string
	c := &cobra.Command{
		Use: "remember TEXT", Short: "Keep something for a while; consolidation may make a fact of it", Args: positional("TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.Content, in.Importance = a.caller, args[0], optional(cmd, "importance", importance)
			if cmd.Flags().Changed("ttl") {
				var err error
				if in.TTLSeconds, err = parseTTL(ttl); err != nil {
					return err
				}
			}
			if err := firstError(second(record.ParseMemoryType(in.MemoryType)), record.CheckShare("importance", in.Importance)); err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.RememberResult, error) { return b.Remember(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s item %s", o.bold("Remembered"), out.ItemID)
				until := "until consolidated"
				if !out.ExpiresAt.IsZero() {
					until = moment(out.ExpiresAt)
				}
				o.pairs([2]string{"session", oneLine(out.SessionID)}, [2]string{"type", string(out.MemoryType)}, [2]string{"kept", until})
			})
		},
	}
	f := c.Flags()
	f.StringVar(&in.SessionID, "session", "", "session that it belongs to")
	f.StringVar(&in.MemoryType, "type", "", "memory type (default: classified from the text)")
	f.Float64Var(&importance, "importance", 0.5, "0 to 1; the confidence asked for if it becomes a fact")
	f.StringVar(&ttl, "ttl", "", "how long it lives, like 90m, 12h or 7d")
	f.StringVar(&in.Domain, "domain", "", "domain of the fact it may become")
	f.StringVar(&in.Topic, "topic", "", "topic of the fact it may become")
	return c
}
