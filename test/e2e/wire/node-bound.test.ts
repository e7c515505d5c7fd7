import { expect } from "chai";
import { costSince, usageOf } from "../../bench/process-cost.ts";
import { pidOf } from "../../bench/target.ts";
import { SseAgent } from "../../support/sse-agent.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";
import { echoCall, effectsOf, keys, messageHeaders, nothing, openWorld, post, type World } from "./world.ts";

/** Arguments that are small in bytes and large in number. */
const wide = `{"list":[${"{},".repeat(48_999)}{}]}`;
const items = `{"list":[${"0,".repeat(70_000)}0]}`;
const membersOf = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"m${at}":0`)}}`;
const members = membersOf(20_000);
const deep = `{"a":${"[".repeat(70_000)}${"]".repeat(70_000)}}`;
const repeated = `{"list":[${'{"a":[{"a":[]}]},'.repeat(10_000)}{}]}`;

const tooWide = "expected at most 10000 members and items, got more at offset ";

describe("the number of values in a body [S76]", () => {
  let world: World;
  before(async () => {
    world = await openWorld("", "", undefined, { ownProcess: true });
    await post(world, echoCall()); // the tools are known from here on
  });
  after(() => world.stop());

  for (const [what, args, said] of [
    ["empty objects", wide, tooWide],
    ["items", items, tooWide],
    ["members", members, tooWide],
    ["repeated small trees", repeated, tooWide],
    ["levels", deep, "expected at most 64 levels, got more at offset "],
  ] as const) {
    it(`is bounded for ${what}: refused by name, nothing runs, and it costs less than 5 ms [S76]`, async () => {
      const effects = await effectsOf(world, async () => {
        const { status, body } = await post(world, echoCall(args));
        expect(status).to.equal(400);
        const { error } = JSON.parse(body) as { error: { message: string; data: { code: string } } };
        expect(error.message).to.include(said);
        expect(error.data.code).to.equal("JSON_BOUND");
        for (let turn = 0; turn < 40; turn++) await post(world, echoCall(args));
        // The least of some rounds: a collection of garbage, or a neighbour on the core, may fall into one.
        let least = Number.POSITIVE_INFINITY;
        for (let round = 0; round < 5; round++) {
          const begun = usageOf(pidOf(world.gateway));
          for (let turn = 0; turn < 10; turn++) await post(world, echoCall(args));
          least = Math.min(least, costSince(begun).mainUs / 10);
        }
        expect(least, "µs of the event loop's thread").to.be.lessThan(5_000);
      });
      expect(effects).to.deep.equal(nothing);
    });
  }

  it("is bounded behind megabytes too, which are read over several turns, and so are levels and names [S76]", async () => {
    const text = "lorem ipsum ".repeat(150_000);
    const effects = await effectsOf(world, async () => {
      for (const [more, said] of [
        [`"list":[${"0,".repeat(10_000)}0]`, tooWide],
        [`"a":${"[".repeat(100)}${"]".repeat(100)}`, "expected at most 64 levels, got more at offset "],
        ['"a":1,"\\u0061":2', "duplicate key `a` at offset "],
        ['"a":-0', "negative zero at offset "],
        ['"a":1', "malformed JSON: unexpected "],
      ] as const) {
        const end = more === '"a":1' ? "" : "}";
        const { status, body } = await post(world, echoCall(`{"text":"${text}",${more}${end}`));
        expect(status).to.equal(400);
        expect(body).to.include(said);
      }
    });
    expect(effects).to.deep.equal(nothing);
    expect((await post(world, echoCall(`{"text":"${text}"}`))).body).to.include(text);
  });

  it("may be 10,000 in a tool call, and no more", async () => {
    // Outside the list: the message's four members, the call's two, and `list`.
    const callOf = (count: number): string => echoCall(`{"list":[${"0,".repeat(count - 1)}0]}`);
    expect((await post(world, callOf(9_993))).status).to.equal(200);
    expect((await post(world, callOf(9_994))).body).to.include(tooWide);
  });

  describe("is the same on", () => {
    async function expectRefused(answer: Promise<WireResponse>): Promise<void> {
      const { status, body } = await answer;
      expect(status).to.equal(400);
      expect(body).to.include(tooWide).and.include("JSON_BOUND");
    }

    it("HTTP+SSE [S76]", async () => {
      const agent = await SseAgent.open(world.gateway.url, keys.operator);
      await expectRefused(agent.post(echoCall(wide)));
      agent.hangUp();
    });

    it("the admin port [S76]", async () => {
      const body = `{"tool":"echo","target":"recorder","arguments":${wide}}`;
      const request = { method: "POST", target: "/admin/v1/test-action", headers: messageHeaders(), body };
      await expectRefused(send(world.gateway.adminUrl, request));
    });

    it("`/v1/ws` [S76]", async () => {
      const client = await new LiveClient(world.gateway.url, { key: keys.operator }).open();
      client.socket.send(`{"type":"evaluate","payload":{"action":{"tool":"echo","arguments":${wide}}}}`);
      const { payload } = await client.hear(({ type }) => type === "error");
      expect(payload.code).to.equal("JSON_BOUND");
      expect(payload.message).to.include(tooWide);
      client.socket.terminate();
    });
  });

  it("is ten times that in a model request, and no more [S76]", async () => {
    const ask = (count: number): Promise<WireResponse> => {
      const body = `{"model":"none","messages":[{"role":"user","content":"x"}],"metadata":[${"0,".repeat(count - 1)}0]}`;
      return send(world.gateway.url, {
        method: "POST",
        target: "/v1/chat/completions",
        headers: messageHeaders(),
        body,
      });
    };
    expect((await ask(90_000)).body).to.include("unknown model");
    const { status, body } = await ask(100_000);
    expect(status).to.equal(400);
    expect(body).to.include("expected at most 100000 members and items, got more at offset ");
  });

  it("is that of a tool call in each object of a model request [S76]", async () => {
    const ask = (...counts: readonly number[]): Promise<WireResponse> => {
      const body = `{"model":"none","messages":[{"role":"user","content":"x"}],"metadata":[${counts.map(membersOf)}]}`;
      return send(world.gateway.url, { method: "POST", target: "/v1/messages", headers: messageHeaders(), body });
    };
    expect((await ask(10_000, 10_000, 10_000)).body).to.include("unknown model");
    const { status, body } = await ask(1, 10_001);
    expect(status).to.equal(400);
    expect(body).to.include("expected at most 10000 members in an object, got more at offset ");
  });
});

