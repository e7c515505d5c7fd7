import { GatewayError } from "../action/error.ts";
import { JoinedBytes } from "../action/joined-bytes.ts";
import { longText } from "../action/strict-json.ts";

export interface SseEvent {
  readonly event?: string | undefined;
  readonly id?: string | undefined;
  /** In pieces where it is long. Not checked to be UTF-8. */
  readonly data: Buffer | JoinedBytes;
}

interface SseListener {
  onEvent(event: SseEvent): void;
  /** The stream ended; `retryMs` is the reconnection delay that the server asked for. */
  onEnd(retryMs: number | undefined): void;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const colon = 0x3a;
const space = 0x20;
const byteOrderMark = Buffer.from("\ufeff");
const breakBytes = Buffer.of(lineFeed);
/** Bytes that a line is told by: the longest name, the colon and the space behind it. */
const headBytes = 7;
/** Bytes of a value that is no data; what is beyond is left out. */
const maxValue = 2_048;
const digits = /^\d+$/;

/**
 * Reads a server-sent event stream, as HTML has it (section 9.2), by its bytes: the megabytes of an event are never one text. At most
 * `maxBytes` of one event, and at most twice as much between two events, so that endless comments end too.
 */
export class SseReader {
  readonly #maxBytes: number;
  readonly #listener: SseListener;
  #line: JoinedBytes = new JoinedBytes(0);
  #isFirstLine = true;
  /** The last byte was a carriage return: a line feed that follows belongs to the same line end. */
  #isAfterReturn = false;
  #event: string | undefined;
  #id: string | undefined;
  /** The data lines of the event; undefined while it has none. */
  #data: JoinedBytes | undefined;
  #sinceEvent = 0;
  #retryMs: number | undefined;

  constructor(maxBytes: number, listener: SseListener) {
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  /** Keeps the bytes. Throws UPSTREAM_INVALID; the reader must not be used after that. */
  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (bytes.length === 0) return;
    let at = this.#isAfterReturn && bytes[0] === lineFeed ? 1 : 0;
    this.#isAfterReturn = bytes.at(-1) === carriageReturn;
    let [feed, back] = [bytes.indexOf(lineFeed, at), bytes.indexOf(carriageReturn, at)];
    while (feed !== -1 || back !== -1) {
      const end = back === -1 || (feed !== -1 && feed < back) ? feed : back;
      this.#endLine(this.#line.add(bytes.subarray(at, end)));
      at = end === back && feed === end + 1 ? end + 2 : end + 1;
      if (feed !== -1 && feed < at) feed = bytes.indexOf(lineFeed, at);
      if (back !== -1 && back < at) back = bytes.indexOf(carriageReturn, at);
    }
    this.#line.add(bytes.subarray(at));
    this.#sinceEvent += bytes.length;
    this.#checkSize();
  }

  /** The stream ended. An event that was cut off is dropped. */
  end(): void {
    this.#listener.onEnd(this.#retryMs);
  }

  #checkSize(): void {
    const held = this.#line.length + (this.#data?.length ?? 0);
    if (held <= this.#maxBytes && this.#sinceEvent <= this.#maxBytes * 2) return;
    throw new GatewayError("UPSTREAM_INVALID", `expected an event of at most ${this.#maxBytes} bytes, got more`);
  }

  #endLine(line: JoinedBytes): void {
    this.#line = new JoinedBytes(0);
    const isMarked = this.#isFirstLine && line.ends(byteOrderMark.length)[0].equals(byteOrderMark);
    this.#isFirstLine = false;
    if (isMarked) this.#take(behind(line, byteOrderMark.length));
    else this.#take(line);
  }

  /** Fields with other names, and comments, are ignored. */
  #take(line: JoinedBytes): void {
    if (line.length === 0) {
      this.#dispatch();
      return;
    }
    const [head] = line.ends(headBytes);
    const end = head.indexOf(colon);
    const name = head.toString("latin1", 0, end === -1 ? line.length : end);
    const value = behind(line, end === -1 ? line.length : end + (head[end + 1] === space ? 2 : 1));
    if (name === "data") this.#addData(value);
    else if (name === "event") this.#event = textOf(value) || undefined;
    else if (name === "id") this.#id = textOf(value).includes("\0") ? this.#id : textOf(value);
    else if (name === "retry" && digits.test(textOf(value))) this.#retryMs = Number(textOf(value));
  }

  #addData(value: JoinedBytes): void {
    if (this.#data === undefined) this.#data = value;
    else for (const piece of [breakBytes, ...value.pieces]) this.#data.add(piece);
  }

  #dispatch(): void {
    const [event, id, data] = [this.#event, this.#id, this.#data];
    this.#event = this.#id = this.#data = undefined;
    if (data === undefined) return;
    this.#sinceEvent = 0;
    this.#listener.onEvent({ event, id, data: data.length < longText ? data.bytes : data });
  }
}

/** Returns the bytes behind the first `count`. */
function behind(line: JoinedBytes, count: number): JoinedBytes {
  const rest = new JoinedBytes(0);
  let left = count;
  for (const piece of line.pieces) {
    rest.add(piece.subarray(left));
    left = Math.max(0, left - piece.length);
  }
  return rest;
}

function textOf(value: JoinedBytes): string {
  return value.ends(maxValue)[0].toString("utf8");
}

const maxEventId = 1_024;
const eventIdPattern = /^[\x21-\x7e]+$/;

/** Returns an event's id where a header can carry it. */
export function eventId({ id }: SseEvent): string | undefined {
  return id !== undefined && id.length <= maxEventId && eventIdPattern.test(id) ? id : undefined;
}

/** True if the event is a message: other event names are not MCP's, and an event without data only carries an id. */
export function isMessage({ event, data }: SseEvent): boolean {
  return (event === undefined || event === "message") && data.length > 0;
}
