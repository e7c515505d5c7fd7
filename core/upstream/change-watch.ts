import { isJsonObject, type JsonObject } from "../action/json.ts";
import type { JsonRpcNotification } from "../action/json-rpc.ts";
import type { RpcConnection } from "./rpc-connection.ts";

const reopenMs = 10_000;

/**
 * Subscribes to the list changes of a stateless upstream for as long as the connection lives. A legacy upstream sends
 * them without a subscription.
 */
export function watchChanges(connection: RpcConnection, onChange: (notification: JsonRpcNotification) => void): void {
  const wanted = connection.server.era === "modern" ? announcedChanges(connection.server.capabilities) : {};
  if (Object.keys(wanted).length === 0) return;
  const open = (): void => {
    if (connection.isEnded) return;
    const reopen = (): void => void setTimeout(open, reopenMs).unref();
    connection
      .request({ method: "subscriptions/listen", params: { notifications: wanted } }, { onNotification: onChange })
      .then((response) => {
        // Where the upstream refuses the subscription, the catalog's own refresh interval is enough.
        if ("result" in response) reopen();
      }, reopen);
  };
  open();
}

function announcedChanges(capabilities: JsonObject): JsonObject {
  const wanted: Record<string, true> = {};
  for (const area of ["tools", "prompts", "resources"]) {
    const capability = capabilities[area];
    if (isJsonObject(capability) && capability.listChanged === true) wanted[`${area}ListChanged`] = true;
  }
  return wanted;
}

/** Announces all lists of an upstream, for clients that had to do without it. */
export function announceLists(capabilities: JsonObject, announce: (notification: JsonRpcNotification) => void): void {
  for (const area of ["tools", "prompts", "resources"]) {
    if (isJsonObject(capabilities[area])) announce({ jsonrpc: "2.0", method: `notifications/${area}/list_changed` });
  }
}

/** Removes the id of the gateway's own subscription from a notification. */
export function withoutSubscription(notification: JsonRpcNotification): JsonRpcNotification {
  const { params, ...rest } = notification;
  if (params === undefined) return notification;
  const { _meta: _, ...members } = params;
  return Object.keys(members).length === 0 ? rest : { ...rest, params: members };
}
