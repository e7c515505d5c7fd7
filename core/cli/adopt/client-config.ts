import { basename, dirname, sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import { type ClientFile, invalidFile } from "./client-file.ts";
import { type JsoncNode, type JsoncObject, jsonOf, parseJsonc, replaceMembers } from "./jsonc.ts";
import { parseToml, replaceTables } from "./toml.ts";

export const clientNames = ["claude", "cursor", "vscode", "codex", "opencode"] as const;
export type ClientName = (typeof clientNames)[number];

/** An entry of a client's configuration, as it stands there. */
export interface ClientServer {
  readonly name: string;
  readonly entry: JsonObject;
  /** True where the client does not start it. */
  readonly isDisabled: boolean;
}

export interface ClientConfig {
  readonly client: ClientName;
  readonly servers: readonly ClientServer[];
  /**
   * Returns the text with the entries of some servers replaced by one of the gateway's. Every other character stays. Throws
   * CONFIG_INVALID where the file is written so that this cannot be done.
   */
  replace(names: ReadonlySet<string>, name: string, entry: JsonObject): string;
}

/** The variable that clients read the gateway's key from. */
export const agentKeyVariable = "GATEWAY_AGENT_KEY";

interface ClientFormat {
  /** The name in messages. */
  readonly title: string;
  /** The member or table that holds the servers. */
  readonly place: string;
  readonly syntax: "jsonc" | "toml";
  /** The gateway's entry; the key comes from the environment of the client. */
  readonly entry: (url: string) => JsonObject;
}

export const clientFormats: Readonly<Record<ClientName, ClientFormat>> = {
  claude: {
    title: "Claude Code",
    place: "mcpServers",
    syntax: "jsonc",
    entry: (url) => ({ type: "http", url, headers: { "X-API-Key": `\${${agentKeyVariable}}` } }),
  },
  cursor: {
    title: "Cursor",
    place: "mcpServers",
    syntax: "jsonc",
    entry: (url) => ({ url, headers: { "X-API-Key": `\${env:${agentKeyVariable}}` } }),
  },
  vscode: {
    title: "VS Code",
    place: "servers",
    syntax: "jsonc",
    entry: (url) => ({ type: "http", url, headers: { "X-API-Key": `\${env:${agentKeyVariable}}` } }),
  },
  codex: {
    title: "Codex",
    place: "mcp_servers",
    syntax: "toml",
    entry: (url) => ({ url, bearer_token_env_var: agentKeyVariable }),
  },
  opencode: {
    title: "opencode",
    place: "mcp",
    syntax: "jsonc",
    entry: (url) => ({ type: "remote", url, headers: { "X-API-Key": `{env:${agentKeyVariable}}` }, oauth: false }),
  },
};

/** Returns the client whose documentation names such a file; undefined for others. */
export function clientOf(path: string): ClientName | undefined {
  const [name, folder] = [basename(path), basename(dirname(path))];
  if (name === ".mcp.json" || name === ".claude.json") return "claude";
  if (name === "mcp.json" && folder === ".cursor") return "cursor";
  if (name === "mcp.json" && (folder === ".vscode" || folder === "User")) return "vscode";
  if (name === "config.toml" && folder === ".codex") return "codex";
  return /^opencode\.jsonc?$/.test(name) ? "opencode" : undefined;
}

/** Folders in which clients keep their files; a server's own folder is the one that holds them. */
const clientFolders: ReadonlySet<string> = new Set([".cursor", ".vscode", ".codex"]);

/** Returns the folder of the project, or of the user, that a client's file belongs to. */
export function projectOf({ path }: ClientFile): string {
  const folder = dirname(path);
  return clientFolders.has(basename(folder)) ? folder.slice(0, folder.lastIndexOf(sep)) || sep : folder;
}

const maxServers = 64;
const maxName = 128;

/** Reads the servers of a client's configuration. Throws CONFIG_INVALID, and quotes nothing of the file but names. */
export function parseClientConfig(file: ClientFile, client: ClientName): ClientConfig {
  const { place, syntax, title } = clientFormats[client];
  const config = syntax === "toml" ? tomlConfig(file, place) : jsoncConfig(file, place);
  const count = config.entries.length;
  if (count === 0)
    throw invalidFile(file.path, `expected MCP servers in \`${place}\`, as ${title} reads them; got none`);
  if (count > maxServers) throw invalidFile(file.path, `expected at most ${maxServers} servers, got ${count}`);
  const servers = config.entries.map(([name, entry]) => {
    if (name === "" || name.length > maxName)
      throw invalidFile(file.path, `expected names of 1 to ${maxName} characters for servers, got ${name.length}`);
    return { name, entry, isDisabled: entry.disabled === true || entry.enabled === false };
  });
  return { client, servers, replace: config.replace };
}

interface ParsedConfig {
  readonly entries: readonly (readonly [name: string, entry: JsonObject])[];
  readonly replace: ClientConfig["replace"];
}

function jsoncConfig(file: ClientFile, place: string): ParsedConfig {
  const root = parseText(file, parseJsonc);
  const object = root.kind === "object" ? root.members.find(({ name }) => name === place)?.value : undefined;
  if (object !== undefined && object.kind !== "object")
    throw invalidFile(file.path, `expected \`${place}\` to be an object`);
  const entries = (object?.members ?? []).map(({ name, value }) => entryOf(file, name, jsonOf(value)));
  return {
    entries,
    replace: (names, name, entry) => {
      const text = replaceMembers(file.text, object as JsoncObject, names, name, entry);
      const read = (source: string): unknown => jsonOf(parseJsonc(source));
      return checkReplaced(file, text, { place, names, name, entry, read });
    },
  };
}

function tomlConfig(file: ClientFile, place: string): ParsedConfig {
  const servers = parseText(file, parseToml)[place] ?? {};
  if (!isJsonObject(servers)) throw invalidFile(file.path, `expected \`${place}\` to be a table`);
  return {
    entries: Object.entries(servers).map(([name, entry]) => entryOf(file, name, entry)),
    replace: (names, name, entry) => {
      const text = replaceTables(file.text, place, names, name, entry) ?? file.text;
      return checkReplaced(file, text, { place, names, name, entry, read: parseToml });
    },
  };
}

function parseText<T extends JsoncNode | Readonly<Record<string, unknown>>>(
  { path, text }: ClientFile,
  parse: (source: string) => T,
): T {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw invalidFile(path, cause.message);
  }
}

