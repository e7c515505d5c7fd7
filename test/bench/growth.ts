import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folderBytes } from "../../core/store/folder.ts";
import { type Cell, measureCell, warmUp } from "./cell.ts";
import { cpuSecondsOf, usageOf } from "./process-cost.ts";
import { Servers } from "./servers.ts";
import { tableHead, tableRow } from "./table.ts";
import {
  baselinePolicy,
  dataFolder,
  echoUpstream,
  governedTarget,
  lookupCall,
  pidOf,
  startGoverned,
  type Target,
} from "./target.ts";

/**
 * What a governed call costs while its gateway's state grows, with all calls in one session and spread over 5,000; and what
 * a start on that state costs. It prints and asserts nothing.
 */
const wanted = Number(process.env.BENCH_CALLS ?? 500_000);
const steps = [20_000, 100_000, 200_000, 300_000, 400_000].filter((calls) => calls < wanted).concat(wanted);
const warmCalls = Math.min(Number(process.env.BENCH_WARM ?? 15_000), Math.floor((steps[0] as number) * 0.75));
const connections = 64;

const servers = new Servers();
const upstream = await servers.start("echo-server.js");
process.stdout.write(
  `node ${process.version}, ${connections} connections, the first ${warmCalls} calls left out of the first row's CPU\n`,
);
for (const sessions of [1, 5_000]) await grow(sessions);
servers.stop();

async function grow(sessions: number): Promise<void> {
  const folder = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "growth-bench-"));
  try {
    const empty = await fill(folder, sessions);
    const again = await startSeconds(folder);
    process.stdout.write(
      `\nStart until ready: ${again.toFixed(2)} s of CPU, user and system; on an empty folder ${empty.toFixed(2)} s\n`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function start(folder: string): ReturnType<typeof startGoverned> {
  return startGoverned(echoUpstream(upstream.origin) + baselinePolicy(), { folder });
}

async function startSeconds(folder: string): Promise<number> {
  const gateway = await start(folder);
  const seconds = cpuSecondsOf(pidOf(gateway));
  await gateway.stop();
  return seconds;
}

/** Prints a row for each step. Returns the CPU seconds of the start before the first call. */
async function fill(folder: string, sessions: number): Promise<number> {
  process.stdout.write(`\n${sessions === 1 ? "One session" : `${sessions} sessions`}:\n\n`);
  process.stdout.write(
    tableHead(["calls", "requests/s", "CPU µs main", "others", "written B", "since the start", "kept B", "errors"]),
  );
  const gateway = await start(folder);
  const empty = cpuSecondsOf(pidOf(gateway));
  const target = governedTarget("governed", gateway);
  const label = sessions === 1 ? {} : { label: (n: number) => `session-${n % sessions}` };
  const load = { path: "/mcp", body: lookupCall, ...label };
  await warmUp(target, warmCalls, load);
  let done = warmCalls;
  for (const step of steps) {
    const cell = await measureCell(target, { ...load, connections, calls: step - done });
    done = step;
    process.stdout.write(await rowOf(target, done, cell));
  }
  await gateway.stop();
  return empty;
}

async function rowOf({ pid, gateway }: Target, calls: number, cell: Cell): Promise<string> {
  const kept = gateway === null ? 0 : await folderBytes(dataFolder(gateway));
  const { requestsPerSecond, mainUs, otherUs, writtenBytes, errors } = cell;
  const bytes = [writtenBytes, usageOf(pid).writtenBytes / calls, kept / calls].map((value) => value.toFixed(0));
  return tableRow([calls, Math.round(requestsPerSecond), mainUs.toFixed(0), otherUs.toFixed(0), ...bytes, errors]);
}
