import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { clientKinds, type McpClient, type ToolResult } from "../../support/mcp-client.ts";
import { resetFiles, snapshot } from "./file-tree.ts";
import { filesystemServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const metaKey = "io.agent-governance-gateway/decision";

/** A machine's part of a refusal, without its random ids. */
function decisionOf(result: ToolResult): JsonObject {
  const { decision_id, action_id, ...said } = (result._meta?.[metaKey] ?? {}) as Record<string, string>;
  expect([decision_id, action_id].every((id) => /^[0-9a-f-]{36}$/.test(id ?? ""))).to.equal(true);
  return said;
}

describe("a tool call that the baseline pack does not allow", () => {
  let world: World;
  let folder: string;

  before(async () => {
    world = await openWorld({
      servers: (root) => ({ files: filesystemServer(join(root, "files")) }),
      keys: { files: "capabilities: { read_*: read, list_*: read, create_directory: write }" },
      rules: "baseline",
    });
    folder = join(world.folder, "files");
    await resetFiles(folder);
  });

  after(() => world?.stop());

  for (const kind of clientKinds) {
    describe(`from the client ${kind}`, () => {
      let client: McpClient;
      let names: readonly string[];

      before(async () => {
        client = await world.connect(kind);
        names = (await client.listTools()).map(({ name }) => name); // the SDKs check answers against what is listed
      });

      it("is shown to nobody where it would always be blocked [R1.1-12]", () => {
        expect(names).to.include.members(["read_text_file", "create_directory"]);
        expect(names).not.to.include("write_file").and.not.to.include("move_file");
      });

      it("is allowed, held for review or blocked by what the tool does [R1.1-1, R1.1-3, R1.1-13, R1.1-15]", async () => {
        const before = await snapshot(folder);
        const calls = world.calls("files").length;
        const held = await client.callTool("create_directory", { path: join(folder, "new") });
        const blocked = await client.callTool("write_file", { path: join(folder, "a.txt"), content: "gone" });
        expect(world.calls("files").length).to.equal(calls);
        expect(await snapshot(folder)).to.deep.equal(before);
        expect(decisionOf(held)).to.deep.include({ decision: "review", executed: false });
        expect(decisionOf(blocked)).to.deep.include({ decision: "block", executed: false });
        const read = await client.callTool("read_text_file", { path: join(folder, "a.txt") });
        expect(read.isError ?? false).to.equal(false);
        expect(
          world
            .calls("files")
            .slice(calls)
            .map(({ params }) => params?.name),
        ).to.deep.equal(["read_text_file"]);
      });

      it("reaches the caller as a tool result with an error, words and data, and no structured content", async () => {
        const result = await client.callTool("create_directory", { path: join(folder, "new") });
        expect(Object.keys(result).toSorted()).to.deep.equal(["_meta", "content", "isError"]);
        expect(result.isError).to.equal(true);
        expect(result.content.length).to.equal(1);
        expect(result.content[0]?.text).to.match(
          /^Held for review: `create_directory` on `files` changes data \(rule baseline\.write\)\. Nothing was executed\. Approval apr_[0-9a-f]{32} is pending until \S+Z\. Ask an operator to approve it, then repeat exactly the same call\. Decision [0-9a-f-]{36}\.$/,
        );
        const { approval, ...said } = decisionOf(result);
        expect(approval).to.include({ state: "pending", required: 1, endorsed: 0 });
        expect(said).to.deep.equal({
          code: "REVIEW_REQUIRED",
          decision: "review",
          executed: false,
          rules: [
            {
              rule: "baseline.write",
              message: "`create_directory` on `files` changes data",
              severity: "medium",
            },
          ],
        });
      });

      it("is refused by its arguments too, wherever they hold a path that nobody may read", async () => {
        const calls = world.calls("files").length;
        const paths = [join(folder, "a.txt"), join(folder, ".ssh/id_rsa")];
        const result = await client.callTool("read_multiple_files", { paths });
        expect(decisionOf(result)).to.deep.include({ decision: "block" });
        expect(result.content[0]?.text).to.include("(rule baseline.credential-path)");
        expect(world.calls("files").length).to.equal(calls);
      });
    });
  }

  describe("afterwards", () => {
    it("leaves a decision that says why, and no outcome [R6-1]", async () => {
      const records = await world.evidence.recordsOf();
      const refused = records.filter(({ action }) => action.tool === "create_directory");
      expect(refused.length).to.equal(2 * clientKinds.length);
      for (const { kind, effect, evaluation } of refused) {
        expect({ kind, effect, decision: evaluation?.decision, rules: evaluation?.rules }).to.deep.equal({
          kind: "decision",
          effect: "not_dispatched",
          decision: "review",
          rules: ["baseline.write"],
        });
      }
    });
  });
});
