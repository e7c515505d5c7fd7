import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { MemoryLevel } from "memory-level";
import { sha256Hex } from "../../../../core/action/canonical-json.ts";
import type { BatchOperation } from "../../../../core/action/commit-hook.ts";
import { SigningKey } from "../../../../core/action/signing-key.ts";
import { ApprovalTracker } from "../../../../core/evidence/chain/approval-summary.ts";
import type { EvidenceChain } from "../../../../core/evidence/chain/chain-table.ts";
import { emptyHead } from "../../../../core/evidence/chain/chain-walk.ts";
import { GroupCommit } from "../../../../core/evidence/chain/group-commit.ts";
import { HighWaterMemory, type Mark } from "../../../../core/evidence/chain/high-water.ts";
import type { Sealed } from "../../../../core/evidence/chain/seal.ts";
import { WrappingKey } from "../../../../core/evidence/key/wrapping-key.ts";
import type { EvidenceRecord } from "../../../../core/evidence/record/record.ts";
import { checkpointSigner } from "../../../../core/evidence/tree/checkpoint.ts";
import { TileTree } from "../../../../core/evidence/tree/merkle.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

function newChain(): EvidenceChain {
  return {
    tenant: "acme",
    id: "c",
    head: emptyHead,
    signer: checkpointSigner("c", SigningKey.fromSeed(randomBytes(32))),
    tree: new TileTree(),
    wrapping: WrappingKey.generate(randomBytes),
    approvals: new ApprovalTracker(),
  };
}

/** As much of a sealed record as the group commit reads. */
function sealedOf(seq: number): Sealed {
  const record = { seq, time: "2026-05-01T10:00:00.000Z" } as EvidenceRecord;
  return { record, text: `record ${seq}`, hash: sha256Hex(`record ${seq}`) };
}

describe("GroupCommit", () => {
  it("shares one batch among the entries of one turn, and keeps batches apart and in order", async () => {
    const store = new MemoryLevel<string, string>();
    const highWater = new HighWaterMemory();
    const commit = new GroupCommit({
      store,
      outerMark: null,
      highWater,
      limit: 5_000,
      holdsStore: () => true,
      onRefused: () => undefined,
      onFailure: () => {},
    });
    const chain = newChain();
    const batches: number[] = [];
    store.on("write", (operations) =>
      batches.push(operations.filter((each: BatchOperation) => each.key.startsWith("k")).length),
    );
    const entry = (seq: number): Promise<void> => {
      return commit.submit(chain, sealedOf(seq), [{ type: "put", key: `k${seq}`, value: "" }]);
    };
    const order: number[] = [];
    await Promise.all(Array.from({ length: 2_500 }, (_, seq) => entry(seq).then(() => order.push(seq))));
    expect(batches).to.deep.equal([1_024, 1_024, 452]);
    expect(order).to.deep.equal(Array.from({ length: 2_500 }, (_, seq) => seq));
    expect(highWater.marks.get("acme")?.seq).to.equal(2_499);
  });

  it("acknowledges nothing before its mark, and rejects what waits behind a mark that failed", async () => {
    const store = new MemoryLevel<string, string>();
    const failures: unknown[] = [];
    const fault = new Error("no space left");
    let seen: string | undefined;
    const highWater = {
      marks: new Map<string, Mark>(),
      advance: async () => {
        seen = await store.get("k0");
        throw fault;
      },
      close: async () => {},
    };
    const commit = new GroupCommit({
      store,
      outerMark: null,
      highWater,
      limit: 10,
      holdsStore: () => true,
      onRefused: () => undefined,
      onFailure: (cause) => failures.push(cause),
    });
    const first = commit.submit(newChain(), sealedOf(0), [{ type: "put", key: "k0", value: "v" }]);
    expect(await rejection(first)).to.include({ code: "EVIDENCE_UNAVAILABLE", cause: fault });
    expect(seen, "the store comes before the mark").to.equal("v");
    expect(failures).to.deep.equal([fault]);
    expect(() => commit.admit("outcome")).to.throw("the last write failed");
    commit.resume();
    expect(() => commit.admit("bounded")).to.not.throw();
  });

  it("acknowledges no record about an approval whose mark outside the data folder cannot be raised, and asks for it of no other", async () => {
    const raised: Mark[] = [];
    const commit = new GroupCommit({
      store: new MemoryLevel<string, string>(),
      highWater: new HighWaterMemory(),
      outerMark: {
        advance: async (marks) => {
          raised.push(...marks);
          throw new Error("no space left");
        },
      },
      limit: 10,
      holdsStore: () => true,
      onRefused: () => undefined,
      onFailure: () => undefined,
    });
    const chain = newChain();
    await commit.submit(chain, sealedOf(0), []);
    expect(raised).to.deep.equal([]);
    const approval = {
      kind: "decision",
      seq: 1,
      time: "2026-05-01T10:00:00.000Z",
      approval: { id: "apr_1", state: "consumed" },
    };
    const sealed = { ...sealedOf(1), record: approval as unknown as EvidenceRecord };
    expect(await rejection(commit.submit(chain, sealed, []))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    expect(raised.map(({ seq }) => seq)).to.deep.equal([1]);
  });

  it("tells how long each record waited to be durable, in batches, and of a failure once", async () => {
    const store = new MemoryLevel<string, string>();
    const told: unknown[] = [];
    let nowMs = 0;
    const held = [true, true, false];
    const commit = new GroupCommit({
      store,
      outerMark: null,
      highWater: new HighWaterMemory(),
      limit: 10,
      holdsStore: () => {
        nowMs += 10;
        return held.shift() ?? false;
      },
      onRefused: () => undefined,
      onFailure: () => {},
      observer: {
        elapsedMs: () => nowMs,
        committed: (waitedMs) => void told.push(waitedMs),
        writeFailed: () => void told.push("failed"),
      },
    });
    const chain = newChain();
    const submit = (seq: number): Promise<void> => commit.submit(chain, sealedOf(seq), []);
    const first = submit(0);
    nowMs += 5;
    await Promise.all([first, submit(1)]);
    expect(told).to.deep.equal([[25, 20]]);
    const lost = [submit(2), submit(3)].map(rejection);
    await Promise.all(lost);
    expect(told).to.deep.equal([[25, 20], "failed"]);
  });

  it("acknowledges nothing that was written while another process could open the store", async () => {
    const store = new MemoryLevel<string, string>();
    const answers = [true, false];
    const holdsStore = (): boolean => answers.shift() ?? false;
    const failures: unknown[] = [];
    const highWater = new HighWaterMemory();
    const commit = new GroupCommit({
      store,
      outerMark: null,
      highWater,
      limit: 10,
      holdsStore,
      onRefused: () => undefined,
      onFailure: (cause) => failures.push(cause),
    });
    const entry = commit.submit(newChain(), sealedOf(0), [{ type: "put", key: "k0", value: "v" }]);
    expect(await rejection(entry)).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    expect(String(failures[0])).to.contain("the lock of the store is no longer the one that was taken");
  });
});

describe("Ledger in memory", () => {
  it("keeps the same chain, and forgets it with the process", async () => {
    const world = await LedgerWorld.create();
    const store = new MemoryLevel<string, string>();
    await world.open({ store, highWaterPath: null });
    await world.act();
    expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 3 });
    const action = newAction();
    await world.ledger.actions.recordDecision(action, makeEvaluation(action));
    expect((await world.ledger.sessions("acme", { limit: 10 })).items).to.have.length(1);
    await world.remove();
  });
});
