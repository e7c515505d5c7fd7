import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { openKeyStores } from "../../core/evidence/key/key-folder.ts";
import { Ledger } from "../../core/evidence/ledger.ts";
import { folderBytes } from "../../core/store/folder.ts";
import { openStore } from "../../core/store/open.ts";
import { makeEvaluation, newAction } from "../support/ledger-world.ts";
import { costSince, type ProcessCost, usageOf } from "./process-cost.ts";

/**
 * Fills a chain and prints what that costs while it grows, then how fast it verifies, in how much memory, and how many bytes
 * a record takes on disk.
 */
const wanted = Number(process.env.BENCH_RECORDS ?? 1_000_000);
const writers = 256;
/** Calls after which the cost of those since the step before is printed. */
const steps = [20_000, 100_000, 200_000, 300_000, 400_000].filter((calls) => calls < wanted / 2).concat(wanted / 2);
const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

const dir = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "verify-bench-"));
try {
  await fill();
  await verify();
  await runCommand();
} finally {
  await rm(dir, { recursive: true });
}

async function fill(): Promise<void> {
  const start = performance.now();
  await withLedger(async (ledger) => {
    let calls = 0;
    const act = async (label: string, until: number): Promise<void> => {
      while (calls < until) {
        calls++;
        const action = newAction({}, label);
        await ledger.actions.recordDecision(action, makeEvaluation(action));
        await ledger.actions.recordOutcome(action, {
          status: "success",
          output: { content: [{ type: "text", text: "ok" }] },
        });
      }
    };
    for (const step of steps) {
      const [from, before] = [calls, process.platform === "linux" ? usageOf(process.pid) : undefined];
      await Promise.all(Array.from({ length: writers }, (_, index) => act(`session-${index}`, step)));
      if (before !== undefined) printWrites(calls, calls - from, costSince(before));
    }
  });
  const seconds = (performance.now() - start) / 1_000;
  print(
    `append: ${wanted} records by ${writers} writers in ${seconds.toFixed(1)} s, ${Math.round(wanted / seconds)} records/s`,
  );
  print(`disk: ${Math.round((await folderBytes(dir)) / wanted)} bytes a record, private fields and tree included`);
}

/** `since`: the calls that `cost` is of, each of two records. */
function printWrites(calls: number, since: number, { mainUs, otherUs, writtenBytes }: ProcessCost): void {
  const [us, bytes] = [(mainUs + otherUs) / since, writtenBytes / since].map(Math.round);
  print(`up to ${calls} calls: ${us} µs CPU and ${bytes} bytes written a call`);
}

async function verify(): Promise<void> {
  let peak = 0;
  await withLedger(async (ledger) => {
    const start = performance.now();
    const cpu = process.cpuUsage();
    const onProgress = (checked: number): void => {
      peak = Math.max(peak, privateBytes());
      if (checked % 100_096 === 0) process.stderr.write(`${checked} records sound so far\n`);
    };
    const report = await ledger.verify("acme", { onProgress });
    const seconds = (performance.now() - start) / 1_000;
    const { user, system } = process.cpuUsage(cpu);
    const rate = Math.round(report.records / seconds);
    const costUs = ((user + system) / report.records).toFixed(1);
    const mebibytes = Math.round(peak / 1_048_576);
    print(
      `verify: ${report.records} records, ok ${report.ok}, ${seconds.toFixed(1)} s, ${rate} records/s, ${costUs} µs CPU a record, peak ${mebibytes} MiB`,
    );
  });
}

/** The same by the command an operator types, start and snapshot included; its progress is on standard error. */
async function runCommand(): Promise<void> {
  const start = performance.now();
  const child = spawn(process.execPath, [program, "evidence", "verify", "--data", dir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = text(child.stdout);
  await once(child, "exit");
  const seconds = (performance.now() - start) / 1_000;
  print(`gateway evidence verify --data: ${(await said).trim()}, ${seconds.toFixed(1)} s`);
}

/** Memory of this process alone: the database maps its files, and the pages of those are the system's to take back. */
function privateBytes(): number {
  if (process.platform !== "linux") return process.memoryUsage.rss();
  const kibibytes = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kibibytes) * 1_024;
}

async function withLedger(run: (ledger: Ledger) => Promise<void>): Promise<void> {
  const store = await openStore({ dir, enabled: true });
  const ledger = await Ledger.open({
    ...openKeyStores(join(dir, "keys"), randomBytes),
    store,
    holdsStore: () => true,
    highWaterPath: join(dir, "high-water"),
    recordRules: evidenceRules,
    fieldPolicy: { storeValues: true, storeLabels: true, redactFields: [] },
    clock: Date.now,
    random: randomBytes,
    writerId: "bench",
    configDigest: `sha256:${"0".repeat(64)}`,
  });
  await run(ledger);
  await ledger.close();
  await store.close();
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
