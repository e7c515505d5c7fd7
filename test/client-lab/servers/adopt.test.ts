import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { parse as parseTomlText } from "smol-toml";
import { type Capability, capabilities } from "../../../core/action/capability.ts";
import { runCommand } from "../../support/command-host.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { awaitNotification, connectClient } from "../../support/mcp-client.ts";
import { type Label, labels } from "./adopt-table.ts";
import { type PublishedServer, publishedServers } from "./published-server.ts";

/** The configuration of each client, as its documentation has it, and the servers in it. */
const clients = {
  claude: { path: "claude/.mcp.json", servers: ["filesystem", "memory", "everything"] },
  cursor: { path: "cursor/.cursor/mcp.json", servers: ["thinking", "github", "notion"] },
  vscode: { path: "vscode/.vscode/mcp.json", servers: ["brave", "tavily"] },
  codex: { path: "codex/.codex/config.toml", servers: ["context7", "hubspot", "supabase"] },
  opencode: { path: "opencode/opencode.jsonc", servers: ["playwright", "chrome"] },
} as const;
type ClientOfTable = keyof typeof clients;

interface ToolProposal {
  readonly upstream: string;
  readonly tool: string;
  readonly capability: Capability;
  readonly facts: Readonly<Record<string, unknown>> | null;
}

const secret = "made-up-secret";

function entriesOf<T extends object>(value: T): readonly [keyof T, T[keyof T]][] {
  return Object.entries(value) as [keyof T, T[keyof T]][];
}

