// Package params describes the arguments of calls once, for three readers: the
// JSON schema that clients are shown, the check of what they send, and the
// documentation.
//
// It must never hold what an argument means to the memory; the store decides
// that and refuses what it does not like.
package params

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// Kind is what JSON value an argument takes.
type Kind string

// The kinds.
const (
	Text    Kind = "string"
	Integer Kind = "integer"
	Number  Kind = "number"
	Flag    Kind = "boolean"
	// Texts is a list of strings, Items a list of objects with Fields.
	Texts Kind = "list of strings"
	Items Kind = "list of objects"
)

// Param is one argument.
type Param struct {
	Name  string
	Kind  Kind
	About string
	// Required refuses a call without it. Empty allows "" for a required text.
	Required, Empty bool
	// Min and Max bound a number, nil for no bound.
	Min, Max *float64
	// MaxLength bounds a text in bytes, as the store does; MaxItems a list.
	MaxLength, MaxItems int
	// Enum names the only texts that are allowed.
	Enum []string
	// Default is what an omitted argument means; nil when the text says it.
	Default any
	// Time takes a text that is a time.
	Time bool
	// Fields are those of the objects of Items.
	Fields []Param
}

// List is the arguments of one call.
type List []Param

// Bound makes a bound of a number.
func Bound(v float64) *float64 { return &v }

// Schema returns the JSON schema of the arguments: what is best sent. Decode
// forgives more, since schemas with alternatives confuse clients.
func (l List) Schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, p := range l {
		s.Properties[p.Name] = p.schema()
		s.PropertyOrder = append(s.PropertyOrder, p.Name)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return s
}

func (p Param) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Description: p.About, Minimum: p.Min, Maximum: p.Max}
	switch p.Kind {
	case Texts:
		s.Items = &jsonschema.Schema{Type: "string"}
		s.Type = "array"
	case Items:
		s.Items = List(p.Fields).Schema()
		s.Type = "array"
	default:
		s.Type = string(p.Kind)
	}
	if p.Time {
		s.Format = "date-time"
	}
	if p.MaxItems > 0 {
		s.MaxItems = &p.MaxItems
	}
	if p.MaxLength > 0 {
		s.MaxLength = &p.MaxLength
	}
	if p.Required && !p.Empty && p.Kind == Text {
		one := 1
		s.MinLength = &one
	}
	for _, v := range p.Enum {
		s.Enum = append(s.Enum, v)
	}
	if p.Default != nil {
		// The default is a constant of ours, which always encodes.
		s.Default, _ = json.Marshal(p.Default)
	}
	return s
}

// Decode checks the arguments of a call and returns those that say something:
// an optional one that is null or "" is left out.
//
// Errors: InvalidArgument with the argument's name. Messages hold no more of
// what was sent than a name.
func (l List) Decode(raw json.RawMessage) (map[string]json.RawMessage, error) {
	return l.decode("", raw)
}

func (l List) decode(where string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, record.Errorf(record.InvalidUTF8, "", "the arguments are not valid UTF-8")
	}
	sent := map[string]json.RawMessage{}
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &sent); err != nil {
			return nil, invalid(strings.TrimSuffix(where, "."), "the arguments are not a JSON object")
		}
	}
	for name := range sent {
		if !slices.ContainsFunc(l, func(p Param) bool { return p.Name == name }) {
			return nil, invalid(where+short(name), "there is no argument %q; allowed: %s", short(name), strings.Join(l.names(), ", "))
		}
	}
	for _, p := range l {
		value, ok := sent[p.Name]
		blank := !ok || string(value) == "null" || string(value) == `""`
		if blank && p.Required && p.Empty && ok && string(value) == `""` {
			continue
		}
		if blank {
			if p.Required {
				return nil, invalid(where+p.Name, "the argument %s is missing", p.Name)
			}
			delete(sent, p.Name)
			continue
		}
		clean, err := p.check(where+p.Name, value)
		if err != nil {
			return nil, err
		}
		sent[p.Name] = clean
	}
	return sent, nil
}

func (l List) names() []string {
	out := make([]string, len(l))
	for i, p := range l {
		out[i] = p.Name
	}
	return out
}

