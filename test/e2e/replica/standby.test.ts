import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { PostgresServer } from "../../support/postgresql.ts";
import { PostgresProxy } from "../../support/postgresql-proxy.ts";
import { eventually, ReplicaSite, type Sent, SteadyCalls, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";

const leaseMs = roundsOf(2_000, 10_000);
const isOlder = "the database is older than the data folder";

describe("a standby of the database that takes the place of its primary", () => {
  let site: ReplicaSite;
  let proxy: PostgresProxy;
  let primary: PostgresServer;
  const standbys: PostgresServer[] = [];

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    primary = site.group.postgres;
    // The address that moves with the primary: the driver takes one host.
    proxy = await PostgresProxy.start(primary.socket);
    for (const index of [0, 1, 2]) await site.group.start(index, { databaseUrl: proxy.urlOf("gateway") });
    await site.serves();
  });

  after(async () => {
    await site.stop();
    proxy.stop();
    for (const standby of standbys) await standby.stop();
  });

  async function startStandby(): Promise<PostgresServer> {
    const standby = await primary.startStandby();
    standbys.push(standby);
    return standby;
  }

  async function sql(server: PostgresServer, statement: string): Promise<string> {
    const { code, stdout, stderr } = await server.sql(statement);
    expect(code, stderr).to.equal(0);
    return stdout.trim();
  }

  for (let round = 1; round <= roundsOf(1, 30); round++) {
    it(`has all that was acknowledged, where it follows synchronously and the primary is killed amid calls (${round}) [S87]`, async () => {
      const standby = await startStandby();
      await sql(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'");
      await sql(primary, "SELECT pg_reload_conf()");
      await eventually("a synchronous standby", async () => {
        return (await sql(primary, "SELECT sync_state FROM pg_stat_replication")) === "sync";
      });
      const calls = [0, 1, 2].map((at) => new SteadyCalls(site, site.url(at), `failover-${round}-${at}`, 2));
      await Promise.all(calls.map((each) => each.answered(5)));

      const killedMs = performance.now();
      await primary.halt("kill -9");
      await standby.promote();
      proxy.pointTo(standby.socket);
      primary = standby;
      const firsts = await Promise.all(calls.map(async (each) => (await each.answered(5))[0]));
      for (const [at, first] of firsts.entries()) sayOutage(`failed over, at replica ${at}`, killedMs, first, leaseMs);
      const sent = (await Promise.all(calls.map((each) => each.end()))).flat();
      for (const { mark, end } of sent) expect(end, mark).to.be.oneOf(["answered", "EVIDENCE_UNAVAILABLE", "none"]);
      await site.expectSettled(sent);
      await site.expectOneChain();
      await site.expectVerified(firsts[0]?.mark ?? "");
      for (const { process } of site.group.members) expect(process.exitCode).to.equal(null);
    });
  }

  it("is refused by the replicas that have what it lacks, where it followed asynchronously [S87]", async () => {
    const standby = await startStandby();
    await standby.halt("fast");
    const sent = await Promise.all([1, 2, 3].map((turn) => site.call(site.url(0), `lacking-${turn}`)));
    expect(sent.map(({ end }) => end)).to.deep.equal(["answered", "answered", "answered"]);
    // The others read what changed ten times in the length of a lease.
    await sleep(leaseMs);
    await primary.halt("kill -9");
    await standby.resume();
    await standby.promote();
    proxy.pointTo(standby.socket);
    const { group } = site;
    const owner = group.owner();
    const others = [0, 1, 2].filter((at) => at !== owner);
    await eventually("the others to end", () => others.every((at) => group.member(at).process.exitCode !== null));
    for (const at of others) expect(group.member(at).stderr()).to.include(isOlder);
    // The owner of then still has the lease there, and the copy that has more.
    const refused: Sent[] = [];
    await eventually("the owner to say why it refuses", async () => {
      refused.push(await site.call(site.url(owner), `refused-${refused.length}`));
      return group.member(owner).stderr().includes(isOlder);
    });
    for (let turn = 0; turn < 5; turn++) refused.push(await site.call(site.url(owner), `still-refused-${turn}`));
    const reached = await site.reached();
    for (const { mark, end } of refused) {
      expect(end, mark).to.equal("EVIDENCE_UNAVAILABLE");
      expect(reached).to.not.include(mark);
    }
    // Nor at another start, until somebody decides.
    await group.member(owner).kill9();
    const started = await group.start(owner, { databaseUrl: proxy.urlOf("gateway") });
    await eventually("the replica to end", () => started.process.exitCode !== null);
    expect(started.stderr()).to.include(isOlder);
    expect((await site.reached()).filter((mark) => mark.includes("refused"))).to.deep.equal([]);
  });
});