describe("gateway adopt, on 13 published servers in the configurations of five clients", () => {
  let folder: string;
  let port: number;
  const originals = new Map<ClientOfTable, string>();
  const proposals: ToolProposal[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "adopt-lab-"));
    port = await freeThree();
    await mkdir(join(folder, "data"));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  for (const [client, { path, servers: names }] of entriesOf(clients)) {
    it(`adopts the file of ${client}, and leaves no server`, async () => {
      const servers = publishedServers(join(folder, "data"));
      const text = configurationOf(
        client,
        names.map((name) => [name, servers[name] as PublishedServer] as const),
      );
      originals.set(client, text);
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
      const into = join(folder, client, "gateway");
      const args = ["adopt", join(folder, path), "--into", into, "--port", String(port), "--wait", "110", "--json"];
      const { code, stdout, stderr } = await runCommand(args, { PATH: process.env.PATH ?? "", HOME: "/nonexistent" });
      expect(code, stderr).to.equal(0);
      const said = JSON.parse(stdout);
      expect(said.left).to.deep.equal([]);
      expect(said.adopted.map(({ name }: { name: string }) => name)).to.deep.equal(names);
      proposals.push(...said.tools);
    });
  }

  it("proposes of at least 95 of 100 tools what a person states, and of none anything more permissive", () => {
    const table = labels(join(folder, "data"));
    const found = new Map(proposals.map((each) => [`${each.upstream}/${each.tool}`, each]));
    const stated = Object.entries(table).flatMap(([server, tools]) =>
      Object.entries(tools).map(([tool, label]) => [`${server}/${tool}`, label] as const),
    );
    expect([...found.keys()].toSorted(), "every tool is in the table").to.deep.equal(
      stated.map(([name]) => name).toSorted(),
    );
    const others = stated.filter(([name, label]) => !isSame(found.get(name), label));
    const permissive = others.filter(([name, label]) => isWeaker(found.get(name), label));
    expect(permissive.map(([name]) => name)).to.deep.equal([]);
    const words = others.map(
      ([name, label]) => `${name}: ${JSON.stringify(label)}, proposed ${found.get(name)?.capability}`,
    );
    expect(others.length / stated.length, words.join("\n")).to.be.at.most(0.05);
  });

  it("gives a reason beside each line", async () => {
    for (const client of Object.keys(clients)) {
      const text = await readFile(join(folder, client, "gateway/gateway.yaml"), "utf8");
      const lines = text
        .split("\n")
        .filter((line) => /^ {6}\S+: (?:read|write|delete|execute|network|generate|approve|deploy)\b/.test(line));
      expect(lines.length).to.be.above(0);
      expect(lines.filter((line) => !/ # \S/.test(line))).to.deep.equal([]);
    }
  });

  it("leaves one entry for the gateway, without any secret, in every client's file", async () => {
    for (const [client, { path }] of Object.entries(clients)) {
      const text = await readFile(join(folder, path), "utf8");
      expect(text, client).to.include(`http://127.0.0.1:${port}/mcp`).and.not.include(secret);
      expect(text.match(/GATEWAY_AGENT_KEY/g), client).to.have.length(1);
      const yaml = await readFile(join(folder, client, "gateway/gateway.yaml"), "utf8");
      expect(yaml, client).to.not.include(secret);
    }
  });

  it("leads the client of the rewritten entry to the tools, and records what would have been held", async () => {
    const into = join(folder, "claude/gateway");
    const gateway = await serveAdopted(into);
    try {
      const entry = JSON.parse(await readFile(join(folder, clients.claude.path), "utf8")).mcpServers.gateway;
      const key = (await readFile(join(into, "agent.key"), "utf8")).trim();
      const headers = { "X-API-Key": entry.headers["X-API-Key"].replace(`\${GATEWAY_AGENT_KEY}`, key) };
      const client = await connectClient("v1", { url: entry.url, headers });
      let offered = await client.listTools();
      while (!["write_file", "read_graph"].every((tool) => offered.some(({ name }) => name === tool))) {
        await awaitNotification(client, ({ method }) => method === "notifications/tools/list_changed");
        offered = await client.listTools();
      }
      const file = join(folder, "data/written.txt");
      const written = await client.callTool("write_file", { path: file, content: "through the gateway" });
      expect(written.isError).to.not.equal(true);
      expect(await readFile(file, "utf8")).to.equal("through the gateway");
      expect((await client.callTool("read_graph")).isError).to.not.equal(true);
      await client.close();
      const admin = {
        GATEWAY_API_KEY: (await readFile(join(into, "admin.key"), "utf8")).trim(),
        GATEWAY_ADMIN_URL: gateway.adminUrl,
      };
      const report = JSON.parse((await runCommand(["adopt", "--report", "--json"], admin)).stdout);
      expect([report.calls, report.held, report.blocked]).to.deep.equal([2, 1, 0]);
      expect(report.tools).to.deep.equal([
        {
          upstream: "filesystem",
          tool: "write_file",
          capability: "write",
          calls: 1,
          held: 1,
          blocked: 0,
          rules: ["baseline.write"],
        },
      ]);
      expect(report.packs.map(({ name }: { name: string }) => name)).to.include.members(["baseline", "egress", "sql"]);
      const yaml = (await runCommand(["adopt", "--report"], admin)).stdout;
      expect(yaml).to.include("# of 2 calls from ").and.include("1 would have been held for review and 0 blocked");
      expect(yaml).to.include("mode: enforce").and.include("write_file: write # 1 held, 0 blocked of 1");
    } finally {
      await gateway.stop();
    }
  });

  it("restores the bytes of every client's file", async () => {
    for (const [client, { path }] of entriesOf(clients)) {
      const { code, stderr } = await runCommand([
        "adopt",
        join(folder, path),
        "--into",
        join(folder, client, "gateway"),
        "--undo",
      ]);
      expect(code, stderr).to.equal(0);
      expect(await readFile(join(folder, path), "utf8")).to.equal(originals.get(client));
    }
  });
});

/** Starts the gateway on the ports that were adopted, with the variables that adopting moved. */
async function serveAdopted(into: string): Promise<RunningGateway> {
  const config = await readFile(join(into, "gateway.yaml"), "utf8");
  const lines = (await readFile(join(into, "servers.env"), "utf8")).matchAll(/^([A-Z_0-9]+)='(.*)'$/gm);
  const env = Object.fromEntries(Array.from(lines, ([, name = "", value = ""]) => [name, value]));
  return startGateway({ folder: into, config, env });
}

function isSame(proposal: ToolProposal | undefined, label: Label): boolean {
  const [capability, facts] = typeof label === "string" ? [label, null] : label;
  return proposal?.capability === capability && JSON.stringify(proposal.facts) === JSON.stringify(facts);
}

/**
 * Tells whether a proposal is weaker than a label: a weaker capability, a fact that is not stated as a person states it, or
 * one more. What is parsed may turn out harmless, and then runs where the tool alone would be held; reading runs anyway.
 */
function isWeaker(proposal: ToolProposal | undefined, label: Label): boolean {
  if (proposal === undefined) return true;
  const [capability, facts] = typeof label === "string" ? [label, null] : label;
  const added = capability === "read" ? [] : Object.keys(proposal.facts ?? {});
  const isOther = [...Object.keys(facts ?? {}), ...added].some(
    (kind) => JSON.stringify(proposal.facts?.[kind]) !== JSON.stringify(facts?.[kind]),
  );
  return isOther || capabilities.indexOf(proposal.capability) < capabilities.indexOf(capability);
}

function configurationOf(
  client: ClientOfTable,
  servers: readonly (readonly [name: string, server: PublishedServer])[],
): string {
  const each = servers.map(([name, { program, keyVariable }]) => {
    const env = keyVariable === undefined ? program.env : { ...program.env, [keyVariable]: secret };
    return [name, { command: program.command, args: program.args, env }] as const;
  });
  const entries = Object.fromEntries(each);
  switch (client) {
    case "claude":
      return `${JSON.stringify({ mcpServers: mapEntries(each, (entry) => ({ type: "stdio", ...entry })) }, null, 2)}\n`;
    case "cursor":
      return JSON.stringify({ mcpServers: entries });
    case "vscode":
      return `{\n\t// MCP servers of this workspace\n\t"servers": ${JSON.stringify(
        mapEntries(each, (entry) => ({ type: "stdio", ...entry })),
        null,
        "\t",
      ).replaceAll("\n", "\n\t")},\n\t"inputs": [],\n}\n`;
    case "codex":
      return tomlOf(each);
    case "opencode":
      return `{ "$schema": "https://opencode.ai/config.json", /* servers */ "mcp": ${JSON.stringify(
        mapEntries(each, ({ command, args, env }) => ({
          type: "local",
          command: [command, ...args],
          environment: env,
          enabled: true,
        })),
      )} }`;
  }
}

interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

function mapEntries(entries: readonly (readonly [string, Entry])[], map: (entry: Entry) => object): object {
  return Object.fromEntries(entries.map(([name, entry]) => [name, map(entry)]));
}

function tomlOf(entries: readonly (readonly [string, Entry])[]): string {
  const tables = entries.map(([name, { command, args, env }]) => {
    const variables = Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    return `[mcp_servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n\n[mcp_servers.${name}.env]\n${variables.join("\n")}\n`;
  });
  const text = `model = "gpt"\n\n${tables.join("\n# the next one\n")}\n[tools]\nweb_search = false\n`;
  expect(Object.keys(parseTomlText(text))).to.deep.equal(["model", "mcp_servers", "tools"]);
  return text;
}

/**
 * The first of three ports in a row that nobody listens on now, below those that the system gives to connections: it must be free
 * a minute later as well.
 */
async function freeThree(): Promise<number> {
  for (let first = 12_000 + 3 * (process.pid % 6_000); ; first += 3) {
    const free = await Promise.all([first, first + 1, first + 2].map(isFree));
    if (free.every(Boolean)) return first;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
