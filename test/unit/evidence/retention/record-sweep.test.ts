import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { Pace } from "../../../../core/store/pace.ts";
import { rejection } from "../../../support/ledger-world.ts";
import { PruneWorld } from "../../../support/prune-world.ts";
import { roundsOf } from "../../../support/rounds.ts";

const sessions = 40;

describe("a prune while records are appended", () => {
  let world: PruneWorld;

  beforeEach(async () => {
    world = await PruneWorld.create();
    await world.open();
    for (let count = 0; count < 8; count++) {
      await Promise.all(Array.from({ length: sessions }, (_, at) => world.act({}, `s${at}`)));
    }
    world.wakeUp();
    await world.act({}, "s0");
  });

  afterEach(() => world.remove());

  function paced(signal?: AbortSignal): Pace {
    return new Pace({ sliceMs: 0, restRatio: 0, elapsedMs: () => performance.now(), ...(signal && { signal }) });
  }

  /** Every session that is listed can be read, and the whole chain verifies. */
  async function expectSound(): Promise<void> {
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
    const { items } = await world.ledger.sessions("acme", { limit: 1_000 });
    for (const { id } of items) {
      const { items: records } = await world.ledger.records("acme", id, { limit: 1_000 });
      expect(records).to.have.length.above(0);
    }
  }

  for (let round = 1; round <= roundsOf(3, 30); round++) {
    it(`refuses none of them, and sessions that come back meanwhile begin anew or go on (${round})`, async () => {
      let isOver = false;
      let calls = 0;
      const live = async (): Promise<void> => {
        for (; !isOver || calls < sessions; calls++) {
          await world.act({}, `s${Math.floor(Math.random() * sessions)}`);
          if (Math.random() < 0.3) await turn();
        }
      };
      const callers = Array.from({ length: 4 }, () => live());
      const { records } = await world.prune({}, "acme", { pace: paced() }).finally(() => {
        isOver = true;
      });
      await Promise.all(callers);
      expect(records).to.equal(8 * sessions * 2);
      await expectSound();
      await world.reopen();
      await expectSound();
      for (let at = 0; at < sessions; at++) await world.act({}, `s${at}`);
      await expectSound();
    });
  }

  it("lets a session go on that comes back before its last record is deleted, and begin anew afterwards", async () => {
    const returned: Promise<unknown>[] = [];
    const onProgress = (deleted: number, what: string): void => {
      if (what !== "deleted") return;
      if (returned.length === 0) returned.push(world.act({}, "s7"));
      if (deleted === 8 * sessions * 2) returned.push(world.act({}, "s8"));
    };
    await world.prune({}, "acme", { pace: paced(), onProgress });
    await Promise.all(returned);
    const { items } = await world.ledger.sessions("acme", { limit: 1_000 });
    const counts = ["s0", "s7", "s8"].map((name) => items.find(({ label }) => label === name)?.records);
    expect(counts).to.deep.equal([18, 18, 2]);
    await expectSound();
  });

  it("ends between two batches when it is to stop, starts, and is ended by the next", async () => {
    const stop = new AbortController();
    const onProgress = (deleted: number, what: string): void => {
      if (what === "deleted" && deleted > 100) stop.abort(new Error("stopped"));
    };
    const tools = { pace: paced(stop.signal), onProgress };
    expect(await rejection(world.prune({}, "acme", tools))).to.include({ message: "stopped" });
    await world.act({}, "s39");
    await expectSound();
    await world.reopen();
    await expectSound();
    expect((await world.prune({}, "acme", { pace: paced() })).records).to.be.within(1, 8 * sessions * 2 - 100);
    await expectSound();
  });
});
