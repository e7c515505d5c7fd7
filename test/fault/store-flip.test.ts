import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openEvidenceFolder } from "../../core/cli/evidence-folder.ts";
import { findDamage, newestPart } from "../../core/store/damage.ts";
import { openStore } from "../../core/store/open.ts";
import { anyBit, type Bit, dataFiles, firstBit, flip, nameOf, SeededChance } from "../support/flip.ts";
import { LedgerWorld, rejection } from "../support/ledger-world.ts";
import { roundsOf } from "../support/rounds.ts";
import { readContent } from "./evidence-content.ts";
import { FolderJudge } from "./folder-judge.ts";

/** Other bits each day. */
const seed = new Date().toISOString().slice(0, 10);
/** One in four is where the database reads first. */
const first = roundsOf(50, 500);
const anywhere = roundsOf(150, 1_500);
const atOnce = 50;

describe(`when one of ${first + anywhere} bits of a data folder is flipped (seed ${seed})`, () => {
  let dir: string;
  let judge: FolderJudge;
  const ends = new Map<string, number>();

  before(async () => {
    const world = await LedgerWorld.create();
    dir = world.dir;
    // Two lives end in tables; the third in a log.
    for (let life = 0; life < 3; life++) {
      await world.open();
      for (let count = 0; count < 40; count++) await world.act({}, `agent-${count % 4}`);
      judge = new FolderJudge(await readContent(world));
      await world.close();
    }
  });

  after(async () => {
    await judge.close();
    await rm(dir, { recursive: true });
  });

  for (const [where, count, pick] of [
    ["in the first blocks, indexes, manifest and heads of logs", first, firstBit],
    ["anywhere, keys and marks as well", anywhere, anyBit],
  ] as const) {
    for (let from = 0; from < count; from += atOnce) {
      it(`${where}: nothing is lost that nobody says, and no process ends [S46] (${from + 1} to ${from + atOnce})`, async () => {
        const chance = new SeededChance(`${seed} ${where} ${from}`);
        const files = await dataFiles(dir);
        for (let round = 0; round < atOnce; round++) await expectSaid(pick(files, chance), round);
      });
    }
  }

  it("each was kept or found", function () {
    if (this.test !== undefined)
      this.test.title += `: ${[...ends].map(([end, count]) => `${count} ${end}`).join(", ")}`;
    expect([...ends.values()].reduce((sum, count) => sum + count, 0)).to.equal(first + anywhere);
    expect([...ends.keys()]).to.have.members(["kept", "found"]);
  });

  async function expectSaid(bit: Bit, round: number): Promise<void> {
    await flip(bit);
    const end = (await isFoundInFiles(bit, round)) ? "found" : await judgeCopy(bit);
    await flip(bit);
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }

  /** Returns whether a start refuses the folder before the database sees it; then `verify` does so as well. */
  async function isFoundInFiles(bit: Bit, round: number): Promise<boolean> {
    const damage = await findDamage(join(dir, "state"), newestPart);
    if (damage === undefined) return false;
    const said = `\`${dir}/state\` is damaged (${damage.file}, byte ${damage.offset}: ${damage.reason}); restore the newest backup`;
    expect(await rejection(openStore({ dir, enabled: true })), nameOf(bit)).to.include({ detail: said });
    // The same reading, through links: one in ten is enough.
    if (round % 10 === 0) expect(await rejection(openEvidenceFolder(dir)), nameOf(bit)).to.include({ detail: said });
    return true;
  }

  /** The files of the store are sound: opens a copy, verifies, reads everything and goes on with it. */
  async function judgeCopy(bit: Bit): Promise<string> {
    const copy = await mkdtemp(join(tmpdir(), "flip-"));
    try {
      await cp(dir, copy, { recursive: true });
      const { end, said } = await judge.judge(copy);
      expect(end, `${nameOf(bit)}: ${said}`).to.not.be.oneOf(["silent", "ended"]);
      return end === "kept" ? "kept" : "found";
    } finally {
      await rm(copy, { recursive: true });
    }
  }
});
