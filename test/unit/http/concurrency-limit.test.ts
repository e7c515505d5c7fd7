import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { ConcurrencyLimit } from "../../../core/http/rate.ts";

describe("ConcurrencyLimit", () => {
  let ends: (() => void)[];
  let served: number;
  beforeEach(() => {
    ends = [];
    served = 0;
  });

  /** What became of a request that lasts until its end is called: the code of its refusal, or undefined. */
  async function ask(limit: ConcurrencyLimit, holder: string): Promise<string | undefined> {
    let isServed = false;
    const running = limit.run(holder, () => {
      isServed = true;
      served++;
      return new Promise<void>((resolve) => ends.push(resolve));
    });
    if (isServed) {
      running.catch(() => undefined);
      return undefined;
    }
    return running.then(
      () => undefined,
      (error: unknown) => GatewayError.from(error).code,
    );
  }

  it("gives one holder half of the places, and nobody the last while it holds another", async () => {
    const limit = new ConcurrencyLimit(8);
    const told = [];
    for (let n = 0; n < 5; n++) told.push(await ask(limit, "a"));
    expect(told).to.deep.equal([undefined, undefined, undefined, undefined, "RATE_LIMITED"]);
    expect(await ask(limit, "b")).to.equal(undefined);
    expect(await ask(limit, "b")).to.equal(undefined);
    expect(await ask(limit, "b")).to.equal("RATE_LIMITED");
    expect(await ask(limit, "c")).to.equal(undefined);
    expect(await ask(limit, "d")).to.equal(undefined);
    expect(await ask(limit, "e")).to.equal("GATEWAY_BUSY");
    expect(await ask(limit, "a")).to.equal("GATEWAY_BUSY");
    expect(served).to.equal(8);
  });

  it("has the place again once a request ended, well or not", async () => {
    const limit = new ConcurrencyLimit(1);
    expect(await ask(limit, "a")).to.equal(undefined);
    expect(await ask(limit, "b")).to.equal("GATEWAY_BUSY");
    ends[0]?.();
    await new Promise(setImmediate);
    await limit.run("b", () => Promise.reject(new TypeError("broken"))).catch(() => undefined);
    await limit
      .run("b", () => {
        throw new TypeError("broken at once");
      })
      .catch(() => undefined);
    expect(await limit.run("b", async () => "served")).to.equal("served");
  });

  it("says when to come again", async () => {
    const limit = new ConcurrencyLimit(1);
    await ask(limit, "a");
    const error = await limit.run("b", async () => undefined).catch(GatewayError.from);
    expect(error).to.be.instanceOf(GatewayError);
    expect([(error as GatewayError).message, (error as GatewayError).data]).to.deep.equal([
      "the gateway is at capacity: expected at most 1 requests at once",
      { retry_after_s: 1 },
    ]);
  });
});
