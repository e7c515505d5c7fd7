import { GatewayError } from "../kernel/error.ts";
import type { Exchange, Head } from "./exchange.ts";

export interface TimeLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxTimeoutMs: number;
}

/**
 * An exchange that ends in time: PROVIDER_TIMEOUT, or CANCELLED where `signal` says that nobody wants it any more.
 * Silence counts only while somebody waits for the next bytes: a reader that takes its time is not the provider's fault.
 */
export class TimedExchange implements Exchange {
  readonly #exchange: Exchange;
  readonly #limits: TimeLimits;
  readonly #signal: AbortSignal;
  readonly #onReleased: () => void;
  readonly #onAbort = (): void => this.fail(new GatewayError("CANCELLED", "nobody waits for the answer any more"));
  readonly #longest: NodeJS.Timeout;
  #silence: NodeJS.Timeout;
  #begun = false;
  #released = false;

  /** `onReleased` is told once, when the connection is no longer needed. */
  constructor(exchange: Exchange, limits: TimeLimits, signal: AbortSignal, onReleased: () => void) {
    this.#exchange = exchange;
    this.#limits = limits;
    this.#signal = signal;
    this.#onReleased = onReleased;
    this.#longest = this.#expire("in all", limits.maxTimeoutMs);
    this.#silence = this.#expire("to the first byte", limits.firstByteTimeoutMs);
    signal.addEventListener("abort", this.#onAbort);
    if (signal.aborted) this.#onAbort();
  }

  get reached(): boolean {
    return this.#exchange.reached;
  }

  async head(): Promise<Head> {
    try {
      return await this.#exchange.head();
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#begun) this.#silence = this.#expire("since the last byte", this.#limits.idleTimeoutMs);
    try {
      const chunk = await this.#exchange.read();
      if (chunk === undefined) this.#release();
      return chunk;
    } catch (error) {
      this.#release();
      throw error;
    } finally {
      this.#begun = true;
      clearTimeout(this.#silence);
    }
  }

  fail(error: GatewayError): void {
    this.#release();
    this.#exchange.fail(error);
  }

  #expire(since: string, ms: number): NodeJS.Timeout {
    return setTimeout(
      () => this.fail(new GatewayError("PROVIDER_TIMEOUT", `expected more within ${ms} ms ${since}`)),
      ms,
    );
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    clearTimeout(this.#longest);
    clearTimeout(this.#silence);
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#onReleased();
  }
}
