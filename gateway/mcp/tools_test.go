package mcp

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// contract is the tools of the contract that are served.
var contract = strings.Fields(`search_memory propose_fact supersede_fact restore_fact propose_policy supersede_policy list_policies list_memory_domains
	remember record_observation get_my_notes update_my_notes consolidate_memory harmonize_memory list_memory_conflicts resolve_conflict list_beliefs
	fact_history capture_meeting_decisions assemble_preamble`)

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

func TestWireName(t *testing.T) {
	t.Parallel()
	if got := wireName("state.append_episode"); got != "state_append_episode" {
		t.Errorf("it is called %q", got)
	}
}
