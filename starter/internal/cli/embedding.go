package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

func (a *app) model() *cobra.Command {
	return group("model", "Install, show or remove the worker's embedding model", a.modelInstall(), a.modelStatus(), a.modelRemove())
}

func (a *app) modelInstall() *cobra.Command {
	return &cobra.Command{
		Use: "install SOURCE", Short: "Install an embedding model from a folder, an archive or the hub",
		Long: "install has the worker that serves the workspace take an embedding model and use it at once. SOURCE is a folder with\n" +
			"model.onnx and tokenizer.json, an archive of one (zip, tar or tar.gz), or a name on the hub like\n" +
			"sentence-transformers/all-MiniLM-L6-v2, which alone is downloaded. Folders and archives lie on the worker's machine.",
		Args: positional("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := modelSource(args[0])
			if err != nil {
				return err
			}
			in := record.InstallModel{Caller: a.reader(), Source: source}
			if err := in.Check(); err != nil {
				return err
			}
			bar := a.newBar("Installing, MiB", -1)
			var look func(record.InstallProgress)
			if bar != nil {
				look = func(p record.InstallProgress) { bar.reach(p.Done>>20, p.Total>>20) }
			}
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.EmbeddingModel, error) {
				return b.InstallModel(ctx, in, look)
			})
			bar.close()
			if err != nil {
				return modelError(err, "starter model status, then the same again")
			}
			return a.emit(out, func(o *output) {
				o.line("%s %s", o.bold("Installed"), oneLine(out.ID))
				modelState(o, out)
				o.line("New facts get vectors from now on; starter backfill gives them to earlier ones.")
			})
		},
	}
}

// modelSource makes a path absolute, since the worker has a folder of its own
// to start from. What is no path is a name on the hub.
func modelSource(arg string) (string, error) {
	if strings.TrimSpace(arg) == "" {
		return "", usage("source", "the source is a folder, an archive or a name on the hub")
	}
	_, err := os.Stat(arg)
	if err != nil && !pathLike(arg) {
		return arg, nil
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return "", record.Wrap(record.Unavailable, err, "the current folder cannot be told: %v", err)
	}
	return path, nil
}

// pathLike tells paths that need not exist on this machine from names on the
// hub.
func pathLike(arg string) bool {
	if filepath.IsAbs(arg) || strings.HasPrefix(arg, ".") {
		return true
	}
	lower := strings.ToLower(arg)
	for _, end := range []string{".zip", ".tar", ".tar.gz", ".tgz", "/"} {
		if strings.HasSuffix(lower, end) {
			return true
		}
	}
	return false
}

// modelError adds what to try when it is the model or its source that cannot
// serve, not the worker.
func modelError(err error, try string) error {
	var e *record.Error
	if !errors.As(err, &e) || e.Code != record.Unavailable {
		return err
	}
	switch e.Field {
	case "model":
		return hinted(err, try)
	case "source":
		return hinted(err, "the same again later, or a folder or an archive instead")
	}
	return err
}

func (a *app) modelStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the embedding model and whether it is in use", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.EmbeddingModel, error) {
				return b.EmbeddingModel(ctx, a.reader())
			})
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				if !out.Installed && out.Problem == "" {
					o.line("No embedding model is installed: search goes by words, time and links. starter model install takes one.")
					return
				}
				o.line("%s", o.bold(or(oneLine(out.ID), "A broken embedding model")))
				modelState(o, out)
			})
		},
	}
}

func modelState(o *output, m record.EmbeddingModel) {
	if m.Problem != "" {
		o.line("  problem: %s", oneLine(m.Problem))
		return
	}
	use := "no"
	if m.InUse {
		use = "yes"
	}
	place := ""
	if m.Given {
		place = "the folder that the worker was started with"
	}
	o.pairs([2]string{"in use", use}, [2]string{"vectors", count(m.Dimensions, "number", "numbers") + " each"}, [2]string{"size", size(m.Bytes)}, [2]string{"place", place})
}

func (a *app) modelRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove", Short: "Remove the embedding model; vectors stay for when it comes back", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := record.RemoveModel{Caller: a.reader()}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.EmbeddingModel, error) { return b.RemoveModel(ctx, in) })
			if err != nil {
				return modelError(err, "starter model status, then the same again")
			}
			return a.emit(out, func(o *output) {
				o.line("%s the embedding model. Vectors stay, for when the same one comes back.", o.bold("Removed"))
			})
		},
	}
}

func (a *app) backfill() *cobra.Command {
	return &cobra.Command{
		Use: "backfill", Short: "Give earlier facts the vectors of the embedding model", Args: positional(),
		Long: "backfill gives facts that were written before the embedding model was installed, or under another one, their vectors.\n" +
			"It goes on by itself when the worker was stopped; started while it runs, it joins the run.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := record.Backfill{Caller: a.reader()}
			bar := a.newBar("Embedding", -1)
			var look func(workflows.BackfillProgress)
			if bar != nil {
				look = func(p workflows.BackfillProgress) { bar.reach(p.Considered, p.Total) }
			}
			out, err := long(cmd.Context(), a, func(ctx context.Context, b backend) (record.BackfillReport, error) {
				return b.BackfillEmbeddings(ctx, in, look)
			})
			bar.close()
			if err != nil {
				return modelError(err, "starter model install SOURCE, then the same again")
			}
			return a.emit(out, func(o *output) {
				if out.Considered == 0 {
					o.line("Every fact has its vector.")
					return
				}
				o.line("%s %s considered", o.bold("Backfilled:"), count(out.Considered, "fact", "facts"))
				o.line("  %d embedded, %d skipped", out.Embedded, out.Skipped)
			})
		},
	}
}
