import { AuthorizedAction } from "../action/authorized-action.ts";
import { isJsonObject } from "../action/json.ts";
import { toolNamePattern } from "../action/json-rpc.ts";
import type { OutgoingRequest } from "./connection.ts";

/**
 * Consumes the permission and returns the request that was judged, to send to the upstream it was judged for and to no other.
 * Throws TypeError for a permission that is forged, spent, or for another upstream, and for arguments that no request can carry.
 */
export function spendOnRequest(permission: AuthorizedAction, upstream: string): OutgoingRequest {
  const action = AuthorizedAction.spend(permission);
  if (action.target !== upstream) {
    throw new TypeError(`spendOnRequest: judged for \`${action.target}\`, got \`${upstream}\``);
  }
  if (!isJsonObject(action.arguments)) throw new TypeError("spendOnRequest: expected arguments to be an object");
  // The judged members come last: a continuation cannot put another tool or other arguments in their place.
  if (toolNamePattern.test(action.tool)) {
    return {
      method: "tools/call",
      params: { ...action.continuation, name: action.tool, arguments: action.arguments },
    };
  }
  return { method: action.tool, params: { ...action.continuation, ...action.arguments } };
}
