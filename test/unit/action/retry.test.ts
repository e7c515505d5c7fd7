import { expect } from "chai";
import { readRetryAfter, retryDelay } from "../../../core/action/retry.ts";

describe("retryDelay(failures, askedMs, delays, random)", () => {
  const delays = { firstMs: 5_000, maxMs: 3_600_000 };
  const least = (): Uint8Array => Uint8Array.of(0);
  const most = (): Uint8Array => Uint8Array.of(255);

  it("doubles from 5 s to an hour, half of it by chance", () => {
    const ceilings = [1, 2, 3, 10, 11, 99].map((failures) => retryDelay(failures, 0, delays, most));
    expect(ceilings).to.deep.equal([5_000, 10_000, 20_000, 2_560_000, 3_600_000, 3_600_000]);
    expect(retryDelay(1, 0, delays, least)).to.be.within(2_500, 2_510);
  });

  it("waits for what is asked where that is more, for an hour at most", () => {
    expect(retryDelay(1, 60_000, delays, least)).to.equal(60_000);
    expect(retryDelay(5, 1, delays, most)).to.equal(80_000);
    expect(retryDelay(1, 86_400_000, delays, least)).to.equal(3_600_000);
  });
});

describe("readRetryAfter(text, nowMs)", () => {
  it("reads seconds and dates; anything else asks for nothing", () => {
    const nowMs = Date.parse("2026-05-01T10:00:00.000Z");
    const table: [string, number][] = [
      ["120", 120_000],
      ["Fri, 01 May 2026 10:01:00 GMT", 60_000],
      ["Fri, 01 May 2026 09:00:00 GMT", 0],
      ["-5", 0],
      ["soon", 0],
      ["", 0],
      ["9".repeat(400), 0],
    ];
    for (const [text, expected] of table) expect(readRetryAfter(text, nowMs), text.slice(0, 40)).to.equal(expected);
  });
});
