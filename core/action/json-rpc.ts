import { GatewayError } from "./error.ts";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";

export type RequestId = string | number;

export interface JsonRpcRequest {
  readonly jsonrpc: "2.0";
  readonly id: RequestId;
  readonly method: string;
  readonly params?: JsonObject;
}

export interface JsonRpcNotification {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params?: JsonObject;
}

export interface JsonRpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: Json;
}

export type JsonRpcResponse =
  | { readonly jsonrpc: "2.0"; readonly id: RequestId; readonly result: JsonObject }
  | { readonly jsonrpc: "2.0"; readonly id: RequestId | null; readonly error: JsonRpcErrorBody };

export type JsonRpcMessage =
  | { readonly kind: "request"; readonly message: JsonRpcRequest }
  | { readonly kind: "notification"; readonly message: JsonRpcNotification }
  | { readonly kind: "response"; readonly message: JsonRpcResponse };

const maxMethod = 128;
const maxId = 256;

/**
 * Reads a parsed value as exactly one JSON-RPC 2.0 message.
 * Members the protocol does not name are dropped; names are case-sensitive; a batch is refused, because clients'
 * servers run what is inside it one by one. Throws INVALID_REQUEST.
 */
export function readJsonRpc(value: Json): JsonRpcMessage {
  if (Array.isArray(value)) throw new GatewayError("INVALID_REQUEST", "expected one JSON-RPC message, got a batch");
  if (!isJsonObject(value))
    throw new GatewayError("INVALID_REQUEST", `expected a JSON-RPC object, got ${typeName(value)}`);
  if (value.jsonrpc !== "2.0") throw new GatewayError("INVALID_REQUEST", 'expected `jsonrpc` to be "2.0"');
  if (!Object.hasOwn(value, "method")) return { kind: "response", message: readResponse(value) };
  const { method, params } = value;
  if (typeof method !== "string")
    throw new GatewayError("INVALID_REQUEST", `expected \`method\` to be a string, got ${typeName(method)}`);
  if (method.length === 0 || method.length > maxMethod) {
    throw new GatewayError(
      "INVALID_REQUEST",
      `expected \`method\` of 1 to ${maxMethod} characters, got ${method.length}`,
    );
  }
  if (Object.hasOwn(value, "result") || Object.hasOwn(value, "error")) {
    throw new GatewayError("INVALID_REQUEST", "expected a request or a response, got members of both");
  }
  if (params !== undefined && !isJsonObject(params))
    throw new GatewayError("INVALID_REQUEST", `expected \`params\` to be an object, got ${typeName(params)}`);
  const given = params === undefined ? {} : { params };
  if (!Object.hasOwn(value, "id")) return { kind: "notification", message: { jsonrpc: "2.0", method, ...given } };
  return { kind: "request", message: { jsonrpc: "2.0", id: readId(value.id), method, ...given } };
}

function readResponse(value: JsonObject): JsonRpcResponse {
  const { result, error } = value;
  if (result !== undefined && error === undefined && isJsonObject(result)) {
    return { jsonrpc: "2.0", id: readId(value.id), result };
  }
  if (error !== undefined && result === undefined && isErrorBody(error)) {
    return { jsonrpc: "2.0", id: value.id === null ? null : readId(value.id), error };
  }
  throw new GatewayError("INVALID_REQUEST", "expected a `method`, or a response with either `result` or `error`");
}

function isErrorBody(value: Json): value is JsonObject & JsonRpcErrorBody {
  return isJsonObject(value) && Number.isInteger(value.code) && typeof value.message === "string";
}

function readId(id: Json | undefined): RequestId {
  if (typeof id === "string" && id.length <= maxId) return id;
  if (typeof id === "number" && Number.isSafeInteger(id)) return id;
  throw new GatewayError(
    "INVALID_REQUEST",
    `expected \`id\` to be a string of at most ${maxId} characters or an integer, got ${typeName(id)}`,
  );
}

/** The word for a value's JSON type, for messages. */
export function typeName(value: Json | undefined): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (value === undefined) return "nothing";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** The stateless revision: no handshake, no session; each request carries its envelope in `_meta`. */
export const modernRevision = "2026-07-28";

/** Revisions with an `initialize` handshake, oldest first. */
export const legacyRevisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const;
export const latestLegacyRevision = "2025-11-25";

export const supportedRevisions: readonly string[] = [...legacyRevisions, modernRevision];

/** The two generations of the protocol. */
export type McpEra = "legacy" | "modern";

/** Reserved `_meta` keys of the stateless revision. */
export const metaKey = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
} as const;

/** The body member that `Mcp-Name` must repeat, by method. */
export const mcpNameSource: Readonly<Record<string, "name" | "uri">> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** A tool name the gateway shows and calls: what the protocol recommends, so that names cannot imitate methods. */
export const toolNamePattern: RegExp = /^[A-Za-z0-9_.-]{1,128}$/;
