import { randomBytes } from "node:crypto";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { SpanStep } from "../../core/action/trace.ts";
import { SpanQueue } from "../../core/observe/otlp/sender.ts";
import { RoadTracer } from "../../core/observe/otlp/tracer.ts";
import { makeAction } from "../support/action.ts";
import { Collector } from "../support/collector.ts";
import { makeEvaluation } from "../support/ledger-world.ts";
import { measureCell, warmUp } from "./cell.ts";
import { Servers } from "./servers.ts";
import { baselinePolicy, echoUpstream, governedTarget, lookupCall, startGoverned } from "./target.ts";

/** What it costs a governed call that a collector is told of it: processor time of the gateway, and how long it takes. */
const seconds = Number(process.env.BENCH_SECONDS ?? 6);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const warmCalls = Number(process.env.BENCH_WARM ?? 3_000);
const connections = 8;

const made = Math.min(await makeSpans(), await makeSpans(), await makeSpans());
process.stdout.write(`${made.toFixed(0)} µs of processor to make and write the six spans of a call\n\n`);

const servers = new Servers();
const upstream = await servers.start("echo-server.js");
const [told, hangs] = [await Collector.start(), await Collector.start()];
hangs.status = undefined;

const kinds = {
  "not told": "",
  "told of none of 100": `telemetry: { endpoint: "${told.url}", sample_percent: 0 }`,
  "told of each": `telemetry: { endpoint: "${told.url}" }`,
  "told of each, and hangs": `telemetry: { endpoint: "${hangs.url}" }`,
};

process.stdout.write(
  `node ${process.version}, ${rounds} rounds of ${seconds} s after ${warmCalls} calls, ${connections} connections\n\n`,
);
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
  const gateway = await startGoverned(`${echoUpstream(upstream.origin)}${baselinePolicy()}${telemetry}\n`);
  const target = governedTarget("governed", gateway);
  const load = { path: "/mcp", body: lookupCall };
  await warmUp(target, warmCalls, load);
  const { mainUs, otherUs, p50Ms, p99Ms } = await measureCell(target, { ...load, connections, seconds });
  told.spans.length = 0;
  for (const { requests } of [told, hangs]) requests.length = 0;
  await gateway.stop();
  return { cpuUs: mainUs + otherUs, p50Ms, p99Ms };
}
