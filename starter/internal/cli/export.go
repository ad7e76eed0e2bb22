package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// exported is the summary of an export.
type exported struct {
	Workspace string `json:"workspace"`
	Format    string `json:"format"`
	Facts     int64  `json:"facts"`
	// Omitted counts what the workspace holds and the export does not.
	Omitted map[string]int64 `json:"omitted"`
	// NeverExported names what the format does not carry.
	NeverExported []string `json:"never_exported"`
}

func (a *app) export() *cobra.Command {
	in := record.ReadMemory{What: record.ReadFacts}
	var format string
	c := &cobra.Command{
		Use: "export", Short: "Write facts to standard output, one JSON object a line",
		Long: "export writes the current facts of a workspace, oldest first, in the form that import reads. What it leaves out\nit says on standard error (with --json as a JSON object).",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != formatJSONL {
				return usage("format", "unknown format %q; allowed: jsonl", shorten(format, 40))
			}
			sum := exported{
				Workspace: a.caller.Workspace, Format: format, Omitted: map[string]int64{},
				NeverExported: []string{"policies", "notes", "observations", "session_items", "grants", "conflicts", "beliefs", "edges", "meetings", "history", "obligations", "episodes"},
			}
			w := bufio.NewWriterSize(a.out, 1<<16)
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			err := pages(cmd.Context(), a, in, func(facts []record.Fact) error {
				for _, f := range facts {
					if err := enc.Encode(f); err != nil {
						return record.Wrap(record.Unavailable, err, "the output could not be written: %v", err)
					}
					sum.Facts++
				}
				return nil
			})
			if err == nil {
				err = w.Flush()
			}
			if err != nil {
				return err
			}
			a.leftOut(cmd.Context(), &sum, in.All)
			if a.json {
				(&output{w: a.stderr}).json(map[string]exported{"export": sum})
				return nil
			}
			a.exportWords(sum, in.All)
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", formatJSONL, "jsonl")
	c.Flags().BoolVar(&in.All, "all", false, "superseded, archived and expired facts too; import leaves them out")
	return c
}

// leftOut counts what the export does not hold, as far as the worker says.
func (a *app) leftOut(ctx context.Context, sum *exported, all bool) {
	h, err := call(ctx, a, func(ctx context.Context, b backend) (record.Health, error) { return b.Health(ctx, a.reader(), false) })
	if err != nil {
		return
	}
	held := h.FactsActive
	if all {
		held = h.FactsTotal
	} else {
		sum.Omitted["not_current"] = max(0, h.FactsTotal-h.FactsActive)
	}
	sum.Omitted["hidden"] = max(0, held-sum.Facts)
	sum.Omitted["policies"], sum.Omitted["beliefs"], sum.Omitted["session_items"] = h.Policies, h.Beliefs, h.SessionItems
	sum.Omitted["obligations"], sum.Omitted["episodes"] = h.Obligations, h.Episodes
	for what, n := range sum.Omitted {
		if n == 0 {
			delete(sum.Omitted, what)
		}
	}
}

func (a *app) exportWords(sum exported, all bool) {
	kind := "current "
	if all {
		kind = ""
	}
	a.note("Exported %s of workspace %s.", count(sum.Facts, kind+"fact", kind+"facts"), sum.Workspace)
	var parts []string
	for _, part := range []struct{ what, one, many string }{
		{"not_current", "fact that is no longer current (--all writes it)", "facts that are no longer current (--all writes them)"},
		{"hidden", "fact that the role may not see or that changed meanwhile", "facts that the role may not see or that changed meanwhile"},
		{"policies", "policy", "policies"}, {"beliefs", "belief", "beliefs"}, {"session_items", "session item", "session items"},
		{"obligations", "obligation that is not closed", "obligations that are not closed"}, {"episodes", "episode", "episodes"},
	} {
		if n := sum.Omitted[part.what]; n > 0 {
			parts = append(parts, count(n, part.one, part.many))
		}
	}
	if len(parts) > 0 {
		a.note("Left out: %s.", strings.Join(parts, ", "))
	}
	a.note("The format holds facts only: no %s.", strings.ReplaceAll(strings.Join(sum.NeverExported, ", "), "_", " "))
}
