package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) backup() *cobra.Command {
	return group("backup", "Copy a live workspace's file, and put a copy back", a.backupCreate(), a.backupList(), a.backupRestore())
}

func (a *app) backupCreate() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use: "create", Short: "Copy the workspace's file as it is at one moment, while it is used",
		Long: "create has the worker copy the file of the workspace into backups/WORKSPACE in its data folder. Writers and readers go\n" +
			"on meanwhile. The copy is one SQLite file, checked and on the disk when the command ends; take it to another machine.",
		Example: `  starter -w demo backup create --name before-upgrade`,
		Args:    positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("name") {
				name = strings.ToLower(a.clock.now().UTC().Format("20060102t150405.000z"))
			}
			in := record.BackUp{Caller: a.reader(), Name: name}
			if err := in.Check(); err != nil {
				return err
			}
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.Backup, error) { return b.BackUp(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) { backupState(o, "Backup", out) })
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the backup (default: the time)")
	return c
}

func backupState(o *output, verb string, b record.Backup) {
	o.line("%s %s of workspace %s", o.bold(verb), b.Name, b.Workspace)
	o.pairs(
		[2]string{"of", moment(b.MadeAt)},
		[2]string{"file", fmt.Sprintf("%s, schema %d", size(b.Bytes), b.SchemaVersion)},
		[2]string{"facts", fmt.Sprint(b.Facts)},
		[2]string{"sha256", b.SHA256},
	)
}

func (a *app) backupList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the workspace's backups", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := rows[string](cmd.Context(), a, record.ReadMemory{What: record.ReadBackups})
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"backups": names}, func(o *output) {
				if len(names) == 0 {
					o.line("No backups of workspace %s.", a.caller.Workspace)
				}
				for _, name := range names {
					o.line("%s", name)
				}
			})
		},
	}
}

func (a *app) backupRestore() *cobra.Command {
	var in record.RestoreBackup
	c := &cobra.Command{
		Use: "restore NAME", Short: "Put a copy of a backup in the place of the workspace's file",
		Long: "restore makes the workspace what it was when the backup was made. An existing workspace is replaced only with\n" +
			"--overwrite: all that was written since the backup is taken back. With --of the backup is another workspace's,\n" +
			"which is the way to look into an old one without giving up the new.",
		Example: "  starter -w demo backup restore before-upgrade --overwrite\n  starter -w look backup restore before-upgrade --of demo",
		Args:    positional("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.Name = a.reader(), args[0]
			if err := in.Check(); err != nil {
				return err
			}
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.Backup, error) { return b.RestoreBackup(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				backupState(o, "Restored", out)
				if in.Source() != in.Workspace {
					o.line("It is workspace %s now.", in.Workspace)
				}
			})
		},
	}
	c.Flags().StringVar(&in.Of, "of", "", "the workspace that the backup is of (default: the same)")
	c.Flags().BoolVar(&in.Overwrite, "overwrite", false, "replace an existing workspace, and lose what was written since the backup")
	return c
}

func (a *app) doctor() *cobra.Command {
	var in record.Doctor
	c := &cobra.Command{
		Use: "doctor", Short: "Compare index and vectors with the facts, and mend them",
		Long: "doctor has the worker read every page of the workspace's file and compare what is derived from facts with them.\n" +
			"With --repair it makes index, counts and vectors agree again; damaged pages need a backup.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Caller = a.reader()
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.DoctorReport, error) { return b.Doctor(ctx, in) })
			if err != nil {
				return err
			}
			if out.Findings == nil {
				out.Findings = []record.Finding{}
			}
			if err := a.emit(out, func(o *output) { diagnosis(o, out) }); err != nil {
				return err
			}
			if !out.OK {
				return hinted(record.Errorf(record.StoreCorrupt, "", "workspace %s is not well", out.Workspace), cure(out, in.Repair))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&in.Repair, "repair", false, "mend what can be mended")
	return c
}

func diagnosis(o *output, r record.DoctorReport) {
	verdict := "is well"
	if !r.OK {
		verdict = "is not well"
	}
	o.line("%s: %s and %s looked at", o.bold("Workspace "+r.Workspace+" "+verdict), count(r.Facts, "fact", "facts"), count(r.Vectors, "vector", "vectors"))
	for _, f := range r.Findings {
		state := "found"
		if f.Repaired {
			state = "mended"
		}
		o.line("  %s %s: %d, %s", state, strings.ReplaceAll(f.What, "_", " "), f.Count, oneLine(f.Detail))
	}
}

// cure says what to try next.
func cure(r record.DoctorReport, repaired bool) string {
	for _, f := range r.Findings {
		if f.What == record.FindingPages || f.What == record.FindingReferences {
			return "starter backup list, and a copy of the file before anything else"
		}
	}
	if repaired {
		return "starter doctor, once other programs have left the file"
	}
	return "starter doctor --repair"
}

func (a *app) prune() *cobra.Command {
	age := record.MinLedgerAge * 3
	c := &cobra.Command{
		Use: "prune", Short: "Forget idempotency keys that nobody will ask for again",
		Long: "prune forgets the recorded answers of calls that are older than an age and whose runs have ended. The same call\n" +
			"with a forgotten key is a new call. Nothing is pruned unless somebody asks.",
		Example: `  starter -w demo prune --older-than 2160h`,
		Args:    positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := record.PruneLedger{Caller: a.reader(), OlderThanSeconds: int64(age / time.Second)}
			if err := in.Check(); err != nil {
				return err
			}
			bar := a.newBar("Pruning", -1)
			var look func(record.PruneLedgerReport)
			if bar != nil {
				look = func(r record.PruneLedgerReport) { bar.reach(int64(r.Considered), 0) }
			}
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.PruneLedgerReport, error) {
				return b.PruneLedger(ctx, in, look)
			})
			bar.close()
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s %s of %d older than %s; %d of open runs stay.", o.bold("Pruned"), count(out.Pruned, "row", "rows"), out.Considered, span(age), out.Kept)
			})
		},
	}
	c.Flags().DurationVar(&age, "older-than", age, "the age, at least 720h")
	return c
}
