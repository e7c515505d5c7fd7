import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import {
  type JsonRpcResponse,
  latestLegacyRevision,
  legacyRevisions,
  metaKey,
  modernRevision,
  readJsonRpc,
} from "../../action/json-rpc.ts";

const serverInfo = { name: "demo-notes", version: "1.0.0" };
const capabilities = { tools: {} };

createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }).on("line", (line) => {
  const response = respond(line);
  if (response !== undefined) process.stdout.write(`${JSON.stringify(response)}\n`);
});

/** Answers one line of JSON-RPC; undefined for a notification, and for a response, because nothing is ever asked. */
function respond(line: string): JsonRpcResponse | undefined {
  let id: string | number | null = null;
  try {
    const { kind, message } = readJsonRpc(parseLine(line));
    if (kind !== "request") return undefined;
    id = message.id;
    return { jsonrpc: "2.0", id, result: serve(message.method, message.params ?? {}) };
  } catch (fault) {
    const error = GatewayError.from(fault);
    return { jsonrpc: "2.0", id, error: { code: error.row.jsonRpc, message: error.publicMessage } };
  }
}

function parseLine(line: string): Json {
  try {
    return JSON.parse(line) as Json;
  } catch (cause) {
    throw new GatewayError("MALFORMED_JSON", "expected one JSON-RPC message on each line", { cause });
  }
}

/** Serves a request in the era it is written in: a stateless one names its revision in `_meta`, a legacy one does not. */
function serve(method: string, params: JsonObject): JsonObject {
  const revision = isJsonObject(params._meta) ? params._meta[metaKey.protocolVersion] : undefined;
  if (revision === undefined) return serveLegacy(method, params);
  if (revision !== modernRevision) throw new GatewayError("PROTOCOL_VERSION", `expected ${modernRevision}`);
  return serveModern(method, params);
}

function serveLegacy(method: string, params: JsonObject): JsonObject {
  if (method === "initialize") {
    const wanted = legacyRevisions.find((revision) => revision === params.protocolVersion);
    return { protocolVersion: wanted ?? latestLegacyRevision, capabilities, serverInfo };
  }
  if (method === "ping") return {};
  return serveTools(method, params);
}

function serveModern(method: string, params: JsonObject): JsonObject {
  const result =
    method === "server/discover" ? { supportedVersions: [modernRevision], capabilities } : serveTools(method, params);
  const cache = method === "tools/call" ? {} : { ttlMs: 0, cacheScope: "private" };
  return { ...result, ...cache, resultType: "complete", _meta: { [metaKey.serverInfo]: serverInfo } };
}

function serveTools(method: string, params: JsonObject): JsonObject {
  if (method === "tools/list") return { tools: tools.map(({ definition }) => definition) };
  if (method === "tools/call") return callTool(params.name, params.arguments);
  throw new GatewayError("METHOD_UNKNOWN");
}

type TextSchema = {
  readonly type: "string";
  readonly minLength?: number;
  readonly maxLength: number;
  readonly description: string;
};

type Arguments = Readonly<Record<string, string>>;

interface Tool {
  readonly definition: JsonObject & { readonly name: string };
  readonly properties: Readonly<Record<string, TextSchema>>;
  /** Returns what the tool did. Throws ToolFailure. */
  readonly run: (args: Arguments) => string;
}

/** A refusal by a tool, which the client reads as the tool's result. */
class ToolFailure extends Error {}

/** Throws TOOL_UNKNOWN; any other refusal is in the result, where a model can read it. */
function callTool(name: Json | undefined, written: Json | undefined): JsonObject {
  const tool = tools.find(({ definition }) => definition.name === name);
  if (tool === undefined) throw new GatewayError("TOOL_UNKNOWN", "expected a name of `tools/list`");
  try {
    const args = readArguments(tool, isJsonObject(written) ? written : {});
    logCall(tool.definition.name, args);
    return { content: [{ type: "text", text: tool.run(args) }] };
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    return { content: [{ type: "text", text: error.message }], isError: true };
  }
}

/** The declared arguments; others are ignored. Throws ToolFailure for one that does not fit its schema. */
function readArguments({ properties }: Tool, written: JsonObject): Arguments {
  const args: Record<string, string> = {};
  for (const [name, { minLength = 0, maxLength }] of Object.entries(properties)) {
    const value = written[name];
    if (typeof value !== "string" || value.length < minLength || value.length > maxLength) {
      throw new ToolFailure(`invalid arguments: expected \`${name}\` to be ${minLength} to ${maxLength} characters`);
    }
    args[name] = value;
  }
  return args;
}

/** Appends the call to the file `DEMO_LOG`, where set: with it a test sees which calls never reached this server. */
function logCall(tool: string, args: Arguments): void {
  const path = process.env.DEMO_LOG;
  if (path !== undefined) appendFileSync(path, `${JSON.stringify({ tool, arguments: args })}\n`);
}

const maxNotes = 1_000;
const title: TextSchema = { type: "string", minLength: 1, maxLength: 100, description: "The note's title" };
const text: TextSchema = { type: "string", maxLength: 20_000, description: "What to write" };

const notes: Map<string, string> = new Map([
  ["welcome", "This note is kept by the demo upstream. Reading it is allowed by the baseline policy."],
  ["shopping", "Oats, apples, coffee."],
  ["meeting", "Tuesday 10:00: which actions may our agents take without asking?"],
]);

const reading = { readOnlyHint: true, openWorldHint: false };
const writing = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const deleting = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };

const tools: readonly Tool[] = [
  tool("list_notes", "Lists the titles of all notes.", reading, {}, () => [...notes.keys()].sort().join("\n")),
  tool("read_note", "Reads one note.", reading, { title }, (args) => {
    const note = notes.get(args.title as string);
    if (note === undefined) throw new ToolFailure(`there is no note \`${args.title}\``);
    return note;
  }),
  tool("write_note", "Writes a note, in place of one with the same title.", writing, { title, text }, (args) => {
    const isNew = !notes.has(args.title as string);
    if (isNew && notes.size >= maxNotes) throw new ToolFailure(`expected at most ${maxNotes} notes`);
    notes.set(args.title as string, args.text as string);
    return `wrote \`${args.title}\``;
  }),
  tool("delete_note", "Deletes a note for good.", deleting, { title }, (args) => {
    if (!notes.delete(args.title as string)) throw new ToolFailure(`there is no note \`${args.title}\``);
    return `deleted \`${args.title}\``;
  }),
];

function tool(
  name: string,
  description: string,
  annotations: JsonObject,
  properties: Readonly<Record<string, TextSchema>>,
  run: (args: Arguments) => string,
): Tool {
  const required = Object.keys(properties);
  const inputSchema: JsonObject = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { ...properties },
    ...(required.length > 0 ? { required } : {}),
  };
  return { definition: { name, description, inputSchema, annotations }, properties, run };
}
