import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import { type JsonBounds, parseStrictJson } from "../../action/strict-json.ts";

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const byteOrderMark = "\ufeff";
const defaultMaxBytes = 256 * 1024;

/**
 * Reads a server-sent event stream in pieces of any size and keeps its bytes: the `raw` of all events together is the
 * stream. Throws PROVIDER_INVALID for invalid UTF-8 and for more than `maxBytes` of one event with all that precedes it,
 * after which the reader must not be used.
 */
export class EventReader {
  readonly #maxBytes: number;
  #bytes: Buffer = Buffer.alloc(4_096);
  /** Bytes of the event that has not ended. */
  #length = 0;
  #lineIsEmpty = true;
  #anyLine = false;
  #afterReturn = false;
  /** The event ended with a carriage return as the last byte: a line feed that follows belongs to the same line end. */
  #complete = false;
  #first = true;

  constructor(maxBytes: number = defaultMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the events that end in this chunk. */
  push(chunk: Uint8Array): readonly WireEvent[] {
    const events: WireEvent[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (this.#complete) {
        const end = byte === lineFeed ? at + 1 : at;
        this.#keep(chunk.subarray(start, end));
        events.push(this.#take());
        start = end;
      }
      const ends = this.#endsEvent(byte);
      this.#complete = ends && byte === carriageReturn;
      if (!ends || this.#complete) continue;
      this.#keep(chunk.subarray(start, at + 1));
      events.push(this.#take());
      start = at + 1;
    }
    this.#keep(chunk.subarray(start));
    return events;
  }

  /**
   * Returns the bytes after the last event, if any: blank lines or comments without a blank line after them.
   * Throws PROVIDER_INVALID where they hold a field, because the stream was cut inside an event.
   */
  end(): readonly WireEvent[] {
    if (this.#length === 0) return [];
    const cut = !this.#complete;
    const event = this.#take();
    if (cut && event.keepAlive !== true) throw new GatewayError("PROVIDER_INVALID", "the stream ended inside an event");
    return [event];
  }

  /** True if this byte ends a blank line that follows another line. A return and a feed are one end of line. */
  #endsEvent(byte: number): boolean {
    const feedOfReturn = this.#afterReturn && byte === lineFeed;
    this.#afterReturn = byte === carriageReturn;
    if (feedOfReturn) return false;
    if (byte !== lineFeed && byte !== carriageReturn) {
      this.#lineIsEmpty = false;
      this.#anyLine = true;
      return false;
    }
    const ends = this.#lineIsEmpty && this.#anyLine;
    this.#lineIsEmpty = true;
    if (ends) this.#anyLine = false;
    return ends;
  }

  #keep(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#maxBytes) {
      throw new GatewayError("PROVIDER_INVALID", `expected an event of at most ${this.#maxBytes} bytes, got more`);
    }
    if (length > this.#bytes.length) {
      const grown = Buffer.alloc(Math.min(this.#maxBytes, Math.max(length, this.#bytes.length * 2)));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
  }

  #take(): WireEvent {
    const raw = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    this.#complete = false;
    if (!isUtf8(raw)) throw new GatewayError("PROVIDER_INVALID", "expected UTF-8 in the stream, got invalid bytes");
    const text = raw.toString("utf8");
    const read = readFields(this.#first && text.startsWith(byteOrderMark) ? text.slice(1) : text);
    this.#first = false;
    return { ...read, raw };
  }
}

/** Parses the fields of one event by the standard: data lines are joined, the last event name counts. */
function readFields(text: string): Omit<WireEvent, "raw"> {
  const data: string[] = [];
  const rest: string[] = [];
  let event = "";
  for (const line of text.split(/\r\n|\r|\n/)) {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + (line.charCodeAt(colon + 1) === 0x20 ? 2 : 1));
    if (name === "data") data.push(value);
    else if (name === "event") event = value;
    else if (line !== "") rest.push(line);
  }
  return {
    ...(event === "" ? {} : { event }),
    data: data.join("\n"),
    ...(rest.length === 0 ? {} : { rest: rest.join("\n") }),
    ...(data.length === 0 && event === "" ? { keepAlive: true } : {}),
  };
}

/** One event of a server-sent stream. */
export interface WireEvent {
  readonly event?: string;
  readonly data: string;
  /** The exact bytes, with the blank line that ends it. */
  readonly raw: Uint8Array;
  /** The lines beside `event` and `data`: comments, ids, non-standard fields. */
  readonly rest?: string;
  /** The event has no data: clients skip it, and only its bytes matter. */
  readonly keepAlive?: true;
}

/** The data of the chat API's last event; the only event of any API whose data is not JSON. */
export const doneData = "[DONE]";

const bounds: JsonBounds = { depth: 64, nodes: 100_000, stringLength: 1024 * 1024, reader: "tolerant" };

/** Parses the object in an event. Throws PROVIDER_INVALID for anything else. */
export function eventObject(event: WireEvent): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(event.data, bounds);
  } catch (cause) {
    throw new GatewayError("PROVIDER_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
  if (!isJsonObject(value)) throw new GatewayError("PROVIDER_INVALID", "expected an object in the event, got another");
  return value;
}

/** Writes an object as an event, named by the `type` of its data; the chat API names none. */
export function jsonEvent(api: ModelApi, data: JsonObject): WireEvent {
  return api === "chat" ? textEvent(JSON.stringify(data)) : textEvent(JSON.stringify(data), data.type as string);
}

export function textEvent(data: string, event?: string): WireEvent {
  const raw = Buffer.from(`${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`);
  return { ...(event === undefined ? {} : { event }), data, raw };
}

/** A comment that keeps a connection alive. */
export function keepAliveEvent(): WireEvent {
  return { data: "", raw: Buffer.from(": ping\n\n"), keepAlive: true };
}
