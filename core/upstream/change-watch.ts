import type { Clock } from "../action/id.ts";
import { isJsonObject, type JsonObject } from "../action/json.ts";
import type { JsonRpcNotification } from "../action/json-rpc.ts";
import type { RpcConnection } from "./rpc-connection.ts";

const reopenMs = 10_000;

/**
 * Asks a stateless upstream to say when its lists change, for as long as the connection lives. A legacy one says so by
 * itself.
 */
export function watchChanges(connection: RpcConnection, onChange: (notification: JsonRpcNotification) => void): void {
  const wanted = connection.server.era === "modern" ? announced(connection.server.capabilities) : {};
  if (Object.keys(wanted).length === 0) return;
  const open = (): void => {
    if (connection.ended) return;
    const again = (): void => void setTimeout(open, reopenMs).unref();
    connection
      .request({ method: "subscriptions/listen", params: { notifications: wanted } }, { onNotification: onChange })
      .then((response) => {
        // An upstream that refuses to be listened to is asked again by the catalog's own clock instead.
        if ("result" in response) again();
      }, again);
  };
  open();
}

function announced(capabilities: JsonObject): JsonObject {
  const wanted: Record<string, true> = {};
  for (const area of ["tools", "prompts", "resources"]) {
    const capability = capabilities[area];
    if (isJsonObject(capability) && capability.listChanged === true) wanted[`${area}ListChanged`] = true;
  }
  return wanted;
}

/** A notification without the subscription it came by, which is the gateway's own affair. */
export function withoutSubscription(notification: JsonRpcNotification): JsonRpcNotification {
  const { params, ...rest } = notification;
  if (params === undefined) return notification;
  const { _meta: _, ...members } = params;
  return Object.keys(members).length === 0 ? rest : { ...rest, params: members };
}

const burst = 5_000;
const refillPerMs = 1;
const bytesPerUnit = 4_096;

/**
 * How many unsolicited messages an upstream may send: 5,000 at once and 1,000 a second after that, where each
 * started 4 KiB of a message counts as one more.
 */
export class FloodGate {
  readonly #clock: Clock;
  #units: number = burst;
  #last: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#last = clock();
  }

  /** Takes a message of so many bytes; false when the upstream sends more than it may. */
  admit(bytes: number): boolean {
    const now = this.#clock();
    this.#units = Math.min(burst, this.#units + Math.max(0, now - this.#last) * refillPerMs);
    this.#last = now;
    this.#units -= 1 + Math.floor(bytes / bytesPerUnit);
    return this.#units >= 0;
  }
}
