import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../check/source-tree.ts";
import { everythingServer, filesystemServer, memoryServer } from "../../e2e/client/server-program.ts";
import type { ServerProgram } from "../../e2e/client/world.ts";

const folder = join(repositoryRoot, "test/client-lab/servers");

/** A server, and the variable that it reads a key from. To be listed, a tool needs none that works. */
export interface PublishedServer {
  readonly program: ServerProgram;
  readonly keyVariable?: string;
}

const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", LANG: "C.UTF-8", CI: "true" };

/** The servers by name, each as its documentation says to start it; their files lie below `data`. */
export function publishedServers(data: string): Readonly<Record<string, PublishedServer>> {
  return {
    filesystem: { program: filesystemServer(data) },
    memory: { program: memoryServer(join(data, "graph.json")) },
    everything: { program: everythingServer() },
    thinking: server("@modelcontextprotocol/server-sequential-thinking"),
    github: { ...server("@modelcontextprotocol/server-github"), keyVariable: "GITHUB_PERSONAL_ACCESS_TOKEN" },
    notion: { ...server("@notionhq/notion-mcp-server"), keyVariable: "NOTION_TOKEN" },
    brave: { ...server("@brave/brave-search-mcp-server", ["--transport", "stdio"]), keyVariable: "BRAVE_API_KEY" },
    tavily: { ...server("tavily-mcp"), keyVariable: "TAVILY_API_KEY" },
    context7: server("@upstash/context7-mcp"),
    hubspot: { ...server("@hubspot/mcp-server"), keyVariable: "PRIVATE_APP_ACCESS_TOKEN" },
    supabase: server("@supabase/mcp-server-supabase", ["--access-token", "made-up", "--features", supabaseFeatures]),
    playwright: server("@playwright/mcp", ["--headless", "--isolated"]),
    chrome: server("chrome-devtools-mcp", ["--headless", "--isolated", "--no-usage-statistics"]),
  };
}

/** But for `docs`, whose tool is listed from the network, and `branching`, which has a tool of the same name as GitHub's. */
const supabaseFeatures = "account,database,debugging,development,functions";

/** A server of a package that is installed beside this file. */
function server(name: string, args: readonly string[] = []): PublishedServer {
  const home = join(folder, "node_modules", name);
  if (!existsSync(home)) throw new Error(`expected \`${name}\` to be installed: npm ci in ${folder}`);
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as {
    readonly bin: string | Readonly<Record<string, string>>;
  };
  const program = typeof bin === "string" ? bin : Object.values(bin)[0];
  if (program === undefined) throw new Error(`expected \`${name}\` to have a program`);
  return { program: { command: process.execPath, args: [join(home, program), ...args], env } };
}
