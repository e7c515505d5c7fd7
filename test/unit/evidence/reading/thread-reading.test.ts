import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { recordKey } from "../../../../core/evidence/record/key-space.ts";
import type { VerifyReport, VerifyWatch } from "../../../../core/evidence/verify/verification.ts";
import { Pace } from "../../../../core/store/pace.ts";
import { rejection } from "../../../support/ledger-world.ts";
import { PruneWorld } from "../../../support/prune-world.ts";

const program = new URL("../../../../core/compose/chain-worker.js", import.meta.url);
const sessions = 20;
const turns = 8;

describe("a chain that is read on a thread of its own", () => {
  let world: PruneWorld;

  beforeEach(async () => {
    world = await PruneWorld.create();
    await openWith(0);
    for (let turn = 0; turn < turns; turn++) {
      await Promise.all(Array.from({ length: sessions }, (_, at) => world.act({}, `s${at}`)));
    }
    world.wakeUp();
    await world.act({}, "s0");
  });

  afterEach(() => world.remove());

  async function openWith(minRecords: number): Promise<void> {
    await world.open({ readingThread: { program, minRecords } });
  }

  function pacedBy(signal?: AbortSignal): Pace {
    return new Pace({ sliceMs: 1, restRatio: 0.1, elapsedMs: () => performance.now(), ...(signal && { signal }) });
  }

  /** The report of the thread, which is that of this one. */
  async function verify(watch: VerifyWatch = {}): Promise<VerifyReport> {
    await reopenWith(Number.POSITIVE_INFINITY);
    const expected = await world.ledger.verify("acme");
    await reopenWith(0);
    const report = await world.ledger.verify("acme", watch);
    expect(report).to.deep.equal(expected);
    return report;
  }

  async function reopenWith(minRecords: number): Promise<void> {
    await world.close();
    await openWith(minRecords);
  }

  it("is reported on as it is on this thread, whole, damaged and pruned", async () => {
    const progress: number[] = [];
    const records = turns * sessions * 2 + 3;
    expect(await verify({ pace: pacedBy(), onProgress: (done) => progress.push(done) })).to.include({
      ok: true,
      records,
    });
    expect(progress.at(-1)).to.equal(records);
    const key = recordKey("acme", 200);
    const text = (await world.store.get(key)) ?? "";
    await world.store.put(key, text.replace('"phase":"', '"phase":"x'));
    expect((await verify()).firstBad).to.deep.include({ seq: 201, reason: "bad_prev_hash" });
    await world.store.del(key);
    expect((await verify()).firstBad).to.deep.include({ seq: 200, reason: "seq_gap" });
    await world.store.put(key, text);
    await reopenWith(0);
    await world.prune();
    expect(await verify()).to.include({ ok: true, firstKept: records - 2 });
  });

  it("is pruned while it grows: no session is lost that goes on, and none stays that ended", async () => {
    let isOver = false;
    const caller = (async () => {
      for (let at = 0; !isOver; at++) await world.act({}, `s${at % sessions}`);
    })();
    const { records } = await world.prune({}, "acme", { pace: pacedBy() }).finally(() => {
      isOver = true;
    });
    await caller;
    expect(records).to.equal(turns * sessions * 2);
    expect(await verify()).to.include({ ok: true });
    const { items } = await world.ledger.sessions("acme", { limit: 1_000 });
    for (const { id } of items) {
      expect((await world.ledger.records("acme", id, { limit: 1_000 })).items).to.have.length.above(0);
    }
  });

  it("is given up where the store is closed, and where it is to stop", async () => {
    const stop = new AbortController();
    const stopped = rejection(world.ledger.verify("acme", { pace: pacedBy(stop.signal) }));
    await sleep(1);
    stop.abort(new Error("stopping"));
    expect((await stopped).message).to.equal("stopping");
    expect((await rejection(world.ledger.verify("acme", { pace: pacedBy(stop.signal) }))).message).to.equal("stopping");
    const closed = rejection(world.ledger.verify("acme", { pace: pacedBy() }));
    await world.store.close();
    expect(await closed).to.include({ code: "EVIDENCE_UNAVAILABLE" });
  });

  it("fails a prune where a deletion fails, and the next one ends it", async () => {
    const failing = rejection(
      world.prune({}, "acme", {
        pace: pacedBy(),
        onProgress: (_, what) => {
          if (what === "deleted") throw new Error("no more");
        },
      }),
    );
    expect((await failing).message).to.include("no more");
    await reopenWith(0);
    expect((await world.prune({}, "acme", { pace: pacedBy() })).records).to.be.above(0);
    expect(await verify()).to.include({ ok: true });
  });
});
