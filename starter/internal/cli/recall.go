package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) dispatch() *cobra.Command {
	in := record.Dispatch{}
	var file string
	c := &cobra.Command{
		Use: "dispatch --task TEXT", Short: "Print the text an agent gets with a task: policies, its notes, facts that match",
		Long: "dispatch assembles the preamble of a task and prints it alone on standard output; what else is to say goes to\nstandard error. The facts' part is made for tasks of 20 characters or more.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := need(cmd, "task"); err != nil {
				return err
			}
			in.Caller = a.caller
			if file != "" {
				var err error
				if in.Context, err = a.readStatements(file); err != nil {
					return err
				}
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.Preamble, error) { return b.AssemblePreamble(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.text(out.Text)
				a.asides(out)
			})
		},
	}
	c.Flags().StringVar(&in.Task, "task", "", "what the agent is to do")
	c.Flags().StringVar(&file, "context", "", "file of statements the agent holds, one a line or a JSON array (- is standard input): those no longer true are reported")
	return c
}

// asides says on standard error what stands beside a preamble's text.
func (a *app) asides(p record.Preamble) {
	if p.Text == "" {
		a.note("Nothing to say: no policies, no notes, no facts that match the task.")
	}
	if len(p.Missing) > 0 {
		a.note("Could not be read: %s.", strings.Join(p.Missing, ", "))
	}
	for _, w := range p.Warnings {
		a.note("Warning: %s.", oneLine(w))
	}
	for _, s := range p.Stale {
		now := "withdrawn"
		if s.CurrentID != "" {
			now = "now " + quoted(s.Current) + " (fact " + s.CurrentID + ")"
		}
		a.note("Stale: %s: %s", quoted(s.Statement), now)
	}
}

func (a *app) search() *cobra.Command {
	var in record.Search
	var limit int
	var asOf string
	c := &cobra.Command{
		Use: "search QUERY", Short: "Recall what is relevant to a query", Args: positional("QUERY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.Query, in.Limit = a.reader(), args[0], optional(cmd, "limit", limit)
			var err error
			if asOf != "" {
				in.AsOf, err = record.ParseTime("as_of", asOf)
			}
			if err := firstError(err, second(record.ParseMode(in.Mode))); err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.SearchResult, error) { return b.SearchMemory(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) { found(o, out) })
		},
	}
	f := c.Flags()
	f.StringVar(&in.Mode, "mode", "", "keyword, semantic or hybrid (default hybrid)")
	f.IntVar(&limit, "limit", 10, "facts at most, 0 to 100")
	f.StringVar(&in.Domain, "domain", "", "only this domain")
	f.StringVar(&asOf, "as-of", "", "what was believed at that time")
	return c
}

func found(o *output, r record.SearchResult) {
	if len(r.Facts) == 0 && len(r.Policies) == 0 {
		o.line("Nothing matches.")
	}
	for i, h := range r.Facts {
		o.line("%2d  %s", i+1, brief(h.Content))
		var ranks []string
		for _, voice := range slices.Sorted(maps.Keys(h.Voices)) {
			ranks = append(ranks, fmt.Sprintf("%s %d", voice, h.Voices[voice]))
		}
		more := fmt.Sprintf("%s, score %s, confidence %s", place(h.Domain, h.Topic), share(h.Score), share(h.Confidence))
		if len(ranks) > 0 {
			more += ", ranked " + strings.Join(ranks, ", ")
		}
		if h.HistoryLength > 1 {
			more += fmt.Sprintf(", %d versions", h.HistoryLength)
		}
		o.line("    %s", o.dim(more))
		o.line("    %s", o.dim(h.ID))
	}
	if len(r.Policies) > 0 {
		o.line("%s", o.bold("Policies"))
	}
	for _, p := range r.Policies {
		o.line("    [%s] %s", oneLine(p.Domain), brief(p.Rule))
		o.line("    %s", o.dim(p.ID))
	}
	for _, d := range r.Degraded {
		o.line("%s", o.dim("Without "+oneLine(d)))
	}
}
