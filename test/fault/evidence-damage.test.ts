import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect } from "chai";
import { anyBit, dataFiles, flip, nameOf, SeededChance } from "../support/flip.ts";
import { LedgerWorld, rejection } from "../support/ledger-world.ts";
import { roundsOf } from "../support/rounds.ts";
import { tearNewestLog } from "../support/torn-log.ts";
import { readContent } from "./evidence-content.ts";
import { type FolderEnd, FolderJudge } from "./folder-judge.ts";

/** How often something is killed or damaged. */
const rounds = roundsOf(80, 2000);
/** Other bits each day. */
const seed = new Date().toISOString().slice(0, 10);
const chance = new SeededChance(`evidence-damage ${seed}`);

describe("when the data folder is damaged while nothing runs", () => {
  let sound: string;
  let judge: FolderJudge;
  const ends = new Map<FolderEnd["end"], number>();

  before(async () => {
    const world = await LedgerWorld.create();
    sound = await mkdtemp(join(tmpdir(), "ledger-sound-"));
    // Two lives, so that there are tables as well as a log.
    for (let life = 0; life < 2; life++) {
      await world.open();
      for (let count = 0; count < 40; count++) await world.act({}, `agent-${count % 4}`);
      judge = new FolderJudge(await readContent(world));
      await world.close();
    }
    await cp(world.dir, sound, { recursive: true });
    await world.remove();
  });

  after(async () => {
    await judge.close();
    await rm(sound, { recursive: true });
  });

  it("not at all: has lost nothing", async () => {
    await expectNothingSilent(async () => "untouched");
    expect([...ends]).to.deep.equal([["kept", 1]]);
  });

  for (let round = 1; round <= rounds; round++) {
    it(`by one flipped bit: says so, or has lost nothing [S46] (${round})`, () => expectNothingSilent(flipAny));
  }

  for (let round = 1; round <= rounds / 4; round++) {
    const tear = round % 2 === 0 ? "truncated" : "zeroed";
    it(`by a log ${tear} at its end: says so, or has lost nothing [S46] (${round})`, () =>
      expectNothingSilent((dir) => tearNewestLog(dir, tear, 1_048_576)));
  }

  it("by any one of its files removed: says so, or has lost nothing [S46]", async () => {
    for (const { path } of await dataFiles(sound)) {
      await expectNothingSilent(async (dir) => {
        await rm(join(dir, relative(sound, path)));
        return `${path} removed`;
      });
    }
  });

  it("and each end was met that can be", function () {
    if (this.test !== undefined)
      this.test.title += `: ${[...ends].map(([end, count]) => `${count} ${end}`).join(", ")}`;
    expect([...ends.keys()]).to.include.members(["kept", "found", "refused"]);
  });

  it("by an older copy of the store: refuses the tenant, naming both records [S46]", async () => {
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

  it("by an empty store in its place: refuses the tenant [S46]", async () => {
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

  /** Either somebody says that something is lost, or every record is there, byte for byte. */
  async function expectNothingSilent(damage: (dir: string) => Promise<string>): Promise<void> {
    const { dir } = await damagedCopy();
    try {
      const what = await damage(dir);
      const { end, said } = await judge.judge(dir);
      ends.set(end, (ends.get(end) ?? 0) + 1);
      expect(end, `seed ${seed}, ${what}: ${said}`).to.not.be.oneOf(["silent", "ended"]);
    } finally {
      await rm(dir, { recursive: true });
    }
  }
});

async function flipAny(dir: string): Promise<string> {
  const bit = anyBit(await dataFiles(dir), chance);
  await flip(bit);
  return nameOf(bit);
}
