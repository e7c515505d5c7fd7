import { createHash } from "node:crypto";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { startGateway } from "../support/gateway.ts";
import { type LoadResult, measureLoad } from "./load.ts";
import { Servers } from "./servers.ts";

/**
 * The governed road beside its floor and its anchor, in one run on loopback: the upstream directly, a bare Koa and
 * undici pass-through, and the gateway with the baseline pack and durable evidence. It prints and asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 4);
const key = "bench-key-not-a-secret";
const servers = new Servers();

const upstream = `${await servers.start("echo-server.js")}/mcp`;
const bare = `${await servers.start("pass-through.js", upstream)}/mcp`;
const baseline = join(repositoryRoot, "policy-packs/baseline");
const gateway = await startGateway({
  config: `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: bench, tenant: bench, role: operator, key_hash: "sha256:${createHash("sha256").update(key).digest("hex")}" }]
upstreams: [{ name: bench, transport: http, url: "${upstream}", capabilities: { lookup: read } }]
policy: { packs: [{ path: ${baseline} }] }
log: { level: warn }
`,
});

const targets = [
  ["upstream directly", upstream, {}],
  ["bare pass-through", bare, {}],
  ["governed", `${gateway.url}/mcp`, { "x-api-key": key }],
] as const;

process.stdout.write(`node ${process.version}, ${seconds} s a cell\n\n`);
process.stdout.write(
  "| connections | target | requests/s | p50 ms | p99 ms | of bare | errors |\n|---|---|---|---|---|---|---|\n",
);
for (const connections of [1, 16, 64]) {
  let anchor = 0;
  for (const [name, url, headers] of targets) {
    const result = await measureLoad({ url, headers, body, connections, seconds });
    if (name === "bare pass-through") anchor = result.requestsPerSecond;
    process.stdout.write(row(connections, name, result, anchor));
  }
}
await gateway.stop();
servers.stop();

function body(n: number): string {
  const params = { name: "lookup", arguments: { id: `customer-${n}`, fields: ["name", "city"], limit: 10 } };
  return JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params });
}

function row(connections: number, name: string, result: LoadResult, anchor: number): string {
  const ratio = anchor === 0 ? "" : (result.requestsPerSecond / anchor).toFixed(2);
  const cells = [
    connections,
    name,
    Math.round(result.requestsPerSecond),
    result.p50Ms.toFixed(2),
    result.p99Ms.toFixed(2),
  ];
  return `| ${[...cells, ratio, result.errors].join(" | ")} |\n`;
}
