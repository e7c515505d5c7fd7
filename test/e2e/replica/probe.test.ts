import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { PostgresProxy } from "../../support/postgresql-proxy.ts";
import { eventually, ReplicaSite } from "../../support/replica-site.ts";
import { isAlive, probeReadiness } from "../../support/shipped-probe.ts";

const leaseMs = 8_000;

describe("the probes of replicas", () => {
  let site: ReplicaSite;
  let proxy: PostgresProxy;

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    proxy = await PostgresProxy.start(site.group.postgres.socket);
    await site.group.start(0, { databaseUrl: proxy.urlOf("gateway") });
    await site.serves(site.url(0));
    for (const index of [1, 2]) await site.group.start(index);
  });

  after(async () => {
    await site.stop();
    proxy.stop();
  });

  const all = [0, 1, 2] as const;

  function alive(): Promise<readonly boolean[]> {
    return Promise.all(
      all.map((index) => {
        const config = readFileSync(join(site.group.folderOf(index), "gateway.yaml"), "utf8");
        return isAlive(Number(/replica_port: (\d+)/.exec(config)?.[1]));
      }),
    );
  }

  function readiness(): Promise<readonly (number | undefined)[]> {
    return Promise.all(all.map((index) => probeReadiness(site.url(index))));
  }

  async function becomesReady(): Promise<void> {
    await eventually("every replica to be ready", async () => (await readiness()).every((status) => status === 200));
  }

  it("succeed at the owner and at those that forward to it", async () => {
    expect(await readiness()).to.deep.equal([200, 200, 200]);
    expect(await alive()).to.deep.equal([true, true, true]);
  });

  it("find an owner that the database does not hear of not ready but alive, until it forwards to the next one", async () => {
    expect(site.group.owner()).to.equal(0);
    proxy.cut();
    await eventually("the owner to be fenced", async () => (await probeReadiness(site.url(0))) === 503);
    const refused = await site.call(site.url(0), "fenced");
    expect(refused.end).to.equal("EVIDENCE_UNAVAILABLE");
    // The third one may still look for the new owner when the second is served by it.
    for (const index of [1, 2]) await site.serves(site.url(index), `elsewhere-${index}`);
    expect(await readiness()).to.deep.equal([503, 200, 200]);
    expect(await alive()).to.deep.equal([true, true, true]);
    proxy.heal();
    await becomesReady();
    expect(await site.reached()).to.not.include("fenced");
  });

  it("find those that wait for an owner not ready but alive, and an owner that stands still neither", async () => {
    const { process: owner } = site.group.member(site.group.owner());
    owner.kill("SIGSTOP");
    try {
      expect(await readiness()).to.deep.equal([undefined, undefined, undefined]);
      const isOwner = all.map((index) => site.group.member(index).process === owner);
      expect(await alive()).to.deep.equal(isOwner.map((is) => !is));
      await eventually("the others to be ready", async () =>
        (await readiness()).every((status, index) => status === (isOwner[index] ? undefined : 200)),
      );
    } finally {
      owner.kill("SIGCONT");
    }
    await becomesReady();
  });

  it("find all of them alive and none ready while the database is away", async () => {
    await site.group.postgres.halt("fast");
    await eventually("none to be ready", async () => (await readiness()).every((status) => status !== 200));
    expect(await alive()).to.deep.equal([true, true, true]);
    await site.group.postgres.resume();
    await becomesReady();
    await site.serves(site.url(0), "again");
    await site.expectOneChain();
  });

  it("find a replica that ended not alive", async () => {
    await site.group.member(2).kill9();
    expect((await alive())[2]).to.equal(false);
  });
});
