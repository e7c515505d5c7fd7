import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import type { ModelProvider } from "../../fixture/model-provider.ts";
import { makeAction } from "../../support/action.ts";
import { permit } from "../../support/permission.ts";
import { type Asked, contentOf, FleetWorld, httpConfig, providerKey, routeTo } from "./fixture.ts";

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

/** What the client of the gateway sends along. */
/** As if all that a client can send had been judged. */
const beside = {
  authorization: "Bearer client-key",
  "x-api-key": "client-key",
  cookie: "a=b",
  "x-forwarded-for": "10.0.0.1",
  forwarded: "for=10.0.0.1",
  "x-gateway-session-id": "label",
  "openai-organization": "org",
  host: "gateway.example",
  "accept-encoding": "gzip",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
};

describe("what a provider is sent", () => {
  inOwnWorld();

  it("is the judged body with the provider's own name of the model, and nothing else", async () => {
    world.open([httpConfig(provider)]);
    const body: JsonObject = { temperature: 0.5, unknown_member: { a: [1, null, "ü"] }, __proto__x: 1 };
    const answer = await world.whole({ body });
    expect(contentOf(answer.body)).to.equal("Hello.");
    expect(provider.calls[0]?.path).to.equal("/v1/chat/completions");
    expect(provider.calls[0]?.text).to.equal(
      '{"model":"p-model","messages":[{"role":"user","content":"Hi"}],"temperature":0.5,"unknown_member":{"a":[1,null,"ü"]},"__proto__x":1}',
    );
  });

  it("leaves in a turn of its own where it is long, and not at all where nobody waits for it then [S76]", async () => {
    world.open([httpConfig(provider)]);
    const messages = [{ role: "user", content: "ź".repeat(300_000) }];
    await world.whole({ body: { messages } });
    expect(provider.calls[0]?.body.messages).to.deep.equal(messages);
    const { pauses } = world;
    expect(pauses).to.be.at.least(1);
    await world.whole();
    expect(world.pauses, "a short one").to.equal(pauses);
    const gone = new AbortController();
    const asked = world.ask({ body: { messages }, signal: gone.signal });
    gone.abort();
    expect(await asked).to.have.nested.property("error.code", "CANCELLED");
    expect(provider.calls).to.have.length(2);
  });

  it("goes to /v1/messages of a provider that speaks messages, with the version the client asked for", async () => {
    world.open([httpConfig(provider, { type: "anthropic" })]);
    await world.whole({ api: "messages" });
    await world.whole({ api: "messages", continuation: { "anthropic-version": "2026-10-21" } });
    expect(provider.calls.map(({ path }) => path)).to.deep.equal(["/v1/messages", "/v1/messages"]);
    expect(provider.calls.map(({ headers }) => headers["anthropic-version"])).to.deep.equal([
      "2023-06-01",
      "2026-10-21",
    ]);
  });

  it("keeps path and query of the address", async () => {
    world.open([httpConfig(provider, { baseUrl: `${provider.baseUrl("anthropic")}/deep/v1/?version=7` })]);
    await world.whole();
    expect(provider.calls[0]?.path).to.equal("/deep/v1/chat/completions?version=7");
  });

  const own = ["host", "connection", "content-type", "accept-encoding", "accept", "content-length"];
  const table: Readonly<Record<string, readonly ["openai" | "anthropic", Asked, readonly string[]]>> = {
    "a chat provider": ["openai", {}, ["authorization"]],
    "a messages provider": ["anthropic", { api: "messages" }, ["anthropic-version", "x-api-key"]],
    "a messages provider with a chat client": ["anthropic", {}, ["anthropic-version", "x-api-key"]],
    "a chat provider with a messages client": ["openai", { api: "messages" }, ["authorization"]],
  };
  for (const [name, [type, asked, keyed]] of Object.entries(table)) {
    it(`holds nothing of the client's but what was judged, and the provider's key in its own place: ${name} [S12]`, async () => {
      world.open([httpConfig(provider, { type })]);
      await world.whole({ ...asked, continuation: beside });
      const { headers, rawHeaders, text } = provider.calls[0] as (typeof provider.calls)[number];
      expect(Object.keys(headers)).to.have.members([...own, ...keyed]);
      expect(headers).to.include({ "accept-encoding": "identity" });
      if (type === "openai") expect(headers.authorization).to.equal(`Bearer ${providerKey}`);
      else expect(headers["x-api-key"]).to.equal(providerKey);
      expect(JSON.stringify(rawHeaders) + text).to.not.match(/client-key|10\.0\.0\.1|a=b|gateway\.example|org|label/);
    });
  }

  it("has no key where none is configured", async () => {
    world.open([httpConfig(provider, { apiKey: null })]);
    await world.whole();
    expect(provider.calls[0]?.headers).to.not.have.any.keys("authorization", "x-api-key");
  });
});

