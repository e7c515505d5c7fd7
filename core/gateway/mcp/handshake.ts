import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import {
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  latestLegacyRevision,
  legacyRevisions,
  metaKey,
  modernRevision,
  typeName,
} from "../../action/json-rpc.ts";
import type { Principal, SessionScope } from "../../action/principal.ts";
import { clientIdentity } from "../../http/access.ts";
import type { ConnectionListener, ServerDescription } from "../../upstream/connection.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";
import type { Caller } from "./caller.ts";
import { relayedCapabilities } from "./client-capability.ts";
import { type ClientRequestParts, relayToClient } from "./client-request.ts";
import { type RelayParts, relayNotification, unsolicited } from "./notification.ts";
import { McpSession, type SessionOwner } from "./session.ts";

export interface HandshakeParts extends ClientRequestParts, RelayParts {
  readonly identity: GatewayIdentity;
  readonly fleet: UpstreamFleet;
  /** Records the opening of a session; durable when it resolves. */
  readonly recordSession: (principal: Principal, scope: SessionScope, client: JsonObject) => Promise<void>;
}

/** The client that opens a session. */
interface Opener {
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly address: string;
}

/** A store of sessions, which assigns their ids. */
export interface SessionHome {
  add(open: (id: string) => Promise<McpSession>): Promise<McpSession>;
  end(session: McpSession): Promise<void>;
}

/**
 * Opens a session with its own upstream connections, adds it to `home` and responds to `initialize`. Rejects with
 * UPSTREAM_BUSY where no upstream has a connection for it: a session without any tool would mislead its client.
 */
export async function openSession(
  parts: HandshakeParts,
  home: SessionHome,
  { principal, scope, address }: Opener,
  request: JsonRpcRequest,
): Promise<{ session: McpSession; response: JsonRpcResponse }> {
  const introduction = readInitialize(request.params);
  const client = clientIdentity(introduction.clientInfo, address);
  const session = await home.add(async (id) => {
    await parts.recordSession(principal, scope, { name: client.name, version: client.version, event: "opened" });
    return makeSession(parts, id, { principal, client, capabilities: introduction.capabilities }, scope, introduction);
  });
  const servers = await session.group.servers().catch(async (cause: unknown) => {
    await home.end(session);
    throw cause;
  });
  const result = initializeResult(parts.identity, servers, introduction.protocolVersion);
  return { session, response: { jsonrpc: "2.0", id: request.id, result } };
}

/** Makes a session with its group of connections, which open on first use. */
function makeSession(
  parts: HandshakeParts,
  id: string,
  owner: SessionOwner,
  scope: SessionScope,
  { capabilities }: Introduction,
): McpSession {
  const { principal, client } = owner;
  const caller = (): Caller => ({
    principal,
    scope,
    client,
    era: { era: "legacy" },
    group,
    session,
    ticket: undefined,
    traceparent: undefined,
  });
  const group = parts.fleet.group({
    holder: principal,
    era: "legacy",
    capabilities,
    listener: listenerOf(parts, caller, () => session),
  });
  const session: McpSession = new McpSession(id, owner, group);
  return session;
}

function listenerOf(parts: HandshakeParts, caller: () => Caller, session: () => McpSession): ConnectionListener {
  return {
    onNotification: (upstream: string, note: JsonRpcNotification) => {
      const mixed = session().untrusted.has(upstream);
      relayNotification(parts, session().lanes.of(upstream), {
        ...unsolicited(parts.actions, caller, { upstream, note, mixed }),
        deliver: (left) => session().deliver(left),
        signal: session().ended,
      });
    },
    onRequest: (upstream, request, signal) => relayToClient(parts, caller(), { upstream, request }, signal),
    onClose: () => {
      // The group reopens the connection when it is next needed; the fleet reports the loss.
    },
  };
}

interface Introduction {
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
  readonly protocolVersion: string;
}

function readInitialize(params: JsonObject | undefined): Introduction {
  const { protocolVersion, capabilities, clientInfo } = params ?? {};
  if (typeof protocolVersion !== "string") throw invalidMember("protocolVersion", "a string", protocolVersion);
  if (!isJsonObject(capabilities)) throw invalidMember("capabilities", "an object", capabilities);
  if (!isJsonObject(clientInfo)) throw invalidMember("clientInfo", "an object", clientInfo);
  return { protocolVersion, clientInfo, capabilities: relayedCapabilities(capabilities) };
}

function invalidMember(member: string, expected: string, got: Json | undefined): GatewayError {
  return new GatewayError("INVALID_PARAMS", `expected \`${member}\` to be ${expected}, got ${typeName(got)}`);
}

/** The name and version of the gateway towards MCP clients. */
export interface GatewayIdentity {
  readonly name: string;
  readonly version: string;
}

/** The upstream capabilities that are relayed; others are not offered to clients. */
const relayed = ["tools", "prompts", "resources", "completions", "logging"] as const;

/** Merges the capabilities of upstreams: one is present where any has it, a flag is set where any sets it. */
export function mergeCapabilities(servers: readonly ServerDescription[]): JsonObject {
  const merged: Record<string, JsonObject> = {};
  for (const { capabilities } of servers) {
    for (const name of relayed) {
      const capability = capabilities[name];
      if (isJsonObject(capability)) merged[name] = orFlags(merged[name] ?? {}, capability);
    }
  }
  return merged;
}

function orFlags(left: JsonObject, right: JsonObject): JsonObject {
  const flags: Record<string, boolean> = {};
  for (const name of ["listChanged", "subscribe"]) {
    if (left[name] === true || right[name] === true) flags[name] = true;
  }
  return flags;
}

/** The result of `initialize`: the requested revision where it is supported, else the latest with a handshake. */
function initializeResult(
  identity: GatewayIdentity,
  servers: readonly ServerDescription[],
  requested: unknown,
): JsonObject {
  const protocolVersion = legacyRevisions.find((revision) => revision === requested) ?? latestLegacyRevision;
  return {
    protocolVersion,
    capabilities: mergeCapabilities(servers),
    serverInfo: { ...identity },
    ...instructionsOf(servers),
  };
}

/** The result of `server/discover`. */
export function discoverResult(identity: GatewayIdentity, servers: readonly ServerDescription[]): JsonObject {
  return {
    resultType: "complete",
    supportedVersions: [modernRevision],
    capabilities: mergeCapabilities(servers),
    ...instructionsOf(servers),
    ttlMs: 0,
    cacheScope: "private",
    _meta: { [metaKey.serverInfo]: { ...identity } },
  };
}

function instructionsOf(servers: readonly ServerDescription[]): { instructions?: string } {
  const texts = servers.flatMap(({ instructions }) => (instructions === undefined ? [] : [instructions]));
  return texts.length === 0 ? {} : { instructions: texts.join("\n\n") };
}
