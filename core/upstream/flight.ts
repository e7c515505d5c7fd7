import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../action/json-rpc.ts";
import type { Exchange } from "./connection.ts";

export interface FlightLimits {
  /** Maximum silence. */
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
}

/** The connection that a flight belongs to. */
export interface FlightOwner {
  /** Called once, however the flight ended. */
  onSettled(flight: Flight): void;
  /** The caller or a deadline ended the flight before its response: the upstream is to be informed. */
  onCancelled(flight: Flight, reason: string): void;
}

interface FlightOptions extends FlightLimits {
  readonly request: JsonRpcRequest;
  readonly exchange: Exchange;
  readonly clock: Clock;
  /** The caller's progress token, restored in notifications. */
  readonly progressToken: string | number | undefined;
  readonly owner: FlightOwner;
}

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
  #resolve!: (response: JsonRpcResponse) => void;
  #reject!: (reason: unknown) => void;
  #timer: NodeJS.Timeout | undefined;

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
    this.#timer = setTimeout(this.#onDeadline, Math.min(options.timeoutMs, options.maxTimeoutMs));
    options.exchange.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  resolve(response: JsonRpcResponse): void {
    if (this.#settle(true)) this.#resolve(response);
  }

  reject(reason: unknown): void {
    if (this.#settle(false)) this.#reject(reason);
  }

  /** Restarts the limit on silence after a sign of progress, up to the maximum time in all. */
  progress(): void {
    if (this.isSettled || this.#timer === undefined) return;
    const left = this.#hardEnd - this.#options.clock();
    if (left > this.#options.timeoutMs) {
      this.#timer.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onDeadline, Math.max(0, left));
  }

  /** Removes the deadlines: from now on only the caller or the upstream ends the flight. */
  liftDeadline(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #onDeadline = (): void => {
    const isHard = this.#options.clock() >= this.#hardEnd;
    const waitedMs = isHard ? this.#options.maxTimeoutMs : this.#options.timeoutMs;
    this.#cancel(
      new GatewayError("UPSTREAM_TIMEOUT", `expected an answer to \`${this.request.method}\` within ${waitedMs} ms`),
      "timeout",
    );
  };

  #onAbort = (): void => {
    this.#cancel(this.exchange.signal?.reason, "cancelled by the caller");
  };

  #cancel(error: unknown, reason: string): void {
    if (!this.#settle(false)) return;
    this.#reject(error);
    this.#options.owner.onCancelled(this, reason);
  }

  #settle(hasResponse: boolean): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    clearTimeout(this.#timer);
    this.exchange.signal?.removeEventListener("abort", this.#onAbort);
    this.release?.(hasResponse);
    this.#options.owner.onSettled(this);
    return true;
  }
}
