import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { RateLimit, rateLimitHeaders } from "../../../core/usage/rate-limit.ts";

describe("RateLimit", () => {
  let now: number;
  beforeEach(() => {
    now = 1_000;
  });

  function limit(requestsPerMinute: number, tokensPerMinute: number, maxPrincipals = 100): RateLimit {
    return new RateLimit({ requestsPerMinute, tokensPerMinute, maxPrincipals, elapsedMs: () => now });
  }

  function refusalOf(rate: RateLimit, principal: string, tokens: number): GatewayError | null {
    try {
      rate.check(principal, tokens);
      return null;
    } catch (error) {
      return error as GatewayError;
    }
  }

  it("lets in a minute's worth of requests at once, then one for each that is refilled", () => {
    const rate = limit(60, 1_000);
    for (let request = 0; request < 60; request++) {
      rate.check("a", 0);
      rate.take("a", 0);
    }
    const refusal = refusalOf(rate, "a", 0);
    expect(refusal).to.be.instanceOf(GatewayError).with.property("code", "RATE_LIMITED");
    const told = { reason: "requests", retry_after_s: 1, limit: 60, remaining: 0, reset_s: 60 };
    expect(refusal?.data).to.deep.equal(told);
    now += 999;
    expect(refusalOf(rate, "a", 0)).to.not.equal(null);
    now += 1;
    expect(refusalOf(rate, "a", 0)).to.equal(null);
    expect(refusalOf(rate, "b", 0), "another principal").to.equal(null);
  });

  it("says how long to wait for the tokens that are asked for", () => {
    const rate = limit(10, 600);
    rate.take("a", 500);
    expect(refusalOf(rate, "a", 100)).to.equal(null);
    expect(refusalOf(rate, "a", 150)?.data).to.include({ reason: "tokens", retry_after_s: 5, remaining: 100 });
    now += 5_000;
    expect(refusalOf(rate, "a", 150)).to.equal(null);
  });

  it("lets a request beyond the limit in on a full allowance, and makes the next wait until it is paid off", () => {
    const rate = limit(10, 600);
    expect(refusalOf(rate, "a", 1_500)).to.equal(null);
    rate.take("a", 1_500);
    expect(refusalOf(rate, "a", 1)?.data).to.include({ reason: "tokens", retry_after_s: 91, remaining: 0 });
    now += 91_000;
    expect(refusalOf(rate, "a", 1)).to.equal(null);
    expect(refusalOf(rate, "a", 1_500)).to.not.equal(null);
  });

  it("gives back no more than a minute's worth", () => {
    const rate = limit(10, 600);
    rate.correct("a", -10_000);
    expect(rate.states("a").tokens).to.deep.equal({ limit: 600, remaining: 600, resetS: 0 });
    rate.correct("a", 601);
    expect(rate.states("a").tokens).to.deep.equal({ limit: 600, remaining: 0, resetS: 61 });
  });

  it("gives nothing for a clock that goes back", () => {
    const rate = limit(60, 600);
    rate.take("a", 600);
    now -= 900;
    expect(rate.states("a").tokens.remaining).to.equal(0);
    now += 900;
    expect(rate.states("a").tokens.remaining).to.equal(0);
  });

  it("remembers a bounded number of 100,000 principals, and frees nobody by it [S68]", () => {
    const rate = limit(10, 600, 1_000);
    let refused = 0;
    for (let principal = 0; principal < 100_000; principal++) {
      const name = `p${principal}`;
      if (refusalOf(rate, name, 1) === null) rate.take(name, 600);
      else refused++;
    }
    expect(rate.size).to.equal(1_000);
    expect(refused).to.equal(99_000);
    expect(refusalOf(rate, "p0", 1)?.data, "one of the first").to.include({ reason: "tokens" });
    expect(refusalOf(rate, "new", 1)?.data).to.include({ reason: "principals", retry_after_s: 60 });
    now += 60_000;
    expect(refusalOf(rate, "new", 1), "once others are full again").to.equal(null);
  });

  it("looks past the principals that are in debt for those that are full again", () => {
    const rate = limit(10, 600, 100);
    for (let principal = 0; principal < 50; principal++) rate.take(`debtor ${principal}`, 100_000);
    for (let principal = 0; principal < 50; principal++) rate.take(`payer ${principal}`, 1);
    now += 60_000;
    const asked = Array.from({ length: 10 }, () => refusalOf(rate, "new", 1));
    expect(asked.at(-1)).to.equal(null);
  });
});

describe("rateLimitHeaders(states)", () => {
  it("tells both limits, and the nearer one in the headers that know only one", () => {
    const requests = { limit: 120, remaining: 60, resetS: 30 };
    const tokens = { limit: 1_000, remaining: 10, resetS: 59 };
    expect(rateLimitHeaders({ requests, tokens })).to.deep.equal({
      "ratelimit-policy": '"requests";q=120;w=60, "tokens";q=1000;w=60',
      ratelimit: '"requests";r=60;t=30, "tokens";r=10;t=59',
      "ratelimit-limit": "1000",
      "ratelimit-remaining": "10",
      "ratelimit-reset": "59",
    });
    const headers = rateLimitHeaders({ requests: { ...requests, remaining: 1 }, tokens });
    expect(headers["ratelimit-limit"]).to.equal("120");
  });
});
