import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { runCommand } from "../../support/command-host.ts";
import { awaitNotification, connectClient, directKind } from "../../support/mcp-client.ts";
import { everythingServer, filesystemServer, lateServer, memoryServer } from "./server-program.ts";
import { openWorld, type ServerProgram, type World } from "./world.ts";

interface Hidden {
  readonly tool: string;
  readonly role: string;
  readonly rule: string | null;
}

const all = (folder: string): Readonly<Record<string, ServerProgram>> => ({
  files: filesystemServer(folder),
  memory: memoryServer(join(folder, "graph.json")),
  every: everythingServer(),
});

describe("servers that start slowly, with the settings that a newcomer has", () => {
  let world: World;

  before(async () => {
    world = await openWorld({
      servers: (folder) =>
        Object.fromEntries(
          Object.entries(all(folder)).map(([name, server]) => [name, lateServer("sleep 2.5", server)]),
        ),
      rules: "baseline",
    });
    await mkdir(join(world.folder, "files"), { recursive: true });
  });

  after(() => world?.stop());

  async function hidden(): Promise<Readonly<Record<string, readonly Hidden[]>>> {
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/upstreams`, {
      headers: { "x-api-key": world.reviewerKey },
    });
    const { items } = (await response.json()) as { items: readonly { name: string; hidden: readonly Hidden[] }[] };
    return Object.fromEntries(items.map((item) => [item.name, item.hidden]));
  }

  it("offer the tools that they offer directly, but for those that policy hides, which the operator is shown", async () => {
    const direct: Record<string, readonly string[]> = {};
    for (const [name, program] of Object.entries(all(world.folder))) {
      const client = await connectClient(directKind("v1"), program);
      direct[name] = (await client.listTools()).map((tool) => tool.name);
      await client.close();
    }
    const client = await world.connect("v1");
    const names = async (): Promise<readonly string[]> => (await client.listTools()).map((tool) => tool.name);
    let offered = await names();
    while (!["read_file", "read_graph", "echo"].every((tool) => offered.includes(tool))) {
      await awaitNotification(client, ({ method }) => method === "notifications/tools/list_changed");
      offered = await names();
    }
    const found = await hidden();
    for (const [name, tools] of Object.entries(direct)) {
      const withheld = (found[name] ?? []).map(({ tool }) => tool);
      expect(tools.filter((tool) => !offered.includes(tool)).toSorted(), name).to.deep.equal(withheld);
    }
    expect(found.memory?.map(({ tool, role, rule }) => [tool, role, rule])).to.deep.include([
      "delete_entities",
      "admin",
      "baseline.hidden-tool",
    ]);
  });

  it("are listed for operators with each hidden tool and its rule", async () => {
    const env = { GATEWAY_ADMIN_URL: world.gateway.adminUrl, GATEWAY_API_KEY: world.reviewerKey };
    const { stdout } = await runCommand(["upstreams", "list"], env);
    expect(stdout).to.include("memory/delete_entities is hidden from the role admin, by baseline.hidden-tool: ");
    const { stdout: lines } = await runCommand(["upstreams", "list", "--json"], env);
    const memory = lines.split("\n").find((line) => line.includes('"name":"memory"')) ?? "{}";
    expect(JSON.parse(memory).hidden[0]).to.include({ role: "admin", rule: "baseline.hidden-tool" });
  });
});

describe("a tool whose capability the operator stated", () => {
  let world: World;

  before(async () => {
    world = await openWorld({
      servers: (folder) => ({ files: filesystemServer(folder) }),
      keys: { files: "capabilities: { write_file: write }" },
      rules: "baseline",
    });
  });

  after(() => world?.stop());

  it("is what was stated, though its annotations say that it destroys: shown, held, and named to operators", async () => {
    const client = await world.connect("v1");
    expect((await client.listTools()).map(({ name }) => name))
      .to.include("write_file")
      .and.not.include("edit_file");
    const path = join(world.folder, "note.txt");
    const { content, isError } = await client.callTool("write_file", { path, content: "x" });
    expect(isError).to.equal(true);
    expect(content[0]?.text).to.match(/^Held for review: .*\(rule baseline\.write\)/);
    expect(world.calls("files")).to.deep.equal([]);
    const env = { GATEWAY_ADMIN_URL: world.gateway.adminUrl, GATEWAY_API_KEY: world.reviewerKey };
    const { stdout } = await runCommand(["upstreams", "list"], env);
    expect(stdout).to.include("files/write_file is `write`, as configured; its annotations say `delete`");
    expect(stdout).to.include("files/edit_file is hidden from the role admin, by baseline.hidden-tool");
  });
});
