package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// takesFile marks commands whose argument is a path, not text.
const takesFile = "takes-file"

// checkArguments refuses text that JSON could not carry as it is: its encoder
// would replace bytes that are not UTF-8 instead of failing.
func checkArguments(cmd *cobra.Command, args []string) error {
	if cmd.Annotations[takesFile] == "" {
		for _, s := range args {
			if err := record.CheckText("", s, len(s)); err != nil {
				return err
			}
		}
	}
	var bad error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if s := f.Value.String(); bad == nil && f.Name != "data" && f.Name != "context" {
			if err := record.CheckText(flagField(f.Name), s, len(s)); err != nil {
				bad = err
			}
		}
	})
	return bad
}

// fileCommand marks c as one that takes a file.
func fileCommand(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{takesFile: "yes"}
	return c
}

// open opens a file argument; "-" is standard input, which done leaves open.
func (a *app) open(field, name string) (r io.Reader, done func(), err error) {
	if name == "-" {
		return a.stdin, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, fileError(field, name, err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, nil, usage(field, "%q is a folder, not a file", name)
	}
	return f, func() { _ = f.Close() }, nil
}

// fileError says what is wrong with a file that the caller named.
func fileError(field, name string, err error) error {
	cause := err
	if p := new(fs.PathError); errors.As(err, &p) {
		cause = p.Err
	}
	e := record.Wrap(record.InvalidArgument, err, "the file %q cannot be read: %v", name, cause)
	e.Field = field
	return e
}

// readText reads a file argument of at most limit bytes of text.
func (a *app) readText(field, name string, limit int) (string, error) {
	r, done, err := a.open("file", name)
	if err != nil {
		return "", err
	}
	defer done()
	raw, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return "", fileError("file", name, err)
	}
	if len(raw) > limit {
		return "", record.Errorf(record.ContentTooLarge, field, "the file is over the limit of %d bytes", limit)
	}
	return string(raw), record.CheckText(field, string(raw), limit)
}

const byteOrderMark = "\uFEFF"

// readStatements reads the statements an agent holds: a JSON array of strings,
// or one a line.
func (a *app) readStatements(name string) ([]string, error) {
	text, err := a.readText("context", name, record.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, byteOrderMark))
	// A line may well start with a bracket: an array goes on with a string or
	// ends.
	if rest, ok := strings.CutPrefix(text, "["); ok {
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "]") {
			var statements []string
			if err := json.Unmarshal([]byte(text), &statements); err != nil {
				e := fieldOf(err)
				e.Field = "context"
				return nil, e
			}
			return statements, nil
		}
	}
	var statements []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			statements = append(statements, line)
		}
	}
	return statements, nil
}

// decodeStrict reads one JSON document without unknown fields.
func decodeStrict(text string, v any) error {
	dec := json.NewDecoder(bytes.NewReader([]byte(strings.TrimPrefix(text, byteOrderMark))))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return usage("", "the file is empty")
		}
		return fieldOf(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return usage("", "the file holds more than one JSON document")
	}
	return nil
}

// parseTTL reads how long something lives: a Go duration, with days too.
func parseTTL(s string) (seconds int64, err error) {
	bad := usage("ttl_seconds", "%q is not a duration; give one like 90m, 12h or 7d", shorten(s, 40))
	var days float64
	rest := s
	if number, after, ok := strings.Cut(s, "d"); ok {
		if days, err = strconv.ParseFloat(number, 64); err != nil || math.IsNaN(days) || days < 0 || days > 36500 {
			return 0, bad
		}
		rest = after
	}
	var d time.Duration
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, bad
		}
	} else if s == "" {
		return 0, bad
	}
	total := math.Round(days*86400 + d.Seconds())
	if d < 0 || total < 1 {
		return 0, usage("ttl_seconds", "a time to live is a second or more")
	}
	return int64(total), nil
}

// optional returns a pointer to v when the flag was given.
func optional[T any](cmd *cobra.Command, flag string, v T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &v
}

// firstError returns the first error, so that checks can be listed.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// second drops the first result of a check that also parses.
func second[T any](_ T, err error) error { return err }

// validUTF8 reports whether raw is text.
func validUTF8(raw []byte) bool { return utf8.Valid(raw) }
