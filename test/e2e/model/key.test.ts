import { expect } from "chai";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

describe("a chat request", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ more: "mcp_gateway: { require_auth: false, anonymous_tenant: acme }" });
  });
  after(() => world.stop());

  it("needs the key of a configured tenant, even where MCP needs none [R5-8]", async () => {
    for (const key of ["", "test-a-key-that-nobody-configured-0123456789"]) {
      expect((await askModel(world, { headers: { "x-api-key": key } })).status).to.equal(401);
    }
    expect([world.provider.calls, await world.records()]).to.deep.equal([[], []]);
  });

  it("is its tenant's alone [R5-8]", async () => {
    expect((await askModel(world, { headers: { "x-api-key": world.keys.other } })).status).to.equal(200);
    expect([world.provider.calls.length, await world.records()]).to.deep.equal([1, []]);
    expect((await askModel(world)).status).to.equal(200);
    expect((await world.records()).map(({ tenant }) => tenant)).to.deep.equal(["acme", "acme"]);
  });
});
