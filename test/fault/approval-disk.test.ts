import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Answer } from "../support/agent.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { HeldSite, heldId, overHttp } from "../support/held-site.ts";
import { MoodyUpstream, moods } from "../support/moody-upstream.ts";
import { until } from "../support/webhook-receiver.ts";

const { ENOSPC, EIO } = constants.errno;

type Fault = Parameters<DiskFault["begin"]>;
const faults: readonly (readonly [string, Fault])[] = [
  ["the disk is full", ["write", ENOSPC, "/state/"]],
  ["the disk cannot be synced", ["sync", EIO, "/state/"]],
  ["the high-water marks cannot be written", ["write", EIO, "/high-water"]],
];

/** Where the gate dispatched before its decision is durable, or a failed step counted, the upstream's log says so. */
describe("approvals while", () => {
  let folder: string;
  let disk: DiskFault;
  let upstream: MoodyUpstream;
  let site: HeldSite;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "approval-disk-"));
    disk = await DiskFault.compile(folder);
    upstream = await MoodyUpstream.start();
    site = new HeldSite({ upstreams: [overHttp("moody", upstream.url)], folder, env: disk.env });
    await site.start();
    await site.hold("echo", { warm: true });
  });

  afterEach(() => disk.end());

  after(async () => {
    await site.stop();
    upstream.stop();
    await rm(folder, { recursive: true });
  });

  for (const [what, fault] of faults) {
    const mark = (step: string): string => `${what}: ${step}`;

    it(`${what}: a use is refused, nothing runs, and the approval is gone [S65]`, async () => {
      const to = mark("use");
      const id = await site.holdAndApprove("echo", { to });
      await disk.begin(...fault);
      const refused = await Promise.all(Array.from({ length: 8 }, () => site.call("echo", { to })));
      for (const answer of refused) expectRefused(answer);
      const again = await afterRepair(() => site.call("echo", { to }));
      expect(heldId(again)).not.to.equal(id);
      await until(async () => ["consumed", "expired"].includes((await site.show(id)).state), "an end");
      expect(runs(to)).to.equal(0);
      await expectOneRun(heldId(again), to);
    });

    it(`${what}: a use whose outcome cannot be written runs once, and says that the approval is used up [S65]`, async () => {
      const to = mark("outcome");
      const id = await site.holdAndApprove("echo", { to });
      upstream.mood = moods.answersLate;
      const calling = site.call("echo", { to });
      await until(() => runs(to) === 1, "the call");
      await disk.begin(...fault);
      const answer = await calling;
      upstream.mood = moods.answers;
      expectRefused(answer);
      expect(answer.error?.data).to.deep.include({ approval: { id, state: "consumed" } });
      const again = await afterRepair(() => site.call("echo", { to }));
      expect(heldId(again)).not.to.equal(id);
      expect(runs(to)).to.equal(1);
    });

    it(`${what}: a yes is refused, and in force only if it is on disk [S65]`, async () => {
      const to = mark("yes");
      const id = await site.hold("echo", { to });
      await disk.begin(...fault);
      expect((await site.review(id, "approve")).status).to.equal(503);
      const { state } = await settled(id);
      expect(state).to.be.oneOf(["pending", "approved"]);
      expect(runs(to)).to.equal(0);
      if (state === "pending") await site.approve(id);
      expect((await site.call("echo", { to })).result?.isError).to.equal(undefined);
      expect(runs(to)).to.equal(1);
    });

    it(`${what}: a no is refused, and holds if it is on disk [S65]`, async () => {
      const to = mark("no");
      const id = await site.hold("echo", { to });
      await disk.begin(...fault);
      expect((await site.review(id, "deny")).status).to.equal(503);
      const { state } = await settled(id);
      expect(state).to.be.oneOf(["pending", "denied"]);
      if (state === "pending") expect((await site.review(id, "deny")).status).to.equal(200);
      expect((await site.review(id, "approve")).status).to.equal(409);
      expect((await site.call("echo", { to })).result?.isError).to.equal(true);
      expect(runs(to)).to.equal(0);
    });

    it(`${what}: a request is refused, and asked anew [S65]`, async () => {
      const to = mark("request");
      await disk.begin(...fault);
      for (let turn = 0; turn < 3; turn++) expectRefused(await site.call("echo", { to }));
      const id = heldId(await afterRepair(() => site.call("echo", { to })));
      await expectOneRun(id, to);
    });
  }

  it("are over: memory, store and chain say the same after a start", async () => {
    await sleep(1_500);
    const before = await listed();
    await site.stop();
    await site.start();
    expect(await listed()).to.deep.equal(before);
    expect(await site.evidence.verify()).to.include({ ok: true });
  });

  /** Mends the disk, and calls until the gateway has noticed. */
  async function afterRepair(call: () => Promise<Answer>): Promise<Answer> {
    await disk.end();
    for (const end = Date.now() + 10_000; Date.now() < end; await sleep(100)) {
      const answer = await call();
      if (answer.status === 200) return answer;
      expectRefused(answer);
    }
    throw new Error("expected service within 10 s of the repair");
  }

  /** The state of an approval once the disk is mended and doubts are settled. */
  async function settled(id: string): Promise<{ readonly state: string }> {
    await afterRepair(() => site.call("echo", { to: "mend" }));
    await sleep(1_500);
    return site.show(id);
  }

  async function expectOneRun(id: string, to: string): Promise<void> {
    await site.approve(id);
    expect((await site.call("echo", { to })).result?.isError).to.equal(undefined);
    expect((await site.call("echo", { to })).result?.isError).to.equal(true);
    expect(runs(to)).to.equal(1);
  }

  function runs(to: string): number {
    return upstream.calls.filter((call) => (call.arguments as { to?: string }).to === to).length;
  }

  async function listed(): Promise<readonly string[]> {
    const url = `${site.gateway.adminUrl}/admin/v1/approvals`;
    const lists = ["?state=pending&limit=500", "?state=approved&limit=500", "/history?limit=500"];
    const answers = await Promise.all(
      lists.map((each) => fetch(url + each, { headers: { "x-api-key": site.key("rita") } })),
    );
    const pages = (await Promise.all(answers.map((each) => each.json()))) as {
      items: { id: string; state: string }[];
    }[];
    return pages.flatMap(({ items }) => items.map(({ id, state }) => `${id} ${state}`)).toSorted();
  }
});

function expectRefused(answer: Answer): void {
  expect([answer.status, answer.error?.data?.code]).to.deep.equal([503, "EVIDENCE_UNAVAILABLE"]);
}
