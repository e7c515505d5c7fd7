import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { ReviewWorld, recordsIn } from "../../support/review-world.ts";

const reason = "production is down, nobody else awake";
const account = "The database had to fail over; two reviewers were told in the morning.";

describe("approvals.review_seconds and use_seconds", () => {
  it("end what nobody answered, or nobody used, and a late answer is 409 [R3.2-7, S52]", async () => {
    const world = await ReviewWorld.start("review_seconds: 4, use_seconds: 1");
    try {
      const args = { text: "late" };
      const unused = await world.hold(args);
      expect((await world.as("rita").approve(unused)).status).to.equal(200);
      const unanswered = await world.hold({ text: "later" });
      await ended(world, unused, "not_used_in_time");
      await ended(world, unanswered, "not_reviewed_in_time");
      await world.call("echo", args);
      expect(await world.ran()).to.equal(0);
    } finally {
      await world.stop();
    }
  });

  async function ended(world: ReviewWorld, id: string, why: string): Promise<void> {
    for (let waited = 0; waited < 100; waited += 1) {
      const { approval } = (await world.as("vera").show(id)).body;
      if (approval.state === "expired") break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    for (const answer of [world.as("olaf").approve(id), world.as("adam").deny(id)]) {
      const { status, body } = await answer;
      expect([status, body.data]).to.deep.equal([409, { id, state: "expired" }]);
    }
    expect((await world.as("vera").show(id)).body.approval.reason).to.equal(why);
  }
});

/** One gateway with both switches on; neither grants what the other does. */
describe("a gateway whose configuration says", () => {
  let folder: string;
  let world: ReviewWorld;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "approval-switch-"));
    world = await ReviewWorld.start("allow_self_review: true, allow_break_glass: true", folder);
  });
  after(async () => {
    await world.stop();
    await rm(folder, { recursive: true });
  });

  describe("approvals.allow_self_review", () => {
    it("lets whoever asked say yes where it is set", async () => {
      const args = { text: "mine" };
      const id = await world.hold(args);
      const { status, body } = await world.as("agent").approve(id);
      expect([status, body.approval.reviewer]).to.deep.equal([200, world.principal("agent")]);
      await world.call("echo", args);
      expect(await world.ran()).to.equal(1);
    });

    it("makes nobody two of the two that a rule wants", async () => {
      const id = await world.hold({ text: "mine" }, "deep");
      expect((await world.as("agent").approve(id)).body.approval.state).to.equal("pending");
      expect((await world.as("agent").approve(id)).status).to.equal(409);
    });
  });

  describe("approvals.allow_break_glass", () => {
    it("lets nobody else, not even with the reason [R5-18]", async () => {
      const args = { text: "not you" };
      const id = await world.hold(args, "deep");
      const { status, body } = await world.as("rita").approve(id, { break_glass: reason });
      expect([status, body.code]).to.deep.equal([403, "BREAK_GLASS_FORBIDDEN"]);
      const ran = await world.ran();
      await world.call("deep", args);
      expect(await world.ran()).to.equal(ran);
    });

    it("lets an admin approve alone, once, and keeps the use open until somebody says what happened [R5-18]", async () => {
      const args = { text: "now" };
      const ran = await world.ran();
      const id = await world.hold(args, "deep");
      const { status, body } = await world.as("adam").approve(id, { break_glass: reason });
      expect([status, body.approval.state, body.approval.break_glass?.reason]).to.deep.equal([200, "approved", reason]);
      const early = await world.as("adam").closeBreakGlass(id, account);
      expect([early.status, early.body.data]).to.deep.equal([409, { id, state: "approved" }]);
      await world.call("deep", args);
      expect(await world.ran()).to.equal(ran + 1);
      const open = (await world.as("vera").openBreakGlass()).body.items;
      expect(open.map((each) => [each.id, each.break_glass?.by])).to.deep.equal([[id, world.principal("adam")]]);
      expect((await world.as("foreign").openBreakGlass()).body.items).to.deep.equal([]);
      expect((await world.as("rita").closeBreakGlass(id, account)).status).to.equal(403);
      expect((await world.as("foreign").closeBreakGlass(id, account)).status).to.equal(404);
      expect((await world.as("adam").closeBreakGlass(id, "too short")).status).to.equal(400);
      const closed = await world.as("adam").closeBreakGlass(id, account);
      expect([closed.status, closed.body.approval.break_glass?.post_mortem?.text]).to.deep.equal([200, account]);
      expect((await world.as("adam").closeBreakGlass(id, account)).status).to.equal(409);
      expect((await world.as("vera").openBreakGlass()).body.items).to.deep.equal([]);
      expect(await new EvidenceReader(world.gateway.adminUrl, world.key("adam")).verify()).to.include({ ok: true });
      await world.gateway.stop();
      const told = (await recordsIn(join(folder, "data"))).filter(
        ({ kind, detail }) => kind === "approval" && detail.id === id,
      );
      expect(told.map(({ detail }) => detail.event)).to.deep.equal(["approved", "post_mortem"]);
      expect(told[0]?.detail).to.deep.include({ reviewer: world.principal("adam"), break_glass: { reason } });
      expect(told[1]?.detail).to.include({ by: world.principal("adam"), text: account });
    });
  });
});
