import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type Dispatcher, Pool } from "undici";
import type { EvidenceJob } from "../../core/evidence/evidence-jobs.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { LedgerWorld } from "../support/ledger-world.ts";
import { type Finished, runGateway } from "../unit/cli/run.ts";
import { measureLoad } from "./load.ts";
import { costSince, usageOf } from "./process-cost.ts";
import { quantile } from "./quantile.ts";
import { Servers } from "./servers.ts";
import { baselinePolicy, echoUpstream, keyEntry, lookupCall, pidOf } from "./target.ts";

/**
 * What callers notice of a prune: a chain of old records, calls at a steady rate, first alone, then while the old records are
 * pruned. Afterwards both verifiers read what is left. It prints and asserts nothing.
 */
const wanted = Number(process.env.BENCH_RECORDS ?? 300_000);
/** Of quiet: the slowest hundredth of fewer calls is chance. */
const seconds = Number(process.env.BENCH_SECONDS ?? 90);
const warmCalls = Number(process.env.BENCH_WARM ?? 3_000);
const rate = 50;
const before = "2026-06-01T00:00:00.000Z";
const key = "bench-key-not-a-secret";

/** A call: when it was sent, by the clock of this process, and how long it took. */
interface Call {
  readonly atMs: number;
  readonly tookMs: number;
}

/** A part of the prune that ended, by what the job says of itself. */
interface Part {
  readonly name: string;
  readonly endMs: number;
}

interface Pruning {
  readonly job: EvidenceJob;
  readonly parts: readonly Part[];
}

interface Watched {
  readonly calls: readonly Call[];
  readonly refused: number;
  /** Of a request that needs nothing but the main thread; as long as that was held at once, at least. */
  readonly heldMs: number;
}

