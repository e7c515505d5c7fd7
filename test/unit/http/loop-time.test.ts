import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { LoopLoad, LoopTime } from "../../../core/http/loop-time.ts";

describe("LoopTime", () => {
  let now: number;
  let used: Record<string, number>;
  let time: LoopTime<string>;
  beforeEach(() => {
    now = 0;
    used = {};
    const onUsed = (holder: string, ms: number): void => {
      used[holder] = (used[holder] ?? 0) + ms;
    };
    time = new LoopTime(onUsed, () => now, { measure: () => ({ percent: 0, runningShare: 1 }) });
  });

  async function promises(count: number): Promise<void> {
    for (let left = count; left > 0; left--) await undefined;
  }

  it("charges what follows without waiting, over many promises", async () => {
    time.resume("a");
    now += 3;
    await promises(50);
    now += 4;
    await turn();
    expect(used).to.deep.equal({ a: 7 });
  });

  it("charges nothing for the time of waiting", async () => {
    time.resume("a");
    now += 3;
    await turn();
    now += 100;
    time.resume("a");
    now += 2;
    await turn();
    expect(used).to.deep.equal({ a: 5 });
  });

  it("charges each of several that resume in one turn", async () => {
    time.resume("a");
    now += 3;
    time.resume("b");
    now += 5;
    await promises(3);
    time.resume("a");
    now += 7;
    await turn();
    expect(used).to.deep.equal({ a: 10, b: 5 });
  });

  it("charges what a callback of its own begins, as a request on a connection", async () => {
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        time.resume("a");
        now += 2;
        void promises(10).then(() => {
          now += 6;
          resolve();
        });
      });
      // The next callback of the same turn is nobody's.
      setImmediate(() => {
        now += 100;
      });
    });
    await turn();
    expect(used).to.deep.equal({ a: 8 });
  });
});

describe("LoopLoad", () => {
  it("is read at most every quarter of a second, and is a percentage", () => {
    let now = 0;
    const load = new LoopLoad(() => now);
    expect(load.measure().percent).to.equal(0);
    now = 249;
    expect(load.measure().percent).to.equal(0);
    const end = performance.now() + 20;
    while (performance.now() < end); // what a sample sees is this loop itself: a test never waits in it
    now = 250;
    expect(load.measure().percent).to.be.within(1, 100);
    expect(load.measure().runningShare).to.be.within(0.001, 1);
  });
});
