import { expect } from "chai";
import type { Approval } from "../../../core/action/approval.ts";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import type { Json } from "../../../core/action/json.ts";
import { recordKey } from "../../../core/evidence/record/key-space.ts";
import type { ActionRecord, EvidenceRecord } from "../../../core/evidence/record/record.ts";
import { ApprovalWorld, reviewer } from "../../support/approval-world.ts";
import { makeEvaluation, newAction, rejection } from "../../support/ledger-world.ts";

const hourMs = 3_600_000;

/** What somebody who can write the store, and has no key, may try: each on an entry that was approved. */
const edits: Readonly<Record<string, (approval: Approval) => object>> = {
  "its time to use": ({ expires_at: at }) => ({ expires_at: new Date(Date.parse(at) + hourMs).toISOString() }),
  "its fingerprint": () => ({ fingerprint: `sha256:${"1".repeat(64)}` }),
  "its scope": () => ({ scope: "task" }),
  "the fingerprint of its task": () => ({ task_fingerprint: `sha256:${"1".repeat(64)}` }),
  "the decision that held it": ({ held_seq: seq }) => ({ held_seq: seq + 1 }),
  "the tool it was shown with": () => ({ bound: { tool_definition: "sha256:aa", policies: [] } }),
  "its transport": ({ session }) => ({ session: { ...session, transport: "sse" } }),
  "who asked": ({ principal }) => ({ principal: { ...principal, id: reviewer("other").id } }),
  "how many must say yes": () => ({ required: 0 }),
};

