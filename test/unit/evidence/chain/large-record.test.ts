import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../../core/action/envelope.ts";
import { BatchThread } from "../../../../core/evidence/chain/batch-thread.ts";
import type { EncodingOrder } from "../../../../core/evidence/chain/batch-value.ts";
import { LargeLane } from "../../../../core/evidence/chain/large-lane.ts";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { LedgerWorld, makeEvaluation, newAction } from "../../../support/ledger-world.ts";

const minLarge = 262_144;
const large = { page: "page of text. ".repeat(20_000) };
const small = { page: "page of text. ".repeat(18_000) };

/** Holds each batch with a large value until it is let go. */
class SlowThread extends BatchThread {
  /** The number of large values in each such batch. */
  readonly batches: number[] = [];
  release: (() => void) | undefined;

  override async encode(order: EncodingOrder): Promise<readonly Uint8Array[]> {
    const count = order.texts.filter(({ length }) => length >= minLarge).length;
    if (count > 0) {
      this.batches.push(count);
      await new Promise<void>((resolve) => {
        this.release = resolve;
      });
      this.release = undefined;
    }
    return super.encode(order);
  }

  async letGo(): Promise<void> {
    while (this.release === undefined) await setImmediate();
    this.release();
  }
}

describe("large records", () => {
  let world: LedgerWorld;
  let thread: SlowThread;
  let stored: (readonly [principal: string, characters: number])[];
  beforeEach(async () => {
    [world, thread, stored] = [await LedgerWorld.create(), new SlowThread(), []];
    await world.open({
      batchThread: thread,
      stored: ({ principal }, characters) => stored.push([principal.id, characters]),
    });
    while (!thread.prepare()) await setImmediate();
  });
  afterEach(() => world.remove());

  async function decide(action: ActionEnvelope): Promise<ActionEnvelope> {
    await world.ledger.actions.recordDecision(action, makeEvaluation(action));
    return action;
  }

  it("with a large output are told of before they are written, and no others [S77]", async () => {
    await world.act({ arguments: small });
    expect(stored).to.deep.equal([]);
    const decision = decide(newAction({ arguments: large }));
    await thread.letGo();
    const action = await decision;
    const outcome = world.ledger.actions.recordOutcome(action, { status: "success", output: large });
    await thread.letGo();
    await outcome;
    const [[payer, characters] = [], ...more] = stored;
    expect([payer, more]).to.deep.equal([action.principal.id, []]);
    expect(characters).to.be.within(large.page.length, large.page.length + 200);
  });

  it("of a tenant go to the disk one at a time, and what is small waits for one of them alone [S77]", async () => {
    const done: string[] = [];
    const waiting = Array.from({ length: 3 }, async () => {
      await decide(newAction({ arguments: large }));
      done.push("large");
    });
    while (thread.release === undefined) await setImmediate();
    const between = decide(newAction()).then(() => done.push("small"));
    for (let turn = 0; turn < 50; turn++) await setImmediate();
    expect(thread.batches).to.deep.equal([1]);
    await thread.letGo();
    await between;
    expect(done).to.have.length.below(3);
    await thread.letGo();
    await thread.letGo();
    await Promise.all(waiting);
    expect(thread.batches).to.deep.equal([1, 1, 1]);
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
    for (const record of (await world.recordsOf()) as ActionRecord[]) {
      if (record.kind !== "decision") continue;
      const [field] = (await world.ledger.disclosure(record)).arguments ?? [];
      expect(field?.commitment).to.be.a("string");
    }
  });

  it("of another tenant do not wait", async () => {
    const lane = new LargeLane(undefined);
    const begun: string[] = [];
    const begin = async (tenant: string, name: string): Promise<() => void> => {
      const leave = await lane.enter(tenant);
      begun.push(name);
      return leave;
    };
    const [first, next] = [begin("acme", "acme"), begin("acme", "acme again"), begin("other", "other")];
    await setImmediate();
    expect(begun).to.deep.equal(["acme", "other"]);
    (await first)();
    await next;
    expect(begun).to.deep.equal(["acme", "other", "acme again"]);
  });

  it("wait for the thread that encodes them before they take their place, so that nobody waits for its start [S77]", async () => {
    await world.ledger.close();
    let start: (() => void) | undefined;
    const late = new (class extends BatchThread {
      override async started(): Promise<boolean> {
        await new Promise<void>((resolve) => {
          if (start === undefined) start = resolve;
          else resolve();
        });
        return super.started();
      }
    })();
    await world.open({ batchThread: late });
    const done: string[] = [];
    const waiting = decide(newAction({ arguments: large })).then(() => done.push("large"));
    while (start === undefined) await setImmediate();
    await decide(newAction()).then(() => done.push("small"));
    start();
    await waiting;
    expect(done).to.deep.equal(["small", "large"]);
  });

  it("go on after one that failed", async () => {
    const [failed, next] = [newAction({ arguments: large }), newAction({ arguments: large })];
    const hook = {
      check: (): undefined => {
        throw new TypeError("refused by a hook");
      },
    };
    const refused = world.ledger.actions.recordDecision(failed, makeEvaluation(failed), undefined, [hook]);
    const [first] = await Promise.allSettled([refused, decide(next), thread.letGo()]);
    expect(first.status).to.equal("rejected");
    expect((await world.recordsOf()).at(-1)).to.include({ kind: "decision" });
  });
});
