import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { clientKinds, type McpClient } from "../../support/mcp-client.ts";
import { type Reached, tool } from "./hostile-tool.ts";
import { catalogServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

/** A tool for each thing an upstream can say of it; the name begins with the upstream's. */
function annotated(upstream: string): readonly JsonObject[] {
  return [
    tool(`${upstream}_none`),
    tool(`${upstream}_read`, { annotations: { readOnlyHint: true } }),
    tool(`${upstream}_write`, { annotations: { destructiveHint: false } }),
    tool(`${upstream}_delete`, { annotations: { destructiveHint: true } }),
  ];
}

describe("what the configuration says of an upstream", () => {
  let world: World;
  let client: McpClient;

  before(async () => {
    const names = ["own", "shared", "trusted", "stated"];
    world = await openWorld({
      servers: (folder) => Object.fromEntries(names.map((name) => [name, catalogServer(join(folder, `${name}.json`))])),
      keys: {
        shared: "connection: shared",
        trusted: "trust_annotations: true",
        stated: "capabilities: { 'stated_*': read, stated_write: write }",
      },
      more: "mcp_gateway: { meta_passthrough: [example.com/workspace] }",
    });
    for (const name of names) await writeFile(join(world.folder, `${name}.json`), JSON.stringify(annotated(name)));
    client = await world.connect("v1");
  });

  after(() => world?.stop());

  async function call(from: McpClient, name: string, args: JsonObject = {}, meta?: JsonObject): Promise<Reached> {
    const { content } = await from.callTool(name, args, meta === undefined ? {} : { meta });
    return JSON.parse(content[0]?.text ?? "") as Reached;
  }

  describe("about connections", () => {
    it("gives each session a process of its own, and one that is shared to all", async () => {
      const [one, other] = [await world.connect("v1"), await world.connect("v2 legacy")];
      const own = [(await call(one, "own_none")).pid, (await call(other, "own_none")).pid];
      const shared = [(await call(one, "shared_none")).pid, (await call(other, "shared_none")).pid];
      expect(new Set(own).size).to.equal(2);
      expect(new Set(shared).size).to.equal(1);
    });

    it("ends the process of a session that ends", async () => {
      const one = await world.connect("v1");
      const { pid } = await call(one, "own_none");
      await one.end();
      const end = performance.now() + 60_000;
      while (isAlive(pid)) {
        if (performance.now() > end) expect.fail(`expected process ${pid} to end`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
  });

  describe("about capabilities, and what the upstream says of them", () => {
    for (const [name, capability] of [
      ["own_none", "execute"],
      ["own_read", "execute"],
      ["own_write", "execute"],
      ["own_delete", "delete"],
      ["trusted_none", "execute"],
      ["trusted_read", "read"],
      ["trusted_write", "write"],
      ["trusted_delete", "delete"],
      ["stated_none", "read"],
      ["stated_read", "read"],
      ["stated_write", "write"],
      ["stated_delete", "read"],
    ] as const) {
      it(`makes ${name} an action that is \`${capability}\``, async () => {
        await call(client, name);
        const records = (await world.evidence.recordsOf()).filter(({ action }) => action.tool === name);
        expect(new Set(records.map(({ action }) => action.capability))).to.deep.equal(new Set([capability]));
        expect(records.length).to.be.at.least(2);
      });
    }
  });

  describe("about the `_meta` of a call", () => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const meta = { "example.com/workspace": "w1", "example.com/other": "secret", traceparent, plain: 1 };

    for (const kind of clientKinds) {
      it(`passes on what the operator let through, from the client ${kind}, and nothing else of the client's own`, async () => {
        const other = await world.connect(kind);
        const { params } = await call(other, "own_none", { a: 1 }, meta);
        expect(params.arguments).to.deep.equal({ a: 1 });
        const { progressToken, ...passed } = params._meta ?? {};
        expect(passed).to.deep.equal({ "example.com/workspace": "w1", traceparent });
      });
    }

    it("makes another action of another value", async () => {
      const before = (await world.evidence.recordsOf()).length;
      await call(client, "own_none", {}, { "example.com/workspace": "w1" });
      await call(client, "own_none", {}, { "example.com/workspace": "w2" });
      await call(client, "own_none", {}, { "example.com/workspace": "w1", "example.com/other": "x" });
      const records = (await world.evidence.recordsOf()).filter(({ kind }) => kind === "decision");
      expect(before).to.be.above(0);
      const [first, second, third] = records.slice(-3).map(({ action }) => action.fingerprint);
      expect(second).not.to.equal(first);
      expect(third).to.equal(first);
    });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // no such process
  }
}
