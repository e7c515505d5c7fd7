import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import {
  type JsonRpcMessage,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  readJsonRpc,
} from "../action/json-rpc.ts";
import { type JsonBounds, type JsonData, parseJsonInTurns, parseStrictJson } from "../action/strict-json.ts";
import { turnsOf } from "../store/pace.ts";
import type { Exchange } from "./connection.ts";

/** Carries JSON-RPC messages to one upstream and back, independent of handshake, era and policy. */
export interface McpTransport {
  /** True if closing a request's own stream cancels it, so that no notification is needed. */
  readonly hasRequestStreams: boolean;
  /** Must be called once, before anything is sent. */
  listen(listener: TransportListener): void;
  /** Sends the flight's request and settles the flight with its response or fault. */
  send(flight: Flight): void;
  /** Sends a message that has no response. Rejects with UPSTREAM_UNAVAILABLE or UPSTREAM_BUSY. */
  post(message: JsonRpcNotification | JsonRpcResponse): Promise<void>;
  /** Completes the handshake: names this revision in headers, and opens the server's own stream where there is one. */
  begin(revision: string, serverStream: boolean): void;
  /** Drops the session that the upstream lost: the next handshake starts without one. */
  forgetSession(): void;
  close(): Promise<void>;
}

/** Receives a transport's messages. `flight` is the request on whose own stream a message arrived. */
export interface TransportListener {
  onNotification(notification: JsonRpcNotification, flight: Flight | undefined): void;
  onRequest(request: JsonRpcRequest, flight: Flight | undefined): void;
  /**
   * The upstream lost this session, or may have (`isCertain` is false), and did not process the flight's request, where
   * there is one. Returns whether the listener handles the flight.
   */
  onSessionLost(flight: Flight | undefined, isCertain: boolean): boolean;
  /** The transport can no longer be used. Called at most once, and not after `close`. */
  onClose(error: GatewayError): void;
}

export interface FlightLimits {
  /** Maximum silence. */
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
}

/** The connection that a flight belongs to. */
export interface FlightOwner {
  /** The flights that have not ended, by the ids of their requests. Each adds and removes itself. */
  readonly flights: Map<number, Flight>;
  /** The caller or a deadline ended the flight before its response: the upstream is to be informed. */
  onCancelled(flight: Flight, reason: string): void;
}

interface FlightOptions extends FlightLimits {
  /** Its id is a number. */
  readonly request: JsonRpcRequest;
  readonly exchange: Exchange;
  readonly clock: Clock;
  /** The caller's progress token, restored in notifications. */
  readonly progressToken: string | number | undefined;
  readonly owner: FlightOwner;
}

/** The response of the upstream, or what ended a flight before it: a fault, or the reason of the caller's signal. */
type FlightEnd = { readonly response: JsonRpcResponse } | { readonly fault: unknown };

/** One request in flight: its promise, its two deadlines and its caller's signal. Settles exactly once. */
export class Flight {
  readonly request: JsonRpcRequest;
  readonly exchange: Exchange;
  readonly progressToken: string | number | undefined;
  readonly response: Promise<JsonRpcResponse>;
  /** Set by the transport: releases its resources for this flight. */
  release: ((hasResponse: boolean) => void) | undefined;
  /** True if the request was sent again after the upstream had refused it unread. */
  isResent = false;
  /** True if the flight has ended. Written by this class only. */
  isSettled = false;
  readonly #options: FlightOptions;
  readonly #hardEnd: number;
  /** The time allowed by the limit that the timer is set for. */
  #allowedMs: number;
  #resolve!: (response: JsonRpcResponse) => void;
  #reject!: (reason: unknown) => void;
  #timer: NodeJS.Timeout;
  #isUnlimited = false;

