import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { BatchThread } from "../../../../core/evidence/chain/batch-thread.ts";
import type { EncodingOrder } from "../../../../core/evidence/chain/batch-value.ts";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { decodeValue } from "../../../../core/store/value-decoding.ts";
import { encodeValue } from "../../../../core/store/value-encoding.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

/** Counts the batches that the thread encodes; it encodes none until it is called for. */
class CountingThread extends BatchThread {
  batches = 0;
  isCalledFor = false;

  override prepare(): boolean {
    return super.prepare() && this.isCalledFor;
  }

  override encode(order: EncodingOrder): Promise<readonly (Uint8Array | undefined)[]> {
    this.batches++;
    return super.encode(order);
  }
}

const actionsAtOnce = 48;

describe("BatchThread", () => {
  let world: LedgerWorld;
  beforeEach(async () => {
    world = await LedgerWorld.create();
  });
  afterEach(() => world.remove());

  /** Records decisions and outcomes of many actions at once. */
  async function recordMany(text = "done"): Promise<void> {
    const { actions } = world.ledger;
    const record = async (): Promise<void> => {
      const action = newAction();
      await actions.recordDecision(action, makeEvaluation(action));
      await actions.recordOutcome(action, { status: "success", output: { text } });
    };
    await Promise.all(Array.from({ length: actionsAtOnce }, record));
  }

  /** Until then, batches are encoded on this thread. */
  async function untilReady(thread: BatchThread): Promise<void> {
    while (!thread.prepare()) await setImmediate();
  }

  it("keeps every value as the store's own encoding does, sealed for its place", async () => {
    const thread = new CountingThread();
    await world.open({ batchThread: thread });
    await recordMany();
    expect(thread.batches).to.equal(0);
    thread.isCalledFor = true;
    await untilReady(thread);
    await recordMany("\u00fc \ud83d\ude00");
    expect(thread.batches).to.be.above(0);
    for (const [key, bytes] of await world.store.iterator<string, Buffer>({ valueEncoding: "buffer" }).all()) {
      expect(bytes, key).to.deep.equal(encodeValue(decodeValue(bytes)));
    }
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
    let disclosed = 0;
    for (const record of await world.recordsOf()) {
      if (record.kind !== "outcome") continue;
      const { output } = await world.ledger.disclosure(record as ActionRecord);
      expect(output?.[0]?.value).to.be.oneOf(["done", "\u00fc \ud83d\ude00"]);
      disclosed++;
    }
    expect(disclosed).to.equal(2 * actionsAtOnce);
  });

  it("is waited for by the first large batch, and encodes it", async () => {
    const thread = new CountingThread();
    thread.isCalledFor = true;
    await world.open({ batchThread: thread });
    await recordMany("x".repeat(10_000));
    expect(thread.batches).to.equal(1);
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
  });

  it("that does not start is not waited for any longer: the large batch is encoded without it", async () => {
    const thread = new CountingThread(new URL("data:text/javascript,throw new Error()"));
    thread.isCalledFor = true;
    await world.open({ batchThread: thread });
    await recordMany("x".repeat(10_000));
    expect(thread.batches).to.equal(0);
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
  });

  it("writes nothing of a batch whose thread ends, refuses what waits, and goes on without it", async () => {
    const program = `import { parentPort } from "node:worker_threads";
      parentPort.on("message", () => { throw new Error("no memory left"); });
      parentPort.postMessage({});`;
    const thread = new CountingThread(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
    thread.isCalledFor = true;
    await world.open({ batchThread: thread });
    await untilReady(thread);
    const failed = await rejection(recordMany());
    expect(failed).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    expect(thread.batches).to.equal(1);
    expect(world.ledger.writable).to.equal(false);
    expect(await world.texts()).to.deep.equal([]);
    expect(world.warnings[0]).to.deep.include({
      message: "evidence_write_failed",
      fields: { cause: "no memory left" },
    });

    world.clock.nowMs += 60_000;
    expect(await rejection(recordMany())).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    while (!world.ledger.writable) await setImmediate();
    await recordMany();
    expect(thread.batches).to.equal(1);
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
  });
});
