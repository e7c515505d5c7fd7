import { expect } from "chai";
import { HeldSite, overHttp, textOf, toldOf } from "../../support/held-site.ts";
import { MoodyUpstream } from "../../support/moody-upstream.ts";

interface Page {
  readonly items: readonly { readonly id: string }[];
  readonly next: string | null;
}

/** Without its limits in `ApprovalQueue` one principal could fill memory and disk, and bury what a reviewer must see. */
describe("a review queue that is full", () => {
  let upstream: MoodyUpstream;
  let site: HeldSite;

  before(async () => {
    upstream = await MoodyUpstream.start();
    site = new HeldSite({
      upstreams: [overHttp("moody", upstream.url)],
      approvals: "max_pending: 3, max_held_bytes: 20000",
    });
    await site.start();
  });

  beforeEach(() => upstream.calls.splice(0));

  // Nothing of one test waits in the queue of the next.
  afterEach(async () => {
    for (const id of await listed(100)) expect((await site.review(id, "deny")).status).to.equal(200);
    expect(await listed(100)).to.deep.equal([]);
    await site.hangUp();
  });

  after(async () => {
    await site.stop();
    upstream.stop();
  });

  it("refuses one more in clear words; what waits still works, and the list still pages [S57]", async () => {
    const ids: string[] = [];
    for (const to of ["a", "b", "c"]) ids.push(await site.hold("echo", { to }));
    for (let turn = 0; turn < 50; turn++) await expectFull({ to: `flood ${turn}` });
    expect(await listed(2)).to.deep.equal(ids);
    expect(await site.hold("echo", { to: "a" })).to.equal(ids[0]);
    await site.approve(ids[0] ?? "");
    await expectFull({ to: "d" });
    expect((await site.call("echo", { to: "a" })).result?.isError).to.equal(undefined);
    await site.hold("echo", { to: "d" });
    expect((await site.review(ids[1] ?? "", "deny")).status).to.equal(200);
    await site.hold("echo", { to: "e" });
    await expectFull({ to: "f" });
    expect(upstream.calls).to.have.length(1);
  });

  it("of one tenant stops no other tenant [S57]", async () => {
    for (const to of ["g", "h", "i"]) await site.hold("echo", { to });
    await expectFull({ to: "j" });
    await site.hold("echo", { to: "j" }, "foreign");
  });

  it("counts bytes too: few large calls fill it, and a small one still fits [S57]", async () => {
    const id = await site.hold("echo", { to: "a", text: "x".repeat(15_000) });
    await expectFull({ to: "b", text: "x".repeat(15_000) });
    await site.hold("echo", { to: "small" });
    expect((await site.review(id, "deny")).status).to.equal(200);
    await site.hold("echo", { to: "b", text: "x".repeat(15_000) });
    expect(upstream.calls).to.deep.equal([]);
  });

  async function expectFull(args: object): Promise<void> {
    const answer = await site.call("echo", args);
    expect(toldOf(answer)).to.deep.include({ code: "APPROVAL_QUEUE_FULL", executed: false, approval: null });
    expect(textOf(answer)).to.match(
      /Nothing was executed\. The review queue is full \(at most (3 approvals|20000 bytes of held actions) of one tenant\), so nobody was asked: try again once a reviewer has decided, or in \d+ s\./,
    );
  }

  /** Every pending approval, by pages of `limit`. */
  async function listed(limit: number): Promise<readonly string[]> {
    const ids: string[] = [];
    let cursor: string | null = "";
    for (let page = 0; cursor !== null && page < 20; page++) {
      const query: string = `limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`;
      const response = await fetch(`${site.gateway.adminUrl}/admin/v1/approvals?${query}`, {
        headers: { "x-api-key": site.key("rita") },
      });
      const body = (await response.json()) as Page;
      expect(body.items.length).to.be.at.most(limit);
      ids.push(...body.items.map(({ id }) => id));
      cursor = body.next;
    }
    return ids;
  }
});
