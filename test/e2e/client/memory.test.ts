import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { clientKinds, connectClient, directKind, type McpClient } from "../../support/mcp-client.ts";
import { memoryServer } from "./server-program.ts";
import { asReadBy } from "./steady.ts";
import { openWorld, type World } from "./world.ts";

/** In this order: each finds what those before it left. */
const steps: readonly (readonly [tool: string, args: JsonObject])[] = [
  ["read_graph", {}],
  ["create_entities", { entities: [entity("Ada", "person"), entity("Engine", "machine"), entity("日本", "place")] }],
  ["create_entities", { entities: [entity("Ada", "person")] }],
  ["create_entities", { entities: [{ name: "no type" }] }],
  ["create_relations", { relations: [relation("Ada", "Engine"), relation("Ada", "日本")] }],
  ["add_observations", { observations: [{ entityName: "Ada", contents: ["born 1815", "wrote notes"] }] }],
  ["add_observations", { observations: [{ entityName: "Nobody", contents: ["x"] }] }],
  ["search_nodes", { query: "machine" }],
  ["open_nodes", { names: ["Ada", "Engine", "Nobody"] }],
  ["delete_observations", { deletions: [{ entityName: "Ada", observations: ["born 1815"] }] }],
  ["delete_relations", { relations: [relation("Ada", "日本")] }],
  ["delete_entities", { entityNames: ["Engine"] }],
  ["read_graph", {}],
];

function entity(name: string, entityType: string): JsonObject {
  return { name, entityType, observations: [`${name} is a ${entityType}`] };
}

function relation(from: string, to: string): JsonObject {
  return { from, to, relationType: "knows" };
}

describe("server-memory through the gateway", () => {
  let world: World;
  let governedFile: string;
  let directFile: string;

  before(async () => {
    world = await openWorld({ servers: (folder) => ({ memory: memoryServer(join(folder, "governed.jsonl")) }) });
    governedFile = join(world.folder, "governed.jsonl");
    directFile = join(world.folder, "direct.jsonl");
  });

  after(() => world?.stop());

  for (const kind of clientKinds) {
    describe(`with the client ${kind}`, () => {
      let direct: McpClient;
      let governed: McpClient;

      before(async () => {
        await Promise.all([governedFile, directFile].map((file) => rm(file, { force: true })));
        direct = await connectClient(directKind(kind), memoryServer(directFile));
        governed = await world.connect(kind);
      });

      after(() => direct?.close());

      it("lists the same tools, each with a case here", async () => {
        const tools = await direct.listTools();
        expect(await governed.listTools()).to.deep.equal(asReadBy(kind, tools));
        const tested = new Set(steps.map(([tool]) => tool));
        expect(tools.filter(({ name }) => !tested.has(name))).to.deep.equal([]);
      });

      it("gives the same answers, step by step", async () => {
        for (const [tool, args] of steps) {
          const expected = await direct.callTool(tool, args);
          expect(await governed.callTool(tool, args), `${tool} ${JSON.stringify(args)}`).to.deep.equal(expected);
        }
      });
    });
  }
});
