import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { LedgerWorld } from "../support/ledger-world.ts";
import { before as dawn, PruneWorld } from "../support/prune-world.ts";
import { roundsOf } from "../support/rounds.ts";

/** How often something is killed or damaged. */
const rounds = roundsOf(4, 100);
const nights = 60;
const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

describe("when a pruning is killed at a random point", () => {
  let world: PruneWorld;
  let firstKept: number;
  let wholeMs: number;
  let parent: string;
  const met = { untouched: 0, "half way": 0, done: 0 };

  before(async () => {
    parent = await mkdtemp(join(tmpdir(), "prune-kill-"));
    world = await PruneWorld.create();
    await world.open();
    for (let night = 0; night < nights; night++) {
      await Promise.all(Array.from({ length: 50 }, (_, at) => world.act({}, at === 0 ? "long" : `n${night}`)));
    }
    firstKept = (await world.texts()).length;
    world.wakeUp();
    for (const label of ["long", "young"]) await world.act({}, label);
    await world.close();
    const dir = await copy("whole");
    const began = performance.now();
    expect(await prune(dir)).to.equal(0);
    wholeMs = performance.now() - began;
  });

  after(async () => {
    await world.remove();
    await rm(parent, { recursive: true });
  });

  for (let round = 1; round <= rounds; round++) {
    it(`the folder starts, verifies and goes on, and the next pruning ends it (${round})`, async () => {
      const dir = await copy(`round-${round}`);
      await prune(dir, (0.2 + 0.8 * Math.random()) * wholeMs);
      const after = LedgerWorld.at(dir);
      after.clock.nowMs = world.clock.nowMs;
      await after.open();
      met[await stateOf(after)]++;
      await expectSound(after);
      for (const label of ["long", "n0", "new"]) await after.act({}, label);
      await expectSound(after);
      await after.close();
      expect(await prune(dir)).to.equal(0);
      await after.open();
      await expectSound(after);
      expect(await stateOf(after)).to.equal("done");
      expect((await after.recordsOf()).filter(({ kind }) => kind === "retention")).to.have.length(1);
      for (const label of ["long", "n0", "n1"]) await after.act({}, label);
      await expectSound(after);
      await after.close();
      await rm(dir, { recursive: true });
    });
  }

  it("and the deletion was met half way", function () {
    if (this.test !== undefined) this.test.title += ` (${JSON.stringify(met)})`;
    if (rounds >= 20) expect(met["half way"]).to.be.above(0);
  });

  async function copy(name: string): Promise<string> {
    const dir = join(parent, name);
    await cp(world.dir, dir, { recursive: true });
    return dir;
  }

  /** How far the pruning came: not to its record, between that and the last deletion, or past it. */
  async function stateOf(after: LedgerWorld): Promise<keyof typeof met> {
    const old = (await after.recordsOf()).filter(({ seq }) => seq < firstKept).length;
    if (old === 1) return "done";
    const told = (await after.recordsOf()).some(({ kind }) => kind === "retention");
    return told ? "half way" : "untouched";
  }

  /** Every session that is listed can be read, and the whole chain verifies. */
  async function expectSound(after: LedgerWorld): Promise<void> {
    expect(after.ledger.status().map(({ state }) => state)).to.deep.equal(["ready"]);
    expect(await after.ledger.verify("acme")).to.include({ ok: true });
    for (const { id } of (await after.ledger.sessions("acme", { limit: 1_000 })).items) {
      expect((await after.ledger.records("acme", id, { limit: 1_000 })).items).to.have.length.above(0);
    }
  }
});

/** Runs `gateway evidence prune`, and kills it after `ms` where it is given. Returns the exit code. */
async function prune(dir: string, ms?: number): Promise<number | null> {
  const args = ["evidence", "prune", "--data", dir, "--tenant", "acme", "--before", dawn];
  const child = spawn(process.execPath, [program, ...args], { stdio: "ignore" });
  const closed = once(child, "close") as Promise<[number | null]>;
  if (ms !== undefined) await sleep(ms).then(() => child.kill("SIGKILL"));
  return (await closed)[0];
}
