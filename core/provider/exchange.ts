import type { IncomingHttpHeaders } from "node:http";
import type { ErrorCode, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { ModelApi } from "../action/model-api.ts";
import type { BreakerState } from "./breaker.ts";
import type { WireEvent } from "./wire/event-reader.ts";
import type { StreamReader } from "./wire/stream-reader.ts";

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

/** What became of a request, in the API of the client. */
export type ModelAnswer = WholeAnswer | StreamedAnswer | FailedAnswer;

export interface WholeAnswer {
  readonly kind: "whole";
  readonly status: number;
  readonly body: JsonObject;
  /** The exact bytes, where nothing was translated. */
  readonly raw?: Uint8Array;
}

export interface StreamedAnswer {
  readonly kind: "stream";
  /**
   * Read from the provider as they are asked for. Rejects with PROVIDER_* where the stream breaks off, and with
   * CANCELLED. Whoever does not read them to the end must leave the loop or abort the signal: that frees the connection.
   */
  readonly events: AsyncIterable<WireEvent>;
  /** To be fed each of them, once and in order. */
  readonly reader: StreamReader;
}

export interface FailedAnswer {
  readonly kind: "failed";
  /** `data.retry_after_s` says when to try again, where that is known. */
  readonly error: GatewayError;
  /** What the client gets: the provider's own where it has something to say to the client, else that of `error`. */
  readonly status: number;
  /** The provider's own error; null where there is nothing to say but `error`. */
  readonly body: JsonObject | null;
  /** `unknown`: the provider may have served the request. */
  readonly outcome: "error" | "unknown";
  /** Whether another provider may do better. */
  readonly elsewhere: boolean;
}

/** What the fleet reports to the operator's log. */
export type ProviderEvent =
  /** An attempt failed. `detail` quotes nothing that the provider said. */
  | { readonly kind: "failed"; readonly provider: string; readonly code: ErrorCode; readonly detail: string }
  | { readonly kind: "repeated"; readonly provider: string; readonly attempt: number; readonly delayMs: number }
  | { readonly kind: "breaker"; readonly provider: string; readonly state: BreakerState };

export type ProviderEventSink = (event: ProviderEvent) => void;

/** One provider as operators see it. No address, no key. */
export interface ProviderHealth {
  readonly name: string;
  readonly type: "mock" | "openai" | "anthropic";
  readonly enabled: boolean;
  /** As clients say them. */
  readonly models: readonly string[];
  /** The models whose routes name it. */
  readonly routes: readonly string[];
  /** `closed`: it is asked; `open`: it rests; `half_open`: one request tries it. */
  readonly breaker: BreakerState;
  /** In a row. */
  readonly failures: number;
  readonly requestsInFlight: number;
  /** Until it is asked again; 0 unless it rests. */
  readonly restsForMs: number;
  /** Why the last attempt failed; null where it did not. */
  readonly lastFault: ErrorCode | null;
}
