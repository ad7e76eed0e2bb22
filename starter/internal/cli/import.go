package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// The formats of import and export.
const (
	formatJSONL  = "jsonl"
	formatLocomo = "locomo"
)

func (a *app) importFile() *cobra.Command {
	var format string
	var patience time.Duration
	c := fileCommand(&cobra.Command{
		Use: "import --format jsonl|locomo FILE", Short: "Import facts from a file (- is standard input), in pages that can be gone on with",
		Long: `import gives the facts of a file to the worker, which takes them as if they were proposed one by one. It may be
stopped and started again: what was imported is not imported twice.

jsonl: one JSON object a line, with domain, topic and content, and if wanted veracity (else imported), confidence,
memory_type, valid_until, source_observation_ids, occurred_at, agent, role and repo. It also reads what export writes;
facts that are superseded, archived or expired are left out and counted. Lines that cannot be read are reported.

locomo: a LoCoMo file; each conversation becomes a workspace named after it (after --workspace and a hyphen when that
is given), each turn a fact.`,
		Args: positional("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need(cmd, "format"); err != nil {
				return err
			}
			if format != formatJSONL && format != formatLocomo {
				return usage("format", "unknown format %q; allowed: jsonl, locomo", shorten(format, 40))
			}
			if patience < 0 {
				return usage("patience", "patience is not negative")
			}
			if err := a.caller.Check(); err != nil {
				return err
			}
			ctx := cmd.Context()
			if a.timed && a.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, a.timeout)
				defer cancel()
			}
			file, err := a.stage(ctx, args[0])
			if err != nil {
				return err
			}
			defer file.close()
			if format == formatLocomo {
				return a.importLocomo(ctx, file, patience)
			}
			return a.importJSONL(ctx, file, patience)
		},
	})
	c.Flags().StringVar(&format, "format", "", "jsonl or locomo")
	c.Flags().DurationVar(&patience, "patience", 2*time.Minute, "how long to wait for a worker that went away")
	return c
}

// staged is a file that can be read more than once.
type staged struct {
	*os.File
	temporary bool
	sum       [sha256.Size]byte
	lines     int64
}

// stage opens a file argument and works out what identifies it. What can be
// read only once is copied to a temporary file.
func (a *app) stage(ctx context.Context, name string) (*staged, error) {
	r, done, err := a.open("file", name)
	if err != nil {
		return nil, err
	}
	s := &staged{}
	hash := sha256.New()
	target := io.MultiWriter(hash, (*lineCounter)(&s.lines))
	f, ok := r.(*os.File)
	if info, err := statOf(f); !ok || name == "-" || err != nil || !info.Mode().IsRegular() {
		defer done()
		s.temporary = true
		if s.File, err = os.CreateTemp("", "polyphony-import-"); err != nil {
			return nil, record.Wrap(record.Unavailable, err, "no temporary file can be made for what is read: %v", err)
		}
		target = io.MultiWriter(target, s.File)
	} else {
		s.File = f
	}
	if _, err := io.Copy(target, stoppable{ctx, r}); err != nil {
		s.close()
		if ctx.Err() != nil {
			return nil, record.Wrap(record.Unavailable, err, "interrupted before anything was imported")
		}
		return nil, fileError("file", name, err)
	}
	hash.Sum(s.sum[:0])
	return s, s.rewind()
}

func statOf(f *os.File) (os.FileInfo, error) {
	if f == nil {
		return nil, os.ErrInvalid
	}
	return f.Stat()
}

func (s *staged) rewind() error {
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return record.Wrap(record.Unavailable, err, "the file cannot be read again: %v", err)
	}
	return nil
}

func (s *staged) close() {
	_ = s.Close()
	if s.temporary {
		_ = os.Remove(s.Name())
	}
}

// lineCounter counts line ends.
type lineCounter int64

func (c *lineCounter) Write(b []byte) (int, error) {
	*c += lineCounter(bytes.Count(b, []byte{'\n'}))
	return len(b), nil
}

// stoppable is a reader that ends with its context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(b)
}

func (a *app) importJSONL(ctx context.Context, file *staged, patience time.Duration) error {
	bar := a.newBar("Importing into "+a.caller.Workspace, file.lines)
	report, err := a.importEntries(ctx, a.caller, formatJSONL, sourceOf(file.sum, formatJSONL, a.caller.Workspace), patience, bar, readJSONL(file, record.At(a.clock.now())))
	bar.close()
	if err != nil {
		return err
	}
	if report.read > 0 && report.unreadable == report.read {
		f := report.Failed[0]
		return hinted(record.Errorf(f.Code, "file", "no line of the file can be read as a fact; line %d: %s", f.Line, f.Message), "starter import --help")
	}
	return a.emit(report, func(o *output) { importedWords(o, report) })
}

// importedAll is the report of several workspaces' import.
type importedAll struct {
	Format string `json:"format"`
	counts
	Workspaces []*imported `json:"workspaces"`
}

