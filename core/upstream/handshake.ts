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
import type { OutgoingRequest, ServerDescription } from "./connection.ts";
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

/** The limits of one start: the time that is left of its budget, and the silence after which the other era is asked too. */
interface NegotiationLimits {
  /** Milliseconds that are left of the start's budget. */
  readonly leftMs: () => number;
  /** Null where the transport answers what it does not know: then the eras are asked one after the other. */
  readonly silenceMs: number | null;
}

/**
 * Finds the era that the upstream speaks and performs its handshake. Each era has all the time that is left: a process that
 * starts slowly reads both requests once it is up, and one that is silent to a request that it does not know answers the
 * other one. Throws OtherEraError where it speaks none of `eras`, and the request's own error where it cannot be reached.
 */
export async function negotiate(
  connection: RpcConnection,
  eras: readonly McpEra[],
  client: Introduction,
  { leftMs, silenceMs }: NegotiationLimits,
): Promise<ServerDescription> {
  const decided = new AbortController();
  const ask = (era: McpEra): Promise<ServerDescription> => {
    const timeoutMs = Math.max(1, leftMs());
    return introduce(connection, era, client, { timeoutMs, maxTimeoutMs: timeoutMs }, decided.signal);
  };
  const [preferred, other] = eras as readonly [McpEra, McpEra | undefined];
  const server = await (other === undefined ? ask(preferred) : askBoth(ask, [preferred, other], silenceMs));
  await begin(connection, server);
  decided.abort(new GatewayError("CANCELLED"));
  return server;
}

/** Performs the handshake of one era. Throws as `negotiate` does. */
export async function shakeHands(
  connection: RpcConnection,
  era: McpEra,
  client: Introduction,
  limits: FlightLimits,
): Promise<void> {
  await begin(connection, await introduce(connection, era, client, limits));
}

async function askBoth(
  ask: (era: McpEra) => Promise<ServerDescription>,
  [preferred, other]: readonly [McpEra, McpEra],
  silenceMs: number | null,
): Promise<ServerDescription> {
  const first = ask(preferred);
  if (silenceMs === null || !(await isPendingAfter(first, silenceMs))) {
    return first.catch((error: unknown) => {
      if (error instanceof OtherEraError) return ask(other);
      throw error;
    });
  }
  try {
    return await Promise.any([first, ask(other)]);
  } catch (cause) {
    // A refusal says least where the other request met silence or the end of the process.
    const { errors } = cause as AggregateError;
    throw errors.find((error) => !(error instanceof OtherEraError)) ?? errors[1];
  }
}

async function isPendingAfter(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), ms);
  });
  const settled = promise.then(
    () => false,
    () => false,
  );
  const isPending = await Promise.race([settled, late]);
  clearTimeout(timer);
  return isPending;
}

/** From now on requests are written in the era of `server`. */
async function begin(connection: RpcConnection, server: ServerDescription): Promise<void> {
  connection.begin(server);
  if (server.era === "legacy") await connection.notify({ method: "notifications/initialized" });
}

/** Sends the first request of one era. */
function introduce(
  connection: RpcConnection,
  era: McpEra,
  client: Introduction,
  limits: FlightLimits,
  signal?: AbortSignal,
): Promise<ServerDescription> {
  const send = (method: string, params: JsonObject): Promise<JsonObject> =>
    requestResult(connection, { method, params }, limits, signal);
  return era === "modern" ? discover(send, client) : initialize(send, client);
}

type Send = (method: string, params: JsonObject) => Promise<JsonObject>;

async function initialize(send: Send, { clientInfo, capabilities }: Introduction): Promise<ServerDescription> {
  const result = await send("initialize", { protocolVersion: latestLegacyRevision, capabilities, clientInfo });
  const { protocolVersion, serverInfo, instructions } = result;
  if (typeof protocolVersion !== "string" || !(legacyRevisions as readonly string[]).includes(protocolVersion)) {
    throw new OtherEraError(`expected a protocol revision with a handshake, got ${quoted(protocolVersion)}`);
  }
  return {
    era: "legacy",
    revision: protocolVersion,
    capabilities: objectOr(result.capabilities),
    serverInfo: objectOr(serverInfo),
    ...(typeof instructions === "string" ? { instructions } : {}),
  };
}

async function discover(send: Send, { clientInfo, capabilities }: Introduction): Promise<ServerDescription> {
  const result = await send("server/discover", { _meta: modernEnvelope(clientInfo, capabilities) });
  const { supportedVersions, instructions, _meta: meta } = result;
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(modernRevision)) {
    throw new OtherEraError(`expected \`supportedVersions\` with ${modernRevision}`);
  }
  return {
    era: "modern",
    revision: modernRevision,
    capabilities: objectOr(result.capabilities),
    serverInfo: objectOr(isJsonObject(meta) ? meta[metaKey.serverInfo] : undefined),
    ...(typeof instructions === "string" ? { instructions } : {}),
  };
}

async function requestResult(
  connection: RpcConnection,
  request: OutgoingRequest,
  limits: FlightLimits,
  signal: AbortSignal | undefined,
): Promise<JsonObject> {
  const { method } = request;
  let response: JsonRpcResponse;
  try {
    response = await connection.request(request, signal === undefined ? {} : { signal }, limits);
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
