package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/locate"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

// TestRun_keys goes through the life of a key file, which needs no worker.
func TestRun_keys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "deep", "keys.json")
	ask := func(exit int, args ...string) map[string]json.RawMessage {
		t.Helper()
		f := newFake()
		res := cmdEnv(t, t.Context(), f, map[string]string{locate.EnvKeyFile: file}, "", append([]string{"--json"}, args...)...)
		if res.exit != exit || f.dials != 0 {
			t.Fatalf("%v: exit %d, want %d; %d dials: %s", args, res.exit, exit, f.dials, res.err)
		}
		var m map[string]json.RawMessage
		if exit == 0 {
			if err := json.Unmarshal([]byte(res.out), &m); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	id := func(m map[string]json.RawMessage) string { return strings.Trim(string(m["id"]), `"`) }

	if got := ask(0, "key", "list"); string(got["keys"]) != "[]" {
		t.Errorf("before the first: %s", got["keys"])
	}
	first := id(ask(0, "key", "rotate"))
	second := id(ask(0, "key", "rotate", "--after", "1h"))
	reader := ask(0, "key", "reader")
	ring, err := seal.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.Trim(string(reader["token"]), `"`)
	if !ring.May(token) {
		t.Error("the reader's token does not read")
	}
	list := ask(0, "key", "list")
	shown := string(list["keys"]) + string(list["readers"])
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Keys []struct{ Secret string }
	}
	if err := json.Unmarshal(raw, &stored); err != nil || len(stored.Keys) != 2 || stored.Keys[0].Secret == "" {
		t.Fatal(err, stored)
	}
	for _, want := range []string{first, second, id(reader)} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not listed in %s", want, shown)
		}
	}
	if strings.Contains(shown, stored.Keys[0].Secret) || strings.Contains(shown, token) {
		t.Error("the list shows a secret")
	}
	ask(record.ExitUsage, "key", "remove", first)
	ask(0, "key", "remove", first, "--lose")
	ask(record.ExitUsage, "key", "remove", second, "--lose")
	ask(0, "key", "remove", id(reader))
	if ring.May(token) {
		t.Error("a removed reader reads")
	}
	ask(record.ExitRefused, "key", "remove", "nobody")
	ask(record.ExitUsage, "key", "rotate", "--after", "-1h")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"list", "rotate", "reader"} {
		ask(record.ExitUsage, "key", command)
	}
}
