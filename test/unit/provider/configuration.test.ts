import { expect } from "chai";
import { ProviderFleet } from "../../../core/provider/fleet.ts";
import { type ModelProvider, scripts } from "../../fixture/model-provider.ts";
import { egress } from "../../support/egress.ts";
import { loadText } from "../config/fixture.ts";
import { FleetWorld, providerKey } from "./fixture.ts";

const env = { ONE_KEY: providerKey };

/** A world whose fleet is made of a configuration file. */
class ConfiguredWorld extends FleetWorld {
  one!: ModelProvider;
  two!: ModelProvider;

  async start(provider: string, route: string): Promise<void> {
    this.one = await this.provider();
    this.two = await this.provider();
    const entry = (name: string, { port }: ModelProvider, more: string): string =>
      `  - {name: ${name}, type: openai, base_url: 'http://127.0.0.1:${port}/v1', models: [m]${more}}\n`;
    const text =
      `providers:\n${entry("one", this.one, provider)}${entry("two", this.two, "")}` +
      `model_gateway:\n  routes:\n    - {model: m, ${route}}\n`;
    const { providers, modelGateway } = await loadText(text, env);
    this.open(providers, modelGateway.routes);
  }

  /** Asks one candidate after the other as long as another may do better. Returns how often each provider was asked. */
  async serve(sessions: number): Promise<readonly [one: number, two: number]> {
    const before = [this.one.calls.length, this.two.calls.length] as const;
    for (let session = 0; session < sessions; session++) {
      const candidates = this.candidates({ session: `session-${session}` });
      for (let candidate = 0; candidate < candidates.length; candidate++) {
        const answer = await this.ask({ session: `session-${session}`, candidate });
        if (answer.kind !== "failed" || !answer.mayFallBack) break;
      }
    }
    return [this.one.calls.length - before[0], this.two.calls.length - before[1]];
  }
}

let world: ConfiguredWorld;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(() => {
    world = new ConfiguredWorld();
  });
  afterEach(() => world.close());
}

const both = "providers: [{name: one}, {name: two}]";

interface Row {
  /** The file's text about the first provider, or about the route. */
  readonly text: string;
  readonly script?: typeof world.one.script;
  readonly sessions: number;
  readonly calls: readonly [one: number, two: number];
}

/** Pairs of the same file, with one key changed, and what each provider's own log says after. */
const flips: Readonly<Record<string, readonly [before: Row, after: Row]>> = {
  fallback: [
    { text: `${both}, fallback: false`, script: scripts.says(500), sessions: 2, calls: [2, 0] },
    { text: `${both}, fallback: true`, script: scripts.says(500), sessions: 2, calls: [2, 2] },
  ],
  "fallback, where the client's own fault is no reason for it": [
    { text: `${both}, fallback: true`, script: scripts.says(429), sessions: 1, calls: [1, 1] },
    { text: `${both}, fallback: true`, script: scripts.says(400), sessions: 1, calls: [1, 0] },
  ],
  "canary.percent": [
    { text: "providers: [{name: one}], canary: {name: two, percent: 1}", sessions: 20, calls: [20, 0] },
    { text: "providers: [{name: one}], canary: {name: two, percent: 100}", sessions: 20, calls: [0, 20] },
  ],
  "providers[].weight": [
    { text: "providers: [{name: one, weight: 1000}, {name: two, weight: 1}]", sessions: 20, calls: [20, 0] },
    { text: "providers: [{name: one, weight: 1}, {name: two, weight: 1000}]", sessions: 20, calls: [0, 20] },
  ],
  "the order of providers": [
    { text: both, sessions: 2, calls: [2, 0] },
    { text: "providers: [{name: two}, {name: one}]", sessions: 2, calls: [0, 2] },
  ],
  max_retries: [
    { text: "max_retries: 0", script: scripts.says(503), sessions: 1, calls: [1, 0] },
    { text: "max_retries: 3", script: scripts.says(503), sessions: 1, calls: [4, 0] },
  ],
  "breaker.failures": [
    { text: "max_retries: 0, breaker: {failures: 2}", script: scripts.says(500), sessions: 6, calls: [2, 0] },
    { text: "max_retries: 0, breaker: {failures: 5}", script: scripts.says(500), sessions: 6, calls: [5, 0] },
  ],
};

