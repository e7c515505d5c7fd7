import { GatewayError } from "../../kernel/error.ts";
import type { Exchange, Head } from "../exchange.ts";
import { pause } from "../pause.ts";

/** An answer as it is going to be given. */
export interface Performance {
  readonly head: Head;
  /** Before the first byte. */
  readonly stallMs: number;
  /** Before each further chunk. */
  readonly pauseMs: number;
  readonly chunks: readonly Uint8Array[];
  /** Whether the connection is lost after the chunks. */
  readonly dies: boolean;
}

/** An exchange with nobody: the answer is known from the start. */
export class MockExchange implements Exchange {
  readonly reached = true;
  readonly #performance: Performance;
  readonly #onEnd: () => void;
  readonly #stop: AbortController = new AbortController();
  #error: GatewayError | undefined;
  #next = 0;
  #stalled = false;

  constructor(performance: Performance, onEnd: () => void) {
    this.#performance = performance;
    this.#onEnd = onEnd;
  }

  async head(): Promise<Head> {
    await this.#stall();
    return this.#performance.head;
  }

  async read(): Promise<Uint8Array | undefined> {
    const { chunks, pauseMs, dies } = this.#performance;
    await this.#stall();
    if (this.#next > 0) await this.#wait(pauseMs);
    const chunk = chunks[this.#next++];
    if (chunk === undefined && dies) this.fail(new GatewayError("PROVIDER_UNAVAILABLE", "the connection failed"));
    if (this.#error !== undefined) throw this.#error;
    if (chunk === undefined) this.#onEnd();
    return chunk;
  }

  fail(error: GatewayError): void {
    this.#error ??= error;
    this.#stop.abort();
    this.#onEnd();
  }

  async #stall(): Promise<void> {
    if (this.#stalled) return;
    this.#stalled = true;
    await this.#wait(this.#performance.stallMs);
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await pause(ms, this.#stop.signal);
    if (this.#error !== undefined) throw this.#error;
  }
}
