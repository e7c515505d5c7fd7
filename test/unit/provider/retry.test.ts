import { createServer } from "node:net";
import { expect } from "chai";
import { type ModelProvider, scripts } from "../../fixture/model-provider.ts";
import { contentOf, FleetWorld, httpConfig, routeTo } from "./fixture.ts";

let world: FleetWorld;
let provider: ModelProvider;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = new FleetWorld();
    provider = await world.provider();
  });
  afterEach(() => world.close());
}

/** An address where nobody listens. */
async function deadUrl(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/v1`;
}

describe("another attempt at the same provider", () => {
  inOwnWorld();

  for (const status of [408, 429, 500, 502, 503, 529]) {
    it(`follows ${status}, which says that it was not served`, async () => {
      world.open([httpConfig(provider, { maxRetries: 2 })]);
      provider.next(scripts.says(status), scripts.says(status));
      expect(contentOf((await world.whole()).body)).to.equal("Hello.");
      expect(provider.calls).to.have.length(3);
      expect(new Set(provider.calls.map(({ text }) => text)).size, "the same request").to.equal(1);
    });

    it(`does not follow ${status} where an approval was used up`, async () => {
      world.open([httpConfig(provider, { maxRetries: 2 })]);
      provider.next(scripts.says(status));
      expect((await world.failed({ approved: true })).error.data).to.include({ http_status: status });
      expect(provider.calls).to.have.length(1);
    });
  }

  for (const status of [400, 401, 403, 404, 409, 422, 501, 504]) {
    it(`does not follow ${status}`, async () => {
      world.open([httpConfig(provider, { maxRetries: 2 })]);
      provider.next(scripts.says(status));
      await world.failed();
      expect(provider.calls).to.have.length(1);
    });
  }

  it("does not follow a broken connection: it may have been served", async () => {
    world.open([httpConfig(provider, { maxRetries: 2 })]);
    provider.next(scripts.dies());
    const { error, outcome } = await world.failed();
    expect([error.code, outcome]).to.deep.equal(["PROVIDER_UNAVAILABLE", "unknown"]);
    expect(provider.calls).to.have.length(1);
  });

  it("does not follow a streamed answer that broke off", async () => {
    world.open([httpConfig(provider, { maxRetries: 2 })]);
    provider.next(scripts.dies(["data: {}\n\n"]));
    const events = await world.stream();
    await expectRejection(async () => {
      for await (const _ of events);
    });
    expect(provider.calls).to.have.length(1);
  });

  for (const approved of [false, true]) {
    it(`follows a refused connection${approved ? ", an approval used up or not" : ""}`, async () => {
      world.open([httpConfig(provider, { maxRetries: 2, baseUrl: await deadUrl() })]);
      const { error, outcome } = await world.failed({ approved });
      expect(error.detail).to.equal("the connection failed (ECONNREFUSED)");
      expect(outcome).to.equal("error");
      expect(world.events.filter(({ kind }) => kind === "provider_retry_scheduled")).to.have.length(2);
    });
  }

  it("waits longer each time, and for as long as the provider asks", async () => {
    world.open([httpConfig(provider, { maxRetries: 3 })]);
    provider.next(scripts.says(503), scripts.says(503), scripts.says(429, undefined, { "retry-after": "1" }));
    await world.whole();
    const delays = world.events
      .map((event) => (event.kind === "provider_retry_scheduled" ? event.delayMs : 0))
      .filter((ms) => ms > 0);
    expect(delays).to.deep.equal([10, 20, 1_000]);
    const [, , third, fourth] = provider.calls.map(({ atMs }) => atMs);
    expect((fourth ?? 0) - (third ?? 0)).to.be.at.least(990);
  });

  it("is left to the client where the provider asks for too much, or for none", async () => {
    world.open([httpConfig(provider, { maxRetries: 3 })]);
    provider.next(scripts.says(429, undefined, { "retry-after": "60" }));
    expect((await world.failed()).error.data).to.include({ retry_after_s: 60 });
    provider.next(scripts.says(503, undefined, { "x-should-retry": "false" }));
    await world.failed();
    expect(provider.calls).to.have.length(2);
  });

  it("is not made for a client that is gone", async () => {
    world.open([httpConfig(provider, { maxRetries: 3 })]);
    provider.script = scripts.says(503, undefined, { "retry-after": "1" });
    const gone = new AbortController();
    setTimeout(() => gone.abort(), 200);
    await world.failed({ signal: gone.signal });
    expect(provider.calls).to.have.length(1);
  });
});

describe("a provider's limits", () => {
  inOwnWorld();

  it("refuses one request more than it may have at once, and has room again after", async () => {
    world.open([httpConfig(provider, { maxConnections: 2 })]);
    provider.next(scripts.stalls(), scripts.stalls());
    const gone = new AbortController();
    const waiting = [world.failed({ signal: gone.signal }), world.failed({ signal: gone.signal })];
    while (provider.calls.length < 2) await new Promise(setImmediate);
    const { error, outcome, mayFallBack } = await world.failed();
    expect([error.message, outcome, mayFallBack]).to.deep.equal([
      "the provider is busy: expected at most 2 requests at once",
      "error",
      true,
    ]);
    gone.abort();
    await Promise.all(waiting);
    expect(contentOf((await world.whole()).body)).to.equal("Hello.");
  });
});

describe("a provider that takes no connection", () => {
  inOwnWorld();

  it("does not let those pile up that came and went meanwhile", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { port: number };
    // Nobody shakes hands there.
    world.open([httpConfig(provider, { maxConnections: 1, baseUrl: `https://127.0.0.1:${port}` })]);
    const codes: string[] = [];
    for (let time = 0; time < 4; time++) {
      const { error, outcome } = await world.failed({ signal: AbortSignal.timeout(20) });
      expect(outcome).to.equal("error");
      codes.push(error.code);
    }
    expect(codes).to.deep.equal(["CANCELLED", "CANCELLED", "PROVIDER_UNAVAILABLE", "PROVIDER_UNAVAILABLE"]);
    silent.close();
  });

  it("is unavailable once the fleet is closed", async () => {
    world.open([httpConfig(provider)]);
    await world.fleet.close();
    expect((await world.failed()).error.code).to.equal("PROVIDER_UNAVAILABLE");
    expect(provider.calls).to.have.length(0);
  });
});

