import { expect } from "chai";
import { type HeaderList, readResponses, sendBytes, type WireResponse } from "../../support/wire.ts";
import { echoCall, effectsOf, keys, messageHeaders, nothing, openWorld, post, type World } from "./world.ts";

interface Answer {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  /** Of `error.data`. */
  readonly data: string;
}

type Case = readonly [what: string, body: string | Uint8Array, answer: Answer, headers?: HeaderList];

const malformed = (text: string): Answer => answer(400, -32700, `malformed JSON: ${text}`, "MALFORMED_JSON");
const invalid = (text: string): Answer => answer(400, -32600, `invalid request: ${text}`, "INVALID_REQUEST");
const params = (text: string): Answer => answer(200, -32602, `invalid params: ${text}`, "INVALID_PARAMS");
const call = (text: string): string => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${text}}`;
const json: HeaderList = [["content-type", "application/json"]];
const keyed: HeaderList = [["x-api-key", keys.operator]];

const tooDeep = answer(
  400,
  -32600,
  "JSON exceeds a bound: expected at most 64 levels, got more at offset 144",
  "JSON_BOUND",
);
const tooLarge = answer(413, -32600, "request body too large: expected at most 4194304 bytes", "BODY_TOO_LARGE");
const tooLong = "expected strings of at most 4194304 characters";

const cases: readonly Case[] = [
  ["malformed JSON", "{not json", malformed("unexpected character at offset 1")],
  ["an empty body", "", malformed("unexpected end")],
  ["half a message", '{"jsonrpc":"2.0"', malformed("unexpected character at offset 16")],
  ["an unterminated string", '{"jsonrpc', malformed("unterminated string at offset 1")],
  ["a message and more", `${echoCall()}x`, malformed("unexpected character at offset 86")],
  ["an array", `[${echoCall()}]`, invalid("expected one JSON-RPC message, got a batch")],
  ["an empty array", "[]", invalid("expected one JSON-RPC message, got a batch")],
  ["a string", '"tools/call"', invalid("expected a JSON-RPC object, got a string")],
  ["null", "null", invalid("expected a JSON-RPC object, got null")],
  ["10 MiB", Buffer.alloc(10 * 1024 * 1024, " "), tooLarge],
  ["a depth of 10,000 arrays", echoCall("[".repeat(10_000) + "]".repeat(10_000)), tooDeep],
  ["a duplicate key", call('{"name":"echo","name":"deep"}'), malformed("duplicate key `name` at offset 70")],
  ["a duplicate key, once escaped", echoCall('{"a":1,"\\u0061":2}'), malformed("duplicate key `a` at offset 89")],
  [
    "`__proto__` for params",
    call('{"__proto__":{"name":"echo"}}'),
    params("expected `name` to be a string, got nothing"),
  ],
  ["`__proto__` for a message", '{"__proto__":{"jsonrpc":"2.0"},"id":1}', invalid('expected `jsonrpc` to be "2.0"')],
  ["another version", '{"jsonrpc":"1.0","id":1,"method":"ping"}', invalid('expected `jsonrpc` to be "2.0"')],
  [
    "a method of the wrong type",
    '{"jsonrpc":"2.0","id":1,"method":7}',
    invalid("expected `method` to be a string, got a number"),
  ],
  [
    "an empty method",
    '{"jsonrpc":"2.0","id":1,"method":""}',
    invalid("expected `method` of 1 to 128 characters, got 0"),
  ],
  ["params of the wrong type", call("[1]"), invalid("expected `params` to be an object, got an array")],
  ["a name of the wrong type", call('{"name":7}'), params("expected `name` to be a string, got a number")],
  ["no name", call("{}"), params("expected `name` to be a string, got nothing")],
  [
    "arguments of the wrong type",
    call('{"name":"echo","arguments":[1]}'),
    params("expected `arguments` to be an object, got an array"),
  ],
  ["a lone surrogate", echoCall('{"a":"\\ud800"}'), malformed("lone surrogate in the string at offset 87")],
  ["a lone surrogate in a key", echoCall('{"\\udfff":1}'), malformed("lone surrogate in the string at offset 83")],
  ["invalid UTF-8", Buffer.from(echoCall('{"a":"\xff"}'), "latin1"), malformed("expected UTF-8, got invalid bytes")],
  ["an unknown tool", call('{"name":"nope"}'), answer(200, -32602, "unknown tool: `nope`", "TOOL_UNKNOWN")],
  [
    "`__proto__` for a tool",
    call('{"name":"__proto__"}'),
    answer(200, -32602, "unknown tool: `__proto__`", "TOOL_UNKNOWN"),
  ],
  [
    "a missing key",
    echoCall(),
    answer(
      401,
      1401,
      "authentication required: send `X-API-Key: <key>` or `Authorization: Bearer <key>`",
      "KEY_MISSING",
    ),
    json,
  ],
  [
    "a wrong key",
    echoCall(),
    answer(401, 1401, "unknown key", "KEY_UNKNOWN"),
    [["x-api-key", `no-${keys.admin}`], ...json],
  ],
  [
    "no content type",
    echoCall(),
    answer(415, -32600, "unsupported media type: expected `content-type: application/json`", "UNSUPPORTED_MEDIA_TYPE"),
    keyed,
  ],
  [
    "a compressed body",
    echoCall(),
    answer(415, -32600, "unsupported media type: expected a body without content-encoding", "UNSUPPORTED_MEDIA_TYPE"),
    [...keyed, ...json, ["content-encoding", "gzip"]],
  ],
];

describe("bad input", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
    await post(world, echoCall()); // the tools are known from here on
  });
  after(() => world.stop());

  for (const [what, body, expected, headers] of cases) {
    it(`answers ${what} with ${expected.status} and ${expected.data}, and nothing is run`, async () => {
      const effects = await effectsOf(world, async () => {
        expectAnswer(await post(world, body, { headers: headers ?? messageHeaders() }), expected);
      });
      expect(effects).to.deep.equal(nothing);
    });
  }

  it("answers a string that is too long as what it is, before anything else", async () => {
    const other = await openWorld("limits: { json_string_length: 256, json_nodes: 100 }");
    try {
      expectAnswer(
        await post(other, echoCall(`{"a":"${"x".repeat(257)}"}`)),
        answer(
          400,
          -32600,
          `JSON exceeds a bound: ${tooLong.replace("4194304", "256")}, got a longer one at offset 87`,
          "JSON_BOUND",
        ),
      );
      expectAnswer(
        await post(other, echoCall(`{"a":[${"1,".repeat(200)}1]}`)),
        answer(
          400,
          -32600,
          "JSON exceeds a bound: expected at most 100 members and items, got more at offset 273",
          "JSON_BOUND",
        ),
      );
    } finally {
      await other.stop();
    }
  });

  it("answers a request that is not HTTP with problem+json, and closes", async () => {
    const { bytes, closed } = await sendBytes(world.gateway.url, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    const [response] = readResponses(bytes);
    expect(closed).to.equal(true);
    expect(response?.status).to.equal(400);
    expect(response?.headers.get("content-type")).to.equal("application/problem+json");
    expect(JSON.parse(response?.body ?? "")).to.deep.equal({ type: "about:blank", title: "Bad Request", status: 400 });
  });
});

function answer(status: number, code: number, message: string, data: string): Answer {
  return { status, code, message, data };
}

/** The whole body is compared; only the request's id is taken from the header that must repeat it. */
function expectAnswer(response: WireResponse, { status, code, message, data }: Answer): void {
  const requestId = response.headers.get("x-request-id");
  expect(requestId).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(response.status).to.equal(status);
  expect(response.headers.get("content-type")).to.match(/^application\/json/);
  expect(JSON.parse(response.body)).to.deep.equal({
    jsonrpc: "2.0",
    // Below 400 the message was read, and its id with it.
    id: status === 200 ? 1 : null,
    error: { code, message, data: { code: data, request_id: requestId } },
  });
}
