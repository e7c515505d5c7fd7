import { setTimeout } from "node:timers/promises";
import { expect } from "chai";
import { recordsPerSummary } from "../../../core/evidence/chain/approval-summary.ts";
import { approvalSummaryKey, recordKey } from "../../../core/evidence/record/key-space.ts";
import { ApprovalWorld } from "../../support/approval-world.ts";
import { newAction, rejection } from "../../support/ledger-world.ts";

describe("restoreApprovals(approvals, expiry, tenants) after a long time", () => {
  let world: ApprovalWorld;
  const used = newAction({ arguments: { path: "used" } });
  const pending = newAction({ arguments: { path: "pending" } });

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });

  afterEach(() => world.remove());

  it("reads nothing before the summary of approvals, and goes on with what waited and what was approved", async () => {
    const first = await world.approve(await world.hold(newAction()));
    const other = await world.hold(pending);
    await fill();
    await spoil(first.held_seq + 4);
    await world.restart();
    expect(await world.hold(pending)).to.equal(other);
    await world.approve(other);
    expect(await world.attempt(newAction())).to.include({ permitted: true });
    expect(await world.attempt(newAction())).to.include({ permitted: false });
  });

  it("lets nothing pass again that was used, before the summary or after it", async () => {
    for (const isAfter of [false, true]) {
      const id = (await world.approve(await world.hold(used))).id;
      const entry = JSON.stringify(await world.stored(id));
      const other = await world.hold(pending);
      if (isAfter) await fill();
      await world.attempt(used);
      if (!isAfter) await fill();
      await world.lay(id, entry);
      await world.restart();
      expect((await world.stored(id)).state).to.equal(isAfter ? "consumed" : "expired");
      expect(await world.attempt(used)).to.include({ permitted: false });
      expect(await world.hold(pending)).to.equal(other);
    }
  });

  for (const [what, change] of [
    ["was changed", (text: string) => text.replace('"pending"', '"approved"')],
    ["is cut", (text: string) => text.slice(0, 40)],
    ["is gone", () => undefined],
  ] as const) {
    it(`reads the chain from the oldest request on where the summary ${what}`, async () => {
      const { held_seq: seq } = await world.approve(await world.hold(newAction()));
      await world.hold(pending);
      await fill();
      const key = approvalSummaryKey("acme");
      const text = change((await world.ledger.store.get(key)) ?? "");
      await (text === undefined ? world.ledger.store.del(key) : world.ledger.store.put(key, text));
      await world.restart();
      expect(await world.attempt(newAction())).to.include({ permitted: true });
      await spoil(seq + 4);
      await world.restart();
      expect((await rejection(world.attempt(newAction()))).message).to.match(/is broken at record/);
    });
  }

  it("writes no summary after a failed write, which may have lost what it would say", async () => {
    await world.hold(pending);
    world.holdsStore = () => false;
    await rejection(world.attempt(used));
    world.holdsStore = () => true;
    world.pass(2_000);
    await rejection(world.attempt(used));
    while (!world.ledger.ledger.writable) await setTimeout(10);
    await fill();
    expect(await world.ledger.store.get(approvalSummaryKey("acme"))).to.equal(undefined);
  });

  async function fill(): Promise<void> {
    const record = (): Promise<void> => world.ledger.ledger.recordEvent("acme", "admin", { action: "filled" });
    await Promise.all(Array.from({ length: recordsPerSummary + 300 }, record));
  }

  /** Changes a record. */
  async function spoil(seq: number): Promise<void> {
    const key = recordKey("acme", seq);
    const text = (await world.ledger.store.get(key)) ?? "";
    expect(text).to.include("filled");
    await world.ledger.store.put(key, text.replace("filled", "killed"));
  }
});
