import { randomBytes } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { roundsOf } from "../../support/rounds.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const word = "forbidden";
const rules = `
  - id: open.word
    title: The word is not sent to a provider, wherever it stands
    decision: block
    severity: high
    risk: 80
    match: { phase: input, protocol: model }
    when: >-
      leaves(args).exists(leaf, leaf.text.contains("${word}")) ||
      leaves(continuation).exists(leaf, leaf.text.contains("${word}"))
    message: the word is not sent
`;

const schema = { type: "object", properties: { city: { type: "string", description: "Where." } } };
/** A request of each API with every kind of object in it that clients send. */
const requests: Readonly<Record<ModelApi, JsonObject>> = {
  chat: {
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Is it sunny?" }] },
      {
        role: "assistant",
        tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "sunny" },
    ],
    tools: [{ type: "function", function: { name: "weather", description: "Tells it.", parameters: schema } }],
    tool_choice: { type: "function", function: { name: "weather" } },
    metadata: { team: "a" },
  },
  messages: {
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: [{ type: "text", text: "Is it sunny?" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "weather", input: { city: "Oslo" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "sunny" }] },
    ],
    tools: [{ name: "weather", description: "Tells it.", input_schema: schema }],
    tool_choice: { type: "tool", name: "weather" },
    metadata: { user_id: "a" },
  },
  responses: {
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "Is it sunny?" }] },
      { type: "function_call", call_id: "c1", name: "weather", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "sunny" },
    ],
    tools: [{ type: "function", name: "weather", description: "Tells it.", parameters: schema }],
    tool_choice: { type: "function", name: "weather" },
    text: { format: { type: "text" } },
    metadata: { team: "a" },
  },
};
const apis = Object.keys(requests) as ModelApi[];

describe("the members of a model request that no API knows", () => {
  let world: ModelWorld;
  before(async () => {
    const [open, claude, resp] = ["{ name: open, model: m }", "{ name: claude, model: m }", "{ name: resp, model: m }"];
    world = await openModelWorld({
      rules,
      routes: `
    - { model: chat-model, providers: [${open}] }
    - { model: messages-model, providers: [${claude}] }
    - { model: responses-model, providers: [${resp}] }
    - { model: shared-model, providers: [${claude}, ${open}, ${resp}] }`,
    });
  });
  after(() => world.stop());

  for (const api of apis) {
    it(`are judged wherever they stand, in ${api}: what policy forbids in them reaches no provider [S78]`, async () => {
      const places = placesIn(requests[api]);
      expect(places).to.have.length.of.at.least(8);
      const models = [`${api}-model`, "shared-model"];
      const before = world.provider.calls.length;
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...models), fc.constantFrom(...places), baits, async (model, place, bait) => {
          const { status, text } = await askModel(world, { api, model, body: withMember(requests[api], place, bait) });
          const isBlocked = status === 403 && text.includes("open.word");
          // What has no equivalent in the provider's own API is refused before it is judged.
          const isRefused = model === "shared-model" && status === 400 && text.includes("model_untranslatable");
          expect(isBlocked || isRefused, text).to.equal(true);
        }),
        { numRuns: roundsOf(40, 1_000) },
      );
      expect(world.provider.calls).to.have.length(before);
    });

    it(`pass to a provider of the same API as policy saw them, in ${api}`, async () => {
      const [first = []] = placesIn(requests[api]);
      const body = withMember(requests[api], first, { harmless: ["a", 1] });
      const { status, text } = await askModel(world, { api, body });
      expect(status, text).to.equal(200);
      expect(world.provider.calls.at(-1)?.body.more).to.deep.equal({ harmless: ["a", 1] });
    });
  }

  it("come with no header but the judged ones: what policy forbids in those reaches no provider either [S78]", async () => {
    const mark = `m${randomBytes(8).toString("hex")}`;
    const headers = {
      tracestate: `a=${mark}`,
      baggage: `a=${mark}`,
      traceparent: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-${mark}`,
      "user-agent": mark,
      cookie: mark,
      "openai-organization": mark,
      "openai-beta": mark,
      "anthropic-dangerous-direct-browser-access": mark,
      [`x-${mark}`]: mark,
    };
    for (const api of apis) {
      const from = world.provider.calls.length;
      for (const model of [`${api}-model`, "shared-model"]) await askModel(world, { api, model, headers });
      const calls = world.provider.calls.slice(from);
      expect(calls).to.have.length(2);
      expect(JSON.stringify(calls)).to.not.include(mark);
    }
    const from = world.provider.calls.length;
    const beta = await askModel(world, { api: "messages", headers: { "anthropic-beta": `tools-${word}` } });
    expect([beta.status, beta.text.includes("open.word")]).to.deep.equal([403, true]);
    expect(world.provider.calls).to.have.length(from);
  });
});

/** JSON in which a name or a text holds the word. */
const baits: fc.Arbitrary<Json> = fc
  .tuple(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }), fc.nat(4))
  .map(([before, after, depth]) => {
    const text = `${before}${word}${after}`;
    let bait: Json = depth % 2 === 0 ? text : { [text]: 1 };
    for (let level = 0; level < depth; level++) bait = level % 2 === 0 ? [before, bait] : { [after]: bait };
    return bait;
  });

type Place = readonly (string | number)[];

/** The places of all objects in a value, its own first. */
function placesIn(value: Json, at: Place = []): Place[] {
  if (typeof value !== "object" || value === null) return [];
  const below = Object.entries(value).flatMap(([name, member]) =>
    placesIn(member as Json, [...at, Array.isArray(value) ? Number(name) : name]),
  );
  return Array.isArray(value) ? below : [at, ...below];
}

/** The request with a member `more` in the object at a place. */
function withMember(request: JsonObject, place: Place, more: Json): JsonObject {
  const copy = structuredClone(request) as Record<string | number, Json>;
  const object = place.reduce<Record<string | number, Json>>(
    (inner, name) => inner[name] as Record<string | number, Json>,
    copy,
  );
  object.more = more;
  return copy as JsonObject;
}
