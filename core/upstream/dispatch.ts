import { AuthorizedAction } from "../action/authorized-action.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { isJsonObject } from "../action/json.ts";
import { type JsonRpcResponse, toolNamePattern } from "../action/json-rpc.ts";
import type { Exchange, OutgoingRequest, UpstreamConnection } from "./connection.ts";

/**
 * Consumes the permission and sends the judged action, and nothing else, to the upstream it was judged for.
 * Throws TypeError for a permission that is forged, spent, or for another upstream.
 */
export function dispatchAction(
  connection: UpstreamConnection,
  permission: AuthorizedAction,
  exchange: Exchange,
): Promise<JsonRpcResponse> {
  const action = AuthorizedAction.spend(permission);
  if (action.target !== connection.upstream) {
    throw new TypeError(`dispatchAction: judged for \`${action.target}\`, got \`${connection.upstream}\``);
  }
  return connection.request(requestOf(action), exchange);
}

/** Writes an action as the request it was judged as. Throws TypeError for arguments that no request can carry. */
export function requestOf(action: ActionEnvelope): OutgoingRequest {
  if (!isJsonObject(action.arguments)) throw new TypeError("requestOf: expected arguments to be an object");
  // The judged members come last: a continuation cannot put another tool or other arguments in their place.
  if (toolNamePattern.test(action.tool)) {
    return {
      method: "tools/call",
      params: { ...action.continuation, name: action.tool, arguments: action.arguments },
    };
  }
  return { method: action.tool, params: { ...action.continuation, ...action.arguments } };
}
