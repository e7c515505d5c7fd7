import type { ClientIdentity } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Json } from "../../action/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { Principal, SessionScope } from "../../action/principal.ts";
import type { UpstreamGroup } from "../../upstream/group.ts";
import type { Era } from "./era.ts";
import { mcpMethods } from "./method.ts";
import type { Reply } from "./reply.ts";
import type { McpSession } from "./session.ts";

/** Who sent one MCP request, and through what. */
export interface Caller {
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly client: ClientIdentity;
  readonly era: Era;
  /** The upstream connections that serve this caller. */
  readonly group: UpstreamGroup;
  /** The session a handshake opened; null for stateless and direct requests. */
  readonly session: McpSession | null;
  /** The token in the request's header. It is told to nobody. */
  readonly ticket: string | undefined;
  /** What the request's headers say of its trace. */
  readonly traceparent: string | undefined;
}

/** A request for as long as it is served. */
export interface OpenRequest {
  readonly caller: Caller;
  readonly request: JsonRpcRequest;
  /** Where its answer goes, and what is said before that. */
  readonly reply: Reply;
  /** Aborts when the client wants no answer any more. */
  readonly signal: AbortSignal;
}

/** Acts on a notification of a client; one that is unknown, or that needs a session where there is none, is dropped. */
export async function receiveNotification(session: McpSession | null, note: JsonRpcNotification): Promise<void> {
  if (Object.hasOwn(mcpMethods, note.method)) {
    throw new GatewayError(
      "INVALID_REQUEST",
      `\`${note.method}\` expects an \`id\`: as a notification it is never run`,
    );
  }
  if (note.method === "notifications/cancelled") session?.cancel(requestIdOf(note.params?.requestId));
  if (note.method === "notifications/roots/list_changed" && session !== null) {
    for (const connection of await session.group.open()) await connection.notify({ method: note.method });
  }
}

/** Hands a client's answer to whoever asked. Throws INVALID_REQUEST where nobody did. */
export function receiveAnswer(session: McpSession | null, answer: JsonRpcResponse): void {
  if (session?.answer(answer) !== true) throw new GatewayError("INVALID_REQUEST", "this answers no request of ours");
}

function requestIdOf(value: Json | undefined): string | number {
  if (typeof value === "string" || typeof value === "number") return value;
  throw new GatewayError("INVALID_PARAMS", "expected `requestId` to be a string or an integer");
}
