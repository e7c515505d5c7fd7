import { expect } from "chai";
import { ReplicaSite, type Sent } from "../../support/replica-site.ts";

const leaseMs = 2_000;
/** Of Debian's package `faketime`; the linker puts the folder of this machine's architecture in. */
const faketime = "/usr/$LIB/faketime/libfaketime.so.1";

describe("a replica whose clock is three days ahead", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    await site.group.start(0);
    await site.serves(site.url(0));
    const env = { LD_PRELOAD: faketime, FAKETIME: "+3d", FAKETIME_DONT_FAKE_MONOTONIC: "1", DONT_FAKE_MONOTONIC: "1" };
    await site.group.start(1, { env });
  });

  after(() => site.stop());

  it("waits for the end of the lease by the database's clock, and keeps it by the same when it owns [S86]", async () => {
    // Renewed four times, each after a third of its length: the other would have taken it by its own clock.
    const sent: Sent[] = [];
    const ends = new Set<string>();
    while (ends.size < 5) {
      ends.add((await site.group.postgres.sql("SELECT until FROM gateway_lease", "gateway")).stdout);
      sent.push(await site.call(site.url(1), `ahead-${sent.length}`));
    }
    expect(site.group.owner()).to.equal(0);
    for (const { mark, end } of sent) expect(end, mark).to.equal("answered");
    await site.group.member(0).kill9();
    const after = [...(await site.serves(site.url(1), "after"))];
    expect(site.group.owner()).to.equal(1);
    await site.group.start(0);
    for (let at = 0; at < 10; at++) after.push(await site.call(site.url(0), `kept-${at}`));
    expect(site.group.owner()).to.equal(1);
    expect(after.at(-1)?.end).to.equal("answered");
    await site.expectSettled([...sent, ...after]);
    await site.expectOneChain();
  });
});
