package params

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// every has an argument of each kind.
var every = append(List{
	Name("domain", "A domain.").Must(),
	{Name: "content", Kind: Text, Required: true, Empty: true, About: "A text."},
	{Name: "confidence", Kind: Number, Min: Bound(0), Max: Bound(1), About: "A share."},
	{Name: "revision", Kind: Integer, Min: Bound(1), Default: 1, About: "A count."},
	{Name: "dry_run", Kind: Flag, About: "A flag."},
	{Name: "memory_type", Kind: Text, Enum: Names(record.MemoryTypes()), About: "A type."},
	{Name: "valid_until", Kind: Text, Time: true, About: "A time."},
	{Name: "source_observation_ids", Kind: Texts, MaxItems: 2, About: "Some texts."},
	{Name: "decisions", Kind: Items, MaxItems: 2, About: "Some objects.", Fields: List{{Name: "text", Kind: Text, Required: true, About: "A text."}}},
}, Caller()...)

func TestDecode(t *testing.T) {
	t.Parallel()
	const must = `"domain":"d","content":"c"`
	for name, tc := range map[string]struct {
		raw   string
		want  string
		code  record.Code
		field string
	}{
		"least":                  {`{` + must + `}`, `{"content":"c","domain":"d"}`, "", ""},
		"blanks":                 {`{` + must + `,"confidence":null,"revision":"","dry_run":null,"memory_type":"","valid_until":null,"decisions":null}`, `{"content":"c","domain":"d"}`, "", ""},
		"an empty text that may": {`{"domain":"d","content":""}`, `{"content":"","domain":"d"}`, "", ""},
		"a null that may not":    {`{"domain":"d","content":null}`, "", record.InvalidArgument, "content"},
		"whole as fraction":      {`{` + must + `,"revision":3.0}`, `{"content":"c","domain":"d","revision":3}`, "", ""},
		"an exponent":            {`{` + must + `,"revision":1e2}`, `{"content":"c","domain":"d","revision":100}`, "", ""},
		"too large a number":     {`{` + must + `,"revision":1e300}`, "", record.InvalidArgument, "revision"},
		"too small":              {`{` + must + `,"revision":0}`, "", record.InvalidArgument, "revision"},
		"text for a number":      {`{` + must + `,"revision":"1"}`, "", record.InvalidArgument, "revision"},
		"text for a flag":        {`{` + must + `,"dry_run":"false"}`, "", record.InvalidArgument, "dry_run"},
		"above a share":          {`{` + must + `,"confidence":1.01}`, "", record.InvalidArgument, "confidence"},
		"not on the list":        {`{` + must + `,"memory_type":"rumour"}`, "", record.InvalidArgument, "memory_type"},
		"no time":                {`{` + must + `,"valid_until":"soon"}`, "", record.InvalidArgument, "valid_until"},
		"too many":               {`{` + must + `,"source_observation_ids":["a","b","c"]}`, "", record.PayloadTooLarge, "source_observation_ids"},
		"not all texts":          {`{` + must + `,"source_observation_ids":["a",1]}`, "", record.InvalidArgument, "source_observation_ids"},
		"unknown":                {`{` + must + `,"contnet":"x"}`, "", record.InvalidArgument, "contnet"},
		"unknown inside":         {`{` + must + `,"decisions":[{"text":"a","txet":"b"}]}`, "", record.InvalidArgument, "decisions[0].txet"},
		"missing inside":         {`{` + must + `,"decisions":[{"text":"a"},{}]}`, "", record.InvalidArgument, "decisions[1].text"},
		"no object inside":       {`{` + must + `,"decisions":[5]}`, "", record.InvalidArgument, "decisions[0]"},
		"missing":                {`{"content":"c"}`, "", record.InvalidArgument, "domain"},
		"nothing":                {``, "", record.InvalidArgument, "domain"},
		"a list":                 {`[1]`, "", record.InvalidArgument, ""},
		"not UTF-8":              {"{\"domain\":\"\xff\",\"content\":\"c\"}", "", record.InvalidUTF8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := every.Decode(json.RawMessage(tc.raw))
			if record.ErrorCode(err) != tc.code {
				t.Fatalf("%v, want %q", err, tc.code)
			}
			if err != nil {
				if e := err.(*record.Error); e.Field != tc.field {
					t.Errorf("the field is %q, want %q", e.Field, tc.field)
				}
				return
			}
			raw, err := json.Marshal(got)
			if err != nil || string(raw) != tc.want {
				t.Errorf("%s, %v, want %s", raw, err, tc.want)
			}
		})
	}
}

// What is accepted without blanks also meets the schema that clients see.
func TestSchema(t *testing.T) {
	t.Parallel()
	s, err := every.Schema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for raw, ok := range map[string]bool{
		`{"domain":"d","content":"","revision":2,"decisions":[{"text":"a"}]}`: true,
		`{"domain":"","content":"c"}`:                                         false,
		`{"domain":"d"}`:                                                      false,
		`{"domain":"d","content":"c","revision":0}`:                           false,
		`{"domain":"d","content":"c","memory_type":"rumour"}`:                 false,
		`{"domain":"d","content":"c","other":1}`:                              false,
	} {
		var v any
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
		if _, err := every.Decode(json.RawMessage(raw)); (err == nil) != ok {
			t.Errorf("%s is decoded as %v", raw, err)
		}
	}
}

// The caller's own words never stand over what is known of it.
func TestInto(t *testing.T) {
	t.Parallel()
	args, err := List(append(Caller(), Name("topic", "x"))).Decode(json.RawMessage(`{"workspace":"theirs","agent":"mallory","role":"ceo","topic":"t"}`))
	if err != nil {
		t.Fatal(err)
	}
	in, err := Into[record.ProposeFact](args, record.Caller{Workspace: "ours", Agent: "scout"})
	if err != nil || in.Caller != (record.Caller{Workspace: "ours", Agent: "scout"}) || in.Topic != "t" {
		t.Errorf("%+v, %v", in, err)
	}
	if words, err := Words(args); err != nil || words.Workspace != "theirs" || words.Role != "ceo" {
		t.Errorf("the words are %+v, %v", words, err)
	}
}

// FuzzDecode holds that no input panics, that refusals quote at most a short
// name of it, and that what is accepted is accepted again as it came out.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{``, `null`, `{}`, `{"domain":"d","content":"c","revision":1.0,"decisions":[{"text":"a"}],"valid_until":"2027-01-01"}`, `{"domain":"d","content":"c","role":""}`, `[`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := every.Decode(raw)
		if err != nil {
			if record.ErrorCode(err) == record.Unavailable {
				t.Errorf("%q is refused without a name: %v", raw, err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the refusal has %d bytes", len(err.Error()))
			}
			return
		}
		once, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		again, err := every.Decode(once)
		if err != nil {
			t.Fatalf("%s is refused the second time: %v", once, err)
		}
		if !reflect.DeepEqual(normal(t, args), normal(t, again)) {
			t.Errorf("%s became %v", once, again)
		}
		if _, err := Words(args); err != nil {
			t.Errorf("%s: %v", once, err)
		}
		if _, err := Into[record.ProposeFact](args, record.Caller{}); err != nil && !strings.Contains(err.Error(), string(record.InvalidArgument)) {
			t.Errorf("%s: %v", once, err)
		}
	})
}

func normal(t *testing.T, args map[string]json.RawMessage) (v any) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}
