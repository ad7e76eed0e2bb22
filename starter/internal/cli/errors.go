package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// hint is an error with advice on what to try.
type hint struct {
	error
	try string
}

func (h *hint) Unwrap() error { return h.error }

func hinted(err error, try string) error { return &hint{err, try} }

// usage makes the error of a call that is wrong in itself.
func usage(field, format string, args ...any) *record.Error {
	return record.Errorf(record.InvalidArgument, field, format, args...)
}

// interrupted is what a caller sees who stopped the command. Errors that say
// more already are kept.
func interrupted(err error) error {
	if h := new(hint); errors.As(err, &h) || record.ErrorCode(err) != record.Unavailable {
		return err
	}
	return hinted(record.Wrap(record.Unavailable, err, "interrupted before the answer came; the call may have been done all the same"),
		"the same call again; with --key a repeat changes nothing twice")
}

// known refuses a command line whose command does not exist.
func known(root *cobra.Command, args []string) error {
	if _, rest, err := root.Find(args); err != nil {
		name := ""
		if len(rest) > 0 {
			name = firstWord(root, rest)
		}
		return unknownCommand(root, name)
	}
	return nil
}

// firstWord returns the first argument that is not one of the root's flags or
// its value.
func firstWord(root *cobra.Command, args []string) string {
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			return args[i]
		}
		name, isLong := strings.CutPrefix(name, "-")
		f := root.PersistentFlags().Lookup(name)
		if !isLong && len(name) == 1 {
			f = root.PersistentFlags().ShorthandLookup(name)
		}
		if f != nil && f.NoOptDefVal == "" {
			i++
		}
	}
	return ""
}

func unknownCommand(parent *cobra.Command, name string) error {
	err := usage("command", "%s has no command %q", parent.CommandPath(), name)
	if parent.SuggestionsMinimumDistance <= 0 {
		parent.SuggestionsMinimumDistance = 2
	}
	var names []string
	for _, s := range parent.SuggestionsFor(name) {
		names = append(names, parent.CommandPath()+" "+s)
	}
	if len(names) > 0 {
		return hinted(err, strings.Join(names, ", or "))
	}
	return hinted(err, parent.CommandPath()+" --help")
}

// flagError turns what the flag library refuses into an error of ours.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	field := ""
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	message := err.Error()
	switch {
	case errors.As(err, &unknown):
		field = unknown.GetSpecifiedName()
	case errors.As(err, &missing):
		field = flagField(missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		field = flagField(invalid.GetFlag().Name)
		message = fmt.Sprintf("%q is not a value of --%s, which takes a %s", shorten(invalid.GetValue(), 40), invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	}
	return hinted(usage(field, "%s", message), cmd.CommandPath()+" --help")
}

// flagField returns the name that a flag's argument has in requests.
func flagField(name string) string {
	switch name {
	case "type":
		return "memory_type"
	case "ttl":
		return "ttl_seconds"
	case "session":
		return "session_id"
	case "source-observation":
		return "source_observation_ids"
	case "lease":
		return "lease_seconds"
	case "as":
		return "episode_role"
	case "expect-version":
		return "expected_version"
	}
	return strings.ReplaceAll(name, "-", "_")
}

// positional makes the check that a command got exactly its arguments.
func positional(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		try := "starter " + strings.TrimPrefix(cmd.UseLine(), "starter ")
		switch {
		case len(args) < len(names):
			name := names[len(args)]
			return hinted(usage(strings.ToLower(name), "the argument %s is missing", name), try)
		case len(names) == 0 && len(args) > 0:
			return hinted(usage("", "%s takes no arguments", cmd.CommandPath()), try)
		case len(args) > len(names):
			return hinted(usage(strings.ToLower(names[len(names)-1]), "%d arguments are too many; quote text that holds spaces", len(args)), try)
		}
		return nil
	}
}

// need refuses a command line without one of the named flags.
func need(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			return hinted(usage(flagField(name), "--%s is missing", name), cmd.CommandPath()+" --help")
		}
	}
	return nil
}

// advice says what to try after an error that brings no hint of its own.
func advice(e *record.Error) string {
	switch e.Code {
	case record.IdempotencyKeyReused:
		if e.Field == "step" {
			return "starter state list, which shows how the step was opened"
		}
		return "another --key for another request"
	case record.VersionConflict:
		return "starter notes get --json, which shows the version there is now"
	case record.InsufficientMemoryPermission:
		if e.Role != "" && e.Domain != "" {
			return fmt.Sprintf("starter grants set --for-role %s --domain %s %s", e.Role, shellWord(e.Domain), e.Required)
		}
	case record.OutOfOrder:
		return "starter state list --open, which shows what is not done; state commit --wait waits for it"
	case record.StoreNewer:
		return "a worker of the version that wrote the workspace"
	case record.Unavailable:
		return "see that a worker runs (go run ./worker) on the same data folder (--data), then again"
	}
	return ""
}

// shellWord writes a word of a command that people may copy.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// fail prints an error.
func (a *app) fail(err error, asJSON bool) {
	var e *record.Error
	if !errors.As(err, &e) {
		e = record.Wrap(record.Unavailable, err, "%v", err)
	}
	try := advice(e)
	if h := new(hint); errors.As(err, &h) {
		try = h.try
	}
	out := &output{w: a.stderr, colour: a.colour(a.stderr)}
	if asJSON {
		type body struct {
			*record.Error
			Try string `json:"try,omitempty"`
		}
		out.json(map[string]body{"error": {e, try}})
		return
	}
	text := visible(e.Message)
	if e.Field != "" {
		text += " (" + oneLine(e.Field) + ")"
	}
	out.line("%s: %s", out.bold(string(e.Code)), text)
	if try != "" {
		out.line("Try: %s", oneLine(try))
	}
}

// fieldOf makes err, which came of decoding JSON, an error about a field.
func fieldOf(err error) *record.Error {
	var own *record.Error
	if errors.As(err, &own) {
		return own
	}
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		field := kind.Field
		if field == "" {
			return usage("", "a JSON %s stands where another kind of value is expected", kind.Value)
		}
		return usage(field, "a JSON %s is no value of this field", kind.Value)
	}
	// The decoder has no type for this one.
	var name string
	if n, _ := fmt.Sscanf(err.Error(), "json: unknown field %q", &name); n == 1 {
		return usage(name, "there is no field of this name")
	}
	return usage("", "it is not valid JSON: %v", err)
}
