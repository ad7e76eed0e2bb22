package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// contract is the tools of the contract.
var contract = strings.Fields(`search_memory propose_fact supersede_fact restore_fact propose_policy supersede_policy list_policies list_memory_domains
	remember record_observation get_my_notes update_my_notes consolidate_memory harmonize_memory list_memory_conflicts resolve_conflict list_beliefs
	fact_history capture_meeting_decisions assemble_preamble state.open state.claim state.commit state.list state.read_facts state.append_episode state.check`)

// wireNames is what every client takes as a tool's name.
var wireNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestTools(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, row := range tools() {
		if have[row.name] {
			t.Errorf("%s stands twice", row.name)
		}
		have[row.name] = true
		d, err := row.describe()
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if !wireNames.MatchString(d.Name) {
			t.Errorf("%s is called %q", row.name, d.Name)
		}
		if d.Annotations.ReadOnlyHint && *d.Annotations.DestructiveHint {
			t.Errorf("%s reads only and destroys", row.name)
		}
		seen := map[string]bool{}
		for _, p := range row.params() {
			if p.About == "" || seen[p.Name] {
				t.Errorf("%s: the argument %s is not described, or stands twice", row.name, p.Name)
			}
			seen[p.Name] = true
		}
		for _, schema := range []any{d.InputSchema, d.OutputSchema} {
			s := schema.(*jsonschema.Schema)
			if _, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil || s.Type != "object" {
				raw, _ := json.Marshal(s)
				t.Errorf("%s: a schema of type %q, %v: %s", row.name, s.Type, err, raw)
			}
		}
	}
	for _, name := range contract {
		if !have[name] {
			t.Errorf("%s is missing", name)
		}
		delete(have, name)
	}
	for name := range have {
		t.Errorf("%s is not in the contract", name)
	}
}

// A panic in a tool is an answer, and stands in the log only.
func TestCall_panic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var counted record.Code
	s := &server{Options: Options{
		Identify: func(http.Header) (gateway.Identity, error) { return gateway.Identity{}, nil },
		Count:    func(_ string, _ time.Time, err error) { counted = record.ErrorCode(err) },
		Log:      slog.New(slog.NewTextHandler(&log, nil)),
	}}
	broken := tool{name: "state.broken", run: func(context.Context, call) (answer, error) { panic("secret path /etc/x") }}
	res := s.call(t.Context(), broken, &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Arguments: json.RawMessage(`{"agent":"scout"}`)}})
	raw, err := json.Marshal(res)
	if err != nil || !res.IsError || strings.Contains(string(raw), "secret") || !strings.Contains(string(raw), "Unavailable: ") {
		t.Errorf("the answer is %s, %v", raw, err)
	}
	if counted != record.Unavailable || !strings.Contains(log.String(), "secret path") {
		t.Errorf("counted as %q, logged as %q", counted, log.String())
	}
}

func TestWireName(t *testing.T) {
	t.Parallel()
	if got := wireName("state.append_episode"); got != "state_append_episode" {
		t.Errorf("it is called %q", got)
	}
}
