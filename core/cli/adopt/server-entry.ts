import { isAbsolute, resolve } from "node:path";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { escapeHidden } from "../../action/visible-text.ts";
import type { ClientServer } from "./client-config.ts";
import { LeftReason, type ReferenceValues, resolveText } from "./reference.ts";

/** A server as the gateway's configuration names it. */
export interface ServerForm {
  /** An entry of `upstreams`. */
  readonly upstream: JsonObject;
  /** The variables that hold its secrets, by name. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Remarks for the user. */
  readonly notes: readonly string[];
}

/** A first start may fetch the server's package. */
const startTimeoutMs = 60_000;

/** Members that tell a client something that does not change what the server is or does. */
const clientOnly: ReadonlySet<string> = new Set([
  "type",
  "transport",
  "description",
  "disabled",
  "enabled",
  "required",
  "gallery",
  "version",
  "dev",
  "timeout",
  "startup_timeout_sec",
  "startup_timeout_ms",
  "tool_timeout_sec",
  "alwaysAllow",
  "autoApprove",
  "default_tools_approval_mode",
]);
const stdioMembers: ReadonlySet<string> = new Set(["command", "args", "env", "environment", "cwd", "env_vars"]);
const httpMembers: ReadonlySet<string> = new Set([
  "url",
  "headers",
  "http_headers",
  "env_http_headers",
  "bearer_token_env_var",
]);

/**
 * Returns an entry of a client as one of the gateway's, called `name`. Throws LeftReason for one that means something which the
 * gateway's configuration cannot say: what is dropped could be a restriction.
 */
export function serverForm({ entry }: ClientServer, name: string, values: ReferenceValues): ServerForm {
  const isHttp = typeof entry.url === "string";
  checkMembers(entry, isHttp ? httpMembers : stdioMembers);
  return isHttp ? httpForm(entry, name, values) : stdioForm(entry, name, values);
}

function checkMembers(entry: JsonObject, known: ReadonlySet<string>): void {
  for (const [key, value] of Object.entries(entry)) {
    if (known.has(key) || clientOnly.has(key)) continue;
    // opencode: no sign-in by the client.
    if (key === "oauth" && value === false) continue;
    throw new LeftReason(`the gateway has nothing that corresponds to its \`${escapeHidden(key.slice(0, 80))}\``);
  }
}

function stdioForm(entry: JsonObject, name: string, values: ReferenceValues): ServerForm {
  const [program, ...args] = commandOf(entry).map((word) => resolveArgument(word, values));
  if (program === undefined || program === "") throw new LeftReason("it has neither a `command` nor a `url`");
  const cwd =
    typeof entry.cwd === "string" ? resolve(values.folder, resolveArgument(entry.cwd, values)) : values.folder;
  const variables = variablesOf(entry, values);
  const hidden = [...variables.secrets.keys()];
  const upstream: JsonObject = {
    name,
    transport: "stdio",
    command: program.includes("/") && !isAbsolute(program) ? resolve(cwd, program) : program,
    args,
    cwd,
    ...(variables.plain.size === 0 ? {} : { env: Object.fromEntries(variables.plain) }),
    ...(hidden.length === 0 ? {} : { env_from: hidden }),
    start_timeout_ms: startTimeoutMs,
  };
  const notes = args.some((word) => secretFlag.test(word))
    ? ["an argument may be a secret; it is in gateway.yaml now"]
    : [];
  return { upstream, secrets: variables.secrets, notes };
}

const secretFlag = /^-{1,2}[\w-]*(?:token|secret|password|api-?key|key)(?:=.+)?$/i;

/** A program and its arguments: a text and a list (`command`, `args`), or one list (opencode). */
function commandOf({ command, args }: JsonObject): readonly string[] {
  const words = Array.isArray(command) ? command : [command ?? "", ...listOf(args)];
  return words.map((word: Json) => {
    if (typeof word === "string") return word;
    throw new LeftReason("its command is no list of texts");
  });
}

function listOf(value: Json | undefined): readonly Json[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw new LeftReason("its `args` are no list");
}

/** Fills in the references of an argument. A secret has no place in a line that other users of the machine can list. */
function resolveArgument(word: string, values: ReferenceValues): string {
  const { text, variables } = resolveText(word, values);
  const secret = variables.find((variable) => !isPlainName(variable));
  if (secret !== undefined)
    throw new LeftReason(`an argument takes the variable \`${secret}\`: the gateway's arguments take none`);
  return text;
}

interface ServerVariables {
  /** Values that stand in the configuration. */
  readonly plain: ReadonlyMap<string, string>;
  readonly secrets: ReadonlyMap<string, string>;
}

