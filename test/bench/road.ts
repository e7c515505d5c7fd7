import { type Cell, costCells, costColumns, measureInTurn, warmUp } from "./cell.ts";
import { measureTwoSyncs } from "./disk.ts";
import { Servers } from "./servers.ts";
import { tableHead, tableRow } from "./table.ts";
import {
  bareTarget,
  baselinePolicy,
  echoUpstream,
  governedTarget,
  lookupCall,
  startGoverned,
  watchedPolicy,
} from "./target.ts";

/**
 * The governed road beside its anchor, in one run on loopback: a bare Koa and undici pass-through, the gateway with the
 * baseline pack and durable evidence, and the same with the session-watch pack and a plugin. It prints and asserts nothing.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 4);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const warmCalls = Number(process.env.BENCH_WARM ?? 15_000);
const call = { path: "/mcp", body: lookupCall };

const servers = new Servers();
const upstream = await servers.start("echo-server.js");
const plain = await startGoverned(echoUpstream(upstream.origin) + baselinePolicy());
const watched = await startGoverned(echoUpstream(upstream.origin) + watchedPolicy);
const targets = [
  bareTarget(await servers.start("pass-through.js", upstream.origin)),
  governedTarget("governed", plain),
  governedTarget("and session-watch, a plugin", watched),
] as const;

for (const target of targets) await warmUp(target, warmCalls, call);
process.stdout.write(
  `node ${process.version}, each target warmed by ${warmCalls} calls, then ${seconds} s a cell, median of ${rounds} rounds in turn\n\n`,
);
process.stdout.write(
  tableHead(["connections", "target", "requests/s", "of bare", "p50 ms", "p99 ms", ...costColumns, "errors"]),
);
let floor = "";
for (const connections of [1, 16, 64]) {
  const cells = await measureInTurn(targets, rounds, { ...call, connections, seconds });
  const [bare, governed] = cells as readonly [Cell, Cell, Cell];
  for (const [index, cell] of cells.entries()) {
    const speed = [Math.round(cell.requestsPerSecond), (cell.requestsPerSecond / bare.requestsPerSecond).toFixed(2)];
    const latency = [cell.p50Ms.toFixed(2), cell.p99Ms.toFixed(2)];
    const name = targets[index]?.name ?? "";
    process.stdout.write(tableRow([connections, name, ...speed, ...latency, ...costCells(cell, bare), cell.errors]));
  }
  if (connections === 1) floor = describeFloor(governed.p50Ms, bare.p50Ms);
}
process.stdout.write(`\n${floor}\n`);
await Promise.all([plain.stop(), watched.stop()]);
servers.stop();

/** One call waits for two synced writes, whatever the processor does. */
function describeFloor(governedMs: number, bareMs: number): string {
  const syncsMs = measureTwoSyncs(plain.folder);
  const ownMs = governedMs - syncsMs - bareMs;
  return (
    `At one connection: two synced writes of 4 KiB in a row take ${syncsMs.toFixed(2)} ms at the median on the disk of the ` +
    `data folder; a governed call takes ${ownMs.toFixed(2)} ms more than these and a bare call together.`
  );
}
