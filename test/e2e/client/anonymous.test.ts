import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { clientKinds, connectClient } from "../../support/mcp-client.ts";
import { notes, openHoldingWorld } from "./holding-world.ts";
import { Reviewer } from "./reviewer.ts";
import type { World } from "./world.ts";

describe("a caller without a key, where `require_auth` is false", () => {
  let world: World;
  let reviewer: Reviewer;

  before(async () => {
    world = await openHoldingWorld(
      'hold_seconds: 20, review_url: "https://review.example/{id}"',
      "mcp_gateway: { require_auth: false, anonymous_tenant: acme }",
    );
    reviewer = new Reviewer(world);
  });

  after(() => world?.stop());

  it("may call what policy allows, and not what it blocks [R5-4]", async () => {
    const agent = new Agent(world.gateway.url, null);
    const { result } = await agent.call("publish");
    expect(result?.isError ?? false).to.equal(false);
    const blocked = await agent.call("secret");
    expect(blocked.result?.content?.[0]?.text).to.include("Blocked by policy: no secrets (rule test.secret)");
    expect(world.calls("notes").map(({ params }) => params?.name)).to.deep.equal(["publish"]);
    await agent.hangUp();
  });

  it("is told to send a key for what is reviewed; nothing waits and nothing is asked [R5-3, R7-3]", async () => {
    const agent = new Agent(world.gateway.url, null);
    const { status, error } = await agent.call("note");
    expect([status, error?.data?.code]).to.deep.equal([401, "KEY_MISSING"]);
    expect(error?.message).to.include("this action is held for review, which needs a known caller: send `X-API-Key`");
    await agent.hangUp();
    expect(await reviewer.list()).to.deep.equal([]);
    expect(notes(world)).to.equal(0);
  });

  for (const kind of clientKinds.filter((each) => each !== "v1 sse")) {
    it(`is refused likewise through ${kind} [R5-3, R7-3]`, async () => {
      let asked = 0;
      const page = (): { action: string } => ({ action: asked++ === 0 ? "accept" : "decline" });
      const client = await connectClient(kind, { url: `${world.gateway.url}/mcp`, headers: {} }, { page });
      await client.listTools();
      const refused = await client.callTool("note").then(
        () => "answered",
        (error: Error) => error.message,
      );
      await client.close();
      expect(refused).to.match(/X-API-Key|[Uu]nauthorized/);
      expect([asked, await reviewer.list(), notes(world)]).to.deep.equal([0, [], 0]);
    });
  }
});
