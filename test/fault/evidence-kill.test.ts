import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { pieceKeys } from "../../core/evidence/private/entry-piece.ts";
import { openGroupRange, partRange } from "../../core/evidence/record/key-space.ts";
import type { ActionRecord, EvidenceRecord } from "../../core/evidence/record/record.ts";
import { LedgerWorld } from "../support/ledger-world.ts";
import { roundsOf } from "../support/rounds.ts";
import { tearNewestLog } from "../support/torn-log.ts";

/** How often something is killed or damaged. */
const rounds = roundsOf(30, 500);
/** A folder serves so many rounds, unless a start refuses it before that. */
const roundsInFolder = 10;
/** What the kill leaves of the last writes: all of them, or a log that ends somewhere inside them. */
const tears = ["whole", "truncated", "zeroed"] as const;
const program = fileURLToPath(new URL("./evidence-load.js", import.meta.url));

describe("when the process is killed at a random point under load", () => {
  let world: LedgerWorld;
  let said: readonly string[] = [];
  let begun = 0;
  const ended = { kept: 0, refused: 0 };
  let abandoned = 0;

  before(async () => {
    world = await LedgerWorld.create();
  });

  after(() => world.remove());

  for (let round = 1; round <= rounds; round++) {
    const tear = tears[round % tears.length] as (typeof tears)[number];
    it(`and its log left ${tear}: loses nothing acknowledged, or says so [S46] (${round})`, async () => {
      said = [...said, ...(await loadAndKill(world.dir, Math.random() * 200))];
      // Half of the tears are so short that they often meet only what nobody was promised.
      const what = tear === "whole" ? tear : await tearNewestLog(world.dir, tear, Math.random() < 0.5 ? 256 : 65_536);
      const store = await world.openStore();
      abandoned += (await store.keys(openGroupRange("acme")).all()).length;
      await world.open();
      const refused = refusal(world);
      if (refused === undefined) await expectKept(world, said, what);
      else expectSaid(refused, tear, what);
      ended[refused === undefined ? "kept" : "refused"]++;
      await world.close();
      if (refused !== undefined || ++begun % roundsInFolder === 0) await renew();
    });
  }

  it("and kills met large records that had only begun", function () {
    if (this.test !== undefined)
      this.test.title += ` (kept ${ended.kept}, refused ${ended.refused}, begun ${abandoned})`;
    expect(abandoned).to.be.above(0);
    // What a torn log of LevelDB lacks is in the journal.
    expect(ended.kept).to.be.above(rounds / tears.length - 1);
  });

  async function renew(): Promise<void> {
    await world.remove();
    world = await LedgerWorld.create();
    said = [];
  }
});

/** What a start says of the tenant, where it does not trust its chain. */
function refusal(world: LedgerWorld): string | undefined {
  return world.ledger.status().find(({ state }) => state === "refused")?.reason;
}

async function expectKept(world: LedgerWorld, said: readonly string[], what: string): Promise<void> {
  const report = await world.ledger.verify("acme");
  const records = await world.recordsOf();
  expect(report, what).to.include({ ok: true, records: records.length });
  expectAcknowledged(said, records);
  expectSettledOnce(records);
  const actions = records.filter((record): record is ActionRecord => "action" in record);
  for (const record of actions.slice(-100)) await world.ledger.disclosure(record);
  await expectOwned(world);
}

/** Each piece is of a record: those of records that the kill prevented are gone. */
async function expectOwned({ store }: LedgerWorld): Promise<void> {
  const places = await store.values(partRange("acme", "pieces")).all();
  const owned = places.flatMap((place) => pieceKeys("acme", place));
  expect(await store.keys(partRange("acme", "piece")).all()).to.have.members(owned);
  expect(await store.keys(openGroupRange("acme")).all()).to.deep.equal([]);
}

/** A kill alone loses nothing. A loss is told by the records that are missing. */
function expectSaid(reason: string, tear: (typeof tears)[number], what: string): void {
  expect(tear, `${what}: ${reason}`).to.not.equal("whole");
  expect(reason, what).to.match(
    /^chain of tenant `acme` is behind its high-water mark: expected record \d+ or later, got /,
  );
}

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