const folder = await mkdtemp(join(tmpdir(), "prune-bench-"));
const servers = new Servers();
try {
  const upstream = await servers.start("echo-server.js");
  await fill();
  const gateway = await startGateway({
    ownProcess: true,
    folder,
    config:
      "listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }\nlog: { level: warn }\n" +
      `keys: [${keyEntry("bench", "acme", "admin", key)}]\n` +
      echoUpstream(upstream.origin) +
      baselinePolicy(),
  });
  await measure(gateway);
} finally {
  servers.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Records of spring: actions of 5,000 sessions in turn. */
async function fill(): Promise<void> {
  const world = LedgerWorld.at(join(folder, "data"));
  await world.open();
  for (let count = 0; count < wanted / 2; count += 200) {
    await Promise.all(Array.from({ length: 200 }, (_, at) => world.act({}, `s${(count + at) % 5_000}`)));
  }
  await world.close();
  print(`node ${process.version}, ${wanted} old records, ${rate} calls/s`);
}

async function measure(gateway: RunningGateway): Promise<void> {
  const headers = { "x-api-key": key };
  await measureLoad({ url: `${gateway.url}/mcp`, headers, body: lookupCall, connections: 4, calls: warmCalls });
  const quiet = await watch(gateway, sleep(seconds * 1_000));
  const usage = usageOf(pidOf(gateway));
  const began = performance.now();
  const job = prune(gateway);
  const during = await watch(gateway, job);
  const { mainUs, otherUs } = costSince(usage);
  const took = (performance.now() - began) / 1_000;
  for (const [name, each] of Object.entries({ quiet, during })) print(lineOf(name, each));
  const { parts, job: ended } = await job;
  let from = began;
  for (const { name, endMs } of parts) {
    const calls = during.calls.filter(({ atMs }) => atMs >= from && atMs < endMs);
    print(`  ${name}: ${((endMs - from) / 1_000).toFixed(1)} s, ${calls.length} calls, ${timesOf(calls)}`);
    from = endMs;
  }
  const { result, state } = ended;
  print(`the prune: ${state}, ${JSON.stringify(result)}, ${took.toFixed(1)} s`);
  print(`CPU meanwhile: ${(mainUs / 1e6).toFixed(1)} s main, ${(otherUs / 1e6).toFixed(1)} s other threads`);
  await verify(gateway);
}

async function prune(gateway: RunningGateway): Promise<Pruning> {
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const url = `${gateway.adminUrl}/admin/v1/evidence`;
  const begun = await fetch(`${url}/prune`, { method: "POST", headers, body: JSON.stringify({ before }) });
  if (begun.status !== 202) throw new Error(`expected 202, got ${begun.status}: ${await begun.text()}`);
  const seen: { readonly atMs: number; readonly job: EvidenceJob }[] = [];
  for (;;) {
    await sleep(250);
    const { items } = (await (await fetch(`${url}/jobs`, { headers })).json()) as { items: readonly EvidenceJob[] };
    const [job] = items;
    if (job === undefined) continue;
    const nowMs = performance.now();
    seen.push({ atMs: nowMs, job });
    if (job.state !== "complete" && job.state !== "failed") continue;
    const ends = (hasEnded: (job: EvidenceJob) => boolean): number =>
      seen.find((each) => hasEnded(each.job))?.atMs ?? nowMs;
    const parts = [
      { name: "verify", endMs: ends(({ verified }) => verified === job.verified) },
      { name: "find the cut", endMs: ends(({ deleted }) => deleted > 0) },
      { name: "delete", endMs: ends(({ deleted }) => deleted === job.deleted) },
      { name: "rewrite", endMs: nowMs },
    ];
    return { job, parts };
  }
}

/** Calls at the rate, whether the ones before were answered or not, until `end` resolves. */
async function watch(gateway: RunningGateway, end: Promise<unknown>): Promise<Watched> {
  let isOver = false;
  void end.finally(() => {
    isOver = true;
  });
  const client = new Pool(gateway.url, { connections: 64, pipelining: 1 });
  const health = new Client(gateway.url);
  const calls: Call[] = [];
  const pending = new Set<Promise<void>>();
  let [refused, heldMs] = [0, 0];
  const held = (async () => {
    for (; !isOver; await sleep(50)) heldMs = Math.max(heldMs, await timeOf(() => ask(health, "GET", "/health")));
  })();
  const start = performance.now();
  for (let count = 0; !isOver; count++) {
    const call = (async () => {
      const atMs = performance.now();
      const tookMs = await timeOf(async () => {
        const { status, text } = await ask(client, "POST", "/mcp", count);
        if (status !== 200 || text.includes('"isError":true')) refused++;
      });
      calls.push({ atMs, tookMs });
    })();
    pending.add(call);
    void call.finally(() => pending.delete(call));
    await sleep(Math.max(0, start + ((count + 1) * 1_000) / rate - performance.now()));
  }
  await Promise.all([...pending, held]);
  await Promise.all([client.close(), health.close()]);
  return { calls, refused, heldMs };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Each call in one of 50 sessions. */
async function ask(client: Dispatcher, method: "GET" | "POST", path: string, n?: number): Promise<Answer> {
  const session = n === undefined ? {} : { "x-gateway-session-id": `live${n % 50}` };
  const headers = { "x-api-key": key, "content-type": "application/json", ...session };
  const body = n === undefined ? undefined : lookupCall(n);
  const { statusCode, body: answer } = await client.request({
    method,
    path,
    headers,
    ...(body !== undefined && { body }),
  });
  return { status: statusCode, text: await answer.text() };
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function lineOf(name: string, { calls, refused, heldMs }: Watched): string {
  return `${name}: ${calls.length} calls, ${refused} refused, ${timesOf(calls)}; /health at worst ${heldMs.toFixed(1)} ms`;
}

function timesOf(calls: readonly Call[]): string {
  const took = calls.map(({ tookMs }) => tookMs);
  const times = [0.5, 0.99, 1].map((share) => quantile(took, share).toFixed(1));
  return `p50 / p99 / worst ${times.join(" / ")} ms`;
}

async function verify(gateway: RunningGateway): Promise<void> {
  const env = { GATEWAY_API_KEY: key };
  const headers = { "x-api-key": key };
  const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/sessions?limit=1`, { headers });
  const { items } = (await response.json()) as { items: readonly { id: string }[] };
  const bundle = join(folder, "bundle.jsonl");
  const id = items[0]?.id ?? "";
  const admin = ["--admin", gateway.adminUrl];
  print(said("export", await runGateway(["evidence", "export", id, "--file", bundle, ...admin], env)));
  await gateway.stop();
  print(said("verify.py", await run("python3", [join(repositoryRoot, "sdk", "evidence", "verify.py"), bundle])));
  print(said("gateway evidence verify", await runGateway(["evidence", "verify", "--data", join(folder, "data")])));
}

function said(what: string, { code, stdout }: Finished): string {
  return `${what}: exit ${code} ${stdout.trim().slice(0, 200)}`;
}

function run(program: string, args: readonly string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const child = execFile(program, args, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
