import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import type { McpClient } from "../../support/mcp-client.ts";
import { everythingServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const rules = `rules:
  - id: test.allow
    title: Everything else is allowed
    decision: allow
    match: { tool: [tools/list, echo, get-sum, get-tiny-image] }
  - id: test.bomb
    title: Compares every item with every other, three times over
    decision: block
    match: { tool: get-sum }
    when: args.list.all(a, args.list.all(b, args.list.all(c, a + b + c >= 0.0)))
  - id: test.pattern
    title: A pattern that backtracking engines never finish
    decision: block
    match: { tool: get-tiny-image }
    when: args.text.matches("^(([a-z])+.)+[A-Z]([a-z])+$") || args.text.matches("(a+)+$")
`;

describe("an expression that explodes over hostile arguments", () => {
  let world: World;
  let client: McpClient;

  before(async () => {
    world = await openWorld({ servers: () => ({ every: everythingServer() }), rules });
    client = await world.connect("v1");
    await client.listTools();
    for (let round = 0; round < 20; round++) await callFor("echo", { message: "warm" });
  });

  after(() => world?.stop());

  /** Runs the call, and meanwhile asks for `/health` without a pause: `served` counts the answers. */
  async function callFor(tool: string, args: JsonObject): Promise<{ text: string; served: number }> {
    let [served, done] = [0, false];
    const probe = (async () => {
      while (!done) {
        await (await fetch(`${world.gateway.url}/health`)).arrayBuffer();
        served += 1;
      }
    })();
    const result = await client.callTool(tool, args);
    done = true;
    await probe;
    return { text: result.content[0]?.text ?? "", served };
  }

  describe("as a loop within loops within loops", () => {
    const list = Array.from({ length: 1_000 }, (_, index) => index);

    it("is stopped at its cap and blocks; other requests are served meanwhile", async () => {
      const { text, served } = await callFor("get-sum", { a: 1, b: 2, list });
      expect(text).to.include("Blocked by policy: rule `test.bomb` could not be evaluated");
      expect(served).to.be.above(0);
      expect(world.calls("every").filter(({ params }) => params?.name === "get-sum")).to.deep.equal([]);
    });

    it("costs a small list nothing", async () => {
      const { text } = await callFor("get-sum", { a: 1, b: 2, list: [1, -9] });
      expect(text).to.equal("The sum of 1 and 2 is 3.");
    });

    it("does not add up: others are served between one bomb and the next", async () => {
      let blocked = 0;
      const bombs = Array.from({ length: 5 }, async () => {
        const { isError } = await client.callTool("get-sum", { a: 1, b: 2, list });
        blocked += 1;
        return isError;
      });
      const health = await fetch(`${world.gateway.url}/health`);
      expect([health.status, blocked < bombs.length], "served before the last bomb").to.deep.equal([200, true]);
      expect(await Promise.all(bombs)).to.deep.equal(bombs.map(() => true));
    });
  });

  describe("as a pattern", () => {
    it("takes no time over a text that a backtracking engine never finishes", async () => {
      const { text, served } = await callFor("get-tiny-image", { text: `${"a".repeat(500)}!` });
      expect(text).to.include("Here's the image");
      expect(served).to.be.above(0);
    });

    it("is stopped at the same cap over 64 kB, and blocks", async () => {
      const { text, served } = await callFor("get-tiny-image", { text: `${"a".repeat(65_536)}!` });
      expect(text).to.include("Blocked by policy: rule `test.pattern` could not be evaluated");
      expect(served).to.be.above(0);
    });

    it("still matches what it is about", async () => {
      const { text } = await callFor("get-tiny-image", { text: "aaa" });
      expect(text).to.include("(rule test.pattern)");
    });
  });
});
