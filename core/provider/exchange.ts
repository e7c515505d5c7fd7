import type { IncomingHttpHeaders } from "node:http";
import type { ErrorCode, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { ModelApi, ModelPurpose } from "../action/model-api.ts";
import type { BreakerState } from "../egress/breaker.ts";
import type { WireEvent } from "./wire/event-reader.ts";
import type { StreamReader } from "./wire/stream-reader.ts";

/** A request in the provider's own API. */
export interface ProviderRequest {
  /** JSON. */
  readonly body: string | Buffer;
  readonly purpose: ModelPurpose;
  readonly stream: boolean;
  /** Further headers, as name and value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
}

/** One request and its response, read at the reader's pace. */
export interface ProviderExchange {
  /** False as long as the provider certainly received nothing of the request. */
  readonly isReached: boolean;
  /** Rejects with PROVIDER_UNAVAILABLE where the connection fails. */
  head(): Promise<ResponseHead>;
  /**
   * Reads the next bytes of the body; undefined at its end. Rejects with PROVIDER_UNAVAILABLE where the connection is lost
   * before. One reader at a time.
   */
  read(): Promise<Uint8Array | undefined>;
  /** Ends the exchange: pending reads reject with `error`, and the connection is freed. No effect after a complete body. */
  fail(error: GatewayError): void;
}

/** The connections to one provider. */
export interface ProviderEndpoint {
  readonly api: ModelApi;
  send(request: ProviderRequest): ProviderExchange;
  close(): Promise<void>;
}

/** The response to a request, in the API of the client. */
export type ModelResponse = WholeResponse | StreamedResponse | FailedResponse;

export interface WholeResponse {
  readonly kind: "whole";
  readonly status: number;
  readonly body: JsonObject;
  /** The exact bytes, where nothing was translated. */
  readonly raw?: Uint8Array;
}

export interface StreamedResponse {
  readonly kind: "stream";
  /**
   * Read from the provider on demand. Rejects with PROVIDER_* where the stream fails, and with CANCELLED.
   * A reader that stops early must leave the loop or abort the signal, which frees the connection.
   */
  readonly events: AsyncIterable<WireEvent>;
  /** Reads each of the events, once and in order. */
  readonly reader: StreamReader;
}

export interface FailedResponse {
  readonly kind: "failed";
  /** `data.retry_after_s` is the time until the next attempt, where that is known. */
  readonly error: GatewayError;
  /** The status for the client: the provider's own where its error concerns the client, else that of `error`. */
  readonly status: number;
  /** The provider's own error; null where `error` is all that the client sees. */
  readonly body: JsonObject | null;
  /** `unknown`: the provider may have served the request. */
  readonly outcome: "error" | "unknown";
  /** True if another provider may succeed. */
  readonly mayFallBack: boolean;
}

/** An event for the operator's log; `kind` is the name of the log event. */
export type ProviderEvent =
  /** `detail` quotes nothing of the provider's text. */
  | {
      readonly kind: "provider_attempt_failed";
      readonly provider: string;
      readonly code: ErrorCode;
      readonly detail: string;
    }
  | {
      readonly kind: "provider_retry_scheduled";
      readonly provider: string;
      readonly attempt: number;
      readonly delayMs: number;
    }
  /** Once for each provider and member. */
  | { readonly kind: "request_hints_dropped"; readonly provider: string; readonly members: readonly string[] }
  | { readonly kind: "provider_circuit_changed"; readonly provider: string; readonly state: BreakerState };

export type ProviderEventSink = (event: ProviderEvent) => void;

/** One provider as operators see it. No address, no key. */
export interface ProviderHealth {
  readonly name: string;
  readonly type: "mock" | "openai" | "responses" | "anthropic";
  readonly enabled: boolean;
  /** The names that clients use. */
  readonly models: readonly string[];
  /** The models that are routed to it. */
  readonly routes: readonly string[];
  /** `closed`: in use; `open`: paused after failures; `half_open`: one request tests it. */
  readonly breaker: BreakerState;
  /** Failures in a row. */
  readonly failures: number;
  readonly requestsInFlight: number;
  /** Time until the next request is let through; 0 unless the circuit is open. */
  readonly restsForMs: number;
  /** The fault of the last attempt; null where it succeeded. */
  readonly lastFault: ErrorCode | null;
}