  constructor(options: FlightOptions) {
    this.request = options.request;
    this.exchange = options.exchange;
    this.progressToken = options.progressToken;
    this.#options = options;
    this.#hardEnd = options.clock() + options.maxTimeoutMs;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#allowedMs = Math.min(options.timeoutMs, options.maxTimeoutMs);
    this.#timer = setTimeout(this.#onDeadline, this.#allowedMs);
    options.exchange.signal?.addEventListener("abort", this.#onAbort, { once: true });
    options.owner.flights.set(options.request.id as number, this);
  }

  /** Ends the flight. Returns false where it had ended. Throws UPSTREAM_INVALID for the response to another request. */
  settle(end: FlightEnd): boolean {
    if (this.isSettled) return false;
    const hasResponse = "response" in end;
    if (hasResponse && end.response.id !== this.request.id && end.response.id !== null) throw misdirected();
    this.isSettled = true;
    clearTimeout(this.#timer);
    this.exchange.signal?.removeEventListener("abort", this.#onAbort);
    this.release?.(hasResponse);
    this.#options.owner.flights.delete(this.request.id as number);
    if (hasResponse) this.#resolve(end.response);
    else this.#reject(end.fault);
    return true;
  }

  /** Restarts the limit on silence after a sign of progress, up to the maximum time in all. */
  progress(): void {
    if (this.isSettled || this.#isUnlimited) return;
    const { timeoutMs, maxTimeoutMs, clock } = this.#options;
    const left = this.#hardEnd - clock();
    clearTimeout(this.#timer);
    this.#allowedMs = left > timeoutMs ? timeoutMs : maxTimeoutMs;
    this.#timer = setTimeout(this.#onDeadline, Math.max(0, Math.min(left, timeoutMs)));
  }

  /** Stops the deadlines until `progress`: the time that the gateway takes is not the upstream's. */
  holdDeadline(): void {
    clearTimeout(this.#timer);
  }

  /** Removes the deadlines: from now on only the caller or the upstream ends the flight. */
  liftDeadline(): void {
    this.#isUnlimited = true;
    clearTimeout(this.#timer);
  }

  #onDeadline = (): void => {
    const expected = `expected an answer to \`${this.request.method}\` within ${this.#allowedMs} ms`;
    this.#cancel(new GatewayError("UPSTREAM_TIMEOUT", expected), "timeout");
  };

  #onAbort = (): void => {
    this.#cancel(this.exchange.signal?.reason, "cancelled by the caller");
  };

  #cancel(fault: unknown, reason: string): void {
    if (this.settle({ fault })) this.#options.owner.onCancelled(this, reason);
  }
}

/** The fault of a response whose id is not that of the request it came for. */
export function misdirected(): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", "expected the id of this request, got another");
}

/** Limits of an upstream's message: its length in bytes, and the shape of its JSON. */
export interface ReplyBounds {
  readonly bytes: number;
  readonly json: JsonBounds;
}

/** Parses one message of an upstream. Throws UPSTREAM_INVALID with the fault found in it. */
export function readReply(data: JsonData, bounds: ReplyBounds): JsonRpcMessage {
  if (data.length > bounds.bytes) throw oversizedReply(bounds);
  try {
    return readJsonRpc(parseStrictJson(data, bounds.json));
  } catch (cause) {
    throw unreadableReply(cause);
  }
}

/** Parses a long message as `readReply` does, over several turns. `pause` resolves in the next one. */
export async function readReplyInTurns(
  data: JsonData,
  bounds: ReplyBounds,
  pause: () => Promise<void>,
): Promise<JsonRpcMessage> {
  if (data.length > bounds.bytes) throw oversizedReply(bounds);
  const turns = turnsOf(pause);
  try {
    return readJsonRpc(await parseJsonInTurns(data, bounds.json, turns));
  } catch (cause) {
    throw unreadableReply(cause);
  }
}

function unreadableReply(cause: unknown): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", GatewayError.from(cause).publicMessage, { cause });
}

export function oversizedReply(bounds: ReplyBounds): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", `expected a message of at most ${bounds.bytes} bytes, got more`);
}

const idPattern = /"id"\s*:\s*(\d{1,15})\s*[,}]/;

/**
 * Guesses the id of a message that cannot be parsed, from its first or last bytes; undefined where none is found.
 * Only ever used to fail that one request instead of the whole connection.
 */
export function guessId(head: Uint8Array, tail: Uint8Array): number | undefined {
  const found =
    idPattern.exec(Buffer.from(tail).toString("latin1")) ?? idPattern.exec(Buffer.from(head).toString("latin1"));
  return found === null ? undefined : Number(found[1]);
}

const burst = 5_000;
const refillPerMs = 1;
const bytesPerUnit = 4_096;

/**
 * Limits the unsolicited messages of an upstream to 5,000 at once and 1,000 a second after that, where each started
 * 4 KiB of a message counts as one more.
 */
export class FloodGate {
  readonly #clock: Clock;
  #units: number = burst;
  #refilledAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#refilledAt = clock();
  }

  /** Counts a message of so many bytes. Throws UPSTREAM_INVALID beyond the limit. */
  admit(bytes: number): void {
    const now = this.#clock();
    this.#units = Math.min(burst, this.#units + Math.max(0, now - this.#refilledAt) * refillPerMs);
    this.#refilledAt = now;
    this.#units -= 1 + Math.floor(bytes / bytesPerUnit);
    if (this.#units < 0) {
      throw new GatewayError("UPSTREAM_INVALID", "the upstream floods the gateway with messages");
    }
  }
}
