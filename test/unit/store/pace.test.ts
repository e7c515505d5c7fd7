import { expect } from "chai";
import { Pace } from "../../../core/store/pace.ts";

describe("Pace.rest()", () => {
  let nowMs: number;

  beforeEach(() => {
    nowMs = 0;
  });

  const elapsedMs = (): number => nowMs;

  it("rests once a slice is used up, and not before", async () => {
    const pace = new Pace({ sliceMs: 2, restRatio: 1, elapsedMs });
    const order: string[] = [];
    setImmediate(() => order.push("others"));
    for (const [at, name] of [
      [1, "first"],
      [1.9, "second"],
      [2, "third"],
      [3, "fourth"],
    ] as const) {
      nowMs = at;
      await pace.rest();
      order.push(name);
    }
    expect(order).to.deep.equal(["first", "second", "others", "third", "fourth"]);
  });

  it("rejects with the reason once its signal is aborted, before and after a rest", async () => {
    const stop = new AbortController();
    const pace = new Pace({ sliceMs: 2, restRatio: 1, elapsedMs, signal: stop.signal });
    nowMs = 5;
    const resting = pace.rest().catch((error: unknown) => error);
    stop.abort("stopping");
    expect(await resting).to.equal("stopping");
    expect(await pace.rest().catch((error: unknown) => error)).to.equal("stopping");
  });
});
