import { expect } from "chai";
import { clientKinds } from "../../support/mcp-client.ts";
import { dial } from "../../support/wire.ts";
import { everythingServer } from "./server-program.ts";
import { openWorld } from "./world.ts";

describe("a gateway that is stopped while clients stay connected", () => {
  it("waits for no session, no standing stream, and no connection that nobody has used", async () => {
    const world = await openWorld({ servers: () => ({ every: everythingServer() }) });
    for (const kind of clientKinds) {
      const client = await world.connect(kind);
      await client.callTool("echo", { message: "x" });
    }
    const unused = await dial(world.gateway.url);
    unused.on("error", () => undefined); // that it is cut is what is wanted
    const code = await world.gateway.stop();
    expect(code).to.equal(0);
    unused.destroy();
    await world.stop();
  });
});
