import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { BatchThread } from "../../core/evidence/chain/batch-thread.ts";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import { WrappingKeyFolder } from "../../core/evidence/key/wrapping-key.ts";
import { Ledger } from "../../core/evidence/ledger.ts";
import { openStore } from "../../core/store/open.ts";
import { makeEvaluation, newAction } from "../support/ledger-world.ts";
import { measureTwoSyncs } from "./disk.ts";
import { costSince, usageOf } from "./process-cost.ts";
import { quantile } from "./quantile.ts";

/** Prints how many records a second the ledger makes durable, beside how often the disk syncs 4 KiB at that moment. */
const durationMs = Number(process.env.BENCH_MS ?? 3_000);
const writers = [1, 16, 64, 256];

const dir = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), "evidence-bench-"));
try {
  for (const count of writers) await measureAppend(count, Math.round(2_000 / measureTwoSyncs(dir)));
} finally {
  await rm(dir, { recursive: true });
}

async function measureAppend(count: number, syncRate: number): Promise<void> {
  const latencies: number[] = [];
  await withLedger(`append-${count}`, async (ledger) => {
    const start = performance.now();
    const usage = usageOf(process.pid);
    const end = start + durationMs;
    await Promise.all(Array.from({ length: count }, (_, index) => act(ledger, `session-${index}`, end, latencies)));
    const seconds = (performance.now() - start) / 1_000;
    const { mainUs, otherUs } = costSince(usage);
    const rate = Math.round((latencies.length * 2) / seconds);
    print(
      `${String(count).padStart(3)} writers: ${rate} records/s beside ${syncRate} syncs/s of the disk, ` +
        `${Math.round(mainUs / latencies.length)} + ${Math.round(otherUs / latencies.length)} µs CPU an action (main + other threads), ` +
        `an action's two records p50 ${quantile(latencies, 0.5).toFixed(2)} ms, p99 ${quantile(latencies, 0.99).toFixed(2)} ms`,
    );
  });
}

/** One agent: decides, records, answers, records, again. */
async function act(ledger: Ledger, label: string, end: number, latencies: number[]): Promise<void> {
  while (performance.now() < end) {
    const action = newAction({}, label);
    const evaluation = makeEvaluation(action);
    const start = performance.now();
    await ledger.actions.recordDecision(action, evaluation);
    await ledger.actions.recordOutcome(action, {
      status: "success",
      output: { content: [{ type: "text", text: "ok" }] },
    });
    latencies.push(performance.now() - start);
  }
}

async function withLedger(name: string, run: (ledger: Ledger) => Promise<void>): Promise<void> {
  const data = join(dir, name);
  const store = await openStore({ dir: data, enabled: true });
  const ledger = await Ledger.open({
    store,
    holdsStore: () => true,
    highWaterPath: join(data, "high-water"),
    keys: new KeyFolder(join(data, "keys"), randomBytes),
    wrappingKeys: new WrappingKeyFolder(join(data, "keys"), randomBytes),
    recordRules: evidenceRules,
    fieldPolicy: { storeValues: true, storeLabels: true, redactFields: [] },
    batchThread: new BatchThread(),
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
