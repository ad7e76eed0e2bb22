// Lists and calls every tool of a running worker through the official
// TypeScript client and MCP Inspector's command line, with minimal and with
// full arguments, over streamable HTTP and over stdio.
//
//   node tools.mjs <gateway's address> <starter> <data folder>
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, starter, data] = process.argv.slice(2);
assert.ok(data, "usage: node tools.mjs ADDRESS STARTER DATA");
const run = promisify(execFile);
const inspector = new URL("node_modules/.bin/mcp-inspector", import.meta.url).pathname;

// Arguments of every tool. ids holds what the calls before made.
const minimal = (ids) => ({
  search_memory: { query: "gateway port" },
  propose_fact: { domain: "infra", topic: "queues", content: "Billing consumes from the blue queue" },
  supersede_fact: { old: ids.old, new: ids.new },
  restore_fact: { fact_id: ids.old },
  fact_history: { fact_id: ids.new },
  capture_meeting_decisions: { meeting_id: "weekly-1", revision: 1, decisions: [{ text: "The gateway keeps its port." }] },
  propose_policy: { domain: "infra", rule: "Test before you push." },
  supersede_policy: { policy_id: ids.policy },
  list_policies: {},
  list_memory_domains: {},
  remember: { content: "The staging cluster has three nodes" },
  record_observation: { text: "Halfway through." },
  get_my_notes: {},
  update_my_notes: { text: "At the gateway." },
  assemble_preamble: {},
  consolidate_memory: {},
  harmonize_memory: {},
  list_memory_conflicts: {},
  resolve_conflict: { conflict_id: ids.conflict, winner: "both" },
  list_beliefs: {},
  state_open: { task_id: ids.task, step: "pay" },
  state_claim: { task_id: ids.task, step: "pay" },
  state_commit: { task_id: ids.task, step: "pay" },
  state_list: {},
  state_read_facts: { subject: "service" },
  state_append_episode: { task_id: ids.task, content: "Please pay." },
  state_check: { context: ["The service deploys to prod"] },
});

const full = (ids, caller) => {
  const keyed = (name) => ({ ...caller, key: `full-${name}` });
  return {
    search_memory: { query: "gateway port", mode: "hybrid", limit: 5, domain: "infra", as_of: "2099-01-01T00:00:00Z", ...caller },
    propose_fact: {
      domain: "infra", topic: "caches", content: "Sessions are cached in Redis 7", veracity: "stated", confidence: 0.9, memory_type: "fact",
      valid_until: "2099-01-01", source_observation_ids: ["seen-1"], dry_run: false, ...keyed("propose"),
    },
    supersede_fact: { old: ids.old, new: ids.new, reason: "rebuilt", ...keyed("supersede") },
    restore_fact: { fact_id: ids.old, reason: "not rebuilt after all", ...keyed("restore") },
    fact_history: { fact_id: ids.new, limit: 10, cursor: "", ...caller },
    capture_meeting_decisions: {
      meeting_id: "weekly-2", title: "Weekly", held_at: "2027-01-31T09:00:00Z", revision: 2, attendees: ["Ada", "مینا"],
      decisions: [{ text: "جلسه هر دوشنبه است.", topic: "جلسه", decided_by: "مینا" }], ...caller,
    },
    propose_policy: { domain: "infra", rule: "Name the ticket in every commit.", required_role: "coder", ...keyed("policy") },
    supersede_policy: { policy_id: ids.policy, rule: "Test twice before you push.", required_role: "coder", reason: "stricter", ...keyed("stricter") },
    list_policies: { domain: "infra", all: true, limit: 1, cursor: "", ...caller },
    list_memory_domains: { limit: 1, cursor: "", ...caller },
    remember: {
      content: "The staging cluster has four nodes", session_id: "monday", memory_type: "fact", importance: 0.8, ttl_seconds: 3600, domain: "infra", topic: "staging", ...keyed("remember"),
    },
    record_observation: { text: "Nearly done.", ...keyed("observe") },
    get_my_notes: { ...caller },
    update_my_notes: { text: "", expected_version: null, ...keyed("notes") },
    assemble_preamble: { task: "Find out which port the gateway listens on", context: ["The gateway listens on port 8080"], ...keyed("preamble") },
    consolidate_memory: { for_agent: "scout", ...caller },
    harmonize_memory: { ...caller },
    list_memory_conflicts: { domain: "infra", open_only: false, limit: 10, cursor: "", ...caller },
    resolve_conflict: { conflict_id: ids.conflict, winner: ids.new, reason: "measured", ...keyed("resolve") },
    list_beliefs: { domain: "infra", limit: 10, cursor: "", ...caller },
    state_open: { task_id: ids.task, step: "ship", kind: "delivery", after: ["pack"], deadline: "2099-01-01T00:00:00Z", ...keyed("open") },
    state_claim: { task_id: ids.task, step: "pack", lease_seconds: 600, claim: 1, ...keyed("claim") },
    state_commit: { task_id: ids.task, step: "pack", claim: 1, result: "بسته شد", ...keyed("commit") },
    state_list: { task_id: ids.task, open_only: true, limit: 10, cursor: "", ...caller },
    state_read_facts: { subject: "service", domain: "infra", all: true, limit: 10, cursor: "", ...caller },
    state_append_episode: { task_id: ids.task, content: "بسته‌بندی تمام شد.", episode_role: "user", ...keyed("episode") },
    state_check: { context: ["The service deploys to prod", "The service deploys to staging"], cursor: "", ...caller },
  };
};

