import { expect } from "chai";
import { freePort } from "../../support/free-port.ts";
import { LossyPort } from "../../support/lossy-port.ts";
import { eventually, ReplicaSite, SteadyCalls, say, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteKey } from "../../support/site.ts";

const leaseMs = 2_000;
/** An address of this machine at which no replica listens itself. */
const host = "127.0.0.2";

describe("an owner that no other replica reaches, and that reaches the database", () => {
  let site: ReplicaSite;
  /** What others must pass to reach each replica. */
  const paths: LossyPort[] = [];

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    for (const index of [0, 1, 2]) {
      const port = await freePort();
      paths.push(await LossyPort.start({ host, port }, { host: "127.0.0.1", port }));
      await site.group.start(index, { replicaPort: port, env: { REPLICA_HOST: host } });
    }
    await site.serves();
  });

  after(async () => {
    await site.stop();
    for (const path of paths) path.stop();
  });

  for (let round = 1; round <= roundsOf(1, 30); round++) {
    it(`goes on, others refuse what they cannot forward, and forward again once they reach it (${round}) [S86]`, async () => {
      const { group } = site;
      const owner = group.owner();
      const others = [(owner + 1) % 3, (owner + 2) % 3] as const;
      const path = paths[owner] as LossyPort;
      const own = new SteadyCalls(site, site.url(owner), `own-${round}`, 2);
      const forwarded = await Promise.all(others.map((at) => site.serves(site.url(at), `before-${round}-${at}`)));
      const inFlight = site.call(site.url(others[0]), `in-flight-${round}`, { wait_ms: 1_000 });
      await eventually("the call to be dispatched", async () => (await site.reached()).includes(`in-flight-${round}`));

      path.cut();
      const cutMs = performance.now();
      const waiting = others.flatMap((at) => [1, 2].map((turn) => refusal(at, `cut-${round}-${at}-${turn}`)));
      const [first] = await own.answered(10);
      sayOutage("cut from its peers, at the owner", cutMs, first, leaseMs);
      for (const { status, retryAfter } of await Promise.all(waiting)) {
        expect([status, retryAfter]).to.deep.equal([503, "1"]);
      }
      say(`clients of the others were refused after ${Math.round(performance.now() - cutMs)} ms`);
      expect(group.owner(), "the owner").to.equal(owner);
      expect((await site.reached()).filter((mark) => mark.startsWith(`cut-${round}-`))).to.deep.equal([]);

      path.heal();
      const healedMs = performance.now();
      const again = await Promise.all(others.map((at) => site.serves(site.url(at), `again-${round}-${at}`)));
      sayOutage("healed, at the others", healedMs, again[0]?.at(-1), leaseMs);
      const sent = [...forwarded, ...again].flat().concat(await inFlight, await own.end());
      await site.expectSettled(sent);
      await site.expectOneChain();
      await site.expectVerified(again[1]?.at(-1)?.mark ?? "", owner);
      // The next round has another owner.
      await group.member(owner).stop();
      await site.serves(site.url(others[0]), `next-${round}`);
      await restart(owner);
    });
  }

  async function restart(index: number): Promise<void> {
    paths[index]?.stop();
    const port = await freePort();
    paths[index] = await LossyPort.start({ host, port }, { host: "127.0.0.1", port });
    await site.group.start(index, { replicaPort: port, env: { REPLICA_HOST: host } });
  }

  /** Calls at a replica that cannot forward it. */
  async function refusal(at: number, mark: string): Promise<{ readonly status: number; readonly retryAfter: unknown }> {
    const params = { name: "echo", arguments: { mark } };
    const response = await fetch(`${site.url(at)}/mcp`, {
      method: "POST",
      headers: { "x-api-key": siteKey, "content-type": "application/json", connection: "close" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    await response.text();
    return { status: response.status, retryAfter: response.headers.get("retry-after") };
  }
});
