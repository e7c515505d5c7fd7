import { expect } from "chai";
import { lateServer } from "../../e2e/client/server-program.ts";
import { openWorld, type World } from "../../e2e/client/world.ts";
import {
  awaitNotification,
  connectClient,
  directKind,
  type McpClient,
  type ToolResult,
} from "../../support/mcp-client.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { type PublishedServer, publishedServers } from "./published-server.ts";

/** Of each server, the tools that it lists and those of them that policy hides, because they say that they destroy. */
const expected = {
  filesystem: [14, 3],
  memory: [9, 3],
  everything: [13, 0],
  thinking: [1, 0],
  github: [26, 0],
  notion: [24, 12],
  brave: [8, 0],
  tavily: [5, 0],
  context7: [2, 0],
  hubspot: [21, 0],
  supabase: [22, 3],
  playwright: [25, 18],
  chrome: [32, 0],
} as const;

interface ListedUpstream {
  readonly name: string;
  readonly hidden: readonly { readonly tool: string; readonly role: string; readonly rule: string | null }[];
}

const key = "made-up";
const keyVariables = Object.values(publishedServers(".")).flatMap(({ keyVariable }) => keyVariable ?? []);

type Tool = Awaited<ReturnType<McpClient["listTools"]>>[number];

describe("13 published servers that each start after 3 s, behind one gateway with the settings that a newcomer has", () => {
  let world: World;
  let governed: McpClient;
  /** The tools that each server lists to a client of its own, and what its call comes to there. */
  const direct = new Map<string, readonly Tool[]>();
  const directly = new Map<string, CallEnd>();

  before(async () => {
    world = await openWorld({
      servers: (folder) => mapValues(publishedServers(folder), ({ program }) => lateServer("sleep 3", program)),
      keys: mapValues(publishedServers("."), keysOf),
      env: Object.fromEntries(keyVariables.map((name) => [name, key])),
      rules: "baseline",
    });
    for (const [name, { program, keyVariable, call }] of Object.entries(publishedServers(world.folder))) {
      const env = keyVariable === undefined ? program.env : { ...program.env, [keyVariable]: key };
      const client = await connectClient(directKind("v1"), { ...program, env });
      direct.set(name, await client.listTools());
      directly.set(name, await endOf(client, call));
      await client.close();
    }
    governed = await world.connect("v1");
  });

  after(() => world?.stop());

  async function upstreamsList(...options: readonly string[]): Promise<string> {
    const env = { GATEWAY_ADMIN_URL: world.gateway.adminUrl, GATEWAY_API_KEY: world.reviewerKey };
    return (await runGateway(["upstreams", "list", ...options], env)).stdout;
  }

  it("offers the tools that they offer directly, but for those that policy hides, which the operator is shown with the rule", async () => {
    let offered = await governed.listTools();
    const isHere = (name: string): boolean =>
      (direct.get(name) ?? []).some(({ name: tool }) => offered.some((one) => one.name === tool));
    while (![...direct.keys()].every(isHere)) {
      await awaitNotification(governed, ({ method }) => method === "notifications/tools/list_changed");
      offered = await governed.listTools();
    }
    const lines = (await upstreamsList("--json")).trim().split("\n");
    const found = lines.map((line) => JSON.parse(line) as ListedUpstream);
    const counts: Record<string, readonly [listed: number, hidden: number]> = {};
    for (const [name, tools] of direct) {
      const hidden = found.find((one) => one.name === name)?.hidden ?? [];
      const names = new Set(hidden.map(({ tool }) => tool));
      counts[name] = [tools.length, names.size];
      for (const { role, rule } of hidden) expect([role, rule], name).to.deep.equal(["admin", "baseline.hidden-tool"]);
      const shown = tools.filter((tool) => !names.has(tool.name));
      expect(names.size + shown.length, `${name}: nothing is hidden that is not there`).to.equal(tools.length);
      const theirs = offered.filter((one) => tools.some((tool) => tool.name === one.name));
      expect(theirs, name).to.deep.equal(shown);
    }
    expect(counts).to.deep.equal(expected);
    const total = Object.values(expected).reduce((sum, [listed, hidden]) => sum + listed - hidden, 0);
    expect(offered, "nothing else is offered").to.have.length(total);
    const withheld = await runGateway(["definitions", "list"], {
      GATEWAY_ADMIN_URL: world.gateway.adminUrl,
      GATEWAY_API_KEY: world.reviewerKey,
    });
    expect(withheld.stdout, "no definition of theirs is withheld [S58]").to.equal("");
    const text = await upstreamsList();
    expect(text).to.include("notion/API-patch-page is hidden from the role admin, by baseline.hidden-tool: ");
    expect(text).to.include("playwright/browser_click is hidden from the role admin, by baseline.hidden-tool: ");
  });

  for (const [name, { call }] of Object.entries(publishedServers("."))) {
    it(`answers ${call[0]} as ${name} does directly, which sees the call once`, async () => {
      expect(await endOf(governed, call)).to.deep.equal(directly.get(name));
      expect(world.calls(name).map(({ params }) => [params?.name, params?.arguments])).to.deep.equal([call]);
    });
  }

  it("answers eight of them with a result, and five with the error that they give without their service", () => {
    const failed = [...directly].filter(([, end]) => "code" in end || end.isError === true).map(([name]) => name);
    expect(failed).to.deep.equal(["github", "notion", "brave", "tavily", "context7"]);
  });
});

/** What a call comes to: its result, or the error of JSON-RPC. */
type CallEnd = ToolResult | { readonly code: unknown; readonly message: string };

async function endOf(client: McpClient, [tool, args]: PublishedServer["call"]): Promise<CallEnd> {
  try {
    return await client.callTool(tool, args);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    return { code: error.code, message: error.message };
  }
}

/** What the operator says of an upstream beside its program: what the called tool does, and where its key is. */
function keysOf({ keyVariable, call }: PublishedServer): string {
  const variable = keyVariable === undefined ? "" : `, env_from: [${keyVariable}]`;
  return `capabilities: { ${call[0]}: read }${variable}`;
}

/** Leaves out what has no value. */
function mapValues<From, To>(
  values: Readonly<Record<string, From>>,
  map: (value: From) => To | undefined,
): Readonly<Record<string, To>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const mapped = map(value);
      return mapped === undefined ? [] : [[name, mapped]];
    }),
  );
}
