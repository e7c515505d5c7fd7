import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import type { ActionRecord, EvidenceRecord } from "../../core/evidence/record.ts";
import { LedgerWorld } from "../support/ledger-world.ts";

/** How often the process is killed; `FAULT_ROUNDS=50` for the long run. */
const rounds = Number(process.env.FAULT_ROUNDS ?? 10);
const program = fileURLToPath(new URL("./evidence-load.js", import.meta.url));

describe("when the process is killed at a random point under load", () => {
  let world: LedgerWorld;

  before(async () => {
    world = await LedgerWorld.create();
  });

  after(() => world.remove());

  for (let round = 1; round <= rounds; round++) {
    it(`loses nothing acknowledged and settles what was in flight (${round})`, async () => {
      const said = await loadAndKill(world.dir, Math.random() * 250);
      await world.open();
      const report = await world.ledger.verify("acme");
      const records = await world.recordsOf();
      await world.close();
      expect(report).to.include({ ok: true, records: records.length });
      expectAcknowledged(said, records);
      expectSettledOnce(records);
    });
  }
});

/** Lets the load run for `afterMs`, kills it, and returns every line it said. */
async function loadAndKill(dir: string, afterMs: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [program, dir], { stdio: ["ignore", "pipe", "inherit"] });
  const text = collect(child);
  await Promise.race([once(child.stdout as NonNullable<typeof child.stdout>, "data"), failOnExit(child)]);
  await sleep(afterMs);
  child.kill("SIGKILL");
  await once(child, "close");
  // The last line may be cut: it was not said in full, so nobody relied on it.
  return text().split("\n").slice(0, -1);
}

function collect(child: ChildProcess): () => string {
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

async function failOnExit(child: ChildProcess): Promise<never> {
  const [code] = (await once(child, "exit")) as [number | null];
  throw new Error(`expected the load to run until it is killed, got exit code ${code}`);
}

function expectAcknowledged(said: readonly string[], records: readonly EvidenceRecord[]): void {
  const outcomes = new Map(outcomesOf(records).map((record) => [record.action.id, record.effect]));
  for (const line of said) {
    const [word, id = "", seq] = line.split(" ");
    if (word === "decided") {
      const record = records[Number(seq)] as ActionRecord;
      expect([record.kind, record.action.id], line).to.deep.equal(["decision", id]);
    }
    if (word === "completed") expect(outcomes.get(id), line).to.equal("success");
  }
}

function expectSettledOnce(records: readonly EvidenceRecord[]): void {
  const decided = records
    .filter((record) => record.kind === "decision")
    .map((record) => (record as ActionRecord).action.id);
  const settled = outcomesOf(records).map((record) => record.action.id);
  expect(settled.toSorted()).to.deep.equal(decided.toSorted());
}

function outcomesOf(records: readonly EvidenceRecord[]): readonly ActionRecord[] {
  return records.filter((record): record is ActionRecord => record.kind === "outcome");
}
