import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import type { ModelRoute } from "../../../core/config/gateway-config.ts";
import { type Asked, contentOf, drainStream, FleetWorld, mockConfig } from "./fixture.ts";

let world: FleetWorld;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(() => {
    world = new FleetWorld();
    world.open([mockConfig({ idleTimeoutMs: 150, maxRetries: 1, maxConnections: 1 })], [routeTo("mock")]);
  });
  afterEach(() => world.close());
}

function routeTo(model: string): ModelRoute {
  return { model: "m", steps: [{ provider: "mock", model, weight: null }], fallback: false, canary: null };
}

function user(content: string | readonly JsonObject[]): Asked {
  return { body: { messages: [{ role: "user", content }] } };
}

interface Chunk {
  readonly choices: readonly {
    readonly delta: { readonly content?: string; readonly tool_calls?: readonly object[] };
  }[];
  readonly usage?: object;
}

async function chunksOf(asked: Asked): Promise<readonly Chunk[]> {
  const { text, error } = await drainStream(await world.stream(asked));
  expect(error).to.equal(undefined);
  const lines = text.split("\n\n").filter((line) => line !== "");
  expect(lines.pop()).to.equal("data: [DONE]");
  return lines.map((line) => JSON.parse(line.replace(/^data: /, "")) as Chunk);
}

describe("the mock provider", () => {
  inOwnWorld();

  it("says what the user said last, and the same to the same", async () => {
    const asked: Asked = {
      body: {
        messages: [
          { role: "user", content: "first" },
          { role: "assistant", content: "mock:say no" },
          {
            role: "user",
            content: [
              { type: "text", text: "Hello," },
              { type: "text", text: "mock" },
            ],
          },
        ],
      },
    };
    const answer = await world.whole(asked);
    expect(contentOf(answer.body)).to.equal("You said: Hello,\nmock");
    expect(answer.body).to.have.nested.property("choices[0].finish_reason", "stop");
    expect(Buffer.from((await world.whole(asked)).raw ?? [])).to.deep.equal(Buffer.from(answer.raw ?? []));
    expect((await world.whole(user("other"))).body.id).to.not.equal(answer.body.id);
  });

  it("streams the same answer, and counts where it is asked to", async () => {
    const asked = user("mock:say one two three 😀😀😀😀😀😀😀😀😀\nmock:pieces 5");
    const whole = await world.whole(asked);
    const chunks = await chunksOf(asked);
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    expect(text).to.equal(contentOf(whole.body));
    expect(chunks.every(({ choices }) => (choices[0]?.delta.content ?? "").isWellFormed())).to.equal(true);
    expect(chunks.every(({ usage }) => usage === undefined)).to.equal(true);
    const counted = await chunksOf({ body: { ...asked.body, stream_options: { include_usage: true } } });
    expect(counted.at(-1)?.usage).to.deep.equal(whole.body.usage);
  });

  it("calls the tools it is told to, streamed and not", async () => {
    const asked = user('mock:call look {"up":"ä"}\nmock:call stop\nmock:call broken {"a":');
    const { body } = await world.whole(asked);
    const called = [
      ["look", '{"up":"ä"}'],
      ["stop", "{}"],
    ];
    const [choice] = body.choices as unknown as readonly Choice[];
    expect(choice?.message.tool_calls.map((call) => [call.function.name, call.function.arguments])).to.deep.equal(
      called,
    );
    expect([choice?.message.content, choice?.finish_reason]).to.deep.equal([null, "tool_calls"]);
    const names: string[] = [];
    const texts: string[] = [];
    for (const { choices } of await chunksOf(asked)) {
      for (const { index, function: part } of (choices[0]?.delta.tool_calls ?? []) as (Call & { index: number })[]) {
        if (part.name !== undefined) names[index] = part.name;
        texts[index] = (texts[index] ?? "") + part.arguments;
      }
    }
    expect(names.map((name, index) => [name, texts[index]])).to.deep.equal(called);
  });

  it("says what a line cannot hold as a JSON string", async () => {
    expect(contentOf((await world.whole(user('mock:say "a\\nb"\nmock:say  c'))).body)).to.equal("a\nb c");
  });

  it("fails as it is told, retries and all", async () => {
    const failed = await world.failed(user("mock:fail 429 3"));
    expect(failed).to.include({ status: 429 });
    expect(failed.error.data).to.include({ retry_after_s: 3 });
    expect(failed.body).to.have.nested.property("error.message", "told to answer 429");
    expect((await world.failed({ ...user("mock:fail 503"), stream: true })).error.code).to.equal(
      "PROVIDER_UNAVAILABLE",
    );
    expect(world.events.filter(({ kind }) => kind === "provider_retry_scheduled")).to.have.length(1);
  });

  it("stalls before the first byte, or between two pieces", async () => {
    world.open([mockConfig({ firstByteTimeoutMs: 60, idleTimeoutMs: 60 })], [routeTo("mock")]);
    expect((await world.failed(user("mock:stall 5000"))).error.code).to.equal("PROVIDER_TIMEOUT");
    const { error, text } = await drainStream(await world.stream(user("mock:say hello\nmock:pause 5000")));
    expect(error).to.have.property("code", "PROVIDER_TIMEOUT");
    expect(text).to.include("assistant");
    expect(contentOf((await world.whole(user("mock:stall 20\nmock:say late"))).body)).to.equal("late");
  });

  it("dies after so many events", async () => {
    const { error, text } = await drainStream(await world.stream(user("mock:die 2")));
    expect(error).to.have.property("code", "PROVIDER_UNAVAILABLE");
    expect(text.split("\n\n")).to.have.length(3);
    expect((await world.failed(user("mock:die 0"))).error.code).to.equal("PROVIDER_UNAVAILABLE");
  });

  it("is told by the name of its model as well", async () => {
    for (const [model, status] of [
      ["mock:fail=500", 502],
      ["mock:fail=404", 404],
    ] as const) {
      world.open([mockConfig()], [routeTo(model)]);
      expect((await world.failed()).status).to.equal(status);
    }
    world.open([mockConfig()], [routeTo("mock:say=fixed")]);
    expect(contentOf((await world.whole()).body)).to.equal("fixed");
  });

  it("takes what is no directive for text", async () => {
    for (const line of [
      "mock:",
      "mock:constructor",
      "mock:__proto__ 1",
      "mock:fail 200",
      "mock:stall x",
      " mock:say a",
    ]) {
      expect(contentOf((await world.whole(user(line))).body)).to.equal(`You said: ${line}`);
    }
  });

  it("takes a request in the other API", async () => {
    const { body } = await world.whole({ api: "messages", ...user("mock:say over there") });
    expect(body).to.have.nested.property("content[0].text", "over there");
  });

  it("is given up where the client goes, and when the fleet closes", async () => {
    const stalled = user("mock:stall 60000");
    expect((await world.failed({ ...stalled, signal: AbortSignal.timeout(20) })).error.code).to.equal("CANCELLED");
    const waiting = world.failed(stalled);
    await new Promise(setImmediate);
    expect(world.fleet.health()[0]?.requestsInFlight).to.equal(1);
    await world.fleet.close();
    expect((await waiting).error.code).to.equal("PROVIDER_UNAVAILABLE");
  });
});

interface Call {
  readonly function: { readonly name?: string; readonly arguments: string };
}

interface Choice {
  readonly message: { readonly content: null; readonly tool_calls: readonly Call[] };
  readonly finish_reason: string;
}
