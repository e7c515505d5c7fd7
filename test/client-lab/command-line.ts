import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ClientProgram, labFile, runClient } from "./client-program.ts";
import type { LabRow, Place } from "./row.ts";

const prompt = "Try the notes.";

/** A command line agent: its configuration, and how it is told to answer once and end. */
interface CommandLine extends Omit<LabRow, "run"> {
  readonly files?: (place: Place) => Readonly<Record<string, string>>;
  readonly program: (place: Place) => ClientProgram;
}

const claudeCode: CommandLine = {
  client: "Claude Code",
  packageName: "@anthropic-ai/claude-code",
  api: "messages",
  mcp: "HTTP",
  files: ({ url, key }) => ({
    "mcp.json": servers({ type: "http", url: `${url}/mcp`, headers: { "X-API-Key": key } }),
  }),
  program: ({ url, key, model, home }) => ({
    command: process.execPath,
    args: [
      labFile("node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"),
      "-p",
      prompt,
      "--model",
      model,
      "--allowedTools",
      "mcp__gateway__*",
    ].concat(["--strict-mcp-config", "--mcp-config", join(home, "mcp.json")]),
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      MCP_CONNECTION_NONBLOCKING: "0", // its model is not asked before the servers are there
      ENABLE_TOOL_SEARCH: "false", // and sees all tools at once
    },
  }),
};

const codex: CommandLine = {
  client: "Codex",
  packageName: "@openai/codex",
  api: "responses",
  mcp: "HTTP",
  files: ({ url, key, model }) => ({
    ".codex/config.toml": `
model = "${model}"
model_provider = "gateway"
web_search = "disabled" # which the provider would run
check_for_update_on_startup = false
analytics = { enabled = false }
features = { plugins = false, apps = false }
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
[mcp_servers.gateway]
url = "${url}/mcp"
http_headers = { "X-API-Key" = "${key}" }
required = true # its first turn waits for the tools
startup_timeout_sec = 60
default_tools_approval_mode = "approve" # nobody is there to ask
`,
  }),
  program: ({ key }) => ({
    command: process.execPath,
    args: [labFile("node_modules/@openai/codex/bin/codex.js"), "exec", "--skip-git-repo-check", prompt],
    env: { GATEWAY_KEY: key },
  }),
};

const openCode: CommandLine = {
  client: "opencode",
  packageName: "opencode-linux-x64-baseline",
  api: "chat",
  mcp: "HTTP",
  files: ({ url, key }) => ({
    ".npmrc": "offline=true\nfetch-retries=0\n", // it fetches its plugin kit at each start, and goes on without
    "opencode.json": JSON.stringify({
      autoupdate: false,
      share: "disabled",
      model: "gateway/chat-model",
      provider: {
        gateway: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${url}/v1`, apiKey: key },
          models: { "chat-model": {} },
        },
      },
      mcp: { gateway: { type: "remote", url: `${url}/mcp`, headers: { "X-API-Key": key }, oauth: false } },
    }),
  }),
  program: () => ({
    command: labFile("node_modules/opencode-linux-x64-baseline/bin/opencode"),
    args: ["run", prompt],
    env: { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" },
  }),
};

const geminiCli: CommandLine = {
  client: "Gemini CLI",
  packageName: "@google/gemini-cli",
  api: "Gemini",
  provider: "chat",
  mcp: "HTTP",
  files: ({ url, key }) => ({
    ".gemini/settings.json": JSON.stringify({
      mcpServers: { gateway: { httpUrl: `${url}/mcp`, headers: { "X-API-Key": key }, trust: true } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
      security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
    }),
  }),
  program: ({ url, key, model }) => ({
    command: process.execPath,
    args: [labFile("node_modules/@google/gemini-cli/bundle/gemini.js"), "-p", prompt, "-m", model],
    env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key },
  }),
};

function servers(gateway: object): string {
  return JSON.stringify({ mcpServers: { gateway } });
}

const commandLines: readonly CommandLine[] = [
  claudeCode,
  { ...claudeCode, provider: "chat" },
  codex,
  openCode,
  geminiCli,
  { ...geminiCli, provider: "messages" },
];

/** Agents that are programs, each in its print mode: told once what to do, with nobody to ask. */
export const commandLineRows: readonly LabRow[] = commandLines.map(
  ({ files, program, ...row }): LabRow => ({
    ...row,
    run: async (place) => {
      for (const [path, content] of Object.entries(files?.(place) ?? {})) {
        const file = join(place.home, path);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, content);
      }
      const { command, args, env } = program(place);
      return runClient({ command, args, env: { ...place.env, ...env } }, place.home);
    },
  }),
);
