import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../../core/action/envelope.ts";
import { openGroupRange, partRange, recordKey } from "../../../../core/evidence/record/key-space.ts";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { familyPrefixes, rangeOf } from "../../../../core/store/key-range.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

/** Bytes of a piece. */
const pieceBytes = 253_952;
/** Of several pieces, the last byte of the first amid a character. */
const large = { page: "\u00e4 page of text. ".repeat(60_000), rest: [1, "\ud83d\ude00".repeat(40_000)] };
const noPieces: readonly string[] = [];

describe("PieceWriter", () => {
  let world: LedgerWorld;
  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
  });
  afterEach(() => world.remove());

  async function decide(action: ActionEnvelope): Promise<ActionEnvelope> {
    await world.ledger.actions.recordDecision(action, makeEvaluation(action));
    return action;
  }

  /** Has a hook refuse a decision, of which the pieces are in the store. */
  async function refuse(action: ActionEnvelope, meanwhile?: () => Promise<void>): Promise<void> {
    let seen: Promise<void> | undefined;
    const check = (): undefined => {
      seen = meanwhile?.();
      throw new TypeError("refused by a hook");
    };
    const refused = world.ledger.actions.recordDecision(action, makeEvaluation(action), undefined, [{ check }]);
    expect(await rejection(refused)).to.include({ message: "refused by a hook" });
    await seen;
  }

  function pieces(): Promise<string[]> {
    return world.store.keys(rangeOf(familyPrefixes.piece)).all();
  }

  function openGroups(): Promise<string[]> {
    return world.store.keys(openGroupRange("acme")).all();
  }

  async function recordOf(action: ActionEnvelope, kind = "decision"): Promise<ActionRecord> {
    const records = (await world.recordsOf()) as ActionRecord[];
    const found = records.find((each) => each.kind === kind && each.action.id === action.id);
    if (found === undefined) throw new TypeError("expected a record of the action");
    return found;
  }

  it("keeps large arguments and outputs in pieces, which their records disclose whole", async () => {
    const action = await decide(newAction({ arguments: large }));
    const written = await pieces();
    await world.ledger.actions.recordOutcome(action, { status: "success", output: large });
    const argumentsOf = (await world.ledger.disclosure(await recordOf(action))).arguments;
    const outputOf = (await world.ledger.disclosure(await recordOf(action, "outcome"))).output;
    for (const fields of [argumentsOf, outputOf]) {
      expect(Object.fromEntries(fields?.map(({ name, value }) => [name, value]) ?? [])).to.deep.equal(large);
    }
    const count = Math.ceil(Buffer.byteLength(JSON.stringify(large)) / pieceBytes);
    expect([written.length, (await pieces()).length]).to.deep.equal([count, 2 * count]);
    for await (const bytes of world.store.values<string, Buffer>({ valueEncoding: "buffer" })) {
      expect(bytes.length).to.be.below(pieceBytes + 100);
    }
    expect(await openGroups()).to.deep.equal([]);
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
  });

  it("keeps what fits into one piece with its record", async () => {
    const action = await decide(newAction({ arguments: { page: "p".repeat(pieceBytes - 100) } }));
    expect(await pieces()).to.deep.equal(noPieces);
    expect((await world.ledger.disclosure(await recordOf(action))).arguments).to.have.length(1);
  });

  it("tells of each piece of an output before it is written, and of none of arguments [S77]", async () => {
    await world.ledger.close();
    const told: (readonly [principal: string, bytes: number])[] = [];
    await world.open({ stored: ({ principal }, bytes) => told.push([principal.id, bytes]) });
    const action = await decide(newAction({ arguments: large }));
    expect(told).to.deep.equal([]);
    await world.ledger.actions.recordOutcome(action, { status: "success", output: large });
    const sizes = told.map(([, bytes]) => bytes);
    expect(sizes.slice(0, -1)).to.deep.equal(sizes.slice(1).map(() => pieceBytes));
    const all = sizes.reduce((sum, bytes) => sum + bytes, 0);
    const own = Buffer.byteLength(JSON.stringify(large));
    expect(all).to.be.within(own, own + 200);
    expect(new Set(told.map(([principal]) => principal))).to.deep.equal(new Set([action.principal.id]));
  });

  it("lets small records pass a large one, and a tenant's large ones go one at a time [S77]", async () => {
    const done: string[] = [];
    let most = 0;
    const waiting = Array.from({ length: 2 }, async () => {
      await decide(newAction({ arguments: large }));
      done.push("large");
    });
    const other = decide(newAction({ tenant: "other", arguments: large })).then(() => done.push("other"));
    while ((await pieces()).length === 0) most = Math.max(most, (await openGroups()).length);
    await decide(newAction());
    done.unshift(`small behind ${done.length}`);
    while (done.length < 4) {
      most = Math.max(most, (await openGroups()).length);
      await setImmediate();
    }
    await Promise.all([...waiting, other]);
    expect(done[0]).to.equal("small behind 0");
    expect(most).to.equal(1);
    for (const tenant of ["acme", "other"]) expect((await world.ledger.verify(tenant)).ok, tenant).to.equal(true);
  });

  it("deletes the pieces of a record that a hook refuses, and goes on", async () => {
    const [failed, next] = [newAction({ arguments: large }), newAction({ arguments: large })];
    const refused = refuse(failed);
    const followed = decide(next);
    await refused;
    expect(await openGroups()).to.have.length.below(2);
    await followed;
    expect(await openGroups()).to.deep.equal([]);
    const count = (await pieces()).length;
    await world.ledger.disclosure(await recordOf(next));
    await decide(newAction({ arguments: large }));
    expect((await pieces()).length).to.equal(2 * count);
  });

  it("goes on after a record that ends before any of its turns, and keeps none of its pieces", async () => {
    let left = Number.POSITIVE_INFINITY;
    const pause = async (): Promise<void> => {
      if (--left === 0) throw new TypeError("no more turns");
      await setImmediate();
    };
    await world.ledger.close();
    await world.open({ pause });
    let failed = 0;
    for (;;) {
      left = failed + 1;
      const action = newAction({ arguments: large });
      const ended = await decide(action).catch((error: Error) => error);
      left = Number.POSITIVE_INFINITY;
      if (!(ended instanceof TypeError)) break;
      failed++;
      // The last turn comes after the record.
      if ((await world.recordsOf()).length === 0) expect(await pieces(), `turn ${failed}`).to.deep.equal(noPieces);
    }
    expect(failed).to.be.above(10);
    expect(await openGroups()).to.deep.equal([]);
    expect((await world.ledger.verify("acme")).ok).to.equal(true);
  });

  it("deletes at a start what a former process had written of a record that never came, and nothing else", async () => {
    const kept = await decide(newAction({ arguments: large }));
    const before = await pieces();
    const left: (readonly [string, string])[] = [];
    const action = newAction({ arguments: large });
    await refuse(action, async () => {
      const groups = world.store.iterator(openGroupRange("acme")).all();
      const own = world.store.iterator(partRange("acme", "piece")).all();
      left.push(...(await groups), ...(await own).filter(([key]) => !before.includes(key)));
    });
    expect(await pieces()).to.deep.equal(before);
    // As a kill would have left it.
    await world.store.batch(left.map(([key, value]) => ({ type: "put", key, value })));
    expect(await openGroups()).to.have.length(1);
    expect((await pieces()).length).to.be.above(before.length);
    await world.ledger.close();
    await world.open();
    expect(await openGroups()).to.deep.equal([]);
    expect(await pieces()).to.deep.equal(before);
    expect((await world.ledger.disclosure(await recordOf(kept))).arguments).to.have.length(2);
  });

  it("is found out where a piece was lost, changed, or put in another's place", async () => {
    const action = await decide(newAction({ arguments: large }));
    const record = await recordOf(action);
    const [first = "", second = ""] = await pieces();
    const [whole = "", other = ""] = await world.store.getMany([first, second]);
    const placeKey = recordKey("acme", record.seq, "pieces");
    const place = (await world.store.get(placeKey)) ?? "";
    const fewer = place.replace(/ \d+$/, " 1");
    const broken = [
      [first, undefined],
      [first, other],
      [first, `${whole.startsWith("A") ? "B" : "A"}${whole.slice(1)}`],
      [placeKey, undefined],
      [placeKey, fewer],
      [placeKey, "somewhere 3"],
    ] as const;
    for (const [key, value] of broken) {
      const before = (await world.store.get(key)) ?? "";
      await (value === undefined ? world.store.del(key) : world.store.put(key, value));
      const refused = await rejection(world.ledger.disclosure(record));
      expect(refused, `${key} = ${value?.slice(0, 20)}`).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      await world.store.put(key, before);
    }
    expect((await world.ledger.disclosure(record)).arguments).to.have.length(2);
  });
});
