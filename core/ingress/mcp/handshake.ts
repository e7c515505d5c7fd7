import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import {
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  typeName,
} from "../../kernel/json-rpc.ts";
import type { Principal } from "../../kernel/principal.ts";
import type { SessionScope } from "../../kernel/session-scope.ts";
import type { ConnectionListener } from "../../upstream/connection.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";
import { type Caller, clientIdentity } from "./caller.ts";
import { type ClientRequestParts, relayToClient } from "./client-request.ts";
import { type GatewayIdentity, initializeResult } from "./server-card.ts";
import { McpSession } from "./session.ts";
import type { SessionTable } from "./session-table.ts";

/** The client capabilities that upstreams learn of; what they may ask of the client is governed. */
const relayedCapabilities = ["roots", "sampling", "elicitation"] as const;

/** Notifications an upstream may send to a client unasked. */
const relayedNotifications: ReadonlySet<string> = new Set([
  "notifications/message",
  "notifications/progress",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/elicitation/complete",
]);

export interface HandshakeParts extends ClientRequestParts {
  readonly identity: GatewayIdentity;
  readonly fleet: UpstreamFleet;
  readonly sessions: SessionTable;
  readonly newSessionId: () => string;
  readonly nowMs: () => number;
  /** Makes the opening of a session durable evidence. */
  readonly recordSession: (principal: Principal, scope: SessionScope, client: JsonObject) => Promise<void>;
}

/** Opens a session with upstream connections of its own and answers `initialize`. */
export async function openSession(
  parts: HandshakeParts,
  principal: Principal,
  scope: SessionScope,
  request: JsonRpcRequest,
  address: string,
): Promise<{ session: McpSession; response: JsonRpcResponse }> {
  const { clientInfo, capabilities, protocolVersion } = readInitialize(request.params);
  parts.sessions.checkRoom();
  const client = clientIdentity(clientInfo, address);
  await parts.recordSession(principal, scope, { name: client.name, version: client.version, event: "opened" });
  let session: McpSession | undefined;
  const caller = (): Caller => ({
    principal,
    scope,
    client,
    era: { era: "legacy" },
    group,
    session: session ?? null,
  });
  const group = parts.fleet.group({ era: "legacy", clientInfo, capabilities, listener: listenerOf(parts, caller) });
  session = new McpSession(parts.newSessionId(), { principal, client, clientInfo, capabilities }, group, parts.nowMs());
  parts.sessions.add(session);
  const servers = (await group.open()).map(({ server }) => server);
  const result = initializeResult(parts.identity, servers, protocolVersion);
  return { session, response: { jsonrpc: "2.0", id: request.id, result } };
}

function listenerOf(parts: ClientRequestParts, caller: () => Caller): ConnectionListener {
  return {
    onNotification: (_upstream: string, note: JsonRpcNotification) => {
      if (relayedNotifications.has(note.method)) caller().session?.deliver(note);
    },
    onRequest: (upstream, request, signal) => relayToClient(parts, caller(), upstream, request, signal),
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
  if (typeof protocolVersion !== "string") throw wrong("protocolVersion", "a string", protocolVersion);
  if (!isJsonObject(capabilities)) throw wrong("capabilities", "an object", capabilities);
  if (!isJsonObject(clientInfo)) throw wrong("clientInfo", "an object", clientInfo);
  const kept = relayedCapabilities.filter((name) => isJsonObject(capabilities[name]));
  return {
    protocolVersion,
    clientInfo,
    capabilities: Object.fromEntries(kept.map((name) => [name, capabilities[name] as Json])),
  };
}

function wrong(member: string, expected: string, got: Json | undefined): GatewayError {
  return new GatewayError("INVALID_PARAMS", `expected \`${member}\` to be ${expected}, got ${typeName(got)}`);
}