describe("a key of the configuration", () => {
  inOwnWorld();

  for (const [key, rows] of Object.entries(flips)) {
    it(`changes what providers are asked: ${key}`, async () => {
      for (const { text, script, sessions, calls } of rows) {
        const isRoute = text.startsWith("providers");
        await world.close();
        world = new ConfiguredWorld();
        await world.start(isRoute ? ", max_retries: 0" : `, ${text}`, isRoute ? text : "providers: [{name: one}]");
        if (script !== undefined) world.one.script = script;
        expect(await world.serve(sessions), text).to.deep.equal(calls);
      }
    });
  }

  it("leads a session the same way again and again", async () => {
    await world.start("", "providers: [{name: one, weight: 1}, {name: two, weight: 1}]");
    const first = await world.serve(30);
    expect(first[0]).to.be.within(5, 25);
    const texts = world.one.calls.length;
    expect(await world.serve(30)).to.deep.equal(first);
    expect(world.one.calls).to.have.length(texts * 2);
  });

  for (const [key, short, calls] of [
    ["first_byte_timeout_ms", scripts.stalls(), "to the first byte"],
    ["idle_timeout_ms", scripts.stalls(["data: {}\n\n"]), "since the last byte"],
    ["max_timeout_ms", scripts.stalls(["data: {}\n\n"]), "in all"],
  ] as const) {
    it(`ends a request in its time: ${key}`, async () => {
      const also = key === "max_timeout_ms" ? ", first_byte_timeout_ms: 90" : "";
      await world.start(`, ${key}: 90${also}`, "providers: [{name: one}]");
      world.one.script = short;
      const answer = await world.ask({ stream: true });
      const error = answer.kind === "stream" ? await drain(answer.events) : answer.kind === "failed" && answer.error;
      expect(error).to.have.property("detail", `expected more within 90 ms ${calls}`);
    });
  }

  it("rests a provider for breaker.rest_ms, and no longer", async () => {
    await world.start(", max_retries: 0, breaker: {failures: 1, rest_ms: 5000}", "providers: [{name: one}]");
    world.one.script = scripts.says(500);
    expect(await world.serve(3)).to.deep.equal([1, 0]);
    world.nowMs = 4_999;
    expect(await world.serve(1)).to.deep.equal([0, 0]);
    world.nowMs = 5_000;
    expect(await world.serve(1)).to.deep.equal([1, 0]);
  });

  it("gives the provider the key that api_key_env names", async () => {
    await world.start(", api_key_env: ONE_KEY", both);
    await world.serve(1);
    expect(world.one.calls[0]?.headers.authorization).to.equal(`Bearer ${providerKey}`);
  });
});

describe("ProviderFleet.health()", () => {
  inOwnWorld();

  it("tells operators of every provider, its routes and its health, and no address and no key", async () => {
    await world.start(", api_key_env: ONE_KEY, max_retries: 0", "providers: [{name: one}]");
    world.one.script = scripts.says(500, { error: { message: providerKey } });
    await world.serve(1);
    const usual = {
      type: "openai",
      enabled: true,
      models: ["m"],
      breaker: "closed",
      requestsInFlight: 0,
      restsForMs: 0,
    };
    const health = world.fleet.health();
    expect(health).to.deep.equal([
      { ...usual, name: "one", routes: ["m"], failures: 1, lastFault: "PROVIDER_UNAVAILABLE" },
      { ...usual, name: "two", routes: [], failures: 0, lastFault: null },
    ]);
    expect(JSON.stringify(health)).to.not.match(/127\.0\.0\.1|sk-/);
  });

  it("tells of what is not enabled as well", async () => {
    const { providers, modelGateway } = await loadText(
      "providers: [{name: off, type: mock, enabled: false, models: [m]}]",
    );
    const fleet = new ProviderFleet({
      providers,
      routes: modelGateway.routes,
      bounds: { bytes: 1, json: { depth: 1, nodes: 1, stringLength: 1, reader: "tolerant" } },
      clock: Date.now,
      elapsedMs: () => 0,
      egress,
    });
    expect(fleet.health().map(({ name, enabled }) => [name, enabled])).to.deep.equal([["off", false]]);
    expect(fleet.models).to.deep.equal([]);
  });
});

async function drain(events: AsyncIterable<unknown>): Promise<unknown> {
  try {
    for await (const _ of events);
    return undefined;
  } catch (error) {
    return error;
  }
}
