import { expect } from "chai";
import { clientKinds, type McpClient } from "../../support/mcp-client.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { notes, openHoldingWorld, textOf, waiting } from "./holding-world.ts";
import type { World } from "./world.ts";

describe("a call that a person approves at a terminal", () => {
  let world: World;

  before(async () => {
    world = await openHoldingWorld("");
  });

  after(() => world?.stop());

  for (const kind of clientKinds) {
    it(`runs once for the client ${kind}, and is held anew when it is repeated [R3.1-4, R8-1]`, async () => {
      const client = await world.connect(kind);
      const before = notes(world);
      const first = await hold(client);
      expect(notes(world)).to.equal(before);
      const { code, stderr } = await runGateway(["approvals", "approve", first, "--comment", "go on"], {
        GATEWAY_API_KEY: world.reviewerKey,
        GATEWAY_ADMIN_URL: world.gateway.adminUrl,
      });
      expect(code, stderr).to.equal(0);
      expect(notes(world)).to.equal(before);
      const ran = await client.callTool("note", { to: "whom" });
      expect(ran.isError ?? false).to.equal(false);
      expect(notes(world)).to.equal(before + 1);
      const second = await hold(client, `Approval ${first} was good for one use and is used up.`);
      expect(second).not.to.equal(first);
      expect(notes(world)).to.equal(before + 1);
    });
  }

  /** Calls, is held, and says as which approval; `words` are among those it is told. */
  async function hold(client: McpClient, words = ""): Promise<string> {
    const held = await client.callTool("note", { to: "whom" });
    expect(held.isError).to.equal(true);
    expect(textOf(held)).to.include(words);
    return waiting.exec(textOf(held))?.[1] ?? "";
  }
});
