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

/**
 * What one evaluation may cost is a million work units of at most 0.1 µs, so 100 ms; ten times that on a machine that is
 * busy with other tests. Without a cap the loops would take minutes, and a backtracking engine would never answer.
 */
const stallLimitMs = 1_000;

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

  /** Runs the call, and meanwhile asks for `/health` without a pause: the longest that took is the longest stall. */
  async function callFor(tool: string, args: JsonObject): Promise<{ text: string; stallMs: number }> {
    let done = false;
    let stallMs = 0;
    const probe = (async () => {
      while (!done) {
        const start = performance.now();
        await (await fetch(`${world.gateway.url}/health`)).arrayBuffer();
        stallMs = Math.max(stallMs, performance.now() - start);
      }
    })();
    const result = await client.callTool(tool, args);
    done = true;
    await probe;
    return { text: result.content[0]?.text ?? "", stallMs };
  }

  describe("as a loop within loops within loops", () => {
    const list = Array.from({ length: 1_000 }, (_, index) => index);

    it("is stopped at its cap and blocks; other requests are served within that cap", async () => {
      const { text, stallMs } = await callFor("get-sum", { a: 1, b: 2, list });
      expect(text).to.include("Blocked by policy: rule `test.bomb` could not be evaluated");
      expect(stallMs).to.be.below(stallLimitMs);
      expect(world.calls("every").filter(({ params }) => params?.name === "get-sum")).to.deep.equal([]);
    });

    it("costs a small list nothing", async () => {
      const { text } = await callFor("get-sum", { a: 1, b: 2, list: [1, -9] });
      expect(text).to.equal("The sum of 1 and 2 is 3.");
    });

    it("does not add up: others are served between one bomb and the next", async () => {
      const bombs = Array.from({ length: 5 }, () => client.callTool("get-sum", { a: 1, b: 2, list }));
      const { stallMs } = await callFor("echo", { message: "x" });
      for (const { isError } of await Promise.all(bombs)) expect(isError).to.equal(true);
      expect(stallMs).to.be.below(2 * stallLimitMs);
    });
  });

  describe("as a pattern", () => {
    it("takes no time over a text that a backtracking engine never finishes", async () => {
      const { text, stallMs } = await callFor("get-tiny-image", { text: `${"a".repeat(500)}!` });
      expect(text).to.include("Here's the image");
      expect(stallMs).to.be.below(stallLimitMs);
    });

    it("is stopped at the same cap over 64 kB, and blocks", async () => {
      const { text, stallMs } = await callFor("get-tiny-image", { text: `${"a".repeat(65_536)}!` });
      expect(text).to.include("Blocked by policy: rule `test.pattern` could not be evaluated");
      expect(stallMs).to.be.below(stallLimitMs);
    });

    it("still matches what it is about", async () => {
      const { text } = await callFor("get-tiny-image", { text: "aaa" });
      expect(text).to.include("(rule test.pattern)");
    });
  });
});
