import { cells } from "./cell.ts";
import { installedVersion, labFile } from "./client-program.ts";
import type { LabRow } from "./row.ts";
import type { LabRun } from "./run.ts";

export const pageFile = labFile("README.md");

const head = `# Clients that are tried

Real clients, as npm has them, each before a gateway of its own in production configuration, with a real MCP server and a
stand-in for the model's provider that asks for tools. Nothing in them is changed; what they are told is in
[command-line.ts](command-line.ts), [framework.ts](framework.ts) and [client](client). This page is written from what the
tests of this folder found: \`npm run client-lab\` writes it, \`client-lab.test.ts\` compares it.

Each client is asked for the same six calls: one that policy allows, one that it blocks, one that is held, answered as
pending, approved and repeated, one that is approved while it waits, and one that a reviewer denies. The logs of the server
and of the provider are the witnesses.

`;

const meanings = `
- *allowed*, *approved*: the server saw the call exactly once, and the model was told the server's answer.
- *held*: the server had not seen the call, and the model was told which approval is pending.
- *denied*, *blocked*: the server never saw the call, and the model was told why.
- *goes on*: after a refusal the client asks its model again and prints its last answer; the provider saw the gateway's key
  and never the client's.
- *elsewhere*: hosts that the client asks for beside the gateway, through a proxy that refuses and counts.

Four more tests stand beside the table. In [responses.test.ts](responses.test.ts) the AI SDK, the OpenAI Agents SDK and
LangChain ask providers of chat, messages and responses over the responses API: plain, streamed, with a tool that the client
runs, aborted in mid-stream, blocked, held and approved, and redacted. In [oauth.test.ts](oauth.test.ts) mcp-remote and the
AI SDK's MCP client, which know the gateway's address alone, get from a 401 to a call with a real authorization server.
In [servers](servers/published-server.test.ts) 13 published MCP servers are listed and called, directly and through the
gateway: eight answer without network and account, of five the call is one that fails the same way everywhere.
In [hook.test.ts](hook.test.ts) Claude Code, by a command and over HTTP, and Codex run shell commands with the hook of
\`gateway hook\` in their settings: what is allowed runs, what is approved runs once, nothing else does, and nothing where
the gateway is down.

`;

/** The page, from what was found and from nothing else. */
export function pageOf(runs: readonly LabRun[]): string {
  const names = Object.keys(cells);
  const lines = [
    ["client", "version", "model API", "MCP", ...names],
    ["---", "---", "---", "---", ...names.map(() => "---")],
    ...runs.map((run) => rowOf(run)),
  ];
  return `${head}${lines.map((line) => `| ${line.join(" | ")} |\n`).join("")}${meanings}${notes}`;
}

function rowOf(run: LabRun): readonly string[] {
  const { client, packageName, mcp } = run.row;
  const found = Object.entries(cells).map(([name, fault]) => shown(run, name, fault(run)));
  return [client, installedVersion(packageName), apiName(run.row), mcp, ...found];
}

function shown({ row }: LabRun, name: string, fault: string | undefined): string {
  if (fault !== undefined) return "fails";
  if (name === "elsewhere") return (row.hosts ?? ["none"]).join(", ");
  return "works";
}

/** The model API of a row, in words. */
export function apiName({ api, provider }: LabRow): string {
  return `${api ?? "none"}${provider === undefined ? "" : `, served by a provider of ${provider}`}`;
}

const notes = `## What to know

- The **AI SDK** refers to its model's earlier answers by their ids unless it is told \`store: false\`; providers of chat and
  messages keep no answers, and the gateway says so.
- **Claude Code** in print mode asks its model before its MCP servers are there; \`MCP_CONNECTION_NONBLOCKING=0\` has it wait.
- **Codex** offers its model a web search that the provider would run: the gateway refuses that and says so, until Codex is
  told \`web_search = "disabled"\`. With \`codex exec\`, tools need \`default_tools_approval_mode = "approve"\`: nobody is
  there to ask. Before providers of chat and messages it does not work: it sends its MCP tools in groups
  (\`type: namespace\`), for which those APIs have no words, and the gateway says which tool that is.
- **LangChain** ends an agent whose tool says \`isError\`, whoever's tool that is, unless a middleware hands the error to the
  model; [client/langchain.mjs](client/langchain.mjs) has one. Without it the first refusal ends the agent.
- **opencode** is its program for Linux on x64, without the launcher, which only chooses the program for a machine.
- Claude Code, Codex and opencode are programs of 381, 294 and 185 MB; \`npm ci\` in this folder brings 1.2 GB in about a
  minute.
- Some of these libraries ask for Node 22; under Node 20 the tests run them with the one that is installed for development.
`;