function variablesOf(entry: JsonObject, values: ReferenceValues): ServerVariables {
  const plain = new Map<string, string>();
  const secrets = new Map<string, string>();
  for (const [name, value] of givenVariables(entry, values)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) throw new LeftReason("the name of one of its variables is none");
    if (isPlainVariable(name, value)) plain.set(name, value);
    else if (!/^[A-Z_][A-Z0-9_]{0,127}$/.test(name) || steersGateway(name) || value === "") {
      throw new LeftReason(
        `its variable \`${name}\` may be a secret, and the gateway cannot pass on one of that name and value`,
      );
    } else secrets.set(name, value);
  }
  return { plain, secrets };
}

function* givenVariables(entry: JsonObject, values: ReferenceValues): Iterable<readonly [string, string]> {
  for (const [name, value] of Object.entries(membersOf(entry.env ?? entry.environment, "variables"))) {
    if (typeof value === "object" && value !== null)
      throw new LeftReason(`its variable \`${name.slice(0, 80)}\` is no text`);
    yield [name, resolveText(String(value), values).text];
  }
  for (const name of listOf(entry.env_vars)) yield [String(name), variableValue(String(name), values)];
}

function membersOf(value: Json | undefined, what: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (isJsonObject(value)) return value;
  throw new LeftReason(`its ${what} are no object`);
}

function variableValue(variable: string, { env }: ReferenceValues): string {
  const value = env[variable];
  if (value !== undefined) return value;
  throw new LeftReason(`it takes the variable \`${variable.slice(0, 80)}\`, which is not set here`);
}

/** Variables that would change the gateway itself, whose environment it shares with its secrets. */
const steering =
  /^(?:PATH|HOME|USER|SHELL|TMPDIR|LANG|LC_\w+|(?:NODE|LD|DYLD|GATEWAY|OTEL|SSL|SIGSTORE|V8|UV)_\w+|\w*_PROXY)$/;

function steersGateway(name: string): boolean {
  return steering.test(name);
}

const secretWords =
  /key|token|secret|pass|pwd|auth|cred|cert|private|session|cookie|dsn|salt|signature|pat(?:_|$)|bearer/i;

function isPlainName(name: string): boolean {
  return !secretWords.test(name);
}

/** Switches, numbers, short words, absolute paths and addresses without credentials. Everything else may be a secret. */
function isPlainVariable(name: string, value: string): boolean {
  if (steersGateway(name) && isPlainName(name)) return true;
  if (!isPlainName(name)) return false;
  if (/^(?:[a-z-]{0,16}|[A-Z-]{0,16}|\d{1,9}(?:\.\d{1,9})?)$/.test(value)) return true;
  return /^\/[\w./ -]{0,1024}$/.test(value) || /^https?:\/\/[\w.:-]{1,253}(?:\/[\w./-]{0,256})?$/.test(value);
}

function httpForm(entry: JsonObject, name: string, values: ReferenceValues): ServerForm {
  const { text: url, variables } = resolveText(String(entry.url), values);
  const secret = variables.find((variable) => !isPlainName(variable));
  if (secret !== undefined)
    throw new LeftReason(`its address takes the variable \`${secret}\`: the gateway's takes none`);
  const secrets = new Map<string, string>();
  const headers: Record<string, string> = {};
  for (const [header, value] of givenHeaders(entry, values)) {
    const variable = `MCP_${name}_${header}`
      .toUpperCase()
      .replaceAll(/[^A-Z0-9_]/g, "_")
      .slice(0, 128);
    if (secrets.has(variable)) throw new LeftReason(`it has the header \`${header.slice(0, 80)}\` twice`);
    secrets.set(variable, value);
    headers[header] = variable;
  }
  const upstream: JsonObject = {
    name,
    transport: entry.type === "sse" ? "sse" : "http",
    url,
    ...(secrets.size === 0 ? {} : { headers_env: headers }),
  };
  const notes = url.includes("?") ? ["its address may hold a secret; it is in gateway.yaml now"] : [];
  return { upstream, secrets, notes };
}

function* givenHeaders(entry: JsonObject, values: ReferenceValues): Iterable<readonly [header: string, value: string]> {
  for (const [header, value] of Object.entries(membersOf(entry.headers ?? entry.http_headers, "headers"))) {
    yield [header, resolveText(String(value), values).text];
  }
  for (const [header, variable] of Object.entries(membersOf(entry.env_http_headers, "headers"))) {
    yield [header, variableValue(String(variable), values)];
  }
  const bearer = entry.bearer_token_env_var;
  if (typeof bearer === "string") yield ["Authorization", `Bearer ${variableValue(bearer, values)}`];
}
