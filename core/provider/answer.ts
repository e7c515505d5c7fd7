import type { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { WireEvent } from "./wire/event.ts";
import type { StreamReader } from "./wire/stream-reader.ts";

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
