import { expect } from "chai";
import { Allowance } from "../../../core/action/token-bucket.ts";
import { RequestRate } from "../../../core/http/rate.ts";

describe("RequestRate", () => {
  let now: number;
  beforeEach(() => {
    now = 1_000;
  });

  function rateOf(perMinute: number, maxKnown?: number): RequestRate {
    return new RequestRate({ perMinute, elapsedMs: () => now, ...(maxKnown === undefined ? {} : { maxKnown }) });
  }

  it("lets in a minute's worth at once, then one for each that is refilled", () => {
    const rate = rateOf(60);
    const waits = Array.from({ length: 61 }, () => rate.take("a"));
    expect([waits.slice(0, 60).every((wait) => wait === 0), waits[60]]).to.deep.equal([true, 1_000]);
    now += 999;
    expect(rate.take("a")).to.be.closeTo(1, 0.001);
    now += 2;
    expect(rate.take("a")).to.equal(0);
    expect(rate.take("a")).to.be.closeTo(999, 0.001);
  });

  it("counts each by itself", () => {
    const rate = rateOf(1);
    expect([rate.take("a"), rate.take("b"), rate.take("a")]).to.deep.equal([0, 0, 60_000]);
  });

  it("takes nothing from who is refused", () => {
    const rate = rateOf(60);
    for (let turn = 0; turn < 1_000; turn++) rate.take("a");
    now += 1_000;
    expect(rate.take("a")).to.equal(0);
  });

  it("does not grow with 100,000 who ask: those for whom there is no room share one allowance", () => {
    const rate = rateOf(2, 1_000);
    const waits = Array.from({ length: 100_000 }, (_, n) => rate.take(`address-${n}`));
    expect(rate.size).to.equal(1_000);
    expect(waits.filter((wait) => wait === 0)).to.have.lengthOf(1_002);
  });

  it("forgets nobody whose allowance is not full again, however many come", () => {
    const rate = rateOf(2, 100);
    expect([rate.take("a"), rate.take("a"), rate.take("a")]).to.deep.equal([0, 0, 30_000]);
    now += 29_000;
    for (let n = 0; n < 10_000; n++) rate.take(`address-${n}`);
    expect(rate.take("a")).to.be.closeTo(1_000, 0.001);
  });

  it("makes room with those whose allowance is full again", () => {
    const rate = rateOf(2, 100);
    for (let n = 0; n < 100; n++) rate.take(`early-${n}`);
    now += 60_000;
    const waits = Array.from({ length: 100 }, (_, n) => rate.take(`late-${n}`));
    expect([rate.size <= 100, waits.every((wait) => wait === 0)]).to.deep.equal([true, true]);
  });
});

describe("Allowance", () => {
  it("holds no more than its capacity, and refills at its rate", () => {
    const allowance = new Allowance(600, 0, 5);
    expect(allowance.left(0)).to.equal(5);
    allowance.take(20, 0);
    expect([allowance.left(0), allowance.waitMs(1, 0)]).to.deep.equal([-15, 1_600]);
    expect(allowance.waitMs(100, 0)).to.equal(2_000);
    expect(allowance.left(60_000)).to.equal(5);
  });
});