describe("a provider that keeps failing", () => {
  inOwnWorld();

  const breaker = { failures: 3, restMs: 30_000 };

  it("is left alone, then tried by one, and asked by all once that one is served", async () => {
    world.open([httpConfig(provider, { breaker })]);
    provider.script = scripts.says(500);
    for (let time = 0; time < 5; time++) await world.failed();
    expect(provider.calls, "two were not sent").to.have.length(3);
    const { error } = await world.failed();
    expect(error.message).to.equal(
      "provider unavailable: the circuit is open after repeated failures; the next attempt is in 30 s",
    );
    expect(error.data).to.deep.equal({ retry_after_s: 30 });
    expect(world.fleet.health()[0]).to.include({ breaker: "open", failures: 3, restsForMs: 30_000 });
    world.nowMs = 30_000;
    expect(world.fleet.health()[0]).to.include({ breaker: "half_open" });
    provider.script = scripts.answers({ text: "Back." });
    await world.whole();
    expect(world.fleet.health()[0]).to.include({ breaker: "closed", failures: 0, lastFault: null });
    expect(provider.calls).to.have.length(4);
  });

  it("comes last among the candidates as long as it rests", async () => {
    const other = await world.provider();
    const route = routeTo(["p", "q"], { fallback: true });
    world.open([httpConfig(provider, { breaker }), httpConfig(other, { name: "q", breaker })], [route]);
    const names = (): readonly string[] => world.candidates().map(({ provider: name }) => name);
    provider.script = scripts.says(500);
    for (let time = 0; time < 3; time++) await world.failed();
    expect(names()).to.deep.equal(["q", "p"]);
    world.nowMs = 30_000;
    expect(names()).to.deep.equal(["p", "q"]);
  });

  it("is not thought to fail for what clients do, or because it is busy", async () => {
    world.open([httpConfig(provider, { breaker, type: "anthropic" })]);
    for (const status of [400, 403, 404, 408, 422, 429]) {
      for (let time = 0; time < 4; time++) {
        provider.next(scripts.says(status));
        await world.failed();
      }
    }
    provider.script = scripts.stalls();
    for (let time = 0; time < 4; time++) await world.failed({ signal: AbortSignal.timeout(20) });
    expect(world.fleet.health()[0]?.breaker).to.equal("closed");
  });

  it("fails by streams that break off, too", async () => {
    world.open([httpConfig(provider, { breaker })]);
    provider.script = scripts.dies(["data: {}\n\n"]);
    for (let time = 0; time < 3; time++) {
      const events = await world.stream();
      await expectRejection(async () => {
        for await (const _ of events);
      });
    }
    expect(world.fleet.health()[0]).to.include({ breaker: "open", lastFault: "PROVIDER_UNAVAILABLE" });
  });
});

async function expectRejection(step: () => Promise<void>): Promise<void> {
  const error = await step().catch((thrown: unknown) => thrown);
  expect(error).to.have.property("code", "PROVIDER_UNAVAILABLE");
}