// Whoever lists tools through the client has their results checked against the
// output schemas.
async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  const text = result.content.map((c) => c.text).join("");
  assert.ok(!result.isError, `${name}: ${text}`);
  assert.ok(result.structuredContent, `${name} has no structured result`);
  return result.structuredContent;
}

// An open conflict between two facts, in a topic of their own, a policy, and a
// task with a step that is claimed.
let seeds = 0;
async function seed(client) {
  const topic = `target of service ${++seeds}`;
  const propose = (content) => call(client, "propose_fact", { domain: "infra", topic, content });
  const old = await propose("The service deploys to prod");
  const next = await propose("The service deploys to staging");
  const restored = await call(client, "restore_fact", { fact_id: old.fact_id });
  const policy = await call(client, "propose_policy", { domain: "infra", rule: `Deploy on Mondays, case ${old.fact_id}.` });
  const task = `order ${seeds}`;
  await call(client, "state_open", { task_id: task, step: "pack" });
  await call(client, "state_claim", { task_id: task, step: "pack" });
  return { task, old: old.fact_id, new: next.fact_id, conflict: restored.conflict_ids[0], policy: policy.policy_id };
}

// In this order each call finds what it needs.
const order = (calls) => ["supersede_fact", "restore_fact", "resolve_conflict", ...Object.keys(calls)].filter((n, i, all) => all.indexOf(n) === i);

async function throughClient(label, transport, workspace) {
  const client = new Client({ name: "typescript-client", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const listed = tools.map((t) => t.name).sort();
  assert.deepEqual(listed, Object.keys(minimal({})).sort(), "the tools that are listed");
  let calls = 0;
  for (const table of [minimal, (ids) => full(ids, { workspace, agent: "scout", role: "coder", repo: "" })]) {
    const args = table(await seed(client));
    for (const name of order(args)) {
      await call(client, name, args[name]);
      calls++;
    }
  }
  const unknown = await client.callTool({ name: "search_memory", arguments: { query: "x", limti: 3 } });
  assert.ok(unknown.isError && unknown.content[0].text.startsWith("InvalidArgument: ") && unknown.content[0].text.includes("limti"));
  const { resources } = await client.listResources();
  for (const { uri } of resources) assert.equal((await client.readResource({ uri })).contents.length, 1, uri);
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) assert.ok((await client.getPrompt({ name })).messages.length > 0, name);
  const ids = await seed(client);
  await client.close();
  console.log(`${label}: TypeScript client, ${listed.length} tools, ${calls} calls, ${resources.length} resources, ${prompts.length} prompt`);
  return ids;
}

async function throughInspector(label, target, ids) {
  const inspect = async (...args) => JSON.parse((await run(process.execPath, [inspector, "--cli", ...target, "--method", ...args], { maxBuffer: 1 << 24 })).stdout);
  const { tools } = await inspect("tools/list");
  const args = minimal(ids);
  assert.equal(tools.length, Object.keys(args).length, "the tools that Inspector lists");
  for (const name of order(args)) {
    const flags = Object.entries(args[name]).flatMap(([k, v]) => ["--tool-arg", `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`]);
    const result = await inspect("tools/call", "--tool-name", name, ...flags);
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  }
  console.log(`${label}: Inspector, ${tools.length} tools listed and called`);
}

// Workspaces of this run's own, so that it can be repeated on one worker.
const own = (label) => `ts-${label}-${Date.now()}`;
const http = { "Polyphony-Workspace": own("http"), "Polyphony-Agent": "scout", "Polyphony-Role": "coder" };
const stdio = own("stdio");
const bridge = ["--data", data, "-w", stdio, "--agent", "scout", "--role", "coder", "mcp"];
for (const { label, workspace, transport, target } of [
  {
    label: "http", workspace: http["Polyphony-Workspace"],
    transport: new StreamableHTTPClientTransport(new URL("/mcp", address), { requestInit: { headers: http } }),
    target: [new URL("/mcp", address).href, "--transport", "http", "--header", ...Object.entries(http).map(([k, v]) => `${k}: ${v}`)],
  },
  { label: "stdio", workspace: stdio, transport: new StdioClientTransport({ command: starter, args: bridge }), target: [starter, ...bridge] },
]) {
  const ids = await throughClient(label, transport, workspace);
  await throughInspector(label, target, ids);
}
