import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import {
  type JsonRpcResponse,
  latestLegacyRevision,
  legacyRevisions,
  type McpEra,
  metaKey,
  modernRevision,
} from "../action/json-rpc.ts";
import type { ServerDescription } from "./connection.ts";
import type { FlightLimits } from "./flight.ts";
import type { RpcConnection } from "./rpc-connection.ts";

export interface Introduction {
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
}

/** The upstream is there, and says that it does not speak this era. */
export class OtherEraError extends GatewayError {
  constructor(detail: string) {
    super("UPSTREAM_INVALID", detail);
    this.name = "OtherEraError";
  }
}

/**
 * Opens the conversation in one era. Throws OtherEraError where the upstream speaks the other one,
 * and the request's own error where it cannot be reached.
 */
export async function shakeHands(
  connection: RpcConnection,
  era: McpEra,
  who: Introduction,
  limits: FlightLimits,
): Promise<ServerDescription> {
  return era === "modern" ? discover(connection, who, limits) : initialize(connection, who, limits);
}

async function initialize(
  connection: RpcConnection,
  who: Introduction,
  limits: FlightLimits,
): Promise<ServerDescription> {
  const { clientInfo, capabilities } = who;
  const params = { protocolVersion: latestLegacyRevision, capabilities, clientInfo };
  const result = await ask(connection, "initialize", params, limits);
  const { protocolVersion, serverInfo, instructions } = result;
  if (typeof protocolVersion !== "string" || !(legacyRevisions as readonly string[]).includes(protocolVersion)) {
    throw new OtherEraError(`expected a protocol revision with a handshake, got ${quoted(protocolVersion)}`);
  }
  const server = {
    era: "legacy",
    revision: protocolVersion,
    capabilities: objectOr(result.capabilities),
    serverInfo: objectOr(serverInfo),
    ...(typeof instructions === "string" ? { instructions } : {}),
  } as const;
  connection.begin(server);
  await connection.notify({ method: "notifications/initialized" });
  return server;
}

async function discover(
  connection: RpcConnection,
  who: Introduction,
  limits: FlightLimits,
): Promise<ServerDescription> {
  const params = { _meta: modernEnvelope(who.clientInfo, who.capabilities) };
  const result = await ask(connection, "server/discover", params, limits);
  const { supportedVersions, instructions, _meta: meta } = result;
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(modernRevision)) {
    throw new OtherEraError(`expected \`supportedVersions\` with ${modernRevision}`);
  }
  const server = {
    era: "modern",
    revision: modernRevision,
    capabilities: objectOr(result.capabilities),
    serverInfo: objectOr(isJsonObject(meta) ? meta[metaKey.serverInfo] : undefined),
    ...(typeof instructions === "string" ? { instructions } : {}),
  } as const;
  connection.begin(server);
  return server;
}

async function ask(
  connection: RpcConnection,
  method: string,
  params: JsonObject,
  limits: FlightLimits,
): Promise<JsonObject> {
  let response: JsonRpcResponse;
  try {
    response = await connection.call({ method, params }, {}, limits);
  } catch (error) {
    const status = error instanceof GatewayError ? error.data?.http_status : undefined;
    // A client error other than a refusal of the gateway itself is how old servers answer what they do not know.
    if (typeof status === "number" && status >= 400 && status < 500 && ![401, 403, 429].includes(status)) {
      throw new OtherEraError(`\`${method}\` was answered with HTTP ${status}`);
    }
    throw error;
  }
  if ("result" in response) return response.result;
  throw new OtherEraError(`\`${method}\` was refused with error ${response.error.code}`);
}

function objectOr(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function quoted(value: Json | undefined): string {
  return typeof value === "string" ? `\`${value.slice(0, 32)}\`` : "none";
}

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

interface MetaSources {
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
