import { expect } from "chai";
import type { Json } from "../../../core/action/json.ts";
import { readJsonRpc } from "../../../core/action/json-rpc.ts";

const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x" } };

describe("readJsonRpc(value)", () => {
  it("reads a request, a notification and both responses", () => {
    expect(readJsonRpc(request).kind).to.equal("request");
    expect(readJsonRpc({ jsonrpc: "2.0", method: "ping" }).kind).to.equal("notification");
    expect(readJsonRpc({ jsonrpc: "2.0", id: "a", result: {} }).kind).to.equal("response");
    expect(readJsonRpc({ jsonrpc: "2.0", id: null, error: { code: 1, message: "m" } }).kind).to.equal("response");
  });

  it("drops members the protocol does not name, so that nothing unjudged travels on", () => {
    const { message } = readJsonRpc({ ...request, Method: "evil", PARAMS: {}, meta: 1 });
    expect(message).to.deep.equal(request);
  });

  for (const [name, value, said] of [
    ["a batch", [request], "expected one JSON-RPC message, got a batch"],
    ["an empty batch", [], "expected one JSON-RPC message, got a batch"],
    ["text", "x", "expected a JSON-RPC object, got a string"],
    ["null", null, "expected a JSON-RPC object, got null"],
    ["another version", { ...request, jsonrpc: "1.0" }, 'expected `jsonrpc` to be "2.0"'],
    [
      "a method in the wrong case",
      { jsonrpc: "2.0", id: 1, Method: "tools/call" },
      "expected a `method`, or a response",
    ],
    ["a method that is no string", { ...request, method: 1 }, "expected `method` to be a string, got a number"],
    ["an empty method", { ...request, method: "" }, "expected `method` of 1 to 128 characters, got 0"],
    ["a long method", { ...request, method: "m".repeat(129) }, "expected `method` of 1 to 128 characters, got 129"],
    ["positional params", { ...request, params: [1] }, "expected `params` to be an object, got an array"],
    ["a null id", { ...request, id: null }, "got null"],
    ["an object id", { ...request, id: {} }, "got an object"],
    ["a fractional id", { ...request, id: 1.5 }, "got a number"],
    ["request and response in one", { ...request, result: {} }, "got members of both"],
    [
      "result and error",
      { jsonrpc: "2.0", id: 1, result: {}, error: { code: 1, message: "" } },
      "either `result` or `error`",
    ],
  ] as [string, Json, string][]) {
    it(`refuses ${name}`, () => {
      expect(() => readJsonRpc(value))
        .to.throw(said)
        .with.property("code", "INVALID_REQUEST");
    });
  }
});
