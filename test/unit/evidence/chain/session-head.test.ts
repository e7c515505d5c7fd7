import { expect } from "chai";
import { MemoryLevel } from "memory-level";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import type { BatchOperation } from "../../../../core/action/commit-hook.ts";
import type { SessionScope } from "../../../../core/action/principal.ts";
import { type ChainHead, emptyHead } from "../../../../core/evidence/chain/chain-walk.ts";
import { textOf } from "../../../../core/evidence/chain/group-commit.ts";
import { decisionContent, type Sealed, sealActionRecord } from "../../../../core/evidence/chain/seal.ts";
import { SessionHeads } from "../../../../core/evidence/chain/writer.ts";
import { recordKey, sessionKey, sessionOrderKey } from "../../../../core/evidence/record/key-space.ts";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { makeEvaluation, newAction } from "../../../support/ledger-world.ts";

const stamp = {
  clock: () => 1_777_000_000_000,
  random: (count: number) => new Uint8Array(count),
  writer: { epoch: 1, id: "w" },
  configDigest: "sha256:00",
};

describe("SessionHeads", () => {
  let store: MemoryLevel<string, string>;
  let heads: SessionHeads;
  let head: ChainHead;

  beforeEach(async () => {
    store = new MemoryLevel();
    await store.open();
    heads = new SessionHeads(store, 100);
    head = { ...emptyHead, seq: 0 };
  });

  it("holds no more sessions than its capacity, and goes on with each where it ended", async () => {
    const first = new Map<number, string>();
    for (let index = 0; index < 1_000; index++) first.set(index, (await append(scope(index))).hash);
    expect(heads.size).to.equal(100);
    for (const index of [0, 500, 999, 1]) {
      const { session } = heads.next(chain(), scope(index));
      expect(session).to.include({ index: 1, prev_hash: first.get(index) });
    }
    expect(heads.size).to.equal(100);
  });

  it("evicts the session used longest ago", async () => {
    for (let index = 0; index < 100; index++) await append(scope(index));
    await append(scope(0));
    await append(scope(100));
    // Without its record in the store, a session that is not in memory cannot be continued.
    await store.clear();
    expect(heads.next(chain(), scope(0)).session.index).to.equal(2);
    expect(heads.next(chain(), scope(1)).session.index).to.equal(0);
  });

  it("keeps tenants apart", async () => {
    await append(scope(1));
    expect(heads.next(chain("other"), scope(1)).session.index).to.equal(0);
  });

  it("forgets what the store does not hold when cleared", async () => {
    await append(scope(1));
    await append(scope(1), false);
    expect(heads.next(chain(), scope(1)).session.index).to.equal(2);
    heads.clear();
    expect(heads.next(chain(), scope(1)).session.index).to.equal(1);
  });

  it("begins a session anew from the turn in which it ends, before the store knows", async () => {
    const first = await append(scope(1));
    const last = await append(scope(1));
    expect(heads.end(first.record)).to.deep.equal([]);
    expect(heads.next(chain(), scope(1)).session.index).to.equal(2);
    expect(heads.end(last.record)).to.deep.equal([
      sessionKey("acme", "session-1"),
      sessionKey("acme", "session-1", 1),
      sessionOrderKey("acme", first.record.seq),
    ]);
    expect(heads.end(last.record)).to.deep.equal([]);
    expect(heads.next(chain(), scope(1)).session.index).to.equal(0);
    await append(scope(1), false);
    heads.forgetEnded([last.record]);
    expect(heads.next(chain(), scope(1)).session.index).to.equal(1);
  });

  it("asks the store again for a session whose deletion failed", async () => {
    const { record } = await append(scope(1));
    heads.end(record);
    heads.clear();
    expect(heads.next(chain(), scope(1)).session.index).to.equal(1);
  });

  it("goes on after nothing but the bytes that the chain goes on from", async () => {
    const { record } = await append(scope(1));
    await append(scope(2));
    const key = recordKey("acme", record.seq);
    const text = JSON.stringify({ ...record, time: "2001-01-01T00:00:00.000Z" });
    await store.put(key, text);
    heads.clear();
    expect(() => heads.next(chain(), scope(1))).to.throw("does not match its chain");
    const other = { tenant: "acme", head: { seq: record.seq, hash: "0".repeat(64) } };
    expect(() => heads.next(other, scope(1))).to.throw("does not match its chain");
  });

  function chain(tenant = "acme"): { readonly tenant: string; readonly id: string; readonly head: ChainHead } {
    return { tenant, id: "c", head };
  }

  function scope(index: number): SessionScope {
    return { id: `session-${index}`, transport: "http" };
  }

  async function append(session: SessionScope, kept = true): Promise<Sealed<ActionRecord>> {
    const action = newAction({ session });
    const bound = { fingerprint: "sha256:11", argumentsDigest: "sha256:22", facts: undefined };
    const next = heads.next(chain(), session);
    const body = decisionContent(action, makeEvaluation(action), bound);
    const sealed = sealActionRecord(body, chain(), next.session, stamp);
    expect(sealed.hash).to.equal(sha256Hex(sealed.text));
    const { seq } = sealed.record;
    head = { seq, hash: sealed.hash };
    const operations = heads
      .advance(next, sealed)
      .map(
        (each): BatchOperation =>
          each.type === "put" ? { ...each, value: textOf(each.value as Parameters<typeof textOf>[0]) } : each,
      );
    if (kept) await store.batch([...operations, { type: "put", key: recordKey("acme", seq), value: sealed.text }]);
    return sealed;
  }
});
