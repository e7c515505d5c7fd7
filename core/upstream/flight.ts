import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { type JsonRpcMessage, type JsonRpcRequest, type JsonRpcResponse, readJsonRpc } from "../action/json-rpc.ts";
import { type JsonBounds, parseStrictJson, parseStrictText } from "../action/strict-json.ts";
import type { Exchange } from "./connection.ts";

export interface FlightLimits {
  /** Silence allowed. */
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
}

interface FlightOptions extends FlightLimits {
  readonly request: JsonRpcRequest;
  readonly exchange: Exchange;
  readonly clock: Clock;
  /** The caller's progress token, to be put back into notifications. */
  readonly progressToken: string | number | undefined;
  /** Called once, when it has settled for whatever reason. */
  readonly onSettled: (flight: Flight) => void;
  /** The flight ended without an answer by the caller's will or by its deadline: tell the upstream. */
  readonly onCancel: (flight: Flight, reason: string) => void;
}

/** One request in flight: its promise, its two deadlines and its caller's signal. Settles exactly once. */
export class Flight {
  readonly request: JsonRpcRequest;
  readonly exchange: Exchange;
  readonly progressToken: string | number | undefined;
  readonly answer: Promise<JsonRpcResponse>;
  /** Set by the transport: lets go of what it holds for this flight. */
  release: ((answered: boolean) => void) | undefined;
  /** Whether it was sent again after the upstream had refused it unread. */
  resent = false;
  readonly #options: FlightOptions;
  readonly #hardEnd: number;
  #resolve!: (response: JsonRpcResponse) => void;
  #reject!: (reason: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #settled = false;

  constructor(options: FlightOptions) {
    this.request = options.request;
    this.exchange = options.exchange;
    this.progressToken = options.progressToken;
    this.#options = options;
    this.#hardEnd = options.clock() + options.maxTimeoutMs;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(this.#onDeadline, Math.min(options.timeoutMs, options.maxTimeoutMs));
    options.exchange.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** For transports with headers, as name and value; empty where the request is not traced. */
  get traceHeader(): readonly string[] {
    const { traceparent } = this.exchange;
    return traceparent === undefined ? [] : ["traceparent", traceparent];
  }

  get settled(): boolean {
    return this.#settled;
  }

  resolve(response: JsonRpcResponse): void {
    if (this.#settle(true)) this.#resolve(response);
  }

  reject(reason: unknown): void {
    if (this.#settle(false)) this.#reject(reason);
  }

  /** The upstream is at work: silence counts anew, up to the longest time allowed. */
  progress(): void {
    if (this.#settled || this.#timer === undefined) return;
    const left = this.#hardEnd - this.#options.clock();
    if (left > this.#options.timeoutMs) {
      this.#timer.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onDeadline, Math.max(0, left));
  }

  /** From now on only the caller or the upstream ends it. */
  liftDeadline(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #onDeadline = (): void => {
    const hard = this.#options.clock() >= this.#hardEnd;
    const waitedMs = hard ? this.#options.maxTimeoutMs : this.#options.timeoutMs;
    this.#cancel(
      new GatewayError("UPSTREAM_TIMEOUT", `expected an answer to \`${this.request.method}\` within ${waitedMs} ms`),
      "timeout",
    );
  };

  #onAbort = (): void => {
    this.#cancel(this.exchange.signal?.reason, "cancelled by the caller");
  };

  #cancel(reason: unknown, text: string): void {
    if (!this.#settle(false)) return;
    this.#reject(reason);
    this.#options.onCancel(this, text);
  }

  #settle(answered: boolean): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.exchange.signal?.removeEventListener("abort", this.#onAbort);
    this.release?.(answered);
    this.#options.onSettled(this);
    return true;
  }
}

/** How much of an upstream's answer is believed: `bytes` of one message, and the shape of its JSON. */
export interface ReplyBounds {
  readonly bytes: number;
  readonly json: JsonBounds;
}

/** Reads one message of an upstream. Throws UPSTREAM_INVALID and says what was wrong with it. */
export function readReply(data: Uint8Array | string, bounds: ReplyBounds): JsonRpcMessage {
  if (data.length > bounds.bytes) throw oversized(bounds);
  try {
    return readJsonRpc(
      typeof data === "string" ? parseStrictText(data, bounds.json) : parseStrictJson(data, bounds.json),
    );
  } catch (cause) {
    throw new GatewayError("UPSTREAM_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
}

export function oversized(bounds: ReplyBounds): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", `expected a message of at most ${bounds.bytes} bytes, got more`);
}

const idPattern = /"id"\s*:\s*(\d{1,15})\s*[,}]/;

/**
 * The id in a message that cannot be read, from its first or last bytes; undefined where there is none to be seen.
 * Good for one thing only: failing that request instead of all of them.
 */
export function guessId(head: Uint8Array, tail: Uint8Array): number | undefined {
  const seen =
    idPattern.exec(Buffer.from(tail).toString("latin1")) ?? idPattern.exec(Buffer.from(head).toString("latin1"));
  return seen === null ? undefined : Number(seen[1]);
}
