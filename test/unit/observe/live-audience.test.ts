import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { LiveAudience, type LiveChannel, type LiveEvent, type LiveRound } from "../../../core/observe/live-audience.ts";

const event = (count: number, channel: LiveChannel = "decisions"): LiveEvent => ({
  channel,
  time: "",
  data: { count },
});
const countsOf = (rounds: readonly LiveRound[]): readonly unknown[] =>
  rounds.flatMap(({ events }) => events.map(({ data }) => data.count));
const decisions: ReadonlySet<LiveChannel> = new Set(["decisions"]);

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await turn();
}

describe("LiveAudience", () => {
  let nowMs: number;
  let audience: LiveAudience;
  beforeEach(() => {
    nowMs = 0;
    audience = new LiveAudience(() => nowMs);
  });

  function watch(costMs = 0): { rounds: LiveRound[]; end: () => void } {
    const rounds: LiveRound[] = [];
    const listener = (round: LiveRound): void => {
      rounds.push(round);
      nowMs += costMs;
    };
    return { rounds, end: audience.add({ channels: decisions, listener }) };
  }

  it("calls no subscriber in the turn of an event, then all of them with the same round", async () => {
    const watchers = Array.from({ length: 2_000 }, () => watch());
    for (let count = 0; count < 3; count++) audience.publish(event(count));
    expect(watchers.flatMap(({ rounds }) => rounds)).to.deep.equal([]);
    await turns(3);
    expect(new Set(watchers.map(({ rounds }) => rounds[0])).size).to.equal(1);
    expect(watchers.every(({ rounds }) => rounds.length === 1)).to.equal(true);
    expect(countsOf(watchers[0]?.rounds ?? [])).to.deep.equal([0, 1, 2]);
  });

  it("spreads a round that takes long over turns, and rests nine times as long before the next", async () => {
    const watchers = Array.from({ length: 3 }, () => watch(2));
    audience.publish(event(0));
    const delivered = (): number => watchers.reduce((sum, { rounds }) => sum + rounds.length, 0);
    const seen: number[] = [];
    for (let at = 0; at < 5; at++) {
      await turn();
      seen.push(delivered());
    }
    expect([seen.includes(1), seen.includes(2), seen.at(-1)]).to.deep.equal([true, true, 3]);
    audience.publish(event(1));
    await turns(5);
    expect(delivered()).to.equal(3);
    nowMs += 54;
    while (delivered() < 6) await turn();
    expect(countsOf(watchers[2]?.rounds ?? [])).to.deep.equal([0, 1]);
  });

  it("drops the older half where 256 events wait, and counts them by channel", async () => {
    const { rounds } = watch();
    audience.publish(event(0, "risk"));
    for (let count = 1; count <= 256; count++) audience.publish(event(count));
    await turns(3);
    expect(countsOf(rounds)).to.deep.equal(Array.from({ length: 129 }, (_, at) => at + 128));
    expect(rounds[0]?.dropped).to.deep.equal({ decisions: 127, approvals: 0, risk: 1, metrics: 0 });
  });

  it("gives nothing to those who left, also in the middle of a round", async () => {
    const [first, second] = [watch(2), watch(2)];
    audience.publish(event(0));
    while (first.rounds.length === 0) await turn();
    second.end();
    await turns(3);
    expect(second.rounds).to.deep.equal([]);
    first.end();
    first.end();
    expect(audience.hasSubscriber("decisions")).to.equal(false);
  });
});
