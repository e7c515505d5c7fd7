import { expect } from "chai";
import { PostgresProxy } from "../../support/postgresql-proxy.ts";
import { eventually, ReplicaSite, type Sent, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";

const leaseMs = 2_000;
/** Of Debian's package `faketime`; the linker puts the folder of this machine's architecture in. */
const faketime = "/usr/$LIB/faketime/libfaketime.so.1";

describe("an owner that is cut off from the database alone", () => {
  let site: ReplicaSite;
  const paths: PostgresProxy[] = [];

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    for (const index of [0, 1]) {
      const path = await PostgresProxy.start(site.group.postgres.socket);
      paths.push(path);
      await site.group.start(index, { databaseUrl: path.urlOf("gateway") });
    }
    await site.serves();
  });

  after(async () => {
    await site.stop();
    for (const path of paths) path.stop();
  });

  for (let round = 1; round <= roundsOf(2, 30); round++) {
    it(`dispatches nothing, another takes over, and it forwards when it reaches the database again (${round}) [S86]`, async () => {
      const { group } = site;
      const cut = group.owner();
      const other = 1 - cut;
      const before = losses(cut);
      paths[cut]?.cut();
      const cutMs = performance.now();
      const refused = await Promise.all([1, 2, 3, 4].map((at) => site.call(site.url(cut), `cut-${round}-${at}`)));
      for (const { mark, end } of refused) expect(end, mark).to.equal("EVIDENCE_UNAVAILABLE");
      const served = await site.serves(site.url(other), `elsewhere-${round}`);
      await eventually("the next owner", () => group.owner() === other);
      sayOutage("cut from the database", cutMs, served.at(-1), leaseMs);
      // Both are up, and one of them alone decides.
      const still = await site.call(site.url(cut), `still-cut-${round}`);
      expect(still.end).to.not.equal("answered");
      const reached = await site.reached();
      for (const { mark } of [...refused, still]) expect(reached).to.not.include(mark);
      paths[cut]?.heal();
      await eventually("the former owner to say so", () => losses(cut) > before);
      const forwarded = await site.serves(site.url(cut), `forwarded-${round}`);
      await site.expectSettled([...refused, ...served, still, ...forwarded]);
      await site.expectOneChain();
      await site.expectVerified(forwarded.at(-1)?.mark ?? "", cut);
    });
  }

  /** How often a replica has said that it lost the lease. */
  function losses(index: number): number {
    return site.group.member(index).stderr().split('"replica_lease_lost"').length - 1;
  }
});

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
