import { expect } from "chai";
import { encodeHeader, mirrorHeaders, paramHeadersOf } from "../../../core/upstream/mcp-header.ts";

describe("encodeHeader(value)", () => {
  const table: readonly (readonly [string, string])[] = [
    ["read_note", "read_note"],
    ["a b", "a b"],
    ["a\tb", "a\tb"],
    ["", "=?base64??="],
    [" a", "=?base64?IGE=?="],
    ["a ", "=?base64?YSA=?="],
    ["Zürich", "=?base64?WsO8cmljaA==?="],
    ["a\r\nx-evil: 1", "=?base64?YQ0KeC1ldmlsOiAx?="],
    ["=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="],
  ];
  for (const [value, header] of table) {
    it(`writes ${JSON.stringify(value)} as ${header}`, () => expect(encodeHeader(value)).to.equal(header));
  }
});

describe("paramHeadersOf(inputSchema)", () => {
  it("finds primitive properties at any depth of `properties`, and nothing elsewhere", () => {
    const schema = {
      properties: {
        a: { type: "string", "x-mcp-header": "A" },
        b: { type: "object", properties: { c: { type: "integer", "x-mcp-header": "C" } } },
        d: { type: "number", "x-mcp-header": "D" },
        e: { type: "string", "x-mcp-header": "bad name" },
        f: { items: { type: "string", "x-mcp-header": "F" } },
      },
    };
    expect(paramHeadersOf(schema)).to.deep.equal([
      { path: ["a"], header: "A" },
      { path: ["b", "c"], header: "C" },
    ]);
  });
});

describe("mirrorHeaders(request, paramHeaders)", () => {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
  const envelope = (method: string, params: object) =>
    ({ jsonrpc: "2.0", id: 1, method, params: { _meta: meta, ...params } }) as const;

  it("adds nothing to a legacy message", () => {
    expect(
      mirrorHeaders({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x" } }, () => []),
    ).to.deep.equal([]);
  });

  it("repeats the URI of a resource", () => {
    const headers = mirrorHeaders(envelope("resources/read", { uri: "file:///ä" }), () => []);
    expect(headers.slice(4)).to.deep.equal(["mcp-name", "=?base64?ZmlsZTovLy/DpA==?="]);
  });

  it("repeats declared parameters that are there, as the protocol writes them", () => {
    const declared = ["s", "t", "n", "o", "p"].map((name) => ({ path: [name], header: name }));
    const request = envelope("tools/call", { name: "x", arguments: { s: "v", t: true, n: 7, o: {}, p: null } });
    expect(mirrorHeaders(request, () => declared).slice(6)).to.deep.equal([
      "mcp-param-s",
      "v",
      "mcp-param-t",
      "true",
      "mcp-param-n",
      "7",
    ]);
  });

  it("is not misled by a method that every object has", () => {
    expect(mirrorHeaders(envelope("constructor", { name: "x" }), () => [])).to.have.length(4);
  });
});