// check returns the value in the form that requests decode from.
func (p Param) check(field string, raw json.RawMessage) (json.RawMessage, error) {
	switch p.Kind {
	case Text:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, invalid(field, "a string is wanted")
		}
		return raw, p.checkText(field, s)
	case Flag:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, invalid(field, "true or false is wanted")
		}
	case Integer, Number:
		return p.checkNumber(field, raw)
	case Texts:
		var list []string
		if json.Unmarshal(raw, &list) != nil {
			return nil, invalid(field, "a list of strings is wanted")
		}
		return raw, p.checkCount(field, len(list))
	case Items:
		return p.checkItems(field, raw)
	}
	return raw, nil
}

func (p Param) checkText(field, s string) error {
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, s) {
		return invalid(field, "the value is not known; allowed: %s", strings.Join(p.Enum, ", "))
	}
	if _, err := record.ParseTime(field, s); p.Time && err != nil {
		return invalid(field, "a time like 2027-01-31T09:00:00Z or a date is wanted, of the years 1970 to 9999")
	}
	return nil
}

func (p Param) checkNumber(field string, raw json.RawMessage) (json.RawMessage, error) {
	var v float64
	if json.Unmarshal(raw, &v) != nil {
		return nil, invalid(field, "a number is wanted")
	}
	if p.Kind == Integer {
		// Some clients write 3.0 for 3.
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return nil, invalid(field, "a whole number is wanted")
		}
		raw = json.RawMessage(strconv.FormatInt(int64(v), 10))
	}
	if p.Min != nil && v < *p.Min || p.Max != nil && v > *p.Max {
		return nil, invalid(field, "the value is %s", p.Bounds())
	}
	return raw, nil
}

func (p Param) checkCount(field string, n int) error {
	if p.MaxItems > 0 && n > p.MaxItems {
		return record.Errorf(record.PayloadTooLarge, field, "at most %d items", p.MaxItems)
	}
	return nil
}

func (p Param) checkItems(field string, raw json.RawMessage) (json.RawMessage, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, invalid(field, "a list of objects is wanted")
	}
	if err := p.checkCount(field, len(list)); err != nil {
		return nil, err
	}
	out := make([]map[string]json.RawMessage, len(list))
	for i, item := range list {
		var err error
		if out[i], err = List(p.Fields).decode(fmt.Sprintf("%s[%d].", field, i), item); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// Bounds says in words what numbers or lengths are allowed; empty for any.
func (p Param) Bounds() string {
	switch {
	case p.Min != nil && p.Max != nil:
		return fmt.Sprintf("%v to %v", *p.Min, *p.Max)
	case p.Min != nil:
		return fmt.Sprintf("%v or more", *p.Min)
	case p.Max != nil:
		return fmt.Sprintf("at most %v", *p.Max)
	case len(p.Enum) > 0:
		return strings.Join(p.Enum, ", ")
	case p.MaxLength > 0:
		return fmt.Sprintf("at most %d bytes", p.MaxLength)
	case p.MaxItems > 0:
		return fmt.Sprintf("at most %d items", p.MaxItems)
	}
	return ""
}

func invalid(field, format string, args ...any) *record.Error {
	return record.Errorf(record.InvalidArgument, field, format, args...)
}

// short cuts a name that a caller sent.
func short(s string) string {
	if !utf8.ValidString(s) {
		return "?"
	}
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// Words returns what the checked arguments say about the caller.
func Words(args map[string]json.RawMessage) (record.Caller, error) {
	return decodeInto[record.Caller](args)
}

// Into fills a request of package record: the checked arguments, with what is
// known of the caller in the place of the caller's own words.
func Into[In any](args map[string]json.RawMessage, caller record.Caller) (In, error) {
	all := maps.Clone(args)
	for _, p := range append(Caller(), Key()) {
		delete(all, p.Name)
	}
	raw, err := json.Marshal(caller)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		var none In
		return none, record.Wrap(record.InvalidArgument, err, "the caller cannot be read")
	}
	return decodeInto[In](all)
}

func decodeInto[In any](args map[string]json.RawMessage) (in In, err error) {
	raw, err := json.Marshal(args)
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		err = record.Wrap(record.InvalidArgument, err, "the arguments cannot be read")
	}
	return in, err
}
