package cli

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) health() *cobra.Command {
	var deep bool
	var shards string
	c := &cobra.Command{
		Use: "health", Short: "Show the state of the workspace's file, index and queue", Args: positional(),
		Long: "health asks the worker for the state of the workspace. Without a workspace named, it is enough that the worker\nanswers: a worker that holds no default workspace yet is well.\nWith --shards it asks the workers of those shards whether they answer, and nothing about a workspace.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("shards") {
				if deep {
					return usage("deep", "the pages of a file are checked for a workspace, not for shards")
				}
				return a.checkShards(cmd.Context(), shards)
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.Health, error) { return b.Health(ctx, a.reader(), deep) })
			if record.ErrorCode(err) == record.NotFound && !a.chosen {
				out = record.Health{Workspace: a.caller.Workspace, OK: true, Problems: []string{}}
				return a.emit(out, func(o *output) { o.line("The worker answers; workspace %s holds nothing yet.", out.Workspace) })
			}
			if err != nil {
				return err
			}
			if out.Problems == nil {
				out.Problems = []string{}
			}
			report := healthReport{Health: out}
			report.Engine, report.Gateway = a.backend.Place()
			if err := a.emit(report, func(o *output) { state(o, report) }); err != nil {
				return err
			}
			if !out.OK {
				return hinted(record.Errorf(record.StoreCorrupt, "", "workspace %s is not well: %s", out.Workspace, count(len(out.Problems), "problem", "problems")), "starter health --deep, and a copy of the file before anything else")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&deep, "deep", false, "check every page of the file; takes longer")
	c.Flags().StringVar(&shards, "shards", "", "ask the workers of these shards, like 0-7 or 0,3; all is \"\"")
	return c
}

// checkShards asks the workers of some shards whether they answer.
func (a *app) checkShards(ctx context.Context, shards string) error {
	asked, err := call(ctx, a, func(ctx context.Context, b backend) ([]int, error) { return b.CheckShards(ctx, shards) })
	if err != nil {
		return err
	}
	return a.emit(map[string]any{"ok": true, "shards": asked}, func(o *output) { o.line("%s.", count(len(asked), "shard answers", "shards answer")) })
}

// healthReport is the health of a workspace and where its worker is.
type healthReport struct {
	record.Health
	Engine  string `json:"engine"`
	Gateway string `json:"gateway,omitempty"`
}

func state(o *output, h healthReport) {
	verdict := "is well"
	if !h.OK {
		verdict = "is not well"
	}
	o.line("%s", o.bold("Workspace "+h.Workspace+" "+verdict))
	for _, p := range h.Problems {
		o.line("  problem: %s", oneLine(p))
	}
	for _, w := range h.Warnings {
		o.line("  warning: %s", oneLine(w))
	}
	o.pairs(
		[2]string{"engine", h.Engine},
		[2]string{"gateway", h.Gateway},
		[2]string{"file", fmt.Sprintf("%s, log %s, schema %d", size(h.FileBytes), size(h.WALBytes), h.SchemaVersion)},
		[2]string{"facts", fmt.Sprintf("%d current of %d, %d indexed", h.FactsActive, h.FactsTotal, h.Indexed)},
		[2]string{"policies", fmt.Sprintf("%d in %s", h.Policies, count(h.Domains, "domain", "domains"))},
		[2]string{"conflicts", fmt.Sprintf("%d open", h.OpenConflicts)},
		[2]string{"beliefs", fmt.Sprint(h.Beliefs)},
		[2]string{"session items", fmt.Sprint(h.SessionItems)},
		[2]string{"obligations", fmt.Sprintf("%d not closed, %d in doubt", h.Obligations, h.InDoubt)},
		[2]string{"episodes", fmt.Sprint(h.Episodes)},
		[2]string{"edges", fmt.Sprint(h.Edges)},
		[2]string{"vectors", vectors(h.Health)},
		[2]string{"operations", fmt.Sprintf("%d done, %d waiting", h.Operations, h.Queue)},
		[2]string{"consolidated", moment(h.LastConsolidated)},
		[2]string{"harmonized", moment(h.LastHarmonized)},
	)
}

// vectors says how many facts have one, and of which model new ones are.
func vectors(h record.Health) string {
	if h.Model == "" {
		return "no embedding model"
	}
	return fmt.Sprintf("%d of %s, %d waiting, %s, index %s", h.Embedded, count(h.FactsTotal, "fact", "facts"), h.EmbeddingQueue, h.Model, h.VectorIndex)
}

func (a *app) workspaces() *cobra.Command {
	return &cobra.Command{
		Use: "workspaces", Short: "List the workspaces of all shards", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := call(cmd.Context(), a, func(ctx context.Context, b backend) ([]string, error) { return b.Workspaces(ctx, a.reader()) })
			if err != nil {
				return err
			}
			if all == nil {
				all = []string{}
			}
			return a.emit(map[string]any{"workspaces": all}, func(o *output) {
				if len(all) == 0 {
					o.line("No workspaces yet; the first write makes one.")
				}
				for _, id := range all {
					o.line("%s", id)
				}
			})
		},
	}
}

// buildVersion is what the version command says.
type buildVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: positional(),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion{Version: "unknown"}
			if info, ok := debug.ReadBuildInfo(); ok {
				v = versionOf(info)
			}
			return a.emit(v, func(o *output) {
				parts := []string{"starter", v.Version}
				if v.Revision != "" {
					parts = append(parts, "revision", v.Revision)
				}
				if v.Time != "" {
					parts = append(parts, "of", v.Time)
				}
				if v.Modified {
					parts = append(parts, "(modified)")
				}
				o.line("%s, %s", strings.Join(parts, " "), v.Go)
			})
		},
	}
}

func versionOf(info *debug.BuildInfo) buildVersion {
	v := buildVersion{Version: or(info.Main.Version, "(devel)"), Go: info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