/** An action of a model's, but for its target and arguments. */
const judged = { protocol: "model", tool: "chat.completions", capability: "generate" } as const;

describe("ProviderFleet.call(permission, call)", () => {
  inOwnWorld();

  const signal = new AbortController().signal;

  it("takes no permission twice, nor one for another target, another API or another kind of answer", async () => {
    const other = await world.provider();
    world.open([httpConfig(provider), httpConfig(other, { name: "q" })], [routeTo(["p", "q"], { fallback: true })]);
    const [candidate, next] = world.candidates();
    if (candidate === undefined || next === undefined) throw new Error("expected two candidates");
    const call = { candidate, api: "chat", stream: false, signal, pause: world.pause } as const;
    const permission = world.permit({});
    await world.fleet.call(permission, call);
    const again = await world.fleet.call(permission, call).catch((error: unknown) => error);
    expect(again).to.be.instanceOf(TypeError).with.property("message").that.includes("already dispatched");
    const wrongs = [
      { ...call, candidate: next },
      { ...call, api: "messages" },
      { ...call, stream: true },
    ] as const;
    for (const wrong of wrongs) {
      const error = await world.fleet.call(world.permit({}), wrong).catch((thrown: unknown) => thrown);
      expect(error)
        .to.be.instanceOf(TypeError)
        .with.property("message")
        .that.matches(/^call: judged for/);
    }
    expect([provider.calls.length, other.calls.length]).to.deep.equal([1, 0]);
  });

  it("refuses what the provider's API has no words for, and sends nothing", async () => {
    world.open([httpConfig(provider, { type: "anthropic" })]);
    const body = { n: 2 };
    expect(() => world.candidates({ body }))
      .to.throw(GatewayError, "`n`")
      .with.property("code", "MODEL_UNTRANSLATABLE");
    const call = { candidate: world.candidate(), api: "chat", stream: false, signal, pause: world.pause } as const;
    const permission = permit(
      makeAction({ ...judged, target: call.candidate.target, arguments: { n: 2, messages: [] } }),
    );
    const error = await world.fleet.call(permission, call).catch((thrown: unknown) => thrown);
    expect(error).to.have.property("code", "MODEL_UNTRANSLATABLE");
    expect(provider.calls).to.have.length(0);
  });

  it("passes over a provider that cannot be asked where the route has another", async () => {
    const other = await world.provider();
    const route = routeTo(["p", "q"], { fallback: true });
    world.open([httpConfig(provider, { type: "anthropic" }), httpConfig(other, { name: "q" })], [route]);
    const names = (body: JsonObject): readonly string[] => world.candidates({ body }).map(({ provider: name }) => name);
    expect(names({})).to.deep.equal(["p", "q"]);
    expect(names({ n: 2 })).to.deep.equal(["q"]);
  });

  it("leads nowhere but where a route does", () => {
    world.open([httpConfig(provider), httpConfig(provider, { name: "q" })], [routeTo(["p"])]);
    expect(world.fleet.models).to.deep.equal(["m"]);
    expect(world.candidates().map(({ target }) => target)).to.deep.equal(["p/p-model"]);
    expect(() => world.candidates({ model: "q-model" })).to.throw("unknown model: got `q-model`");
    expect(() => world.open([httpConfig(provider, { enabled: false })], [routeTo(["p"])])).to.throw(TypeError);
  });
});
