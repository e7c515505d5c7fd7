import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { type McpEra, metaKey, modernRevision } from "../kernel/mcp.ts";

/** The members that the stateless revision wants in each request's `_meta`. */
export function modernEnvelope(clientInfo: JsonObject, capabilities: JsonObject): JsonObject {
  return {
    [metaKey.protocolVersion]: modernRevision,
    [metaKey.clientInfo]: clientInfo,
    [metaKey.clientCapabilities]: capabilities,
  };
}

const envelopeKeys: readonly string[] = [
  metaKey.protocolVersion,
  metaKey.clientInfo,
  metaKey.clientCapabilities,
  metaKey.logLevel,
];

export interface MetaSources {
  readonly era: McpEra;
  /** The connection's own envelope; the caller's members go before it, but never before the revision. */
  readonly envelope: JsonObject;
  /** Of the exchange: how this call is to be answered. */
  readonly exchange: JsonObject | undefined;
  /** The connection's progress token, where the caller wants progress. */
  readonly progressToken: number | undefined;
}

/** The params as they go on the wire: `_meta` as judged, then as the exchange says, in the words of the connection's era. */
export function wireParams(params: JsonObject | undefined, sources: MetaSources): JsonObject | undefined {
  const judged = params?._meta;
  if (sources.era === "legacy" && sources.exchange === undefined && judged === undefined) return params;
  const meta: Record<string, Json> = { ...sources.exchange, ...(isJsonObject(judged) ? judged : {}) };
  delete meta.progressToken;
  if (sources.progressToken !== undefined) meta.progressToken = sources.progressToken;
  if (sources.era === "legacy") for (const key of envelopeKeys) delete meta[key];
  const full =
    sources.era === "legacy" ? meta : { ...sources.envelope, ...meta, [metaKey.protocolVersion]: modernRevision };
  if (Object.keys(full).length > 0) return { ...params, _meta: full };
  if (judged === undefined) return params;
  const { _meta: _, ...rest } = params as JsonObject;
  return rest;
}

/** The progress token a caller asked to be told under, if any. */
export function progressTokenOf(
  params: JsonObject | undefined,
  exchange: JsonObject | undefined,
): string | number | undefined {
  const judged = params?._meta;
  const token = exchange?.progressToken ?? (isJsonObject(judged) ? judged.progressToken : undefined);
  return typeof token === "string" || typeof token === "number" ? token : undefined;
}
