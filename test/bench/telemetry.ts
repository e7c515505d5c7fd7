import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { SpanStep } from "../../core/action/trace.ts";
import { SpanQueue } from "../../core/observe/otlp/sender.ts";
import { RoadTracer } from "../../core/observe/otlp/tracer.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { makeAction } from "../support/action.ts";
import { Collector } from "../support/collector.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { makeEvaluation } from "../support/ledger-world.ts";
import { scrape } from "../support/scrape.ts";
import { measureLoad } from "./load.ts";
import { Servers } from "./servers.ts";

/** What it costs a governed call that a collector is told of it: processor time of the gateway, and how long it takes. */
const seconds = Number(process.env.BENCH_SECONDS ?? 6);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const connections = 8;
const key = "bench-key-not-a-secret";
/** Of a second, as Linux counts processor time. */
const ticks = 100;

const made = Math.min(await makeSpans(), await makeSpans(), await makeSpans());
process.stdout.write(`${made.toFixed(0)} µs of processor to make and write the six spans of a call\n\n`);

const servers = new Servers();
const upstream = `${await servers.start("echo-server.js")}/mcp`;
const [told, hangs] = [await Collector.start(), await Collector.start()];
hangs.status = undefined;
const baseline = join(repositoryRoot, "policy-packs/baseline");

const kinds = {
  "not told": "",
  "told of none of 100": `telemetry: { endpoint: "${told.url}", sample_percent: 0 }`,
  "told of each": `telemetry: { endpoint: "${told.url}" }`,
  "told of each, and hangs": `telemetry: { endpoint: "${hangs.url}" }`,
};

process.stdout.write(`node ${process.version}, ${rounds} rounds of ${seconds} s, ${connections} connections\n\n`);
process.stdout.write("| the collector is | µs of processor a call | p50 ms | p99 ms |\n|---|---|---|---|\n");
const results: (Measured & { readonly kind: string })[] = [];
// In turn, so that what else the machine does is shared by all.
for (let round = 0; round < rounds; round++) {
  for (const [kind, telemetry] of Object.entries(kinds)) results.push({ kind, ...(await measure(telemetry)) });
}
for (const kind of Object.keys(kinds)) {
  const own = results.filter((result) => result.kind === kind);
  const least = (value: (result: Measured) => number): number => Math.min(...own.map(value));
  const cells = [kind, least(({ cpuUs }) => cpuUs).toFixed(0), least(({ p50Ms }) => p50Ms).toFixed(2)];
  process.stdout.write(`| ${[...cells, least(({ p99Ms }) => p99Ms).toFixed(2)].join(" | ")} |\n`);
}
servers.stop();
told.stop();
hangs.stop();

/** Processor time of a call's spans alone, in microseconds. */
async function makeSpans(): Promise<number> {
  const calls = 20_000;
  const processor = new SpanQueue({
    maxWaiting: calls * 6,
    send: async (spans) => (ProtobufTraceSerializer.serializeRequest(spans) === undefined ? "refused" : "sent"),
    count: () => undefined,
    random: randomBytes,
  });
  const tracer = new RoadTracer({
    resource: resourceFromAttributes({ "service.name": "bench" }),
    processor,
    samplePercent: 100,
    random: randomBytes,
    scope: { name: "bench", version: "1" },
    providers: new Map(),
    onModelAsked: () => undefined,
  });
  const action = makeAction();
  const evaluation = makeEvaluation(action);
  const steps: readonly SpanStep[] = ["evaluate", "record_decision", "dispatch", "judge_output", "record_outcome"];
  const before = process.cpuUsage();
  for (let call = 0; call < calls; call++) {
    const request = tracer.begin({ protocol: "mcp", method: "tools/call", parent: undefined });
    request.setAttributes({ action, evaluation });
    for (const name of steps) {
      const step = request.begin(name);
      if (name === "evaluate" || name === "judge_output") step.setAttributes({ evaluation });
      step.end();
    }
    request.setAttributes({ passed: "answered" });
    request.end();
    // As a gateway gets to send between calls.
    if (call % 40 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await processor.forceFlush();
  const { user, system } = process.cpuUsage(before);
  await processor.shutdown();
  return (user + system) / calls;
}

interface Measured {
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Once the gateway is warm. */
async function measure(telemetry: string): Promise<Measured> {
  const gateway = await startGateway({
    config: `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: bench, tenant: bench, role: operator, key_hash: "sha256:${createHash("sha256").update(key).digest("hex")}" }]
upstreams: [{ name: bench, transport: http, url: "${upstream}", capabilities: { lookup: read } }]
policy: { packs: [{ path: ${baseline} }] }
log: { level: warn }
${telemetry}
`,
  });
  const load = { url: `${gateway.url}/mcp`, headers: { "x-api-key": key }, body, connections };
  await measureLoad({ ...load, seconds: 2 });
  const before = await usedBy(gateway);
  const { p50Ms, p99Ms } = await measureLoad({ ...load, seconds });
  const after = await usedBy(gateway);
  told.spans.length = 0;
  for (const { requests } of [told, hangs]) requests.length = 0;
  await gateway.stop();
  const cpuUs = ((after.ticks - before.ticks) / ticks / (after.calls - before.calls)) * 1e6;
  return { cpuUs, p50Ms, p99Ms };
}

/** User and system time together, and the calls it was for. */
async function usedBy({ process: { pid }, metricsUrl }: RunningGateway): Promise<{ ticks: number; calls: number }> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  const calls = (await scrape(metricsUrl)).get('gateway_outcomes_total{protocol="mcp",status="success"}') ?? 0;
  return { ticks: Number(fields[11]) + Number(fields[12]), calls };
}

function body(n: number): string {
  const params = { name: "lookup", arguments: { id: `customer-${n}`, fields: ["name", "city"], limit: 10 } };
  return JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params });
}
