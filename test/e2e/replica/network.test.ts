import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { rejection } from "../../support/ledger-world.ts";
import { type Network, NetworkNamespaces, networks } from "../../support/network-namespaces.ts";
import { awaitReady, type ReadyProcess } from "../../support/ready-line.ts";
import { eventually, ReplicaSite, type Sent, SteadyCalls, say, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteKey } from "../../support/site.ts";

const leaseMs = roundsOf(2_000, 10_000);
const indexes = [0, 1, 2] as const;
const leaseHolder = fileURLToPath(new URL("../../fixture/lease-holder.js", import.meta.url));

describe("replicas on machines of their own", function () {
  this.timeout(240_000);
  let machines: NetworkNamespaces;
  let site: ReplicaSite;

  before(async () => {
    machines = await NetworkNamespaces.create(indexes.length);
    site = await ReplicaSite.create(leaseMs, {
      postgres: { host: machines.hostOf("database") },
      upstreamHost: machines.hostOf("clients"),
      hosts: indexes.map((index) => machines.addressOf(index, "clients")),
    });
    const start = (index: number): Promise<unknown> =>
      site.group.start(index, {
        databaseUrl: databaseUrl(),
        env: { REPLICA_HOST: machines.addressOf(index, "peers") },
        host: machines.addressOf(index, "clients"),
        launcher: machines.launcherOf(index),
      });
    await Promise.all(indexes.map(start));
    await site.serves();
  });

  // Also where a test failed amid a cut.
  afterEach(() => Promise.all(indexes.map((index) => machines.heal(index, networks))));

  after(async () => {
    try {
      await site?.stop();
    } finally {
      await machines?.remove();
    }
  });

  for (let round = 1; round <= roundsOf(1, 30); round++) {
    it(`replace an owner that does not reach the database, which dispatches nothing (${round}) [S86]`, async () => {
      const cut = site.group.owner();
      const refused = await replaced(cut, ["database"], `database-${round}`, async () => {
        const refusals = await Promise.all([1, 2, 3, 4].map((turn) => at(cut, `database-cut-${round}-${turn}`)));
        await eventually("another owner", () => site.group.owner() !== cut);
        // Both are up, and one of them alone decides.
        return [...refusals, await at(cut, `database-still-cut-${round}`)];
      });
      const reached = await site.reached();
      for (const { mark, end } of refused) {
        expect(end, mark).to.equal("EVIDENCE_UNAVAILABLE");
        expect(reached).to.not.include(mark);
      }
    });

    it(`replace an owner that nobody reaches (${round}) [S86]`, async () => {
      await replaced(site.group.owner(), networks, `everybody-${round}`, async () => []);
    });

    it(`replace an owner that is cut from the database amid a transaction (${round}) [S86]`, async () => {
      const cut = site.group.owner();
      const holder = await holdLease(cut);
      await machines.cut(cut, ["database"]);
      const cutMs = performance.now();
      const served = await site.serves(site.url((cut + 1) % indexes.length), `transaction-${round}`);
      sayOutage("cut from the database amid a transaction", cutMs, served.at(-1), leaseMs);
      expect(site.group.owner(), "the owner").to.not.equal(cut);
      await holder.stop("SIGKILL", leaseMs);
      await machines.heal(cut, ["database"]);
      await expectSound([...served, ...(await site.serves(site.url(cut), `transaction-healed-${round}`))], cut);
    });

    it(`keep an owner that no other replica reaches, and refuse what they cannot forward (${round}) [S86]`, async () => {
      const owner = site.group.owner();
      const others = indexes.filter((index) => index !== owner);
      const own = new SteadyCalls(site, site.url(owner), `peers-own-${round}`, 2);
      const before = await Promise.all(others.map((index) => at(index, `peers-before-${round}-${index}`)));
      const inFlight = others.map((index) =>
        site.call(site.url(index), `peers-in-flight-${round}-${index}`, { wait_ms: 5_000 }),
      );
      await eventually("the calls to be dispatched", async () => {
        const reached = await site.reached();
        return others.every((index) => reached.includes(`peers-in-flight-${round}-${index}`));
      });

      const kept = others.map((index) => new Agent(site.url(index), siteKey, `peers-late-${round}-${index}`));
      for (const agent of kept) expect((await agent.call("echo")).status).to.equal(200);

      await machines.cut(owner, ["peers"]);
      const cutMs = performance.now();
      const refusals = others.flatMap((index) =>
        [1, 2].map((turn) => refusal(index, `peers-cut-${round}-${index}-${turn}`)),
      );
      // On connections that were forwarded before.
      const late = kept.map((agent) => rejection(agent.call("echo", { mark: `peers-late-${round}` })));
      const [first] = await own.answered(10);
      sayOutage("cut from its peers, at the owner", cutMs, first, leaseMs);
      const ended = await Promise.all(inFlight);
      for (const { end, cause } of ended) expect([end, cause.split(" ")[0]]).to.deep.equal(["none", "UND_ERR_SOCKET"]);
      for (const cause of await Promise.all(late)) expect(cause).to.include({ code: "UND_ERR_SOCKET" });
      for (const { endedMs } of ended) say(`a call that was forwarded ended after ${Math.round(endedMs - cutMs)} ms`);
      for (const { status, retryAfter } of await Promise.all(refusals)) {
        expect([status, retryAfter]).to.deep.equal([503, "1"]);
      }
      say(`clients of the others were refused after ${Math.round(performance.now() - cutMs)} ms`);
      expect(site.group.owner(), "the owner").to.equal(owner);

      await machines.heal(owner, ["peers"]);
      const healedMs = performance.now();
      const again = await Promise.all(
        others.map((index) => site.serves(site.url(index), `peers-again-${round}-${index}`)),
      );
      sayOutage("healed, at the others", healedMs, again[0]?.at(-1), leaseMs);
      for (const index of others) {
        await eventually("what was closed to be gone", async () => (await machines.unsent(index, owner)) === 0);
      }
      const refused = /^peers-(cut|late)-/;
      expect((await site.reached()).filter((mark) => refused.test(mark))).to.deep.equal([]);
      await expectSound([before, ended, await own.end(), ...again].flat(), owner);
    });
  }

  /** Locks the row of the lease, from where a replica is. */
  function holdLease(index: number): Promise<ReadyProcess> {
    const [command = "", ...args] = [...machines.launcherOf(index), process.execPath, leaseHolder];
    const env = { ...process.env, DATABASE_URL: databaseUrl(), TIMEOUT_MS: String(leaseMs) };
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    return awaitReady(child, { event: "ready" }, 60_000);
  }

  function databaseUrl(): string {
    return `postgres://auditor@${machines.hostOf("database")}/gateway`;
  }

  function at(index: number, mark: string): Promise<Sent> {
    return site.call(site.url(index), mark);
  }

  /**
   * Cuts an owner from some networks amid calls at every replica. Another must take over; the former owner forwards when it is
   * back. Returns the calls of `meanwhile`, which may wait for the next owner.
   */
  async function replaced(
    cut: number,
    from: readonly Network[],
    name: string,
    meanwhile: () => Promise<readonly Sent[]>,
  ): Promise<readonly Sent[]> {
    const before = losses(cut);
    const calls = indexes.map((index) => new SteadyCalls(site, site.url(index), `${name}-${index}`, 2));
    await Promise.all(calls.map((each) => each.answered(2)));
    await machines.cut(cut, from);
    const cutMs = performance.now();
    const served = Promise.all(calls.filter((_, index) => index !== cut).map((each) => each.answered(4)));
    const own = await meanwhile();
    const firsts = (await served).map(([first]) => first);
    for (const first of firsts) sayOutage(`cut from ${from.join(", ")}`, cutMs, first, leaseMs);
    expect(site.group.owner(), "the owner").to.not.equal(cut);
    await machines.heal(cut, from);
    const healedMs = performance.now();
    await eventually("the former owner to say so", () => losses(cut) > before);
    const forwarded = await site.serves(site.url(cut), `${name}-forwarded`);
    sayOutage("healed, at the former owner", healedMs, forwarded.at(-1), leaseMs);
    const ended = await Promise.all(calls.map((each) => each.end()));
    await expectSound([...own, ...ended.flat(), ...forwarded], cut);
    return own;
  }

  /** Nothing that was acknowledged is lost, and there is one history, as each replica and both verifiers find. */
  async function expectSound(sent: readonly Sent[], index: number): Promise<void> {
    await site.expectSettled(sent, index);
    await site.expectOneChain();
    await site.expectVerified(sent.at(-1)?.mark ?? "", index);
  }

  /** How often a replica has said that it lost the lease. */
  function losses(index: number): number {
    return site.group.member(index).stderr().split('"replica_lease_lost"').length - 1;
  }

  /** Calls at a replica that cannot forward it. */
  async function refusal(
    index: number,
    mark: string,
  ): Promise<{ readonly status: number; readonly retryAfter: unknown }> {
    const params = { name: "echo", arguments: { mark } };
    const response = await fetch(`${site.url(index)}/mcp`, {
      method: "POST",
      headers: { "x-api-key": siteKey, "content-type": "application/json", connection: "close" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    await response.text();
    return { status: response.status, retryAfter: response.headers.get("retry-after") };
  }
});
