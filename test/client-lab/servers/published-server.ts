import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../core/action/json.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { everythingServer, filesystemServer, memoryServer } from "../../e2e/client/server-program.ts";
import type { ServerProgram } from "../../e2e/client/world.ts";

const folder = join(repositoryRoot, "test/client-lab/servers");

/** A server, and the variable that it reads a key from. To be listed, a tool needs none that works. */
export interface PublishedServer {
  readonly program: ServerProgram;
  readonly keyVariable?: string;
  /** A call that changes nothing and needs no network: its tool and arguments. */
  readonly call: readonly [tool: string, args: JsonObject];
}

/** Whoever asks for the network by a proxy is refused at once, with the same words wherever this runs. */
const env = {
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  LANG: "C.UTF-8",
  CI: "true",
  HTTPS_PROXY: "http://127.0.0.1:9",
};

/**
 * The servers by name, each as its documentation says to start it; their files lie below `data`. All tools of GitHub,
 * Notion, Brave, Tavily and Context7 ask their service: those calls are ones that come to the same error anywhere, of the
 * server's check of arguments or of the proxy.
 */
export function publishedServers(data: string): Readonly<Record<string, PublishedServer>> {
  return {
    filesystem: { program: filesystemServer(data), call: ["list_allowed_directories", {}] },
    memory: { program: memoryServer(join(data, "graph.json")), call: ["read_graph", {}] },
    everything: { program: everythingServer(), call: ["get-sum", { a: 2, b: 3 }] },
    thinking: {
      program: program("@modelcontextprotocol/server-sequential-thinking"),
      call: ["sequentialthinking", { thought: "one", nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 }],
    },
    github: {
      program: program("@modelcontextprotocol/server-github"),
      keyVariable: "GITHUB_PERSONAL_ACCESS_TOKEN",
      call: ["get_issue", { owner: "nobody", repo: "nothing" }],
    },
    notion: {
      program: program("@notionhq/notion-mcp-server"),
      keyVariable: "NOTION_TOKEN",
      call: ["API-get-self", {}],
    },
    brave: {
      program: program("@brave/brave-search-mcp-server", ["--transport", "stdio"]),
      keyVariable: "BRAVE_API_KEY",
      call: ["brave_web_search", {}],
    },
    tavily: {
      program: program("tavily-mcp"),
      keyVariable: "TAVILY_API_KEY",
      call: ["tavily_search", { query: "tea" }],
    },
    context7: { program: program("@upstash/context7-mcp"), call: ["resolve-library-id", { query: "tea" }] },
    hubspot: {
      program: program("@hubspot/mcp-server"),
      keyVariable: "PRIVATE_APP_ACCESS_TOKEN",
      call: ["hubspot-generate-feedback-link", {}],
    },
    supabase: {
      program: program("@supabase/mcp-server-supabase", ["--access-token", "made-up", "--features", supabaseFeatures]),
      call: ["confirm_cost", { type: "project", recurrence: "monthly", amount: 10 }],
    },
    playwright: {
      program: program("@playwright/mcp", [...window, "--no-sandbox", "--executable-path", chromium]),
      call: ["browser_snapshot", {}],
    },
    chrome: {
      program: program("chrome-devtools-mcp", [
        ...window,
        "--no-usage-statistics",
        "--chrome-arg=--no-sandbox",
        "--executable-path",
        chromium,
      ]),
      call: ["list_pages", {}],
    },
  };
}

/** Debian's, as in the other tests; it runs as root without its sandbox alone. */
const chromium = "/usr/bin/chromium";
const window = ["--headless", "--isolated"];

/** But for `docs`, whose tool is listed from the network, and `branching`, which has a tool of the same name as GitHub's. */
const supabaseFeatures = "account,database,debugging,development,functions";

/** The program of a package that is installed beside this file. */
function program(name: string, args: readonly string[] = []): ServerProgram {
  const home = join(folder, "node_modules", name);
  if (!existsSync(home)) throw new Error(`expected \`${name}\` to be installed: npm ci in ${folder}`);
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as {
    readonly bin: string | Readonly<Record<string, string>>;
  };
  const file = typeof bin === "string" ? bin : Object.values(bin)[0];
  if (file === undefined) throw new Error(`expected \`${name}\` to have a program`);
  return { command: process.execPath, args: [join(home, file), ...args], env };
}
