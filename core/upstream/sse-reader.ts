import { TextDecoder } from "node:util";
import { createParser, type EventSourceParser } from "eventsource-parser";
import { GatewayError } from "../action/error.ts";

export interface SseEvent {
  readonly event?: string | undefined;
  readonly id?: string | undefined;
  readonly data: string;
}

/**
 * Reads a server-sent event stream: strict UTF-8, at most `maxBytes` of one event, and at most as much between two
 * events, so that endless comments are an end too.
 */
export class SseReader {
  readonly #maxBytes: number;
  readonly #parser: EventSourceParser;
  readonly #decoder: TextDecoder = new TextDecoder("utf-8", { fatal: true });
  #sinceEvent = 0;
  #overflow = false;
  /** The reconnection delay the server asked for. */
  retryMs: number | undefined;

  constructor(maxBytes: number, onEvent: (event: SseEvent) => void) {
    this.#maxBytes = maxBytes;
    this.#parser = createParser({
      maxBufferSize: maxBytes,
      onEvent: (event) => {
        this.#sinceEvent = 0;
        onEvent(event);
      },
      onRetry: (retryMs) => {
        this.retryMs = retryMs;
      },
      onError: (error) => {
        // Unknown fields and bad retry values are to be ignored, says the standard.
        this.#overflow ||= error.type === "max-buffer-size-exceeded";
      },
    });
  }

  /** Throws UPSTREAM_INVALID; the reader must not be fed again after that. */
  push(chunk: Uint8Array): void {
    this.#parser.feed(this.#decode(chunk));
    this.#sinceEvent += chunk.length;
    if (this.#overflow || this.#sinceEvent > this.#maxBytes * 2) {
      throw new GatewayError("UPSTREAM_INVALID", `expected an event of at most ${this.#maxBytes} bytes, got more`);
    }
  }

  #decode(chunk: Uint8Array): string {
    try {
      return this.#decoder.decode(chunk, { stream: true });
    } catch (cause) {
      throw new GatewayError("UPSTREAM_INVALID", "expected UTF-8 in the event stream, got invalid bytes", { cause });
    }
  }
}
