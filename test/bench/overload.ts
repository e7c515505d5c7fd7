import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { startGateway } from "../support/gateway.ts";
import { measureLoad } from "./load.ts";
import { cpuSecondsOf } from "./process-cost.ts";
import { quantile } from "./quantile.ts";
import { Servers } from "./servers.ts";
import { victims, warmers } from "./starve/crew.ts";
import { tableHead, tableRow } from "./table.ts";
import { baselinePolicy, echoUpstream, keyEntry, lookupCall, pidOf } from "./target.ts";

/**
 * What admitted calls notice of ten times the load: ten keys call at a steady pace, then at ten times that, with all limits at
 * their defaults. The pace does not wait for answers. Prints refusals, latency of the admitted and decisions that differ from
 * those at the first pace; asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 60);
const pace = Number(process.env.BENCH_PACE ?? 80);
const warmCalls = Number(process.env.BENCH_WARM ?? 4_000);
const factors = [1, 10, 1];

/** Tools of the server; the baseline pack allows the first. */
const tools = ["lookup", "change", "wipe"] as const;

interface Sent {
  readonly tool: string;
  readonly status: number;
  readonly verdict: string;
  readonly ms: number;
}

const servers = new Servers();
const upstream = await servers.start("echo-server.js");
const folder = await mkdtemp(join(tmpdir(), "overload-bench-"));
const keys = [...victims, ...warmers].map(({ id, tenant, role, key }) => `  - ${keyEntry(id, tenant, role, key)}\n`);
const config = `listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keys.join("")}${echoUpstream(upstream.origin)}${baselinePolicy()}sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
log: { level: error }
`;
const gateway = await startGateway({ ownProcess: true, folder, config, limitsShares: true });
const pool = new Pool(gateway.url, { connections: 512, pipelining: 1 });
try {
  for (const { key } of warmers) {
    const load = { url: `${gateway.url}/mcp`, body: lookupCall, connections: 4, calls: warmCalls / warmers.length };
    await measureLoad({ ...load, headers: { "x-api-key": key } });
  }
  process.stdout.write(`node ${process.version}, ${pace} calls/s of ${victims.length} keys, ${seconds} s each\n\n`);
  const columns = [
    "load",
    "sent",
    "admitted",
    "429",
    "503",
    "others",
    "p50 ms",
    "p99 ms",
    "CPU µs a request",
    "changed decisions",
  ];
  process.stdout.write(tableHead(columns));
  let usual: ReadonlyMap<string, string> | undefined;
  for (const factor of factors) {
    const before = cpuSecondsOf(pidOf(gateway));
    const sent = await callAt(pace * factor);
    const cpuUs = ((cpuSecondsOf(pidOf(gateway)) - before) * 1_000_000) / sent.length;
    const admitted = sent.filter(({ status }) => status === 200);
    usual ??= new Map(admitted.map(({ tool, verdict }) => [tool, verdict]));
    const changed = admitted.filter(({ tool, verdict }) => usual?.get(tool) !== verdict).length;
    const countOf = (status: number): number => sent.filter((each) => each.status === status).length;
    const others = sent.length - countOf(200) - countOf(429) - countOf(503);
    const times = admitted.map(({ ms }) => ms);
    const latency = [quantile(times, 0.5).toFixed(1), quantile(times, 0.99).toFixed(1)];
    const counts = [admitted.length, countOf(429), countOf(503), others];
    process.stdout.write(tableRow([`${factor}×`, sent.length, ...counts, ...latency, cpuUs.toFixed(0), changed]));
  }
} finally {
  await pool.destroy();
  await gateway.kill9();
  await rm(folder, { recursive: true, force: true });
  servers.stop();
}

/** Sends so many calls a second, whatever becomes of them, and resolves with all of their answers. */
async function callAt(perSecond: number): Promise<readonly Sent[]> {
  const begun = performance.now();
  const waiting: Promise<Sent>[] = [];
  while (performance.now() - begun < seconds * 1_000) {
    const due = ((performance.now() - begun) / 1_000) * perSecond;
    while (waiting.length < due) waiting.push(call(waiting.length));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return Promise.all(waiting);
}

async function call(n: number): Promise<Sent> {
  const tool = n % 20 < 18 ? tools[0] : (tools[n % 2 === 0 ? 1 : 2] as string);
  const { key } = victims[n % victims.length] as (typeof victims)[number];
  const params = { name: tool, arguments: { id: tool === tools[0] ? `customer-${n}` : "the same" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params });
  const begun = performance.now();
  const headers = { "content-type": "application/json", "x-api-key": key };
  const response = await pool.request({ method: "POST", path: "/mcp", headers, body });
  const text = await response.body.text();
  const ms = performance.now() - begun;
  return { tool, status: response.statusCode, verdict: text.replaceAll(/[0-9a-f-]{32,36}|\d+/g, "#"), ms };
}
