import { expect } from "chai";
import { type ErrorCode, GatewayError } from "../../../core/action/error.ts";
import { Allowance } from "../../../core/action/token-bucket.ts";
import { addressGroup, FailureRate, RequestRate } from "../../../core/http/rate.ts";

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

describe("FailureRate", () => {
  it("limits the failed attempts of one address, an IPv6 address by its /64, and leaves the next one alone", () => {
    let limited = 0;
    const rate = new FailureRate({ perMinute: 2, elapsedMs: () => 0, onLimited: () => limited++ });
    const fail = (address: string) => rate.refuse(address, new GatewayError("KEY_UNKNOWN")).code;
    expect(["2001:db8::1", "2001:db8::2", "2001:db8:0:0:9::3"].map(fail)).to.deep.equal([
      "KEY_UNKNOWN",
      "KEY_UNKNOWN",
      "RATE_LIMITED",
    ]);
    expect([fail("2001:db8:0:1::1"), fail("192.0.2.1"), limited]).to.deep.equal(["KEY_UNKNOWN", "KEY_UNKNOWN", 1]);
  });

  it("counts what says that a key, a token, a link or a sign-in is bad, and nothing else", () => {
    const rate = new FailureRate({ perMinute: 1, elapsedMs: () => 0, onLimited: () => undefined });
    const refuse = (code: ErrorCode, address = "192.0.2.1"): ErrorCode =>
      rate.refuseBadKey(address, new GatewayError(code)).code;
    for (let turn = 0; turn < 5; turn++) expect(refuse("HOST_FORBIDDEN")).to.equal("HOST_FORBIDDEN");
    for (let turn = 0; turn < 5; turn++) expect(refuse("KEY_MISSING")).to.equal("KEY_MISSING");
    expect([refuse("TOKEN_INVALID"), refuse("KEY_UNKNOWN")]).to.deep.equal(["TOKEN_INVALID", "RATE_LIMITED"]);
    const elsewhere = (["LINK_INVALID", "SIGN_IN_REFUSED"] as const).map((code) => refuse(code, "192.0.2.2"));
    expect(elsewhere).to.deep.equal(["LINK_INVALID", "RATE_LIMITED"]);
  });
});

describe("addressGroup", () => {
  const groups: readonly (readonly [string, string])[] = [
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "20010db800010002/64"],
    ["fe80::1%eth0", "fe80000000000000/64"],
    ["::1", "0000000000000000/64"],
    ["unknown", "unknown"],
  ];
  for (const [address, group] of groups) {
    it(`counts ${address} as ${group}`, () => expect(addressGroup(address)).to.equal(group));
  }
});
