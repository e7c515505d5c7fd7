import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Approval } from "../../../core/action/approval.ts";
import { ApprovalWorld, reviewer } from "../../support/approval-world.ts";
import { newAction, rejection } from "../../support/ledger-world.ts";

/** How a write fails: nothing of it is on disk, or all of it, and nobody was told. */
const failures = ["lost", "kept"] as const;
type Failure = (typeof failures)[number];

describe("a step of an approval whose write fails", () => {
  let world: ApprovalWorld;

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });

  afterEach(() => world.remove());

  for (const failure of failures) {
    describe(`and is ${failure}`, () => {
      it("a request: is answered with an error, and asked anew", async () => {
        await world.ledger.act();
        await failing(failure, () => world.attempt(newAction()));
        const [left] = await entries();
        expect(left?.state).to.equal(failure === "kept" ? "expired" : undefined);
        if (left !== undefined) expect(left.reason).to.equal("request_not_recorded");
        const id = await world.hold(newAction());
        expect(id).not.to.equal(left?.id);
        await expectOneUse(id);
      });

      it("a yes: is in force where it is on disk, and can be said again where it is not", async () => {
        const id = await world.hold(newAction());
        await failing(failure, () => world.approve(id));
        expect((await world.stored(id)).state).to.equal(failure === "kept" ? "approved" : "pending");
        if (failure === "kept") expect((await rejection(world.approve(id))).message).to.contain("`approved`");
        else await world.approve(id);
        await expectOneUse(id);
      });

      it("one yes of two: counts where it is on disk, and only once", async () => {
        const action = newAction();
        const held = await world.attempt(action, world.evaluate(action, 2));
        const id = held.approval?.id ?? "";
        await failing(failure, () => world.approve(id));
        if (failure === "kept") expect((await rejection(world.approve(id))).message).to.contain("endorsed it already");
        else expect((await world.approve(id)).state).to.equal("pending");
        expect((await world.approve(id, reviewer("rob"))).state).to.equal("approved");
      });

      it("a no: holds where it is on disk, and nobody can say yes any more", async () => {
        const id = await world.hold(newAction());
        await failing(failure, () => world.approvals.review.deny(id, reviewer("rita"), undefined));
        if (failure === "lost") await world.approvals.review.deny(id, reviewer("rita"), undefined);
        expect((await rejection(world.approve(id))).message).to.contain("`denied`");
        expect(await world.attempt(newAction())).to.include({ permitted: false, review: "denied" });
      });

      it("a use: nothing is permitted, then or later, and the approval is gone", async () => {
        const id = await world.hold(newAction());
        await world.approve(id);
        await failing(failure, () => world.attempt(newAction()));
        const stored = await world.stored(id);
        if (failure === "kept") expect(stored.state).to.equal("consumed");
        else expect(stored).to.include({ state: "expired", reason: "use_not_recorded" });
        expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
        await world.restart();
        expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
      });

      it("an end: is in force at once, and on record when that can be written", async () => {
        const id = await world.hold(newAction());
        await world.approve(id);
        const swapped = { tool_definition: { digest: "sha256:bb", annotations: {} } };
        await failing(failure, () => world.attempt(newAction(swapped)));
        expect(await world.stored(id)).to.include({ state: "expired", reason: "tool_changed" });
        expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
      });

      it("an end by time: is in force at once, and on record when that can be written", async () => {
        const id = await world.hold(newAction());
        await world.approve(id);
        world.pass(900_000);
        breakDisk(failure);
        await world.approvals.expiry.sweep();
        expect((await rejection(world.attempt(newAction()))).message).to.contain("evidence cannot be written");
        await repair();
        expect(await world.stored(id)).to.include({ state: "expired", reason: "not_used_in_time" });
        expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
      });
    });
  }

  it("loses no end that comes while doubts are settled", async () => {
    const [first, second] = [newAction(), newAction({ arguments: { path: "second" } })];
    const ids = [await world.hold(first), await world.hold(second)];
    for (const id of ids) await world.approve(id);
    await failing("lost", () => world.attempt(first), false);
    world.pass(900_000);
    const sweeping = world.approvals.expiry.sweep();
    await Promise.all([sweeping, world.approvals.expiry.sweep()]);
    await world.approvals.expiry.sweep();
    for (const id of ids) expect((await world.stored(id)).state).to.equal("expired");
  });

  function breakDisk(failure: Failure): void {
    let asked = 0;
    world.holdsStore = () => failure === "kept" && ++asked === 1;
  }

  /** Lets one step fail, mends the disk, and lets the sweep settle what is in doubt. */
  async function failing(failure: Failure, step: () => Promise<unknown>, settle = true): Promise<void> {
    breakDisk(failure);
    expect((await rejection(step())).message).to.contain("evidence cannot be written");
    await repair(settle);
  }

  async function repair(settle = true): Promise<void> {
    world.holdsStore = () => true;
    world.ledger.clock.nowMs += 1_001;
    // Somebody has to ask for the repair; it may have been made already.
    await world.ledger.act({ tenant: "mender" }).catch(() => undefined);
    for (const end = Date.now() + 60_000; !world.ledger.ledger.writable && Date.now() < end; ) await sleep(5);
    if (settle) await world.approvals.expiry.sweep();
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
  }

  async function entries(): Promise<readonly Approval[]> {
    const texts = await world.ledger.store.values({ gte: "acme/approval/", lt: "acme/approval0" }).all();
    return texts.map((text) => JSON.parse(text) as Approval);
  }

  async function expectOneUse(id: string): Promise<void> {
    if ((await world.stored(id)).state === "pending") await world.approve(id);
    expect(await world.attempt(newAction())).to.include({ permitted: true });
    expect(await world.attempt(newAction())).to.include({ permitted: false, review: "held" });
  }
});
