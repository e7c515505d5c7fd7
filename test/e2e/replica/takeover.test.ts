import { expect } from "chai";
import { eventually, ReplicaSite, type Sent, SteadyCalls, say, sayOutage } from "../../support/replica-site.ts";
import { RoundRobin } from "../../support/round-robin.ts";
import { roundsOf } from "../../support/rounds.ts";

const leaseMs = roundsOf(3_000, 10_000);
const agents = 4;

describe("three replicas on one database", () => {
  let site: ReplicaSite;
  let balancer: RoundRobin;

  before(async () => {
    site = await ReplicaSite.start(leaseMs);
    balancer = await RoundRobin.start(() => site.group.members.map(({ url }) => url));
  });

  after(async () => {
    balancer.stop();
    await site.stop();
  });

  it("serve calls at each of them, each once, and keep one chain", async () => {
    const sent = await Promise.all(
      [0, 1, 2].flatMap((index) => [1, 2, 3].map((turn) => site.call(site.url(index), `at-${index}-${turn}`))),
    );
    expect(sent.map(({ end }) => end)).to.deep.equal(sent.map(() => "answered"));
    await site.expectSettled(sent);
    for (const index of [0, 1, 2]) {
      const records = await site.reader(index).recordsOf((label) => label?.startsWith(`at-${index}`) ?? false);
      expect(records).to.have.length(6);
    }
    await site.expectOneChain();
  });

  for (let round = 1; round <= roundsOf(1, 30); round++) {
    it(`go on when the owner is killed amid calls: every answer is kept, what was in flight is recorded once (${round}) [S86]`, async () => {
      const { group } = site;
      const killed = group.owner();
      const calls = new SteadyCalls(site, balancer.url, `kill-${round}`, agents);
      await calls.answered(30);
      const killedMs = performance.now();
      await group.member(killed).kill9();
      const [first] = await calls.answered(30);
      const sent = await calls.end();
      expect(group.owner(), "the next owner").to.not.equal(killed);
      sayOutage("killed", killedMs, first, leaseMs);

      await group.start(killed);
      const records = await site.expectSettled(sent, killed);
      await site.expectOneChain();
      await site.expectVerified(first?.mark ?? "", killed);
      // What was sent after the kill waited for an owner; only what the killed one had taken may have no answer.
      const lost = sent.filter(({ end }) => end !== "answered");
      expect(lost.length, JSON.stringify(lost)).to.be.at.most(agents);
      for (const { mark, end } of lost) {
        expect(end, mark).to.equal("none");
        const [decision, outcome] = records.filter(({ session }) => session.label === mark);
        if (decision === undefined) continue;
        expect(outcome?.effect === "unknown" || outcome?.writer.id === decision.writer.id, mark).to.equal(true);
      }
    });
  }

  it("lose no call on a new connection while each of them is stopped and started again", async () => {
    const { group } = site;
    const calls = new SteadyCalls(site, balancer.url, "restart", agents);
    await calls.answered(10);
    for (const index of [group.owner(), 0, 1, 2]) {
      const wasOwner = group.owner() === index;
      // As a load balancer does before a restart.
      balancer.passOver(index, true);
      await calls.settled();
      const stoppedMs = performance.now();
      expect(await group.member(index).stop()).to.equal(0);
      const [first] = await calls.answered(10);
      if (wasOwner) {
        say(`stopped: first answer after ${Math.round((first?.endedMs ?? 0) - stoppedMs)} ms, lease_ms ${leaseMs}`);
        expect(group.owner()).to.not.equal(index);
      }
      await group.start(index);
      balancer.passOver(index, false);
      await calls.answered(10);
    }
    const sent = await calls.end();
    expect(notAnswered(sent)).to.deep.equal([]);
    await site.expectSettled(sent);
    await site.expectOneChain();
  });

  it("pass on a connection that waited for an owner once there is one", async () => {
    const { group } = site;
    const killed = group.owner();
    const others = [0, 1, 2].filter((index) => index !== killed);
    await group.member(killed).kill9();
    const sent = await Promise.all(
      others.flatMap((index) => [1, 2, 3, 4].map((turn) => site.call(site.url(index), `waited-${index}-${turn}`))),
    );
    expect(notAnswered(sent)).to.deep.equal([]);
    await group.start(killed);
    await eventually(
      "the replica to forward",
      async () => (await site.call(site.url(killed), "back")).end === "answered",
    );
    await site.expectSettled(sent, killed);
    await site.expectOneChain();
  });
});

function notAnswered(sent: readonly Sent[]): readonly Sent[] {
  return sent.filter(({ end }) => end !== "answered");
}
