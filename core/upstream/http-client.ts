import { Pool } from "undici";
import { GatewayError } from "../action/error.ts";
import { type HttpConfig, isReservedHeader } from "../config/gateway-config.ts";
import { type HttpCall, unavailable } from "./http-call.ts";

/** Sockets kept beside one request and one stream for each connection, for concurrent requests. */
const spareSockets = 128;

/** The sockets to one HTTP upstream. It follows no redirect, asks for no encoding, and has no timeout of its own: callers have. */
export class HttpClient {
  readonly url: URL;
  /** Configured headers, as name, value, name, value. */
  readonly headers: readonly string[];
  readonly #pool: Pool;
  readonly #path: string;

  constructor(config: HttpConfig) {
    this.url = endpointUrl(config);
    this.headers = Object.entries(config.headers).flat();
    this.#path = this.url.pathname + this.url.search;
    this.#pool = new Pool(this.url.origin, {
      connections: config.maxConnections * 2 + spareSockets,
      bodyTimeout: 0,
      headersTimeout: 0,
      connect: { timeout: config.startTimeoutMs },
    });
  }

  send(method: "GET" | "DELETE", headers: string[], call: HttpCall): void {
    this.#dispatch({ path: this.#path, method, headers }, call);
  }

  /** Posts a JSON body; `path` is another one on the same origin where given. */
  post(headers: string[], body: string, call: HttpCall, path: string = this.#path): void {
    this.#dispatch({ path, method: "POST", headers, body }, call);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #dispatch(options: Parameters<Pool["dispatch"]>[0], call: HttpCall): void {
    try {
      this.#pool.dispatch(options, call);
    } catch (error) {
      call.fail(unavailable(error as Error));
    }
  }
}

/** The address of an HTTP upstream. Throws CONFIG_INVALID for another scheme, for credentials in it and for reserved headers. */
export function endpointUrl(config: HttpConfig): URL {
  const url = URL.canParse(config.url) ? new URL(config.url) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("CONFIG_INVALID", `upstream \`${config.name}\`: expected an http or https url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new GatewayError(
      "CONFIG_INVALID",
      `upstream \`${config.name}\`: expected credentials in a header, not in the url`,
    );
  }
  for (const name of Object.keys(config.headers)) {
    if (isReservedHeader(name)) {
      throw new GatewayError(
        "CONFIG_INVALID",
        `upstream \`${config.name}\`: header \`${name}\` belongs to the protocol`,
      );
    }
  }
  return url;
}
