import { expect } from "chai";
import fc from "fast-check";
import { timeText } from "../../../core/action/id.ts";

describe("timeText(timeMs)", () => {
  it("is the text that the engine gives every time, in whatever order", () => {
    const times = fc.oneof(
      fc.date({ noInvalidDate: true }).map((date) => date.getTime()),
      fc.double({ min: 1.7e12, max: 1.7e12 + 3_000, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.array(times), (values) => {
        for (const ms of values) expect(timeText(ms)).to.equal(new Date(ms).toISOString());
      }),
    );
  });

  it("throws for what is no time", () => {
    expect(() => timeText(Number.NaN)).to.throw(RangeError);
    expect(() => timeText(8.64e15 + 1_000)).to.throw(RangeError);
    expect(timeText(0)).to.equal("1970-01-01T00:00:00.000Z");
  });
});
