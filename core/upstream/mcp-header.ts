import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { type JsonRpcRequest, mcpNameSource, metaKey } from "../action/json-rpc.ts";

/** A parameter that a tool's schema requires to be repeated as `Mcp-Param-<header>`. */
export interface ParamHeader {
  readonly path: readonly string[];
  readonly header: string;
}

export type MirroredParam = readonly [header: string, value: string | number | boolean];

/** Returns the headers that repeat a message of the stateless revision; none for a legacy message. */
export function mirrorHeaders(
  request: JsonRpcRequest,
  paramHeaders: (tool: string) => readonly ParamHeader[],
): string[] {
  const { params, method } = request;
  const meta = params?._meta;
  const revision = isJsonObject(meta) ? meta[metaKey.protocolVersion] : undefined;
  if (params === undefined || typeof revision !== "string") return [];
  const headers = ["mcp-protocol-version", revision, "mcp-method", method];
  const source = Object.hasOwn(mcpNameSource, method) ? mcpNameSource[method] : undefined;
  const name = source === undefined ? undefined : params[source];
  if (typeof name !== "string") return headers;
  headers.push("mcp-name", encodeHeader(name));
  if (method !== "tools/call") return headers;
  for (const [header, value] of mirroredParams(params.arguments, paramHeaders(name))) {
    headers.push(header, encodeHeader(String(value)));
  }
  return headers;
}

/** Returns the headers that repeat arguments of a call, in lower case, each with its value. */
export function mirroredParams(args: Json | undefined, paramHeaders: readonly ParamHeader[]): readonly MirroredParam[] {
  return paramHeaders.flatMap(({ path, header }) => {
    const value = memberAt(args, path);
    return isMirrored(value) ? [[`mcp-param-${header.toLowerCase()}`, value] as const] : [];
  });
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;
const mirroredTypes: ReadonlySet<Json | undefined> = new Set(["string", "integer", "boolean"]);
const maxHeaders = 32;

/** Finds the `x-mcp-header` declarations of an input schema: primitive properties, reached through `properties` alone. */
export function paramHeadersOf(inputSchema: Json | undefined): readonly ParamHeader[] {
  const found: ParamHeader[] = [];
  const visit = (schema: Json | undefined, path: readonly string[]): void => {
    if (!isJsonObject(schema) || found.length >= maxHeaders) return;
    const header = schema["x-mcp-header"];
    if (typeof header === "string" && path.length > 0 && token.test(header) && mirroredTypes.has(schema.type)) {
      found.push({ path, header });
    }
    if (!isJsonObject(schema.properties)) return;
    for (const [name, property] of Object.entries(schema.properties)) visit(property, [...path, name]);
  };
  visit(inputSchema, []);
  return found;
}

const sentinel = { start: "=?base64?", end: "?=" } as const;
const plainField = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;

/** Returns a header value unchanged, or in the protocol's base64 wrapping where a header field cannot carry it. */
export function encodeHeader(value: string): string {
  const isAmbiguous = value.startsWith(sentinel.start) && value.endsWith(sentinel.end);
  if (plainField.test(value) && !isAmbiguous) return value;
  return `${sentinel.start}${Buffer.from(value, "utf8").toString("base64")}${sentinel.end}`;
}

function isMirrored(value: Json | undefined): value is string | number | boolean {
  return typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value);
}

function memberAt(root: Json | undefined, path: readonly string[]): Json | undefined {
  let value = root;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = (value as JsonObject)[key];
  }
  return value;
}
