import type { IncomingHttpHeaders } from "node:http";
import type { GatewayError } from "../kernel/error.ts";
import type { ModelApi } from "../kernel/model-api.ts";

/** What goes to a provider, in its own API. */
export interface OutgoingRequest {
  /** JSON. */
  readonly body: string;
  readonly stream: boolean;
  /** Further headers, as name and value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How an answer begins. */
export interface Head {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
}

/** One request and its answer, read as fast as the reader asks for it. */
export interface Exchange {
  /** False as long as the provider certainly saw nothing of the request. */
  readonly reached: boolean;
  /** Rejects with PROVIDER_UNAVAILABLE where the connection fails. */
  head(): Promise<Head>;
  /**
   * The next bytes of the body; undefined at its end. Rejects with PROVIDER_UNAVAILABLE where the connection is lost
   * before. One reader at a time.
   */
  read(): Promise<Uint8Array | undefined>;
  /** Ends it: whoever waits gets `error`, and the connection is free at once. Nothing once the body was received whole. */
  fail(error: GatewayError): void;
}

/** Where requests for one provider go. */
export interface Endpoint {
  readonly api: ModelApi;
  send(request: OutgoingRequest): Exchange;
  close(): Promise<void>;
}
