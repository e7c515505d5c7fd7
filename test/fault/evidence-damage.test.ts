import { cp, mkdtemp, open, readdir, readFile, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { recordRange } from "../../core/evidence/key-space.ts";
import { GatewayError } from "../../core/kernel/error.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../support/ledger-world.ts";

/** How many bits are flipped, one at a time; `FAULT_ROUNDS=200` for the long run. */
const rounds = Number(process.env.FAULT_ROUNDS ?? 30);

describe("when the data folder is damaged while nothing runs", function () {
  this.timeout(120_000);
  let sound: string;
  let texts: readonly string[];

  before(async () => {
    const world = await LedgerWorld.create();
    sound = await mkdtemp(join(tmpdir(), "ledger-sound-"));
    // Two lives, so that there are tables as well as a log.
    for (let life = 0; life < 2; life++) {
      await world.open();
      for (let count = 0; count < 40; count++) await world.act({}, `agent-${count % 4}`);
      texts = await world.texts();
      await world.close();
    }
    await cp(world.dir, sound, { recursive: true });
    await world.remove();
  });

  after(() => rm(sound, { recursive: true }));

  for (let round = 1; round <= rounds; round++) {
    it(`by one flipped bit: says so, or has lost nothing (${round})`, async () => {
      const world = await damagedCopy();
      try {
        const what = await flipBit(world.dir);
        await expectNothingSilent(world, what);
      } finally {
        await world.remove();
      }
    });
  }

  for (let round = 1; round <= rounds; round++) {
    it(`by a log cut short: says so, or has lost nothing (${round})`, async () => {
      const world = await damagedCopy();
      try {
        const log = await newestLog(world.dir);
        const length = Math.floor(Math.random() * (await stat(log)).size);
        await truncate(log, length);
        await expectNothingSilent(world, `${log} cut to ${length}`);
      } finally {
        await world.remove();
      }
    });
  }

  it("by an older copy of the store: refuses the tenant, naming both records", async () => {
    const world = await damagedCopy();
    try {
      await world.open();
      await world.act();
      await world.close();
      await rm(join(world.dir, "state"), { recursive: true });
      await cp(join(sound, "state"), join(world.dir, "state"), { recursive: true });
      await world.open();
      expect(await rejection(world.act())).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "chain of tenant `acme` is behind its high-water mark: expected record 162 or later, got 160",
      });
    } finally {
      await world.remove();
    }
  });

  it("by an empty store in its place: refuses the tenant", async () => {
    const world = await damagedCopy();
    try {
      await rm(join(world.dir, "state"), { recursive: true });
      await world.open();
      expect(await rejection(world.act())).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "chain of tenant `acme` is behind its high-water mark: expected record 160 or later, got none",
      });
    } finally {
      await world.remove();
    }
  });

  async function damagedCopy(): Promise<LedgerWorld> {
    const world = await LedgerWorld.create();
    await cp(sound, world.dir, { recursive: true });
    return world;
  }

  /** Either something refuses or `verify` finds it, or every record is there, byte for byte. */
  async function expectNothingSilent(world: LedgerWorld, what: string): Promise<void> {
    try {
      await world.open();
      const report = await world.ledger.verify("acme");
      if (!report.ok) return;
      expect(await world.store.values(recordRange("acme")).all(), what).to.deep.equal(texts);
      const action = newAction();
      await world.ledger.recordDecision(action, makeEvaluation(action));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      expect(error.code, what).to.be.oneOf(["STATE_UNUSABLE", "EVIDENCE_UNAVAILABLE"]);
    }
  }
});

async function flipBit(dir: string): Promise<string> {
  const files = [...(await dataFiles(dir)), join(dir, "high-water")];
  const path = files[Math.floor(Math.random() * files.length)] as string;
  const bytes = await readFile(path);
  const at = Math.floor(Math.random() * bytes.length);
  const bit = Math.floor(Math.random() * 8);
  const file = await open(path, "r+");
  await file.write(Buffer.of((bytes[at] as number) ^ (1 << bit)), 0, 1, at);
  await file.close();
  return `${path}, byte ${at} of ${bytes.length}, bit ${bit}`;
}

/** The files of the store that hold something; its own log of events (`LOG`) does not count. */
async function dataFiles(dir: string): Promise<readonly string[]> {
  const names = (await readdir(join(dir, "state"))).filter((name) => !name.startsWith("LO")).sort();
  const paths = names.map((name) => join(dir, "state", name));
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  return paths.filter((_, index) => (sizes[index] as number) > 0);
}

async function newestLog(dir: string): Promise<string> {
  const log = (await dataFiles(dir)).filter((path) => path.endsWith(".log")).at(-1);
  if (log === undefined) throw new Error("expected a log in the store");
  return log;
}
