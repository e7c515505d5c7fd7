import type { ReadableSpan, SpanProcessor } from "@opentelemetry/sdk-trace";
import type { Random } from "../../kernel/port.ts";
import { type RetryDelays, retryDelay } from "../../kernel/retry.ts";
import type { TellResult } from "../telemetry-metrics.ts";
import type { Delivery } from "./sender.ts";

export interface SpanQueueOptions {
  /** Spans that wait. */
  readonly most: number;
  /** Never rejects. */
  readonly send: (spans: ReadableSpan[]) => Promise<Delivery>;
  readonly count: (result: TellResult, spans: number) => void;
  readonly random: Random;
  readonly delays?: RetryDelays;
}

/** Writing so many into one request takes the event loop no longer than a call does. */
const mostTogether = 256;
/** From the first span that waits to the request that takes it along. */
const gatherMs = 1_000;
const mostAttempts = 4;
const usualDelays: RetryDelays = { firstMs: 1_000, longestMs: 8_000 };
const closeMs = 3_000;

/**
 * Spans on their way to the collector. At most `most` wait; one request is under way at a time. What comes beyond, what a
 * collector refuses, and what it does not take in four attempts is gone, and counted.
 */
export class SpanQueue implements SpanProcessor {
  readonly #options: SpanQueueOptions;
  #waiting: ReadableSpan[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #draining: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  onStart(): void {
    // A span is told of once it has ended.
  }

  onEnd(span: ReadableSpan): void {
    if (this.#closing.signal.aborted || this.#waiting.length >= this.#options.most) {
      this.#options.count("dropped", 1);
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= mostTogether) void this.forceFlush();
    else this.#gathering ??= setTimeout(() => void this.forceFlush(), gatherMs).unref();
  }

  /** Resolves once nothing waits. */
  forceFlush(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
    });
    return this.#draining;
  }

  /** Gives what waits one more chance, for at most 3 s; the rest is dropped. */
  async shutdown(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    const patience = pause(closeMs, undefined);
    await Promise.race([this.forceFlush(), patience.over]);
    patience.end();
    this.#options.count("dropped", this.#waiting.splice(0).length);
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, mostTogether);
      this.#options.count((await this.#deliver(batch)) ? "sent" : "failed", batch.length);
    }
  }

  async #deliver(batch: ReadableSpan[]): Promise<boolean> {
    const { send, random, delays = usualDelays } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const delivery = await send(batch);
      if (delivery !== "again") return delivery === "sent";
      if (attempt === mostAttempts || this.#closing.signal.aborted) return false;
      await pause(retryDelay(attempt, 0, delays, random), this.#closing.signal).over;
    }
  }
}

/** A time that keeps no process alive, and is over early where `signal` aborts. */
function pause(ms: number, signal: AbortSignal | undefined): { readonly over: Promise<void>; end(): void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms).unref();
    end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal?.addEventListener("abort", end, { once: true });
  });
  return { over: over.finally(() => signal?.removeEventListener("abort", end)), end };
}
