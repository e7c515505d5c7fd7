import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import { ApprovalWorld, reviewer } from "../../support/approval-world.ts";
import { makeEvaluation, newAction, rejection } from "../../support/ledger-world.ts";

describe("ApprovalQueue.reserve(action, evaluation)", () => {
  let world: ApprovalWorld;

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });

  afterEach(() => world.remove());

  it("holds an action, lets it pass once after a yes, and holds it anew", async () => {
    const held = await world.attempt(newAction());
    expect(held).to.deep.include({ permitted: false, review: "held" });
    const id = held.approval?.id ?? "";
    expect(id).to.match(/^apr_[0-9a-f]{32}$/);
    expect((await world.approve(id)).state).to.equal("approved");
    expect(await world.attempt(newAction())).to.deep.include({ permitted: true, review: null });
    const again = await world.attempt(newAction());
    expect(again).to.deep.include({ permitted: false, review: "held", former: { id, state: "consumed" } });
    expect(again.approval?.id).not.to.equal(id);
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
  });

  it("joins equal actions to one pending approval", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => world.hold(newAction())));
    expect(new Set(ids).size).to.equal(1);
    expect(world.announced.map(({ state }) => state)).to.deep.equal(["pending"]);
  });

  it("lets one of 200 at once pass", async () => {
    await world.approve(await world.hold(newAction()));
    const attempts = await Promise.all(Array.from({ length: 200 }, () => world.attempt(newAction())));
    expect(attempts.filter(({ permitted }) => permitted)).to.have.length(1);
    expect(attempts.filter(({ review }) => review === "held")).to.have.length(199);
  });

  it("tells a denied action so, and asks nobody again, until its time to review is over", async () => {
    const id = await world.hold(newAction());
    await world.approvals.review.deny(id, reviewer("rita"), "not today");
    const denied = await world.attempt(newAction());
    expect(denied).to.deep.include({ permitted: false, review: "denied" });
    expect(denied.approval).to.deep.include({ id, state: "denied", comment: "not today" });
    world.pass(1_800_000);
    expect(await world.attempt(newAction())).to.deep.include({ permitted: false, review: "held" });
  });

  it("reads the definition again before an approval is used, and voids it where that is another or gone", async () => {
    const action = newAction({ tool_definition: { digest: "sha256:aa", annotations: {} } });
    const { queue } = world.approvals;
    const evaluation = makeEvaluation(action, "review");
    for (const published of ["sha256:bb", undefined]) {
      const id = await world.hold(action);
      expect((await queue.reserve(action, evaluation, unread)).kind).to.equal("held");
      await world.approve(id);
      const refusal = await rejection(queue.reserve(action, evaluation, async () => published));
      expect(refusal).to.include({ code: "DEFINITION_CHANGED" });
      expect(await world.attempt(action)).to.deep.include({
        permitted: false,
        former: { id, state: "expired", reason: "tool_changed" },
      });
    }
  });

  it("keeps an approval where the definition cannot be read, and uses it where it is the same", async () => {
    const action = newAction({ tool_definition: { digest: "sha256:aa", annotations: {} } });
    const { queue } = world.approvals;
    const evaluation = makeEvaluation(action, "review");
    await world.approve(await world.hold(action));
    const down = new GatewayError("UPSTREAM_UNAVAILABLE");
    expect(await rejection(queue.reserve(action, evaluation, () => Promise.reject(down)))).to.equal(down);
    expect((await queue.reserve(action, evaluation, async () => "sha256:aa")).kind).to.equal("granted");
  });

  it("voids an approval where the tool's definition is another", async () => {
    const shown = { tool_definition: { digest: "sha256:aa", annotations: {} } };
    const id = await world.hold(newAction(shown));
    await world.approve(id);
    const swapped = await world.attempt(newAction({ tool_definition: { digest: "sha256:bb", annotations: {} } }));
    expect(swapped).to.deep.include({
      permitted: false,
      review: "held",
      former: { id, state: "expired", reason: "tool_changed" },
    });
    expect(await world.attempt(newAction(shown))).to.deep.include({ permitted: false });
  });

  it("voids an approval where a policy is another", async () => {
    const id = await world.hold(newAction());
    await world.approve(id);
    const action = newAction();
    const changed = await world.attempt(action, withDigest(makeEvaluation(action, "review"), "sha256:cc"));
    expect(changed).to.deep.include({ permitted: false, former: { id, state: "expired", reason: "policy_changed" } });
  });

  it("brings nothing back that another call ended before its own decision was recorded", async () => {
    const [before, after] = ["sha256:aa", "sha256:bb"].map((digest) => ({
      tool_definition: { digest, annotations: {} },
    }));
    const [first, second] = await Promise.all([world.attempt(newAction(before)), world.attempt(newAction(after))]);
    const [old, current] = [first.approval?.id ?? "", second.approval?.id ?? ""];
    expect(second).to.deep.include({ review: "held", former: { id: old, state: "expired", reason: "tool_changed" } });
    await world.approvals.expiry.sweep();
    expect(await world.stored(old)).to.include({ state: "expired", reason: "tool_changed" });
    expect((await rejection(world.approve(old))).message).to.contain("`expired`");
    expect(await world.hold(newAction(after))).to.equal(current);
    await world.restart();
    expect(await world.hold(newAction(after))).to.equal(current);
  });

  it("lets a no about the very action stand against a yes to its task", async () => {
    const denied = newAction({ arguments: { path: "/etc/passwd" } });
    await world.approvals.review.deny(await world.hold(denied), reviewer("rita"), undefined);
    await world.approvals.review.approve(
      await world.hold(newAction({ arguments: { path: "/srv" } })),
      reviewer("rob"),
      {
        scope: "task",
      },
    );
    expect(await world.attempt(newAction(denied))).to.include({ permitted: false, review: "denied" });
    expect(await world.attempt(newAction({ arguments: { path: "/tmp" } }))).to.include({ permitted: true });
    expect(await world.attempt(newAction({ arguments: { path: "/var" } }))).to.include({ permitted: false });
  });

  it("lets each of two yeses to one task be used, once", async () => {
    const task = (path: string) => newAction({ arguments: { path } });
    const ids = [await world.hold(task("a")), await world.hold(task("b"))];
    for (const id of ids) await world.approvals.review.approve(id, reviewer("rita"), { scope: "task" });
    for (const path of ["c", "d"]) expect(await world.attempt(task(path))).to.include({ permitted: true });
    for (const path of ["a", "b", "e"]) expect(await world.attempt(task(path))).to.include({ permitted: false });
    expect(await world.ledger.ledger.verify("acme")).to.include({ ok: true });
  });

  it("refuses one more than the tenant may have, and says so; another tenant is not concerned", async () => {
    await world.restart({
      limits: { reviewMs: 1_000, useMs: 1_000, keySharePercent: 100, maxLive: 2, maxHeldBytes: 1_000_000 },
    });
    for (const path of ["a", "b"]) await world.hold(newAction({ arguments: { path } }));
    expect(await world.attempt(newAction({ arguments: { path: "c" } }))).to.deep.include({
      permitted: false,
      review: "full",
      approval: undefined,
    });
    expect(await world.attempt(newAction({ tenant: "other" }))).to.deep.include({ review: "held" });
    world.pass(1_000);
    await world.approvals.expiry.sweep();
    expect(await world.attempt(newAction({ arguments: { path: "c" } }))).to.deep.include({ review: "held" });
  });

  it("counts what is held in bytes too", async () => {
    await world.restart({
      limits: { reviewMs: 1_000, useMs: 1_000, keySharePercent: 100, maxLive: 10, maxHeldBytes: 4_000 },
    });
    expect(await world.attempt(newAction({ arguments: { text: "x".repeat(5_000) } }))).to.include({ review: "full" });
    expect(await world.attempt(newAction())).to.include({ review: "held" });
  });

  it("permits nothing where the use cannot be recorded, then or later", async () => {
    const id = await world.hold(newAction());
    await world.approve(id);
    await world.ledger.ledger.close();
    expect((await rejection(world.attempt(newAction()))).message).to.contain("closed");
    await world.restart();
    const [entry] = await world.ledger.store.values({ gte: "acme/approval/", lt: "acme/approval0" }).all();
    expect(JSON.parse(entry ?? "")).to.include({ id, state: "approved" });
  });
});

function withDigest(evaluation: Evaluation, digest: string): Evaluation {
  const verdicts = evaluation.verdicts.map((verdict) => ({ ...verdict, policy: { ...verdict.policy, digest } }));
  return { ...evaluation, verdicts };
}

/** What is not approved needs no second look. */
function unread(): Promise<never> {
  throw new Error("expected no reading");
}
