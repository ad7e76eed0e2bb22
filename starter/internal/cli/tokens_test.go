package cli

import (
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func TestRun_tokens(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	run := func(args ...string) result {
		t.Helper()
		f := newFake()
		got := cmd(t, f, "", append([]string{"--data", data}, args...)...)
		if f.dials != 0 {
			t.Error("a worker was dialled")
		}
		return got
	}
	if got := run("token", "list"); got.out != "No tokens. Programs on this machine may call without one.\n" || got.exit != 0 {
		t.Errorf("an empty list is %+v", got)
	}
	got := run("-w", "demo", "--agent", "scout", "--role", "coder", "token", "create", "--expires", "720h")
	secret := strings.TrimSpace(got.out)
	if !strings.HasPrefix(secret, "plf_") || got.exit != 0 || !strings.Contains(got.err, "workspace demo, agent scout, role coder, until ") {
		t.Fatalf("making one says %+v", got)
	}
	made := decode[shownToken](t, run("-w", "demo", "--agent", "mason", "--json", "token", "create").out)
	if made.Token == "" || made.State != "active" || !made.ExpiresAt.IsZero() {
		t.Errorf("the document is %+v", made)
	}
	list := run("token", "list")
	if strings.Contains(list.out, secret) || strings.Contains(list.out, made.Token) || strings.Count(list.out, "active") != 2 || !strings.Contains(list.out, made.ID) {
		t.Errorf("the list is\n%s", list.out)
	}
	for range 2 {
		if got := run("token", "revoke", made.ID); got.exit != 0 || got.out != "Revoked token "+made.ID+"\n" {
			t.Errorf("taking it back says %+v", got)
		}
	}
	all := decode[map[string][]shownToken](t, run("--json", "token", "list").out)["tokens"]
	for _, tok := range all {
		if want := map[bool]string{true: "revoked", false: "active"}[tok.ID == made.ID]; tok.State != want || tok.Token != "" {
			t.Errorf("listed is %+v", tok)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		code record.Code
	}{
		"unknown id": {[]string{"token", "revoke", "nothing"}, record.NotFound},
		"no life":    {[]string{"token", "create", "--expires", "0s"}, record.InvalidArgument},
		"no agent":   {[]string{"--agent", " ", "token", "create"}, record.InvalidArgument},
		"workspace":  {[]string{"-w", "../x", "token", "create"}, record.WorkspaceInvalid},
	} {
		if got := run(tc.args...); got.exit != tc.code.ExitCode() || !strings.HasPrefix(got.err, string(tc.code)) || got.out != "" {
			t.Errorf("%s: %+v, want %s", name, got, tc.code)
		}
	}
}
