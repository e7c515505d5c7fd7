import type { JsonRpcNotification } from "../../kernel/json-rpc.ts";

const relayed: ReadonlySet<string> = new Set([
  "notifications/message",
  "notifications/progress",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/elicitation/complete",
]);

/** Whether an upstream may tell a client this, in answering a request or unasked. Everything else ends here. */
export function isRelayed({ method }: JsonRpcNotification): boolean {
  return relayed.has(method);
}
