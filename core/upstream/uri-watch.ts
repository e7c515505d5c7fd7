import { GatewayError } from "../kernel/error.ts";
import type { JsonRpcNotification } from "../kernel/json-rpc.ts";
import type { UpstreamConnection } from "./connection.ts";

const mostUris = 1_000;

/** The resource subscriptions of a legacy caller at a stateless upstream: one stream for all of them, opened anew at each change. */
export class UriWatch {
  readonly #connection: UpstreamConnection;
  readonly #deliver: (notification: JsonRpcNotification) => void;
  readonly #uris: Set<string> = new Set();
  #stream: AbortController | undefined;

  constructor(connection: UpstreamConnection, deliver: (notification: JsonRpcNotification) => void) {
    this.#connection = connection;
    this.#deliver = deliver;
  }

  /**
   * Resolves when the upstream acknowledged the changed set. Rejects with INVALID_PARAMS beyond 1,000 URIs, and with the
   * request's own fault.
   */
  async change(uri: string, wanted: boolean): Promise<void> {
    if (wanted && this.#uris.size >= mostUris) {
      throw new GatewayError("INVALID_PARAMS", `expected at most ${mostUris} subscriptions`);
    }
    if (wanted) this.#uris.add(uri);
    else this.#uris.delete(uri);
    const previous = this.#stream;
    this.#stream = undefined;
    try {
      if (this.#uris.size > 0) await this.#open();
    } finally {
      previous?.abort(new GatewayError("UPSTREAM_UNAVAILABLE", "the subscription was replaced"));
    }
  }

  stop(): void {
    this.#stream?.abort(new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed"));
    this.#stream = undefined;
  }

  #open(): Promise<void> {
    const stream = new AbortController();
    this.#stream = stream;
    return new Promise((resolve, reject) => {
      const params = { notifications: { resourceSubscriptions: [...this.#uris] } };
      const onNotification = (notification: JsonRpcNotification): void => {
        if (notification.method === "notifications/subscriptions/acknowledged") resolve();
        else if (notification.method === "notifications/resources/updated") this.#deliver(notification);
      };
      this.#connection
        .request({ method: "subscriptions/listen", params }, { signal: stream.signal, onNotification })
        .then((response) => {
          if ("result" in response) resolve();
          else
            reject(
              new GatewayError("UPSTREAM_INVALID", `a subscription was refused with error ${response.error.code}`),
            );
        }, reject);
    });
  }
}
