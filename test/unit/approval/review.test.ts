import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { principalId } from "../../../core/action/principal.ts";
import { ApprovalWorld, reviewer } from "../../support/approval-world.ts";
import { newAction, rejection } from "../../support/ledger-world.ts";

/** Who had another key before, under the same name. */
const ritaBefore = { ...reviewer("rita"), id: principalId("acme", "sha256:former") };

describe("ApprovalReview", () => {
  let world: ApprovalWorld;

  beforeEach(async () => {
    world = await ApprovalWorld.create();
  });

  afterEach(() => world.remove());

  it("hears no viewer, whatever let it come so far", async () => {
    const id = await world.hold(newAction());
    const vera = reviewer("vera", "viewer");
    expect(await codeOf(world.approve(id, vera))).to.equal("ROLE_FORBIDDEN");
    expect(await codeOf(world.approvals.review.deny(id, vera, undefined))).to.equal("ROLE_FORBIDDEN");
    expect((await world.stored(id)).state).to.equal("pending");
  });

  it("knows who asked under a changed key", async () => {
    const action = newAction();
    const id = await world.hold(action);
    const renewed = { ...reviewer("x"), keyId: action.principal.keyId };
    expect(await codeOf(world.approve(id, renewed))).to.equal("APPROVAL_SELF_REVIEW");
  });

  it("counts a reviewer once under a changed key", async () => {
    const action = newAction();
    const { approval } = await world.attempt(action, world.evaluate(action, 2));
    const id = approval?.id ?? "";
    expect((await world.approve(id, ritaBefore)).state).to.equal("pending");
    expect(await codeOf(world.approve(id))).to.equal("APPROVAL_ENDORSED");
    expect((await world.approve(id, reviewer("rob"))).state).to.equal("approved");
  });

  it("takes the narrowest scope that any of them said", async () => {
    const action = newAction();
    const { approval } = await world.attempt(action, world.evaluate(action, 2));
    const id = approval?.id ?? "";
    await world.approvals.review.approve(id, reviewer("rita"), { scope: "task" });
    expect((await world.approvals.review.approve(id, reviewer("rob"), { scope: "exact" })).scope).to.equal("exact");
  });

  it("takes one post-mortem of 32 at once", async () => {
    await world.restart({ rule: { allowSelfReview: false, allowBreakGlass: true } });
    const id = await world.hold(newAction());
    const adam = reviewer("adam", "admin");
    await world.approvals.review.approve(id, adam, { scope: "exact", breakGlass: "production is down" });
    await world.attempt(newAction());
    const written = await Promise.allSettled(
      Array.from({ length: 32 }, async (_, index) => {
        for (let turn = 0; turn < index; turn++) await new Promise(setImmediate);
        return world.approvals.review.closeBreakGlass(id, adam, `report ${index}`);
      }),
    );
    expect(written.filter(({ status }) => status === "fulfilled")).to.have.length(1);
    const told = (await world.ledger.recordsOf()).filter(
      (record) => "detail" in record && record.detail.event === "post_mortem",
    );
    expect(told).to.have.length(1);
  });

  it("lets no more emergencies be open than may be, however many are declared at once", async () => {
    await world.restart({ rule: { allowSelfReview: false, allowBreakGlass: true } });
    const adam = reviewer("adam", "admin");
    const ids = await Promise.all(Array.from({ length: 16 }, (_, at) => world.hold(newAction({ arguments: { at } }))));
    const declared = await Promise.allSettled(
      ids.map((id) => world.approvals.review.approve(id, adam, { scope: "exact", breakGlass: "all is on fire" })),
    );
    expect(declared.filter(({ status }) => status === "fulfilled")).to.have.length(10);
    const refused = declared.flatMap((each) =>
      each.status === "rejected" ? [(each.reason as GatewayError).code] : [],
    );
    expect(new Set(refused)).to.deep.equal(new Set(["BREAK_GLASS_FORBIDDEN"]));
  });

  it("counts no yes to what cannot be shown whole any more", async () => {
    const id = await world.hold(newAction());
    const keys = await world.ledger.store.keys({ gte: "acme/held/", lt: "acme/held0" }).all();
    expect(keys).to.have.length(1);
    for (const key of keys) await world.ledger.store.del(key);
    expect(await codeOf(world.approve(id))).to.equal("APPROVAL_INCOMPLETE");
    expect(await world.attempt(newAction())).to.include({ permitted: false });
  });
});

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await rejection(promise);
  return error instanceof GatewayError ? error.code : error.message;
}
