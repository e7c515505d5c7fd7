import type { McpClient } from "../support/mcp-client.ts";
import { connectClient } from "../support/mcp-client.ts";
import { node22 } from "../support/node-22.ts";
import { homeEnv, labFile, runClient } from "./client-program.ts";
import type { LabRow, Place } from "./row.ts";
import { farewell } from "./task.ts";

interface Framework {
  readonly client: string;
  readonly packageName: string;
  /** The name of its program in `client/`. */
  readonly program: string;
  readonly uses: readonly Pick<LabRow, "api" | "provider">[];
}

const frameworks: readonly Framework[] = [
  {
    client: "AI SDK",
    packageName: "ai",
    program: "ai-sdk",
    uses: [{ api: "chat" }, { api: "messages" }, { api: "responses" }, { api: "chat", provider: "messages" }],
  },
  {
    client: "LangChain",
    packageName: "@langchain/mcp-adapters",
    program: "langchain",
    uses: [{ api: "chat" }, { api: "responses" }],
  },
  {
    client: "OpenAI Agents SDK",
    packageName: "@openai/agents",
    program: "agents-sdk",
    uses: [{ api: "chat" }, { api: "responses" }],
  },
];

/** Agents that are written with a library; some of these ask for Node 22. */
export const frameworkRows: readonly LabRow[] = frameworks.flatMap(({ client, packageName, program, uses }) =>
  uses.map((use) => ({
    ...use,
    client,
    packageName,
    mcp: "HTTP",
    run: ({ url, key, model, env, home }) => {
      const own = { GATEWAY_URL: url, GATEWAY_KEY: key, MODEL_API: use.api ?? "", MODEL: model };
      return runClient({ command: node22(), args: [labFile(`client/${program}.mjs`)], env: { ...env, ...own } }, home);
    },
  })),
);

/** The bridge for clients that know programs only, in front of the official SDK's client. */
export const bridgeRows: readonly LabRow[] = [
  { mcp: "stdio to HTTP", transport: "http-only", path: "/mcp" },
  { mcp: "stdio to HTTP+SSE", transport: "sse-only", path: "/sse" },
].map(({ mcp, transport, path }) => ({
  client: "mcp-remote",
  packageName: "mcp-remote",
  api: undefined,
  mcp,
  run: async (place) => {
    const client = await connectClient("v1", {
      command: process.execPath,
      args: [labFile("node_modules/mcp-remote/dist/proxy.js"), place.url + path].concat([
        "--allow-http",
        "--transport",
        transport,
        "--header",
        `X-API-Key:${place.key}`,
      ]),
      env: { ...homeEnv(place.home), ...place.env },
    });
    try {
      return await doTask(client, place);
    } finally {
      await client.close();
    }
  },
}));

/** Does the task without a model. */
async function doTask(client: McpClient, { task }: Place): Promise<string> {
  const told: string[] = [];
  for (let wanted = await task.next([]); wanted !== undefined; wanted = await task.next([...told])) {
    const { content } = await client.callTool(wanted.tool, wanted.args);
    told.push(content.map(({ text = "" }) => text).join(""));
  }
  return farewell;
}
