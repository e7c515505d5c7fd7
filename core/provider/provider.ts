import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { ModelApi } from "../action/model-api.ts";
import { type RetryDelays, retryDelay } from "../action/retry.ts";
import type { ProviderConfig } from "../config/gateway-config.ts";
import { type AnswerBounds, type Failure, notSent, readAnswer } from "./attempt.ts";
import { CircuitBreaker } from "./breaker.ts";
import type { Endpoint, Exchange, Head, ModelAnswer, ProviderEventSink } from "./exchange.ts";
import { ProviderSecret } from "./outgoing.ts";
import type { AnswerOptions } from "./wire/content.ts";

export interface ProviderPorts {
  readonly bounds: AnswerBounds;
  readonly delays: RetryDelays;
  readonly clock: Clock;
  readonly elapsedMs: () => number;
  readonly random: Random;
  readonly onEvent: ProviderEventSink;
}

/** A request as one provider takes it. */
interface ProviderRequest {
  /** JSON, in the provider's API. */
  readonly body: string;
  readonly stream: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly clientApi: ModelApi;
  readonly options: AnswerOptions;
  /** Whether an approval was used up for it. */
  readonly approved: boolean;
  readonly signal: AbortSignal;
}

/** One provider: its attempts, its limits, its health. */
export class Provider {
  readonly config: ProviderConfig;
  readonly breaker: CircuitBreaker;
  readonly #endpoint: Endpoint;
  readonly #ports: ProviderPorts;
  readonly #secret: ProviderSecret;
  #inFlight = 0;
  #lastFault: GatewayError | undefined;

  constructor(config: ProviderConfig, endpoint: Endpoint, ports: ProviderPorts) {
    const { name: provider } = config;
    this.config = config;
    this.#endpoint = endpoint;
    this.#ports = ports;
    this.#secret = new ProviderSecret(config.type === "mock" ? null : config.apiKey);
    this.breaker = new CircuitBreaker(config.breaker, ports.elapsedMs, (state) =>
      ports.onEvent({ kind: "breaker", provider, state }),
    );
  }

  get api(): ModelApi {
    return this.#endpoint.api;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Why the last attempt failed; undefined where it did not. */
  get lastFault(): GatewayError | undefined {
    return this.#lastFault;
  }

  /** Asks, and asks again where that is certain to be the first time the provider serves it. */
  async ask(request: ProviderRequest): Promise<ModelAnswer> {
    const { name: provider, maxRetries } = this.config;
    for (let failures = 1; ; failures++) {
      const result = await this.#attempt(request);
      if ("kind" in result) return result;
      this.#report(result.answer.error);
      if (failures > maxRetries || !mayRepeat(result, request)) return result.answer;
      const delayMs = retryDelay(failures, result.askedMs, this.#ports.delays, this.#ports.random);
      // Who asks to be left alone for longer than we wait is left alone; the client learns for how long.
      if (result.askedMs > delayMs) return result.answer;
      this.#ports.onEvent({ kind: "repeated", provider, attempt: failures + 1, delayMs });
      if (!(await pause(delayMs, request.signal))) return result.answer;
    }
  }

  async close(): Promise<void> {
    await this.#endpoint.close();
  }

  async #attempt(request: ProviderRequest): Promise<ModelAnswer | Failure> {
    const { maxConnections } = this.config;
    if (request.signal.aborted) return notSent(new GatewayError("CANCELLED"));
    if (this.#inFlight >= maxConnections) {
      return notSent(new GatewayError("PROVIDER_BUSY", `expected at most ${maxConnections} requests at once`));
    }
    const admission = this.breaker.admit();
    if (admission === undefined) return notSent(this.#restingError());
    this.#inFlight++;
    const exchange = new TimedExchange(this.#endpoint.send(request), this.config, request.signal, () => {
      this.#inFlight--;
      admission.ended();
    });
    const result = await readAnswer({
      ...request,
      exchange,
      admission,
      api: this.api,
      bounds: this.#ports.bounds,
      secret: this.#secret,
      clock: this.#ports.clock,
      onBroken: (error) => this.#report(error),
    });
    if ("kind" in result) this.#lastFault = undefined;
    return result;
  }

  #restingError(): GatewayError {
    const seconds = Math.max(1, Math.ceil(this.breaker.remainingMs / 1000));
    return new GatewayError("PROVIDER_UNAVAILABLE", `it keeps failing and is left alone for ${seconds} s`, {
      data: { retry_after_s: seconds },
    });
  }

  #report(error: GatewayError): void {
    if (error.code === "CANCELLED") return;
    this.#lastFault = error;
    const { name: provider } = this.config;
    this.#ports.onEvent({ kind: "failed", provider, code: error.code, detail: error.loggedDetail ?? "" });
  }
}

function mayRepeat({ again }: Failure, { approved }: ProviderRequest): boolean {
  return again === "always" || (again === "unapproved" && !approved);
}

interface TimeLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxTimeoutMs: number;
}

/**
 * An exchange that ends in time: PROVIDER_TIMEOUT, or CANCELLED where `signal` says that nobody wants it any more.
 * Silence counts only while somebody waits for the next bytes: a reader that takes its time is not the provider's fault.
 */
class TimedExchange implements Exchange {
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

/** Waits; false where the signal says that nobody waits any more. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (waited: boolean): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(waited);
    };
    const onAbort = (): void => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) end(false);
  });
}
