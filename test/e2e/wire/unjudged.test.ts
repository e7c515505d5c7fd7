import { randomBytes } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../core/action/json.ts";
import { roundsOf } from "../../support/rounds.ts";
import { keys, openWorld, post, type World } from "./world.ts";

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const own = "io.modelcontextprotocol/";

/** JSON of any shape in which each name and each text holds `mark`. */
function baitOf(mark: string): fc.Arbitrary<Json> {
  const text = fc.string({ maxLength: 40 }).map((rest) => `${mark}${rest}`);
  return fc.letrec<{ value: Json; object: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      text,
      fc.integer(),
      fc.boolean(),
      tie("object"),
      fc.array(tie("value"), { maxLength: 3 }),
    ),
    object: fc.dictionary(text, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  })).object;
}

describe("what no policy judged", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.stop());

  /** Speaks to the gateway as a client would, with bait in every place that the gateway does not judge. */
  async function speak(mark: string, bait: Json, judged: string): Promise<void> {
    const more = bait as Readonly<Record<string, Json>>;
    const headers = (session?: string): [string, string][] => [
      ["x-api-key", keys.operator],
      ["content-type", "application/json"],
      ["accept", "application/json, text/event-stream"],
      ["tracestate", `a=${mark}`],
      ["baggage", `a=${mark}`],
      ["user-agent", mark],
      ["cookie", mark],
      [`x-${mark}`, mark],
      ...(session === undefined ? [] : ([["mcp-session-id", session]] as [string, string][])),
    ];
    const say = (message: object, session?: string): ReturnType<typeof post> =>
      post(world, JSON.stringify({ ...more, jsonrpc: "2.0", ...message }), { headers: headers(session) });
    const steering = {
      ...more,
      progressToken: mark,
      traceparent: `${traceparent}-${mark}`,
      tracestate: `a=${mark}`,
      baggage: mark,
      [`${own}logLevel`]: mark,
      [`${own}clientInfo`]: { ...more, name: mark, version: mark },
      [`${own}clientCapabilities`]: { ...more, sampling: more, elicitation: { ...more, form: more }, roots: more },
    };
    const capabilities = steering[`${own}clientCapabilities`];
    const clientInfo = { ...more, name: mark, title: mark, version: mark };
    const params = { ...more, protocolVersion: "2025-11-25", capabilities, clientInfo, _meta: steering };
    const opened = await say({ id: 1, method: "initialize", params });
    expect(opened.status, opened.body).to.equal(200);
    const session = String(opened.headers.get("mcp-session-id"));
    await say({ method: "notifications/initialized", params: { ...more, _meta: steering } }, session);
    await say({ method: "notifications/roots/list_changed", params: { ...more, _meta: steering } }, session);
    await say({ id: 2, method: "tools/list", params: { ...more, _meta: steering } }, session);
    const call = { ...more, name: "echo", arguments: { judged }, _meta: steering };
    expect((await say({ id: 3, method: "tools/call", params: call }, session)).body).to.include(judged);
    expect((await say({ id: 4, method: "tools/call", params: call })).body).to.include(judged);
    const cancelled = { ...more, requestId: 3, reason: mark, _meta: steering };
    await say({ method: "notifications/cancelled", params: cancelled }, session);
    await say({ method: "notifications/progress", params: { ...more, progressToken: 1, message: mark } }, session);
  }

  it("reaches no upstream: handshakes, `_meta`, notifications and headers are written anew [S78]", async () => {
    const mark = `m${randomBytes(8).toString("hex")}`;
    const judged = `j${randomBytes(8).toString("hex")}`;
    await fc.assert(
      fc.asyncProperty(baitOf(mark), async (bait) => speak(mark, bait, judged)),
      { numRuns: roundsOf(15, 300) },
    );
    const log = (await world.upstream.requests()).map((request) => JSON.stringify(request));
    expect(log.filter((line) => line.includes(judged))).to.have.length.of.at.least(30);
    expect(log.filter((line) => line.includes(mark))).to.deep.equal([]);
  });
});