describe("the configured number of values", () => {
  it("is that of one object too, in tool calls and in model requests", async () => {
    const world = await openWorld("limits: { json_members: 100 }");
    const said = "expected at most 100 members in an object, got more at offset ";
    try {
      expect((await post(world, echoCall(`{"list":[${membersOf(100)},${membersOf(100)}]}`))).status).to.equal(200);
      expect((await post(world, echoCall(membersOf(101)))).body).to.include(said);
      const body = `{"model":"none","messages":[{"role":"user","content":"x"}],"metadata":${membersOf(101)}}`;
      const request = { method: "POST", target: "/v1/messages", headers: messageHeaders(), body };
      expect((await send(world.gateway.url, request)).body).to.include(said);
      expect((await world.upstream.calls()).length).to.equal(1);
    } finally {
      await world.stop();
    }
  });

  it("applies to tool calls and to model requests, each its own [S76]", async () => {
    const world = await openWorld("limits: { json_nodes: 200, model_json_nodes: 300 }");
    try {
      const list = (count: number): string => `[${"0,".repeat(count - 1)}0]`;
      expect((await post(world, echoCall(`{"list":${list(100)}}`))).status).to.equal(200);
      expect((await post(world, echoCall(`{"list":${list(200)}}`))).body).to.include("at most 200 members and items");
      const body = `{"model":"none","messages":[{"role":"user","content":"x"}],"metadata":${list(300)}}`;
      const answer = await send(world.gateway.url, {
        method: "POST",
        target: "/v1/messages",
        headers: messageHeaders(),
        body,
      });
      expect(answer.body).to.include("at most 300 members and items");
    } finally {
      await world.stop();
    }
  });
});
