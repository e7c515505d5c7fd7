import { expect } from "chai";
import { type RiskLimit, RiskMeter } from "../../../core/session/risk-meter.ts";

const limit: RiskLimit = { killAt: 80, windowMs: 1_800_000, mode: "enforce" };

describe("RiskMeter", () => {
  it("drains evenly, from the threshold to nothing in the window", () => {
    const meter = new RiskMeter(limit, [80, 1_000]);
    const scores = [0, 0.25, 0.5, 1, 2].map((windows) => meter.score(1_000 + windows * limit.windowMs));
    expect(scores).to.deep.equal([80, 60, 40, 0, 0]);
  });

  it("says that there is risk as long as there is any", () => {
    const meter = new RiskMeter(limit, [1, 0]);
    expect([meter.score(1), meter.score(limit.windowMs / 80 - 1), meter.score(limit.windowMs / 80)]).to.deep.equal([
      1, 1, 0,
    ]);
  });

  it("adds to what is left, and returns what it comes to", () => {
    const meter = new RiskMeter(limit);
    expect(meter.add(40, 0)).to.equal(40);
    expect(meter.add(10, limit.windowMs / 4)).to.equal(30);
    expect(meter.counted).to.deep.equal([30, limit.windowMs / 4]);
  });

  it("drains nothing where the clock is set back, and nothing twice once it is forward again", () => {
    const meter = new RiskMeter(limit, [40, 100_000]);
    expect(meter.score(0)).to.equal(40);
    expect(meter.add(1, 0)).to.equal(41);
    expect(meter.counted).to.deep.equal([41, 100_000]);
    expect(meter.score(100_000 + limit.windowMs / 2)).to.equal(1);
  });

  it("drains to nothing where the clock leaps forward, and not below", () => {
    const meter = new RiskMeter(limit, [80, 0]);
    expect(meter.score(Number.MAX_SAFE_INTEGER)).to.equal(0);
    expect(meter.add(5, Number.MAX_SAFE_INTEGER)).to.equal(5);
  });

  it("rises to 1,000 and no further", () => {
    const meter = new RiskMeter(limit);
    for (let turn = 0; turn < 20; turn++) meter.add(100, 0);
    expect(meter.score(0)).to.equal(1_000);
  });

  it("drains at the usual pace where no session is stopped for its risk", () => {
    const meter = new RiskMeter({ ...limit, killAt: 0 }, [80, 0]);
    expect([meter.score(limit.windowMs / 2), meter.score(limit.windowMs)]).to.deep.equal([40, 0]);
  });

  it("goes on from what it counted", () => {
    const meter = new RiskMeter(limit);
    meter.add(33.3, 5_000);
    const again = new RiskMeter(limit, meter.counted);
    for (const now of [0, 5_000, 500_000]) expect(again.score(now)).to.equal(meter.score(now));
  });
});