function entryOf({ path }: ClientFile, name: string, entry: unknown): readonly [string, JsonObject] {
  if (isJsonObject(entry)) return [name, entry];
  throw invalidFile(path, `expected the server \`${escapeHidden(name.slice(0, maxName))}\` to be described by members`);
}

interface Replacement {
  readonly place: string;
  readonly names: ReadonlySet<string>;
  readonly name: string;
  readonly entry: JsonObject;
  readonly read: (text: string) => unknown;
}

/**
 * Returns the text. INVARIANT: read again, it is the file as it was, but for the servers that were replaced and the gateway;
 * else nothing is written.
 */
function checkReplaced(file: ClientFile, text: string, { place, names, name, entry, read }: Replacement): string {
  const before = read(file.text) as Readonly<Record<string, object>>;
  const kept = Object.entries(before[place] ?? {}).filter(([each]) => !names.has(each));
  const expected = { ...before, [place]: Object.fromEntries([...kept, [name, entry]]) };
  if (isDeepStrictEqual(plain(read(text)), plain(expected))) return text;
  const form = file.path.endsWith(".toml") ? `a table of its own, \`[${place}.<name>]\`` : "a member of its own";
  throw invalidFile(file.path, `expected each server as ${form}; write it so, then try again`);
}

/** The same values with plain prototypes, and members in one order. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, plain(each)]));
}
