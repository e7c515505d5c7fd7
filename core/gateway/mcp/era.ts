import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import {
  type JsonRpcRequest,
  type McpEra,
  mcpNameSource,
  metaKey,
  modernRevision,
  supportedRevisions,
} from "../../action/json-rpc.ts";
import { headerText } from "../../http/request.ts";
import type { MirroredParam } from "../../upstream/mcp-header.ts";

/** The validated envelope of a stateless request. */
interface ModernEnvelope {
  readonly clientInfo: JsonObject;
  readonly clientCapabilities: JsonObject;
  /** The `Mcp-Param-*` headers as they came, by lower-case name. */
  readonly paramHeaders: ReadonlyMap<string, string>;
}

export type Era = { readonly era: Extract<McpEra, "legacy"> } | ({ readonly era: "modern" } & ModernEnvelope);

/**
 * Returns the protocol era of a request. The body decides; the headers must agree with it, because an intermediary that
 * routes by header must not see another request than policy does.
 * Throws HEADER_MISMATCH, INVALID_PARAMS or PROTOCOL_VERSION.
 */
export function classifyEra(request: JsonRpcRequest, headers: IncomingHttpHeaders): Era {
  const meta = isJsonObject(request.params?._meta) ? request.params._meta : {};
  const header = headerText(headers, "mcp-protocol-version");
  const claimed = meta[metaKey.protocolVersion];
  if (claimed === undefined) {
    if (header === modernRevision) throw missing(metaKey.protocolVersion, "a string");
    if (header !== undefined && !supportedRevisions.includes(header)) throw unsupported(header);
    checkStandardHeaders(request, headers, false);
    return { era: "legacy" };
  }
  if (typeof claimed !== "string") throw missing(metaKey.protocolVersion, "a string");
  if (header !== claimed) throw mismatch("mcp-protocol-version", header, claimed);
  if (claimed !== modernRevision) throw unsupported(claimed);
  const clientInfo = meta[metaKey.clientInfo] ?? {};
  const clientCapabilities = meta[metaKey.clientCapabilities];
  if (!isJsonObject(clientCapabilities)) throw missing(metaKey.clientCapabilities, "an object");
  if (!isJsonObject(clientInfo)) throw missing(metaKey.clientInfo, "an object");
  checkStandardHeaders(request, headers, true);
  return { era: "modern", clientInfo, clientCapabilities, paramHeaders: paramHeadersIn(headers) };
}

/**
 * Checks the headers that mirror arguments of a tool call. `expected`: the value of each; headers for absent arguments are
 * ignored. Throws HEADER_MISMATCH.
 */
export function checkParamHeaders(sent: ReadonlyMap<string, string>, expected: readonly MirroredParam[]): void {
  for (const [header, value] of expected) {
    const got = sent.get(header);
    const text = got === undefined ? undefined : decodeHeaderValue(got);
    if (text === undefined || !isSameValue(text, value)) throw mismatch(header, got, String(value));
  }
}

const decimal = /^-?\d+(\.\d+)?$/;

/** The protocol compares numbers as numbers: `42.0` is `42`. */
function isSameValue(text: string, value: MirroredParam[1]): boolean {
  return typeof value === "number" ? decimal.test(text) && Number(text) === value : text === String(value);
}

function paramHeadersIn(headers: IncomingHttpHeaders): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith("mcp-param-")) found.set(name, String(value));
  }
  return found;
}

/** Throws PROTOCOL_VERSION for an unsupported revision in the header, where notifications and streams name it. */
export function checkRevisionHeader(headers: IncomingHttpHeaders): void {
  const header = headerText(headers, "mcp-protocol-version");
  if (header !== undefined && !supportedRevisions.includes(header)) throw unsupported(header);
}

/** Checks that headers agree with the body: an intermediary may route by them. `required`: they may not be absent. */
function checkStandardHeaders(request: JsonRpcRequest, headers: IncomingHttpHeaders, required: boolean): void {
  const method = headerText(headers, "mcp-method");
  if (method !== request.method && (required || method !== undefined))
    throw mismatch("mcp-method", method, request.method);
  const source = Object.hasOwn(mcpNameSource, request.method) ? mcpNameSource[request.method] : undefined;
  const named = source === undefined ? undefined : request.params?.[source];
  if (typeof named !== "string") return;
  const name = headerText(headers, "mcp-name");
  if (name === undefined && !required) return;
  if (name === undefined || decodeHeaderValue(name) !== named) throw mismatch("mcp-name", name, named);
}

const sentinel = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/;

/** A header value as the protocol encodes it: plain, or base64 of UTF-8 between `=?base64?` and `?=`. */
function decodeHeaderValue(value: string): string | undefined {
  const encoded = sentinel.exec(value)?.[1];
  if (encoded === undefined) return value.startsWith("=?base64?") && value.endsWith("?=") ? undefined : value;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  return text.includes("\ufffd") ? undefined : text;
}

function missing(key: string, type: string): GatewayError {
  return new GatewayError("INVALID_ENVELOPE", `expected \`_meta["${key}"]\` to be ${type}`);
}

function mismatch(header: string, got: string | undefined, body: string): GatewayError {
  const said = got === undefined ? "is missing" : `says \`${got.slice(0, 128)}\``;
  const detail = `the body says \`${body.slice(0, 128)}\` and the header \`${header}\` ${said}`;
  return new GatewayError("HEADER_MISMATCH", detail);
}

function unsupported(requested: string): GatewayError {
  const data = { supported: [modernRevision], requested: requested.slice(0, 64) };
  return new GatewayError("PROTOCOL_VERSION", `\`${requested.slice(0, 64)}\``, { data });
}
