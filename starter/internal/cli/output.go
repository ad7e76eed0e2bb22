package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// output writes results. It keeps the first error of its writer, after which
// it writes nothing.
type output struct {
	w                io.Writer
	terminal, colour bool
	err              error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	o.err = err
	return n, err
}

// json writes one document.
func (o *output) json(v any) {
	enc := json.NewEncoder(o)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil && o.err == nil {
		o.err = err
	}
}

// line writes one line; values of callers must be made fit for it first.
func (o *output) line(format string, args ...any) { _, _ = fmt.Fprintf(o, format+"\n", args...) }

// text writes stored text as it is, or without what could drive a terminal
// when it goes to one.
func (o *output) text(s string) {
	if o.terminal {
		s = visible(s)
		if s != "" && !strings.HasSuffix(s, "\n") {
			s += "\n"
		}
	}
	_, _ = io.WriteString(o, s)
}

func (o *output) bold(s string) string { return o.style("1", s) }
func (o *output) dim(s string) string  { return o.style("2", s) }

func (o *output) style(code, s string) string {
	if !o.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// pairs writes indented lines of a name and a value, the values aligned. A
// pair without a value is left out.
func (o *output) pairs(rows ...[2]string) {
	wide := 0
	for _, r := range rows {
		if r[1] != "" {
			wide = max(wide, len(r[0]))
		}
	}
	for _, r := range rows {
		if r[1] != "" {
			o.line("  %-*s  %s", wide, r[0], r[1])
		}
	}
}

// table writes rows under a heading, columns aligned by the cells they take on
// a terminal.
func (o *output) table(heading []string, rows [][]string) {
	wide := make([]int, len(heading))
	for _, r := range append([][]string{heading}, rows...) {
		for i, cell := range r {
			wide[i] = max(wide[i], uniseg.StringWidth(cell))
		}
	}
	write := func(r []string) string {
		var b strings.Builder
		for i, cell := range r {
			if i == len(r)-1 {
				b.WriteString(cell)
				break
			}
			b.WriteString(cell + strings.Repeat(" ", wide[i]-uniseg.StringWidth(cell)+2))
		}
		return strings.TrimRight(b.String(), " ")
	}
	o.line("%s", o.bold(write(heading)))
	for _, r := range rows {
		o.line("%s", write(r))
	}
}

// emit prints a result: as JSON, or in words.
func (a *app) emit(v any, words func(o *output)) error {
	if a.json {
		a.out.json(v)
	} else {
		words(a.out)
	}
	return nil
}

// note writes a remark to people, beside the result.
func (a *app) note(format string, args ...any) { _, _ = fmt.Fprintf(a.stderr, format+"\n", args...) }

// visible removes characters of stored text that drive a terminal or hide what
// stands beside them: controls other than line breaks and tabs, and format
// characters other than the joiners that scripts and emoji need.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// oneLine writes text on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(visible(s)), " ") }

// lineWidth bounds text that is shown in a list.
const lineWidth = 100

// brief writes text on one line of at most lineWidth cells.
func brief(s string) string { return shorten(oneLine(s), lineWidth) }

// shorten cuts s between characters so that it takes at most cells.
func shorten(s string, cells int) string {
	if uniseg.StringWidth(s) <= cells {
		return s
	}
	used, end := 0, 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		used += g.Width()
		if used > cells-1 {
			break
		}
		_, end = g.Positions()
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

// quoted writes a statement of a list.
func quoted(s string) string { return "“" + brief(s) + "”" }

// count writes a number of things.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

// share writes a number of 0 to 1.
func share(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// moment writes a time for people; the zero time is a dash.
func moment(t record.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// or returns s, or other when s is empty.
func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// who writes an agent and its role.
func who(agent string, role record.Role) string {
	agent = or(oneLine(agent), "-")
	if role == "" {
		return agent
	}
	return agent + " (" + string(role) + ")"
}

// size writes bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return count(n, "byte", "bytes")
	case n < 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + " KiB"
	case n < 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
	}
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GiB"
}

// place writes where a fact belongs.
func place(domain, topic string) string { return shorten(oneLine(domain+"/"+topic), 60) }

// within says in which domain a list was asked for.
func within(domain string) string {
	if domain == "" {
		return ""
	}
	return " in domain " + oneLine(domain)
}

// span writes a duration without the zeros at its end.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