describe("restoreApprovals(approvals, expiry, tenants)", () => {
  let world: ApprovalWorld;

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });

  afterEach(() => world.remove());

  it("brings back what was approved, and lets it pass once", async () => {
    const id = await world.hold(newAction());
    await world.approve(id);
    await world.restart();
    expect(await world.attempt(newAction())).to.include({ permitted: true });
    await world.restart();
    expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
    expect((await world.stored(id)).state).to.equal("consumed");
  });

  it("brings back what is pending, to be approved then", async () => {
    const id = await world.hold(newAction());
    await world.restart();
    expect(await world.hold(newAction())).to.equal(id);
    await world.approve(id);
    expect(await world.attempt(newAction())).to.include({ permitted: true });
  });

  for (const [what, change] of Object.entries(edits)) {
    it(`ends an approval of which somebody changed ${what} in the store`, async () => {
      const id = await approved();
      const stored = await world.stored(id);
      await world.lay(id, JSON.stringify({ ...stored, ...change(stored) }));
      await expectEnded(id, "contradicted_by_evidence");
    });
  }

  it("ends what was pending and says in the store that it is approved", async () => {
    const id = await world.hold(newAction());
    await world.lay(id, JSON.stringify({ ...(await world.stored(id)), state: "approved" }));
    await expectEnded(id, "contradicted_by_evidence");
  });

  it("ends what was approved where its pending entry was put back, word for word", async () => {
    const id = await world.hold(newAction());
    const pending = JSON.stringify(await world.stored(id));
    await world.approve(id);
    await world.lay(id, pending);
    await expectEnded(id, "contradicted_by_evidence");
  });

  it("leaves used what was used where its approved entry was put back, word for word", async () => {
    const id = await approved();
    const entry = JSON.stringify(await world.stored(id));
    await world.attempt(newAction());
    for (const text of [entry, entry.replace(/"seal":"[^"]*"/, `"seal":"x"`), entry.replace(/,"seal":"[^"]*"/, "")]) {
      await world.lay(id, text);
      await world.restart();
      expect((await world.stored(id)).state).to.equal("consumed");
      expect(await world.attempt(newAction())).to.include({ permitted: false });
    }
  });

  it("takes no entry of another tenant, or of another id", async () => {
    const id = await approved();
    const text = JSON.stringify(await world.stored(id));
    const other = `apr_${"0".repeat(32)}`;
    await world.attempt(newAction({ tenant: "other" }));
    await world.lay(id, text, "other");
    await world.lay(other, text);
    await world.restart();
    expect(await world.stored(id, "other")).to.include({ state: "expired", reason: "contradicted_by_evidence" });
    expect(await world.stored(other)).to.include({ state: "expired", reason: "contradicted_by_evidence" });
    expect(await world.attempt(newAction())).to.include({ permitted: true });
    expect(await world.attempt(newAction())).to.include({ permitted: false });
  });

  for (const [what, text] of [
    ["the entry of a former version", JSON.stringify({ state: "approved", fingerprint: "sha256:aa", tool: "x" })],
    ["an entry that cannot be read", "{"],
    ["no entry", ""],
  ] as const) {
    it(`ends on record ${what}: it is bound to no identity`, async () => {
      const id = `apr_${"7".repeat(32)}`;
      await world.hold(newAction());
      await world.lay(id, text);
      await expectEnded(id, "identity_not_bound");
    });
  }

  it("refuses the tenant where the record of a use was changed to bring the approval back", async () => {
    const id = await approved();
    const entry = JSON.stringify(await world.stored(id));
    await world.attempt(newAction());
    // Further back than the newest tile of the tree, which a start reads anyway.
    await Promise.all(Array.from({ length: 300 }, () => world.ledger.act()));
    await rewriteUse(world);
    await world.lay(id, entry);
    await world.restart();
    expect((await rejection(world.attempt(newAction()))).message).to.match(/is broken at record \d+: `prev_hash`/);
    expect(world.ledger.warnings.map(({ message }) => message)).to.include("approval_restore_failed");
    expect(await world.attempt(newAction({ tenant: "other" }))).to.include({ review: "held" });
  });

  it("ends an approval whose held action is damaged, and no other", async () => {
    const id = await world.hold(newAction());
    const other = await world.hold(newAction({ arguments: { path: "other" } }));
    const key = recordKey("acme", (await world.stored(id)).held_seq, "held");
    const sealed = (await world.ledger.store.get(key)) ?? "";
    await world.ledger.store.put(key, `${sealed.slice(0, -8)}AAAAAAAA`);
    await world.restart();
    expect(await world.stored(id)).to.include({ state: "expired", reason: "contradicted_by_evidence" });
    expect((await world.approve(other)).state).to.equal("approved");
  });

  it("ends what belongs to a connection", async () => {
    const { principal, session } = newAction();
    const id = await world.hold(newAction({ principal, session: { ...session, transport: "sse" } }));
    await world.approve(id);
    await expectEnded(id, "connection_closed");
  });

  it("ends what nobody reviewed, or used, in time", async () => {
    const pending = await world.hold(newAction({ arguments: { path: "other" } }));
    const id = await approved();
    await world.close();
    world.pass(900_000);
    await world.open();
    expect(await world.stored(id)).to.include({ state: "expired", reason: "not_used_in_time" });
    expect((await world.stored(pending)).state).to.equal("pending");
    await world.close();
    world.pass(900_000);
    await world.open();
    expect(await world.stored(pending)).to.include({ state: "expired", reason: "not_reviewed_in_time" });
  });

  it("ends everything where the clock was set back while nothing ran", async () => {
    const id = await approved();
    await world.close();
    world.ledger.clock.nowMs -= hourMs;
    await world.open();
    await expectEnded(id, "clock_set_back");
  });

  it("ends everything where the start itself wrote a record with the clock set back", async () => {
    const id = await approved();
    const inFlight = newAction({ arguments: { path: "in flight" } });
    await world.ledger.ledger.actions.recordDecision(inFlight, makeEvaluation(inFlight));
    await world.close();
    world.ledger.clock.nowMs -= hourMs;
    await world.open();
    expect(
      (await world.ledger.recordsOf()).filter((record) => "effect" in record && record.effect === "unknown"),
    ).to.have.length(1);
    await expectEnded(id, "clock_set_back");
  });

  it("ends everything where the clock was set back before the stop, and records were written since", async () => {
    const id = await world.hold(newAction());
    world.pass(1_700_000);
    await world.approve(id);
    world.ledger.clock.nowMs -= 1_000_000;
    await world.ledger.act();
    await world.close();
    world.ledger.clock.nowMs += 1_000;
    await world.open();
    await expectEnded(id, "clock_set_back");
  });

  async function approved(): Promise<string> {
    const id = await world.hold(newAction());
    await world.approve(id);
    return id;
  }

  /** After another start it is ended, in the store and on record, and stays so. */
  async function expectEnded(id: string, reason: string): Promise<void> {
    for (let start = 0; start < 2; start++) {
      await world.restart();
      expect(await world.stored(id)).to.include({ state: "expired", reason });
      expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
    }
    const told = (await world.ledger.recordsOf()).filter((record) => isEnd(record, id));
    expect(told.map((record) => "detail" in record && record.detail.reason)).to.deep.equal([reason]);
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
    expect((await rejection(world.approve(id))).message).to.match(/no such approval|the approval is `expired`/);
  }
});

function isEnd(record: EvidenceRecord, id: string): boolean {
  return (
    record.kind === "approval" && "detail" in record && record.detail.event === "expired" && record.detail.id === id
  );
}

/** Makes the chain say that the action was merely held, as somebody without a key could. */
async function rewriteUse(world: ApprovalWorld): Promise<void> {
  const used = (await world.ledger.recordsOf()).find(
    (record): record is ActionRecord => "approval" in record && record.approval?.state === "consumed",
  );
  if (used?.approval === undefined) throw new Error("expected the record of a use");
  const text = canonicalJson({ ...used, approval: { ...used.approval, state: "pending" } } as unknown as Json);
  await world.ledger.store.put(recordKey("acme", used.seq), text);
}
