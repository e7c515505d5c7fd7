import { TextDecoder } from "node:util";
import { createParser, type EventSourceParser } from "eventsource-parser";
import { GatewayError } from "../action/error.ts";

export interface SseEvent {
  readonly event?: string | undefined;
  readonly id?: string | undefined;
  readonly data: string;
}

interface SseListener {
  onEvent(event: SseEvent): void;
  /** The stream ended; `retryMs` is the reconnection delay that the server asked for. */
  onEnd(retryMs: number | undefined): void;
}

/**
 * Reads a server-sent event stream: strict UTF-8, at most `maxBytes` of one event, and at most twice as much between
 * two events, so that endless comments end too.
 */
export class SseReader {
  readonly #maxBytes: number;
  readonly #listener: SseListener;
  readonly #parser: EventSourceParser;
  readonly #decoder: TextDecoder = new TextDecoder("utf-8", { fatal: true });
  /** A carriage return that ended the last chunk: the parser looks at it again only with the character that follows. */
  #held = "";
  #sinceEvent = 0;
  #hasOverflown = false;
  #retryMs: number | undefined;

  constructor(maxBytes: number, listener: SseListener) {
    this.#maxBytes = maxBytes;
    this.#listener = listener;
    this.#parser = createParser({
      maxBufferSize: maxBytes,
      onEvent: (event) => {
        this.#sinceEvent = 0;
        listener.onEvent(event);
      },
      onRetry: (retryMs) => {
        this.#retryMs = retryMs;
      },
      onError: (error) => {
        // The standard requires unknown fields and bad retry values to be ignored.
        this.#hasOverflown ||= error.type === "max-buffer-size-exceeded";
      },
    });
  }

  /** Throws UPSTREAM_INVALID; the reader must not be used after that. */
  push(chunk: Uint8Array): void {
    const text = this.#held + this.#decode(chunk);
    this.#held = text.endsWith("\r") ? "\r" : "";
    this.#parser.feed(text.slice(0, text.length - this.#held.length));
    this.#sinceEvent += chunk.length;
    if (this.#hasOverflown || this.#sinceEvent > this.#maxBytes * 2) {
      throw new GatewayError("UPSTREAM_INVALID", `expected an event of at most ${this.#maxBytes} bytes, got more`);
    }
  }

  /** The stream ended. An event that was cut off is dropped. */
  end(): void {
    this.#listener.onEnd(this.#retryMs);
  }

  #decode(chunk: Uint8Array): string {
    try {
      return this.#decoder.decode(chunk, { stream: true });
    } catch (cause) {
      throw new GatewayError("UPSTREAM_INVALID", "expected UTF-8 in the event stream, got invalid bytes", { cause });
    }
  }
}

const maxEventId = 1_024;
const eventIdPattern = /^[\x21-\x7e]+$/;

/** Returns an event's id where a header can carry it. */
export function eventId({ id }: SseEvent): string | undefined {
  return id !== undefined && id.length <= maxEventId && eventIdPattern.test(id) ? id : undefined;
}

/** True if the event is a message: other event names are not MCP's, and an event without data only carries an id. */
export function isMessage({ event, data }: SseEvent): boolean {
  return (event === undefined || event === "message") && data !== "";
}
