import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { clientKinds, connectClient, directKind, type McpClient } from "../../support/mcp-client.ts";
import { resetFiles, snapshot } from "./file-tree.ts";
import { filesystemServer } from "./server-program.ts";
import { asReadBy } from "./steady.ts";
import { openWorld, type World } from "./world.ts";

type Case = readonly [tool: string, args: (folder: string) => JsonObject];

const path =
  (name: string): Case[1] =>
  (folder) => ({ path: join(folder, name) });

const reads: readonly Case[] = [
  ["read_file", path("a.txt")],
  ["read_text_file", path("b.md")],
  ["read_text_file", (folder) => ({ path: join(folder, "a.txt"), head: 2 })],
  ["read_text_file", (folder) => ({ path: join(folder, "a.txt"), tail: 1 })],
  ["read_text_file", path("missing.txt")],
  ["read_text_file", () => ({ path: "/etc/passwd" })],
  ["read_text_file", () => ({})],
  ["read_text_file", () => ({ path: 7 })],
  ["read_media_file", path("picture.png")],
  ["read_media_file", path("blob.bin")],
  ["read_multiple_files", (folder) => ({ paths: [join(folder, "a.txt"), join(folder, "no"), join(folder, "b.md")] })],
  ["list_directory", path(".")],
  ["list_directory_with_sizes", (folder) => ({ path: folder, sortBy: "size" })],
  ["directory_tree", path(".")],
  ["directory_tree", (folder) => ({ path: folder, excludePatterns: ["deep"] })],
  ["search_files", (folder) => ({ path: folder, pattern: "**/*.json" })],
  ["get_file_info", path("deep/empty.txt")],
  ["list_allowed_directories", () => ({})],
];

const writes: readonly Case[] = [
  ["write_file", (folder) => ({ path: join(folder, "new.txt"), content: 'new "quoted" \\ 日本\n' })],
  ["write_file", (folder) => ({ path: join(folder, "a.txt"), content: "" })],
  ["write_file", () => ({ path: "/etc/not-allowed", content: "x" })],
  ["edit_file", (folder) => edit(folder, "two", false)],
  ["edit_file", (folder) => edit(folder, "two", true)],
  ["edit_file", (folder) => edit(folder, "not there", false)],
  ["create_directory", path("x/y/z")],
  ["move_file", (folder) => ({ source: join(folder, "a.txt"), destination: join(folder, "deep/moved.txt") })],
  ["move_file", (folder) => ({ source: join(folder, "a.txt"), destination: join(folder, "b.md") })],
];

function edit(folder: string, oldText: string, dryRun: boolean): JsonObject {
  return { path: join(folder, "a.txt"), edits: [{ oldText, newText: "2" }], dryRun };
}

describe("server-filesystem through the gateway", () => {
  let world: World;
  let folder: string;

  before(async () => {
    world = await openWorld({ servers: (root) => ({ files: filesystemServer(join(root, "files")) }) });
    folder = join(world.folder, "files");
    await resetFiles(folder);
  });

  after(() => world?.stop());

  for (const kind of clientKinds) {
    describe(`with the client ${kind}`, () => {
      let direct: McpClient;
      let governed: McpClient;

      before(async () => {
        await resetFiles(folder);
        direct = await connectClient(directKind(kind), filesystemServer(folder));
        governed = await world.connect(kind);
      });

      after(() => direct?.close());

      it("lists the same tools", async () => {
        expect(await governed.listTools()).to.deep.equal(asReadBy(kind, await direct.listTools()));
      });

      it("has a case for every tool", async () => {
        const tested = new Set([...reads, ...writes].map(([tool]) => tool));
        expect([...tested].toSorted()).to.deep.equal((await direct.listTools()).map(({ name }) => name).toSorted());
      });

      for (const [tool, args] of reads) {
        it(`gives the same answer of ${tool} ${JSON.stringify(args("…"))}`, async () => {
          const expected = await direct.callTool(tool, args(folder));
          expect(await governed.callTool(tool, args(folder))).to.deep.equal(expected);
        });
      }

      for (const [tool, args] of writes) {
        it(`gives the same answer of ${tool} ${JSON.stringify(args("…"))}, and leaves the same files`, async () => {
          await resetFiles(folder);
          const expected = await direct.callTool(tool, args(folder));
          const files = await snapshot(folder);
          await resetFiles(folder);
          expect(await governed.callTool(tool, args(folder))).to.deep.equal(expected);
          expect(await snapshot(folder)).to.deep.equal(files);
        });
      }
    });
  }

  describe("when all of that was done", () => {
    it("has passed each call on exactly once", () => {
      expect(world.calls("files").length).to.equal(clientKinds.length * (reads.length + writes.length));
    });
  });
});
