import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { connectClient, type McpClient, type ToolResult } from "../../support/mcp-client.ts";
import { resetFiles } from "./file-tree.ts";
import { everythingServer, filesystemServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const rules = `rules:
  - id: test.allow
    title: Everything else is allowed
    decision: allow
    match: { tool: [write_file, read_multiple_files, echo] }
  - id: test.private
    title: The private folder is closed
    decision: block
    match: { tool: write_file }
    when: args.path.contains("/private/")
    message: "\`{{ args.path }}\` is private"
  - id: test.amount
    title: Large amounts are reviewed
    decision: review
    match: { tool: echo }
    when: has(args.order) && args.order.limits[0].amount > 100.0
    message: "{{ args.order.limits[0].amount }} is more than 100"
  - id: test.etc
    title: Nothing from /etc
    decision: block
    match: { tool: read_multiple_files }
    when: args.paths.exists(path, path.startsWith("/etc/"))
  - id: test.throws
    title: Asks for what is not there
    decision: allow
    match: { tool: get-sum }
    when: args.missing.deep == "x"
  - id: test.not-boolean
    title: Answers with something that is no truth
    decision: allow
    match: { tool: get-tiny-image }
    when: args.answer
`;

describe("a rule about arguments", () => {
  let world: World;
  let client: McpClient;
  let folder: string;

  before(async () => {
    world = await openWorld({
      servers: (root) => ({ files: filesystemServer(join(root, "files")), every: everythingServer() }),
      rules,
    });
    folder = join(world.folder, "files");
    await resetFiles(folder);
    client = await world.connect("v1");
  });

  after(() => world?.stop());

  function textOf(result: ToolResult): string {
    return result.content[0]?.text ?? "";
  }

  describe("on `args.path` of a real write [R1.1-14]", () => {
    it("blocks the path it is about, and nothing is written", async () => {
      const path = join(folder, "private/x.txt");
      await resetFiles(folder);
      const result = await client.callTool("write_file", { path, content: "x" });
      expect(textOf(result)).to.include(`Blocked by policy: \`${path}\` is private (rule test.private)`);
      expect(world.calls("files")).to.deep.equal([]);
      expect(existsSync(path)).to.equal(false);
    });

    it("lets every other path through", async () => {
      const path = join(folder, "public.txt");
      const result = await client.callTool("write_file", { path, content: "x" });
      expect(textOf(result)).to.equal(`Successfully wrote to ${path}`);
      expect(existsSync(path)).to.equal(true);
    });
  });

  describe("on a nested number", () => {
    const order = (amount: number) => ({ message: "m", order: { limits: [{ amount }] } });

    it("holds what is above the limit, without a call", async () => {
      const result = await client.callTool("echo", order(100.5));
      expect(textOf(result)).to.include("Held for review: 100.5 is more than 100 (rule test.amount)");
      expect(world.calls("every")).to.deep.equal([]);
    });

    it("allows what is at the limit, and what has none", async () => {
      expect(textOf(await client.callTool("echo", order(100)))).to.equal("Echo: m");
      expect(textOf(await client.callTool("echo", { message: "m" }))).to.equal("Echo: m");
    });
  });

  describe("on a list", () => {
    it("blocks one bad member among good ones, and allows good ones alone", async () => {
      const calls = world.calls("files").length;
      const good = join(folder, "a.txt");
      const result = await client.callTool("read_multiple_files", { paths: [good, "/etc/passwd", good] });
      expect(textOf(result)).to.include("(rule test.etc)");
      expect(world.calls("files").length).to.equal(calls);
      expect(textOf(await client.callTool("read_multiple_files", { paths: [good] }))).to.include("one\ntwo");
    });
  });

  describe("that cannot be evaluated [S29, R3.2-13, R7-11]", () => {
    for (const [tool, args, rule] of [
      ["get-sum", { a: 1, b: 2 }, "test.throws"],
      ["get-tiny-image", { answer: "yes" }, "test.not-boolean"],
    ] as const) {
      it(`blocks ${tool}, calls nothing, and evidence names the policy and the rule`, async () => {
        const calls = world.calls("every").length;
        const result = await client.callTool(tool, args);
        expect(textOf(result)).to.match(
          new RegExp(
            `^Blocked by policy: rule \`${rule}\` could not be evaluated, so the action is blocked \\(rule ${rule}\\)`,
          ),
        );
        expect(world.calls("every").length).to.equal(calls);
        const [record] = (await world.evidence.recordsOf()).filter(({ action }) => action.tool === tool);
        expect(record?.effect).to.equal("not_dispatched");
        expect(record?.evaluation).to.deep.include({ decision: "block", errors: ["test"], rules: [rule] });
      });
    }
  });

  describe("that says nothing about an action [S30]", () => {
    it("leaves the documented default: blocked, and evidence says so", async () => {
      const calls = world.calls("files").length;
      const result = await client.callTool("list_directory", { path: folder });
      expect(textOf(result)).to.match(/^Blocked by policy: no rule allows it\. Nothing was executed\./);
      expect(world.calls("files").length).to.equal(calls);
      const [record] = (await world.evidence.recordsOf()).filter(({ action }) => action.tool === "list_directory");
      expect(record?.evaluation).to.deep.include({ decision: "block", by_default: true, rules: [], errors: [] });
    });

    it("may leave another default, where the configuration says so", async () => {
      const lenient = await openWorld({
        servers: () => ({ every: everythingServer() }),
        rules: `rules:\n  - { id: test.one, title: One, decision: block, match: { tool: get-sum } }\n`,
        policy: "default_decision: review",
      });
      try {
        const other = await connectClient("v1", lenient.endpoint);
        expect(textOf(await other.callTool("echo", { message: "x" }))).to.match(/^Held for review: no rule allows it/);
        expect(lenient.calls("every")).to.deep.equal([]);
        await other.close();
      } finally {
        await lenient.stop();
      }
    });
  });
});
