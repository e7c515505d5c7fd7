import { Argument, Option } from "commander";
import { roles } from "../../action/role.ts";
import {
  adminOption,
  jsonOption,
  localOptions,
  parseFirstPort,
  parseHookWait,
  parseName,
  parseServerWait,
  parseServingPort,
  urlOption,
} from "./argument.ts";
import type { CommandDescription } from "./description.ts";

const configFile = new Argument("<file>", "configuration file");

/** Commands that set the gateway up and run it. */
export const startCommands: readonly CommandDescription[] = [
  {
    name: "init",
    summary: "Create an installation: a strict configuration, two keys, signed policy packs and a trust policy",
    arguments: [new Argument("[folder]", "target folder; existing files are kept").default(".")],
    options: [
      new Option("--tenant <name>", "tenant of the keys").argParser(parseName).default("default"),
      new Option(
        "--upstream <server>",
        "MCP server: its URL, or a program and its arguments (default: a demo server that keeps notes)",
      ),
      new Option(
        "--witness <folder>",
        "folder for notes of how far the evidence is, on another disk at best (default: witness, beside the data folder)",
      ),
      new Option("--port <number>", "first of three ports in a row").argParser(parseFirstPort).default(8080),
      new Option("--print-keys", "print the two keys once instead of writing them to files"),
      jsonOption,
    ],
    examples: `
# in a new folder, with a demo server
gateway init gateway
# with your own MCP server
gateway init gateway --tenant acme --upstream https://tools.example.com/mcp
gateway init gateway --tenant acme --upstream "npx -y @modelcontextprotocol/server-filesystem /srv/projects"
# with a witness on another disk
gateway init gateway --witness /mnt/vault/evidence`,
    load: async () => (await import("../init.ts")).init,
  },
  {
    name: "adopt",
    summary:
      "Put the MCP servers of a client behind the gateway: start them, propose what their tools do, and point the client at it",
    arguments: [
      new Argument(
        "[file]",
        "the client's configuration: .mcp.json, .cursor/mcp.json, .vscode/mcp.json, config.toml, …",
      ),
    ],
    options: [
      new Option("--into <folder>", "folder of the new installation").default("gateway"),
      new Option("--client <name>", "client whose file this is (default: by its name)").choices([
        "claude",
        "cursor",
        "vscode",
        "codex",
        "opencode",
      ]),
      new Option("--tenant <name>", "tenant of the keys").argParser(parseName).default("default"),
      new Option("--port <number>", "first of three ports in a row").argParser(parseServingPort).default(8080),
      new Option("--wait <seconds>", "time for each server to start and list its tools")
        .argParser(parseServerWait)
        .default(60),
      new Option("--dry-run", "start the servers and print the proposal; write nothing"),
      new Option("--undo", "restore the client's configuration, byte for byte").conflicts(["dryRun", "report"]),
      new Option(
        "--report",
        "print what the running gateway would have held so far, and propose the next step",
      ).conflicts("dryRun"),
      adminOption,
      jsonOption,
    ],
    examples: `
# what it would do; read the reasons beside each tool
gateway adopt .mcp.json --dry-run
# do it, in shadow mode: nothing is held yet
gateway adopt .mcp.json --into gateway
# after some days: what would have been held, and the next step
GATEWAY_API_KEY=$(cat gateway/admin.key) gateway adopt --report
# back to how it was
gateway adopt .mcp.json --into gateway --undo`,
    load: async () => (await import("../adopt/adopt.ts")).adopt,
  },
  {
    name: "doctor",
    summary: "Check an installation for common mistakes and print a fix for each; exit 1 if a check failed",
    options: [
      new Option("-c, --config <file>", "configuration file (default: local mode, as `gateway serve`)"),
      ...localOptions,
      new Option("--admin <url>", "admin port of a running gateway (default: as configured)").env("GATEWAY_ADMIN_URL"),
      jsonOption,
    ],
    examples: `
# before the first start, and when something is wrong
gateway doctor --config gateway.yaml
# include the evidence of a running gateway
GATEWAY_API_KEY=$(cat admin.key) gateway doctor --config gateway.yaml --json`,
    load: async () => (await import("../doctor/doctor.ts")).doctor,
  },
  {
    name: "serve",
    summary: "Run the gateway; without --config in local mode: a demo upstream, the shipped packs, two generated keys",
    options: [
      new Option("-c, --config <file>", "configuration file (gateway.yaml)"),
      ...localOptions,
      new Option("--json", "print readiness and logs as JSON on a terminal too"),
    ],
    examples: `
# on this machine: a demo server, the shipped policy packs, two keys
gateway serve
# as it runs in production
gateway serve --config /etc/gateway/gateway.yaml`,
    load: async () => (await import("../serve.ts")).serve,
  },
  {
    name: "console",
    summary: "Print a link that opens the console once, in a browser of this machine; the key stays here",
    options: [
      ...localOptions,
      new Option(
        "--url <url>",
        "port 8082 of a gateway of this machine; the key is read from GATEWAY_API_KEY",
      ).conflicts("port"),
      new Option("--open", "open the link in a browser too, where there is one"),
      jsonOption,
    ],
    examples: `
# for the gateway that \`gateway serve\` runs in this folder
gateway console
# for a gateway with a configuration, as the holder of a key
GATEWAY_API_KEY=$(cat admin.key) gateway console --url http://127.0.0.1:8082 --open`,
    load: async () => (await import("../console.ts")).openConsolePage,
  },
  {
    name: "keys",
    summary: "Create API keys",
    commands: [
      {
        name: "new",
        summary: "Create an API key and its configuration entry",
        options: [
          new Option("--id <name>", "name of the key (default: derived from its hash)").argParser(parseName),
          new Option("--tenant <name>", "tenant of the key").argParser(parseName).default("default"),
          new Option("--role <role>", "role of the key").choices(roles).default("viewer"),
          jsonOption,
        ],
        examples: `
# for an agent, which cannot review
gateway keys new --id agent --tenant acme
# for a reviewer
gateway keys new --id reviewer --tenant acme --role operator`,
        load: async () => (await import("../keys.ts")).createKey,
      },
    ],
  },
  {
    name: "config",
    summary: "Check, show and document the configuration file",
    commands: [
      {
        name: "check",
        summary: "Check a configuration file and the variables it names; exit 1 if it has faults",
        arguments: [configFile],
        options: [jsonOption],
        examples: `
# every fault of a file, with its line
gateway config check gateway.yaml`,
        load: async () => (await import("../config.ts")).checkConfig,
      },
      {
        name: "show",
        summary: "Print a configuration file with every default filled in and secrets hidden",
        arguments: [configFile],
        options: [jsonOption],
        examples: `
# the effective configuration, safe to share
gateway config show gateway.yaml`,
        load: async () => (await import("../config.ts")).showConfig,
      },
      {
        name: "schema",
        summary: "Print the JSON Schema of the configuration file, for editors",
        options: [
          new Option("--trust", "the schema of the trust policy instead"),
          new Option("--json", "print it on one line"),
        ],
        examples: `
# for an editor that completes and checks YAML
gateway config schema > gateway.schema.json`,
        load: async () => (await import("../config.ts")).printSchema,
      },
      {
        name: "reference",
        summary: "Print every key with its type, default and meaning, as Markdown",
        options: [jsonOption],
        examples: `
# every setting
gateway config reference | less`,
        load: async () => (await import("../config.ts")).printReference,
      },
    ],
  },
  {
    name: "hook",
    summary: "Ask the gateway about the tool call on standard input, as a coding agent's hook; refuses where it cannot",
    arguments: [
      new Argument("<agent>", "agent whose payload and answer these are").choices(["claude-code", "codex", "generic"]),
    ],
    options: [
      urlOption,
      new Option("--wait <seconds>", "time that a held call waits for its review, at most 280")
        .argParser(parseHookWait)
        .default(45),
      new Option("--print-settings", "print the agent's settings with this hook, and ask nothing"),
      new Option("--http", "with --print-settings: a hook that posts by itself, where the agent has such"),
      jsonOption,
    ],
    examples: `
# settings for Claude Code, with the gateway of this machine
gateway hook claude-code --print-settings > .claude/settings.json
# as the agent runs it before each tool call
gateway hook claude-code < payload.json`,
    load: async () => (await import("../hook.ts")).answerHook,
  },
  {
    name: "completion",
    summary: "Print a shell completion script",
    arguments: [new Argument("<shell>", "shell to complete in").choices(["bash", "zsh", "fish"])],
    options: [new Option("--json", "print JSON, with the script in it")],
    examples: `
# in this shell
source <(gateway completion bash)
# from the next start of each shell
gateway completion bash > ~/.local/share/bash-completion/completions/gateway
gateway completion zsh > ~/.zfunc/_gateway
gateway completion fish > ~/.config/fish/completions/gateway.fish`,
    load: async () => (await import("../completion.ts")).printCompletion,
  },
];