func (a *app) importLocomo(ctx context.Context, file *staged, patience time.Duration) error {
	prefix := ""
	if a.flagged {
		prefix = a.caller.Workspace
	}
	// All of the file is checked before anything of it is written.
	total, ids := int64(0), map[string]string{}
	err := eachConversation(stoppable{ctx, file}, func(c conversation) error {
		id, err := workspaceOf(prefix, c.SampleID)
		if err != nil {
			return err
		}
		if other, ok := ids[id]; ok {
			return usage("sample_id", "samples %q and %q would both become workspace %s", shorten(other, 40), shorten(c.SampleID, 40), id)
		}
		ids[id] = c.SampleID
		entries, err := c.entries()
		total += int64(len(entries))
		return err
	})
	if err == nil {
		err = file.rewind()
	}
	if err != nil {
		return err
	}
	all := importedAll{Format: formatLocomo, counts: counts{Omissions: map[string]int{}}, Workspaces: []*imported{}}
	bar := a.newBar("Importing", total)
	defer bar.close()
	err = eachConversation(stoppable{ctx, file}, func(c conversation) error {
		entries, err := c.entries()
		if err != nil {
			return err
		}
		caller := a.caller
		if caller.Workspace, err = workspaceOf(prefix, c.SampleID); err != nil {
			return err
		}
		bar.describe("Importing " + caller.Workspace)
		report, err := a.importEntries(ctx, caller, formatLocomo, sourceOf(file.sum, formatLocomo, caller.Workspace), patience, bar, listed(entries))
		if err != nil {
			return err
		}
		all.Workspaces = append(all.Workspaces, report)
		all.add(report.counts)
		return nil
	})
	bar.close()
	if err != nil {
		return err
	}
	return a.emit(all, func(o *output) { importedAllWords(o, all) })
}

func listed(entries []entry) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func importedWords(o *output, r *imported) {
	if r.read == 0 {
		o.line("Nothing to import: the file holds no facts.")
		return
	}
	if r.AlreadyImported {
		o.line("%s workspace %s has this file; nothing changed", o.bold("Already imported:"), r.Workspace)
		o.line("  at that time %s", sums(r.counts))
	} else {
		o.line("%s %s into workspace %s", o.bold("Imported"), count(r.Created+r.Refined+r.ReMentioned+r.Superseded, "fact", "facts"), r.Workspace)
		o.line("  %s", sums(r.counts))
	}
	if r.Omitted > 0 {
		var parts []string
		for _, why := range []string{omitSuperseded, omitArchived, omitExpired, omitEmpty} {
			if n := r.Omissions[why]; n > 0 {
				parts = append(parts, strconv.Itoa(n)+" "+why)
			}
		}
		o.line("  left out: %s", strings.Join(parts, ", "))
	}
	if len(r.NotKept) > 0 {
		o.line("  ids, mention and recall counts, versions and histories start anew")
	}
	failures(o, r)
}

// shownFailures bounds the failures shown to people; --json lists more.
const shownFailures = 20

func failures(o *output, r *imported) {
	for i, f := range r.Failed {
		if i == shownFailures {
			break
		}
		at := "an item"
		switch {
		case f.Line > 0:
			at = "line " + strconv.Itoa(f.Line)
		case f.Item != "":
			at = oneLine(f.Item)
		}
		o.line("  %s: %s", at, itemError(f.Code, f.Message, f.Field))
	}
	if more := r.FailedCount - min(len(r.Failed), shownFailures); more > 0 {
		o.line("  … and %d more", more)
	}
}

func sums(c counts) string {
	return fmt.Sprintf("%d created, %d refined, %d re-mentioned, %d superseded, %d not taken", c.Created, c.Refined, c.ReMentioned, c.Superseded, c.FailedCount)
}

func importedAllWords(o *output, all importedAll) {
	if len(all.Workspaces) == 0 {
		o.line("Nothing to import: the file holds no conversations.")
		return
	}
	row := func(name string, c counts) []string {
		r := []string{name}
		for _, n := range []int{c.Items, c.Created, c.Refined, c.ReMentioned, c.Superseded, c.FailedCount, c.Omitted} {
			r = append(r, strconv.Itoa(n))
		}
		return r
	}
	var table [][]string
	for _, r := range all.Workspaces {
		name := r.Workspace
		if r.AlreadyImported {
			name += " (was there)"
		}
		table = append(table, row(name, r.counts))
	}
	if len(table) > 1 {
		table = append(table, row("all", all.counts))
	}
	o.table([]string{"WORKSPACE", "FACTS", "CREATED", "REFINED", "RE-MENTIONED", "SUPERSEDED", "NOT TAKEN", "OMITTED"}, table)
	for _, r := range all.Workspaces {
		if len(r.Failed) > 0 {
			o.line("%s:", r.Workspace)
			failures(o, r)
		}
	}
	if len(all.Workspaces) > 0 {
		o.line("Try: starter dispatch -w %s --task \"a question about the conversation\"", all.Workspaces[0].Workspace)
	}
}
