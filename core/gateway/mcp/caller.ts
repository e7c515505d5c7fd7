import type { Cancellation } from "../../action/cancellation.ts";
import type { ClientIdentity } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { Principal, SessionScope } from "../../action/principal.ts";
import type { UpstreamGroup } from "../../upstream/group.ts";
import type { Era } from "./era.ts";
import { mcpMethods } from "./method.ts";
import type { Reply } from "./reply.ts";
import type { McpSession } from "./session.ts";

/** The sender of one MCP request. */
export interface Caller {
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly client: ClientIdentity;
  readonly era: Era;
  /** The upstream connections that serve this caller. */
  readonly group: UpstreamGroup;
  /** The session a handshake opened; null for stateless and direct requests. */
  readonly session: McpSession | null;
  /** The ticket in the request's header. It is never disclosed. */
  readonly ticket: string | undefined;
  /** The `traceparent` header. */
  readonly traceparent: string | undefined;
}

/** A request while it is served. */
export interface OpenRequest {
  readonly caller: Caller;
  readonly request: JsonRpcRequest;
  /** `params._meta`; empty where there is none. */
  readonly meta: JsonObject;
  /** Receives the response, and the messages before it. */
  readonly reply: Reply;
  /** Aborts when the client no longer wants a response. */
  readonly cancellation: Cancellation;
}

/** Handles a notification of a client; unknown ones, and those that need a session where there is none, are dropped. */
export async function receiveNotification(session: McpSession | null, note: JsonRpcNotification): Promise<void> {
  if (Object.hasOwn(mcpMethods, note.method)) {
    throw new GatewayError(
      "INVALID_REQUEST",
      `expected \`${note.method}\` with an \`id\`: a notification is never run`,
    );
  }
  if (note.method === "notifications/cancelled") session?.cancel(requestIdOf(note.params?.requestId));
  if (note.method === "notifications/roots/list_changed" && session !== null) {
    // An upstream without a connection asks for the roots once it has one.
    const opened = await session.group.open().catch(() => []);
    for (const connection of opened) await connection.notify({ method: note.method });
  }
}

/** Passes a client's response to the upstream that asked. Throws INVALID_REQUEST for an unknown id. */
export function receiveAnswer(session: McpSession | null, answer: JsonRpcResponse): void {
  if (session?.answer(answer) !== true)
    throw new GatewayError("INVALID_REQUEST", "expected the id of an open request of the gateway");
}

function requestIdOf(value: Json | undefined): string | number {
  if (typeof value === "string" || typeof value === "number") return value;
  throw new GatewayError("INVALID_PARAMS", "expected `requestId` to be a string or an integer");
}
