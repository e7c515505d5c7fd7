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
import { modernEnvelope, type RpcConnection } from "./rpc-connection.ts";
import type { FlightLimits } from "./transport.ts";

/** The client as it introduces itself to the upstream. */
export interface Introduction {
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
}

/** The upstream is reachable, but reports that it does not support this era. */
export class OtherEraError extends GatewayError {
  constructor(detail: string) {
    super("UPSTREAM_INVALID", detail);
    this.name = "OtherEraError";
  }
}

/**
 * Performs the handshake of one era. Throws OtherEraError where the upstream supports only the other one,
 * and the request's own error where it cannot be reached.
 */
export async function shakeHands(
  connection: RpcConnection,
  era: McpEra,
  client: Introduction,
  limits: FlightLimits,
): Promise<ServerDescription> {
  return era === "modern" ? discover(connection, client, limits) : initialize(connection, client, limits);
}

async function initialize(
  connection: RpcConnection,
  client: Introduction,
  limits: FlightLimits,
): Promise<ServerDescription> {
  const { clientInfo, capabilities } = client;
  const params = { protocolVersion: latestLegacyRevision, capabilities, clientInfo };
  const result = await requestResult(connection, "initialize", params, limits);
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
  client: Introduction,
  limits: FlightLimits,
): Promise<ServerDescription> {
  const params = { _meta: modernEnvelope(client.clientInfo, client.capabilities) };
  const result = await requestResult(connection, "server/discover", params, limits);
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

async function requestResult(
  connection: RpcConnection,
  method: string,
  params: JsonObject,
  limits: FlightLimits,
): Promise<JsonObject> {
  let response: JsonRpcResponse;
  try {
    response = await connection.request({ method, params }, {}, limits);
  } catch (error) {
    const status = error instanceof GatewayError ? error.data?.http_status : undefined;
    // Old servers answer an unknown method with a client error; 401, 403 and 429 refuse the gateway itself.
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
