import { expect } from "chai";
import { metaKey, modernRevision } from "../../../core/action/json-rpc.ts";
import type { HeaderList } from "../../support/wire.ts";
import { echoCall, effectsOf, messageHeaders, nothing, openWorld, post, type World } from "./world.ts";

describe("the headers that repeat a message", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
    await post(world, echoCall());
  });
  after(() => world.stop());

  const right: Readonly<Record<string, string>> = {
    "mcp-protocol-version": modernRevision,
    "mcp-method": "tools/call",
    "mcp-name": "echo",
    "mcp-param-region": "eu-1",
  };
  const wrong: readonly [string, Readonly<Record<string, string | undefined>>][] = [
    ["no version", { "mcp-protocol-version": undefined }],
    ["another version", { "mcp-protocol-version": "2025-06-18" }],
    ["no method", { "mcp-method": undefined }],
    ["another method", { "mcp-method": "tools/list" }],
    ["the method in another case", { "mcp-method": "Tools/Call" }],
    ["no name", { "mcp-name": undefined }],
    ["another name", { "mcp-name": "deep" }],
    ["the name in another case", { "mcp-name": "Echo" }],
    ["another name in base64", { "mcp-name": `=?base64?${Buffer.from("deep").toString("base64")}?=` }],
    ["a name in broken base64", { "mcp-name": "=?base64?ZWNobw?=" }],
    ["no parameter", { "mcp-param-region": undefined }],
    ["another parameter", { "mcp-param-region": "us-1" }],
    ["another parameter in base64", { "mcp-param-region": `=?base64?${Buffer.from("us-1").toString("base64")}?=` }],
  ];

  function call(changed: Readonly<Record<string, string | undefined>>): ReturnType<typeof post> {
    const _meta = { [metaKey.protocolVersion]: modernRevision, [metaKey.clientCapabilities]: {} };
    const params = { name: "echo", arguments: { region: "eu-1" }, _meta };
    const kept = Object.entries({ ...right, ...changed }).filter(([, value]) => value !== undefined);
    const headers = [...messageHeaders(), ...kept] as unknown as HeaderList;
    return post(world, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }), { headers });
  }

  it("may say what the body says, plain or in base64 [S24]", async () => {
    for (const name of ["echo", `=?base64?${Buffer.from("echo").toString("base64")}?=`]) {
      const response = await call({ "mcp-name": name });
      expect(response.status, response.body).to.equal(200);
      expect(JSON.parse(response.body).result.content[0].text).to.contain('"name":"echo"');
    }
  });

  for (const [what, changed] of wrong) {
    it(`refuses ${what} with 400 and −32020: only the body is judged [S24]`, async () => {
      const effects = await effectsOf(world, async () => {
        const response = await call(changed);
        expect(response.status, response.body).to.equal(400);
        expect(JSON.parse(response.body).error.code).to.equal(-32020);
      });
      expect(effects).to.deep.equal(nothing);
    });
  }

  it("refuses two of one header, which another hop might read otherwise [S24]", async () => {
    for (const [name, value] of Object.entries(right)) {
      const _meta = { [metaKey.protocolVersion]: modernRevision, [metaKey.clientCapabilities]: {} };
      const params = { name: "echo", arguments: { region: "eu-1" }, _meta };
      const headers: HeaderList = [...messageHeaders(), ...Object.entries(right), [name, value]];
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
      expect((await post(world, JSON.stringify(message), { headers })).status, name).to.equal(400);
    }
  });

  it("refuses disagreement where the headers are not owed: somebody may route by them [S24]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const header of [
        ["mcp-method", "tools/list"],
        ["mcp-name", "deep"],
      ] as const) {
        const response = await post(world, echoCall(), { headers: [...messageHeaders(), header] });
        expect(response.status, response.body).to.equal(400);
        expect(JSON.parse(response.body).error.code).to.equal(-32020);
      }
    });
    expect(effects).to.deep.equal(nothing);
    const agreed: HeaderList = [...messageHeaders(), ["mcp-method", "tools/call"], ["mcp-name", "echo"]];
    expect((await post(world, echoCall(), { headers: agreed })).status).to.equal(200);
  });

  it("refuses a revision it does not speak, and names those it does [S24]", async () => {
    const response = await call({ "mcp-protocol-version": "2099-01-01" });
    expect(response.status).to.equal(400);
    const direct = await post(world, echoCall(), {
      headers: [...messageHeaders(), ["mcp-protocol-version", "2099-01-01"]],
    });
    expect(direct.status).to.equal(400);
    expect(JSON.parse(direct.body).error).to.deep.include({
      code: -32022,
      message: "unsupported protocol version: `2099-01-01`",
    });
  });
});
