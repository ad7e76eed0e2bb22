package rpc

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/polyphony-memory/polyphony/gateway/internal/params"
	"github.com/polyphony-memory/polyphony/memory/record"
)

var update = flag.Bool("update", false, "write docs/rpc.md")

const docs = "../../docs/rpc.md"

// head is what docs/rpc.md says before the table.
const head = `# Operations for thin clients

JSON-RPC 2.0 over ` + "`POST /rpc`" + ` on the worker's gateway, with ` + "`Content-Type: application/json`" + `. This page is written from the table that the
code runs (` + "`go test ./gateway/rpc -update`" + `); a test compares the two.

There is no operation that creates: writing is the agents' side (MCP). A person reads, corrects and deletes.

` + "```sh" + `
curl -s http://127.0.0.1:8733/rpc -H 'Content-Type: application/json' \
  -d '{"jsonrpc":"2.0","id":1,"method":"memory_fact.search","params":{"workspace":"demo","query":"gateway port"}}'
` + "```" + `

* Parameters are an object by name. Unknown ones are refused by name. Omitted, ` + "`null` and `\"\"`" + ` of an optional one are the same.
* Who calls comes from the token (` + "`Authorization: Bearer …`" + `), from the headers ` + "`Polyphony-Workspace`, `Polyphony-Agent`, `Polyphony-Role`, `Polyphony-Repo`" + `, or
  from the parameters of the same names. Under a token the others may only repeat what it says.
* A batch has 1 to %d calls, which are made in order. A call without ` + "`id`" + ` is a notification: it is made, and not answered.
* A list answers ` + "`items` and `next`" + `; give ` + "`next` as `cursor`" + ` for the page after. A page ends before 1 MB.
* Updates carry ` + "`expected_version`" + `: the version that was read. When it is no longer the current one, the answer is ` + "`VersionConflict`" + `.

## Errors

| code | when |
| --- | --- |
| %d | the request is not valid JSON |
| %d | it is not a call of JSON-RPC 2.0, or a batch of another size |
| %d | there is no such operation |
| %d | a parameter is wrong |
| %d | the call is well formed and the record refuses it |
| %d | the caller may not do that |
| %d | try again later |

` + "`data`" + ` holds the error's own name (` + "`code`" + `), its ` + "`message`" + ` and the offending ` + "`field`" + `. The names: %s.

A request that is turned away before it is read answers with an HTTP status: 401 no good token, 403 a foreign Host or Origin, 405 not POST, 413 too large,
415 another content type, 429 too many wrong tokens.

## Parameters of every operation

`

func render() string {
	var b strings.Builder
	var codes []string
	for _, c := range record.Codes() {
		codes = append(codes, fmt.Sprintf("`%s` (%d)", c, wireCode(c)))
	}
	fmt.Fprintf(&b, head, maxBatch, codeParse, codeInvalid, codeMethod, codeParams, codeRefused, codeDenied, codeUnavailable, strings.Join(codes, ", "))
	table(&b, params.Caller())
	b.WriteString("\nOperations that change something also take `key`: " + params.Key().About + "\n")
	for _, o := range operations() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nReturns %s.\n", o.name, o.about, o.returns)
		if o.keyed {
			b.WriteString("Changes something; takes `key`.\n")
		}
		if len(o.args) > 0 {
			b.WriteString("\n")
			table(&b, o.args)
		}
	}
	return b.String()
}

func table(b *strings.Builder, l params.List) {
	b.WriteString("| parameter | type | | meaning |\n| --- | --- | --- | --- |\n")
	for _, p := range l {
		var more []string
		if p.Required {
			more = append(more, "required")
		}
		if bounds := p.Bounds(); bounds != "" {
			more = append(more, bounds)
		}
		if p.Default != nil {
			more = append(more, fmt.Sprintf("default %v", p.Default))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, p.Kind, strings.Join(more, "; "), p.About)
	}
}

// TestDocs holds docs/rpc.md to the table.
func TestDocs(t *testing.T) {
	t.Parallel()
	want := render()
	if *update {
		if err := os.WriteFile(docs, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/rpc.md is not what the table says; write it with: go test ./gateway/rpc -update")
	}
}

// contract is every operation of the contract.
var contract = strings.Fields(`memory_fact.list memory_fact.get memory_fact.search memory_fact.history memory_fact.update memory_fact.delete memory_fact.restore
	memory_policy.list memory_policy.get memory_policy.update memory_policy.delete memory_domain.list
	memory_access_grant.list memory_access_grant.set memory_access_grant.delete memory_graph.get memory_conflict.list memory_conflict.resolve
	memory_belief.list workspace.list workspace.export workspace.health`)

func TestOperations(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, o := range operations() {
		have[o.name] = true
		if o.about == "" || o.returns == "" || o.run == nil {
			t.Errorf("%s is not whole", o.name)
		}
		if strings.Contains(o.name, "create") {
			t.Errorf("%s creates", o.name)
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
