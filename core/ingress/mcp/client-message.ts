import { GatewayError } from "../../kernel/error.ts";
import type { Json } from "../../kernel/json.ts";
import type { JsonRpcNotification, JsonRpcResponse } from "../../kernel/json-rpc.ts";
import { mcpMethods } from "./method.ts";
import type { McpSession } from "./session.ts";

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
